package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
)

// waitsFor are the reasons that name what a pass which ordered nothing waits for.
var waitsFor = map[rollout.Reason]bool{
	rollout.ReasonFloor: true, rollout.ReasonRemoval: true, rollout.ReasonNewUnavailable: true,
	rollout.ReasonOldPresent: true, rollout.ReasonUpdating: true, rollout.ReasonUnselected: true, rollout.ReasonUnfit: true, rollout.ReasonPaused: true,
	rollout.ReasonUnseen: true, rollout.ReasonStopped: true,
}

// TestP7UnderFaults: every order obeys the rules of chaos.check, in every interleaving, with stale
// reads, crashes, refusals and people who meddle: P7 and P9 for sizes, P10 for owners, P12 for new
// sets, P25 while being deleted.
// Invariants: P6 P7 P10
func TestP7UnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.move()
		}
	})
}

// TestP7EndToEnd: without failures and without a change of R or the bounds, the fleet itself never
// leaves the bounds in any order of events, not even for a moment: every machine a set deletes was
// spare.
// Invariants: P7
func TestP7EndToEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.rest(), 0)
		c.hire()
		spec := &c.deployment.Spec
		ceiling, floor := limitsOf(spec)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.move()
			total, usable, now := c.sums()
			require.LessOrEqual(t, total, ceiling, "P7: machines in all: %s", c)
			require.GreaterOrEqual(t, now, floor, "P7: machines available: %s", c)
			require.GreaterOrEqual(t, usable, floor, "P7: machines available once the sets have followed: %s", c)
		}
	})
}

// TestP3Converges: once faults stop, the fleet comes to the wanted template
// and size in a bounded number of decisions, and every pass that ends without
// an order says that it is done or names what it waits for.
// Invariants: P3 P21
func TestP3Converges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.move()
		}
		c.observe = func(o *deployment.Observation, p deployment.Plan) {
			if p.At.IsZero() {
				return
			}
			switch {
			case p.Why.Reason == deployment.ReasonThrottled, deployment.RolloutOf(p.Why).Reason == rollout.ReasonDone:
				total, usable := outlook(o, c.now)
				require.Equal(t, int(o.Deployment.Spec.Replicas), total, "P3: done, it says: %s", c)
				require.Equal(t, total, usable, "P3: done, it says: %s", c)
			case p.Why.Reason == deployment.ReasonBatched:
				require.False(t, p.At.After(c.now.Add(c.patience)), "P21: orders gather for longer than they may")
			case p.Why.Reason == deployment.ReasonSeen, p.Why.Reason == deployment.ReasonNameFree:
			case o.Deployment.Spec.Paused: // a user continues a rollout that has stopped
			case !waitsFor[deployment.RolloutOf(p.Why).Reason]:
				t.Fatalf("P3: waiting for nothing: %s", p.Why)
			}
			require.False(t, p.At.Before(c.now), "P21: waiting for the past")
			require.False(t, p.At.After(c.now.Add(c.shell.p.Resync)), "P21: waiting for longer than Resync")
		}
		decisions := c.rest()
		require.GreaterOrEqual(t, decisions, 0, "P3: never converges: %s", c)
		// Each machine is replaced in a decision or two, of at most 6 steps.
		require.LessOrEqual(t, decisions, 12*(len(c.sets)+9+4))
		requireComplete(t, c.world)
	})
}

// requireComplete requires all machines of the deployment in one set of the wanted template, and a
// status that says so.
func requireComplete(t require.TestingT, w *world) {
	d := w.deployment
	sets := 0
	for _, s := range w.setsOf(d.UID) {
		n := w.numbers(s)
		if s.Spec.Template.Spec.Class == d.Spec.Template.Spec.Class && n.spec == int(d.Spec.Replicas) {
			sets++
		} else if n.spec != 0 || n.actual != 0 {
			require.Fail(t, "P3: an old set has machines left: "+w.String())
			continue
		}
		if n.spec == int(d.Spec.Replicas) && n.spec > 0 {
			require.Equal(t, n.spec, n.available, "P3: %s", w)
		}
	}
	require.Positive(t, sets, "P3: no set of the wanted template: %s", w)
	require.Equal(t, d.Spec.Replicas, d.Status.Updated)
	require.Equal(t, d.Spec.Replicas, d.Status.Available)
	require.Equal(t, d.Generation, d.Status.ObservedGeneration)
}

// TestP28SettledIsQuiet: while the deployment is settled and unchanged, nothing is written, ordered
// or read live, now and after every resync.
// Invariants: P28
func TestP28SettledIsQuiet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			c.move()
		}
		require.GreaterOrEqual(t, c.rest(), 0)
		c.observe = func(_ *deployment.Observation, p deployment.Plan) {
			require.Nil(t, p.Write, "P28: %s", p.Why)
			require.False(t, p.ReadLive, "P28: %s", p.Why)
			for kind, orders := range ordersOf(&p) {
				require.Empty(t, orders, "P28: %s", kind)
			}
		}
		for range 3 {
			plan := c.shell.pass()
			c.now = plan.At
		}
		c.hire() // and after a restart
		c.shell.age = nil
		c.shell.pass()
	})
}

// TestP25Deleted: a deployment that is being deleted only ever deletes, and goes when its sets are
// gone, with any faults.
// Invariants: P25
func TestP25Deleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 60).Draw(t, "steps before") {
			c.move()
		}
		uid := c.deployment.UID
		c.deleteDeployment()
		for range rapid.IntRange(1, 60).Draw(t, "steps after") {
			c.move()
			if c.deployment == nil {
				break
			}
		}
		require.GreaterOrEqual(t, c.rest(), 0)
		require.Nil(t, c.deployment)
		require.Empty(t, c.setsOf(uid))
	})
}
