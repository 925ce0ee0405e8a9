package machineset_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// ledger counts what a process does.
type ledger struct {
	calls map[string]int
	lines []string
	why   map[decision.Reason]int // of orders
}

func (l *ledger) keep(p *process) {
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

// TestPassFromAnyState is P5 and P8 over whole passes: for anything that the
// store holds, a pass ends; it does not create and delete for the sake of numbers;
// and a pass after it, on caches that know nothing of it, orders nothing more.
// Invariants: P5
func TestPassFromAnyState(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := anyWorld(t)
		var did ledger
		did.keep(p)
		require.True(t, p.run(), "the pass does not end")
		require.NoError(t, p.err)
		if did.why[machineset.ReasonSurplus] > 0 {
			require.Zero(t, did.calls["create"], did.lines)
		}
		p.floor = 0
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "snapshot") }
		for range 3 {
			var again ledger
			again.keep(p)
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

// moving reports whether the set has to mind notes of machines on their way.
func (w *world) moving() bool {
	h := &w.set.Instructions.Handover
	return w.set.Owner != nil && (h.Closed || len(h.Arriving)+len(h.Leaving) > 0)
}

// TestSettledSetIsLeftAlone is P28: once a set has what it asks for, any number
// of looks at it, live or not, leads to no call at all.
// Invariants: P28
func TestSettledSetIsLeftAlone(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := anyWorld(t)
		p.frozen = rapid.IntRange(0, 4).Draw(t, "frozen") == 0
		w.edit(func(s *machineset.Set) { s.Spec.MinReady = min(s.Spec.MinReady, 10*time.Minute) })
		for range 8 { // let every wait run out
			require.True(t, p.run())
			w.finish()
			w.advance(10 * time.Minute)
		}
		for range 5 {
			var did ledger
			did.keep(p)
			if rapid.Bool().Draw(t, "new process") {
				p.die()
			}
			require.True(t, p.run())
			require.LessOrEqual(t, len(did.lines), 1, "P28: %v", did.lines)
			w.advance(time.Duration(rapid.IntRange(0, 3600).Draw(t, "seconds")) * time.Second)
		}
	})
}

// TestBigSetNeedsFewSteps: 1,000 machines in bursts of 100, up and down.
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
