package machineset_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// callLog counts the calls of a process and the reasons of its orders.
type callLog struct {
	calls map[string]int
	lines []string
	why   map[decision.Reason]int // of orders
}

func (l *callLog) record(p *process) {
	l.calls, l.why, l.lines = map[string]int{}, map[decision.Reason]int{}, nil
	p.trace = func(verb, name, why string) {
		l.calls[verb]++
		l.lines = append(l.lines, strings.Join([]string{verb, name, why}, " "))
	}
	p.decided = func(_ *machineset.Observation, plan machineset.Plan) {
		for _, orders := range [][]machineset.Order{plan.Create, plan.Delete} {
			for _, order := range orders {
				l.why[order.Why.Reason]++
			}
		}
	}
}

// anyWorld is a store that holds anything, and a process that meets no faults.
func anyWorld(t *rapid.T) (*world, *process) {
	set := anySet(t)
	set.Spec.Replicas = min(set.Spec.Replicas, 20)
	w := newWorld(set)
	for _, m := range anyMachines(t, set, 10) {
		if m.Name != "" {
			w.put(m)
		}
	}
	p := newProcess(w, anyPolicy(t))
	p.policy.RetryMax = time.Hour
	return w, p
}

// TestPassFromAnyState: whatever the store holds, a pass ends. It does not both delete surplus machines and
// create others. A further pass, on caches that do not show the first one yet, creates and deletes nothing.
// Invariants: P5
func TestPassFromAnyState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := anyWorld(t)
		var did callLog
		did.record(p)
		require.True(t, p.run(), "the pass does not end")
		require.NoError(t, p.err)
		if did.why[machineset.ReasonSurplus] > 0 {
			require.Zero(t, did.calls["create"], did.lines)
		}
		p.floor = 0
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "snapshot") }
		for range 3 {
			var again callLog
			again.record(p)
			p.floor = 0
			require.True(t, p.run())
			require.Zero(t, again.calls["create"]+again.calls["delete"], "P5: %v\nthen %v", did.lines, again.lines)
		}
		if w.set != nil && w.set.Validate() == nil && !w.set.Deleted() && w.set.Labels == nil && !w.unsettled() && !w.moving() {
			require.Len(t, w.active(), int(w.set.Spec.Replicas), did.lines)
		}
	})
}

func (w *world) unsettled() bool {
	return w.set.Instructions.Reservation.Settled < w.set.Instructions.Reservation.Reserved || w.set.Status.LastOperation.State == machine.StateFailed
}

// moving reports whether a handover affects the number of the set's machines.
func (w *world) moving() bool {
	h := &w.set.Instructions.Handover
	return w.set.Owner != nil && (h.Closed || len(h.Arriving)+len(h.Leaving) > 0)
}

// TestSettledSetIsLeftAlone: once a set has what it asks for, further passes make no calls, whether they read
// live or not.
// Invariants: P28
func TestSettledSetIsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := anyWorld(t)
		p.frozen = rapid.IntRange(0, 4).Draw(t, "frozen") == 0
		w.edit(func(s *machineset.Set) { s.Spec.MinReady = min(s.Spec.MinReady, 10*time.Minute) })
		for range 8 { // let every wait run out
			require.True(t, p.run())
			w.removeDeleted()
			w.advance(10 * time.Minute)
		}
		for range 5 {
			var did callLog
			did.record(p)
			if rapid.Bool().Draw(t, "new process") {
				p.die()
			}
			require.True(t, p.run())
			require.LessOrEqual(t, len(did.lines), 1, "P28: %v", did.lines)
			w.advance(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
		}
	})
}

// TestBigSetNeedsFewSteps: few plans create 1,000 machines in bursts of 100, and few delete them.
func TestBigSetNeedsFewSteps(t *testing.T) {
	w := newWorld(newSet(1000))
	p := newProcess(w, machineset.DefaultPolicy())
	plans := 0
	p.decided = func(*machineset.Observation, machineset.Plan) { plans++ }
	require.True(t, p.runLong())
	require.Len(t, w.active(), 1000)
	require.LessOrEqual(t, plans, 10*2+5)

	w.edit(func(s *machineset.Set) { s.Spec.Replicas = 0 })
	plans = 0
	w.advance(time.Minute)
	require.True(t, p.runLong())
	require.Empty(t, w.active())
	require.LessOrEqual(t, plans, 10+3)
}

// runLong is run for sets of a thousand.
func (p *process) runLong() bool {
	for range 10 {
		if p.run() {
			return true
		}
	}
	return false
}

// reservationOfThree returns a set of three that reserved its names ten seconds ago. All became machines, and
// its status is up to date.
func reservationOfThree(t *testing.T) (*machineset.Observation, *machineset.Policy) {
	set, p := newSet(3), machineset.DefaultPolicy()
	set.Finalizers = []string{machineset.Finalizer}
	set.Instructions.Reservation = machineset.Reservation{Settled: 4, Reserved: 7, At: morning.Add(-10 * time.Second)}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}, Created: 7}
	for n := range int64(3) {
		m := &machine.Machine{Meta: object.Meta{
			Key: object.Key{Namespace: set.Namespace, Name: set.MachineName(5 + n)}, UID: fmt.Sprint(n),
			CreatedAt: morning, Labels: set.Spec.Template.Labels, Finalizers: []string{machine.Finalizer},
			Owner: &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID},
		}}
		m.Spec = set.Spec.Template.Spec
		m.Status = machine.Status{Phase: machine.PhaseRunning, Since: morning}
		o.Machines = append(o.Machines, m)
	}
	p.SettleWithin = time.Minute
	for decisions := 0; ; decisions++ { // until only the reservation may be left to write
		require.Less(t, decisions, 10, "the status is written again and again")
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		status, ok := plan.Write.(*machineset.UpdateStatus)
		if !ok {
			return o, p
		}
		set.Status = status.Status
	}
}

