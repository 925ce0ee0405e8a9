package machineset_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// reserved is a set of three that gave out its names ten seconds ago, and has
// told of the machines that came.
func reserved(t *testing.T) (*machineset.Observation, *machineset.Policy) {
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
	for decisions := 0; ; decisions++ { // up to where only the reservation may be left to write
		require.Less(t, decisions, 10, "the status is written again and again")
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		status, told := plan.Write.(*machineset.UpdateStatus)
		if !told {
			return o, p
		}
		set.Status = status.Status
	}
}

// refused has the set wait for two minutes.
func refused(o *machineset.Observation, p *machineset.Policy) {
	o.Failures = 6 // three minutes
	op := &o.Set.Status.LastOperation
	op.State, op.Time, op.Against.Machine = machine.StateFailed, morning, o.Set.Generation
}

// TestSettleWithin: names that all became machines are left open for as long
// as the policy says, and no longer than until one of the machines is about to go.
func TestSettleWithin(t *testing.T) {
	const waits, settles, goesOn, deletes = "waits", "settles", "reserves the next", "deletes"
	const again, reads = "makes it again", "reads live"
	for name, line := range map[string]struct {
		change func(*machineset.Observation, *machineset.Policy)
		after  time.Duration
		want   string
	}{
		"":                      {want: waits},
		"almost all its time":   {after: 50*time.Second - 1, want: waits},
		"its time is over":      {after: 50 * time.Second, want: settles},
		"the policy waits none": {change: func(_ *machineset.Observation, p *machineset.Policy) { p.SettleWithin = 0 }, want: settles},
		"it is from far ahead": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Instructions.Reservation.At = morning.Add(time.Hour)
			}, want: settles,
		},
		"a machine is going": {
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
		"one is gone":                            {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Machines = o.Machines[1:] }, want: goesOn},
		"one is gone, and another process made them": {
			change: func(o *machineset.Observation, _ *machineset.Policy) { o.Machines, o.Created = o.Machines[1:], 0 }, want: again,
		},
		"the cache has not caught up": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Machines, o.Read = o.Machines[1:], decision.Freshness{}
			}, want: reads,
		},
		"one is too many": {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Set.Spec.Replicas = 2 }, want: settles},
		"one has failed": {change: func(o *machineset.Observation, _ *machineset.Policy) {
			o.Machines[0].Status.Phase = machine.PhaseFailed
		}, want: settles},
		"another is wanted": {change: func(o *machineset.Observation, _ *machineset.Policy) { o.Set.Spec.Replicas = 4 }, want: goesOn},
		"one lost its owner": {
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Machines[2].Owner, o.Machines[2].Labels = nil, nil
				o.Machines, o.Orphans, o.Set.Spec.Replicas = o.Machines[:2], o.Machines[2:], 2
			}, want: settles,
		},
		"an order was refused":                       {change: refused, want: waits},
		"an order was refused, and its time is over": {change: refused, after: 50 * time.Second, want: settles},
		"an order was refused, and a machine is going": {
			change: func(o *machineset.Observation, p *machineset.Policy) {
				refused(o, p)
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
		"one is not there, and one is too many": { // what is open is not touched
			change: func(o *machineset.Observation, _ *machineset.Policy) {
				o.Set.Spec.Replicas, o.Machines, o.Created = 1, o.Machines[:2], 6
			}, want: deletes,
		},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := reserved(t)
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
				require.Equal(t, morning.Add(50*time.Second), plan.At, "looks again")
			case settles:
				require.NotNil(t, write, "%s", plan.Why)
				require.Equal(t, machineset.Reservation{Settled: 7, Reserved: 7, At: before.At}, write.Set.Instructions.Reservation)
			case goesOn:
				require.NotNil(t, write, "%s", plan.Why)
				require.Equal(t, machineset.Reservation{Settled: 7, Reserved: 8, At: morning}, write.Set.Instructions.Reservation)
			case again: // it can't tell the one that is gone from one that is yet to come
				require.Len(t, plan.Create, 1, "%s", plan.Why)
				require.Equal(t, int64(5), plan.Create[0].Ordinal)
			case reads:
				require.True(t, plan.ReadLive, "%s", plan.Why)
			case deletes:
				require.Len(t, plan.Delete, 1, "%s", plan.Why)
			}
		})
	}
}