// refuseOrder has the set wait for 2 min 40 s, because of refused orders.
func refuseOrder(o *machineset.Observation, p *machineset.Policy) {
	o.Failures = 6
	op := &o.Set.Status.LastOperation
	op.State, op.Time, op.Against.Machine = machine.StateFailed, morning, o.Set.Generation
}

// TestSettleWithin: a reservation whose names all became machines stays open for Policy.SettleWithin, but not
// after one of these machines is about to disappear.
func TestSettleWithin(t *testing.T) {
	const waits, settles, reservesMore, deletes = "waits", "settles", "reserves the next", "deletes"
	const createsAgain, readsLive = "creates it again", "reads live"
	for name, line := range map[string]struct {
		change func(*machineset.Observation, *machineset.Policy)
		after  time.Duration
		want   string
	}{
		"":                      {want: waits},
		"almost all its time":   {after: 50*time.Second - 1, want: waits},
		"its time is over":      {after: 50 * time.Second, want: settles},
		"the policy waits none": {change: func(_ *machineset.Observation, p *machineset.Policy) { p.SettleWithin = 0 }, want: settles},
		"its time is far in the future": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Instructions.Reservation.At = morning.Add(time.Hour)
			}, want: settles,
		},
		"a machine is being deleted": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Spec.Replicas, o.Machines[1].DeletedAt = 2, morning
			}, want: settles,
		},
		"a machine is about to be handed over": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Owner = &object.Owner{Kind: "Deployment", Name: "web", UID: "d"}
				o.Set.Spec.Replicas, o.Set.Instructions.Handover.Leaving = 2, []string{o.Machines[1].Name}
			}, want: settles,
		},
		"another process made them":              {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Created = 0 }, want: settles},
		"this process does not know of the last": {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Created = 6 }, want: settles},
		"one is gone":                            {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Machines = o.Machines[1:] }, want: reservesMore},
		"one is gone, and another process made them": {
			change: func(o *machineset.Observation, _ *machineset.Policy) { o.Machines, o.Created = o.Machines[1:], 0 }, want: createsAgain,
		},
		"the cache has not caught up": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Machines, o.Read = o.Machines[1:], decision.Freshness{}
			}, want: readsLive,
		},
		"one is too many": {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Set.Spec.Replicas = 2 }, want: settles},
		"one has failed": {change: func(o *machineset.Observation, _ *machineset.Policy) {
			o.Machines[0].Status.Phase = machine.PhaseFailed
		}, want: settles},
		"another is wanted": {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Set.Spec.Replicas = 4 }, want: reservesMore},
		"one lost its owner": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Machines[2].Owner, o.Machines[2].Labels = nil, nil
				o.Machines, o.Orphans, o.Set.Spec.Replicas = o.Machines[:2], o.Machines[2:], 2
			}, want: settles,
		},
		"an order was refused":                       {change: refuseOrder, want: waits},
		"an order was refused, and its time is over": {change: refuseOrder, after: 50 * time.Second, want: settles},
		"an order was refused, and a machine is being deleted": {
			change: func(o *machineset.Observation, p *machineset.Policy) {
				refuseOrder(o, p)
				o.Machines[1].DeletedAt = morning
			}, want: settles,
		},
		"the set goes and leaves its machines": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.DeletedAt = morning
				o.Set.Finalizers = append(o.Set.Finalizers, object.OrphanDependents)
			}, want: settles,
		},
		"settled, and one is too many": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Spec.Replicas, o.Set.Instructions.Reservation.Settled = 2, 7
			}, want: deletes,
		},
		"one is not there, and one is too many": { // the open reservation is not touched
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Spec.Replicas, o.Machines, o.Created = 1, o.Machines[:2], 6
			}, want: deletes,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := reservationOfThree(t)
			if line.change != nil {
				line.change(o, p)
			}
			before := o.Set.Instructions.Reservation
			plan, err := machineset.Decide(o, p, morning.Add(line.after))
			require.NoError(t, err)
			write, _ := plan.Write.(*machineset.Update)
			switch line.want {
			case waits:
				require.Nil(t, plan.Write)
				require.Equal(t, morning.Add(50*time.Second), plan.At, "the next decision is due when the time is over")
			case settles:
				require.NotNil(t, write, "%s", plan.Why)
				require.Equal(t, machineset.Reservation{Settled: 7, Reserved: 7, At: before.At}, write.Set.Instructions.Reservation)
			case reservesMore:
				require.NotNil(t, write, "%s", plan.Why)
				require.Equal(t, machineset.Reservation{Settled: 7, Reserved: 8, At: morning}, write.Set.Instructions.Reservation)
			case createsAgain: // it can't tell a machine that is gone from one that is not created yet
				require.Len(t, plan.Create, 1, "%s", plan.Why)
				require.Equal(t, int64(5), plan.Create[0].Ordinal)
			case readsLive:
				require.True(t, plan.ReadLive, "%s", plan.Why)
			case deletes:
				require.Len(t, plan.Delete, 1, "%s", plan.Why)
			}
		})
	}
}
