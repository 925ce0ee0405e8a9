package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

// limitsOf returns how many machines there may be, and how many must stay available.
func limitsOf(spec *deployment.Spec) (ceiling, floor int) {
	if spec.Strategy.Kind == deployment.Recreate {
		return int(spec.Replicas), 0
	}
	b := rollout.Fenceposts(spec.Strategy.MaxSurge, spec.Strategy.MaxUnavailable, spec.Replicas)
	return int(spec.Replicas + b.Surge), max(0, int(spec.Replicas-b.Unavailable))
}

// checkHeld checks that a resizing does nothing that a pause or the strategy Recreate forbids.
func (c *chaos) checkHeld(order deployment.Order, pass *deployment.Deployment) {
	raised := order.Why.Want > order.Why.Have
	if !raised {
		if pass.Spec.Paused && deployment.RolloutOf(order.Why).Reason == rollout.ReasonRecreate {
			c.t.Fatalf("rolled while paused: %s", order.Why)
		}
		return
	}
	if pass.Spec.Strategy.Kind != deployment.Recreate {
		return
	}
	for _, child := range c.shell.o.Sets {
		if child.Set.UID == order.Set.UID {
			continue
		}
		if len(child.Machines) > 0 || c.known(child, 0).coming > 0 {
			c.t.Fatalf("recreated beside %d machines of %s: %s", len(child.Machines), child.Set.Name, order.Why)
		}
	}
}

// checkPrune checks that an old set may be deleted.
func (c *chaos) checkPrune(order deployment.Order, pass *deployment.Deployment) {
	if pass.Deleted() {
		return
	}
	s := order.Set
	kept, wanted := c.history(pass)
	machines, coming := 0, 0
	for _, child := range c.shell.o.Sets {
		if child.Set.UID == s.UID {
			machines, coming = len(child.Machines), c.known(child, 0).coming
		}
	}
	switch {
	case pass.Spec.RevisionHistoryLimit == nil || kept <= int(*pass.Spec.RevisionHistoryLimit):
		c.t.Fatalf("history of %d, and %s deleted", kept, s.Name)
	case s.Spec.Replicas != 0 || machines > 0 || coming > 0:
		c.t.Fatalf("%s deleted, which is in use", s.Name)
	case s.Status.ObservedGeneration < s.Generation || s.Status.Replicas != 0:
		c.t.Fatalf("%s deleted, which has not said yet that it is empty", s.Name)
	case s.Spec.Template.Spec.Class.Name == pass.Spec.Template.Spec.Class.Name && wanted < 2:
		c.t.Fatalf("%s deleted, which is the new set", s.Name)
	}
}

// history counts the old sets that the shell knows, and all sets of the wanted template.
func (c *chaos) history(pass *deployment.Deployment) (kept, wanted int) {
	for _, child := range c.shell.o.Sets {
		if child.Set.Deleted() {
			continue
		}
		kept++
		if child.Set.Spec.Template.Spec.Class.Name == pass.Spec.Template.Spec.Class.Name {
			wanted++
		}
	}
	if wanted > 0 {
		kept-- // one of them is the new set
	}
	return kept, wanted
}

// checkProgress checks a decision against the progress deadline: it is not reported as exceeded too
// early, and no wait goes beyond it.
func (c *chaos) checkProgress(o *deployment.Observation, p deployment.Plan) {
	spec, status := &o.Deployment.Spec, o.Deployment.Status
	if write, ok := p.Write.(*deployment.UpdateStatus); ok {
		status = write.Status
	}
	progress := object.FindCondition(status.Conditions, deployment.ConditionProgressing)
	if progress == nil || spec.Paused || o.Deployment.Deleted() {
		return
	}
	due := status.ProgressedAt.Add(spec.ProgressDeadline + time.Second)
	throttled := o.StatusWritten.Add(max(c.shell.p.StatusInterval, c.shell.p.ProgressInterval)) // may lag
	counts := spec.ProgressDeadline > 0 && progress.Status == object.True && progress.Reason != deployment.ProgressAvailable
	if p.Write != nil && progress.Reason == deployment.ProgressDeadlineExceeded && (spec.ProgressDeadline == 0 || due.After(c.now)) {
		c.t.Fatalf("P21: exceeded before %v: %+v", due, progress)
	}
	if counts && p.At.After(due) && p.At.After(throttled) && due.After(c.now) {
		c.t.Fatalf("P21: waiting until %v, deadline at %v", p.At, due)
	}
}

// TestPausedFollowsReplicas: after any faults, a paused fleet reaches its size, creates no set, and
// becomes quiet (P3, P28). Its orders are within R and R + S.
// Invariants: P3
func TestPausedFollowsReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			c.move()
		}
		c.edit(func(s *deployment.Spec) { s.Paused = true })
		c.pause = true
		made := c.made
		c.shell.refuse, c.shell.age = nil, nil
		c.shell.end()
		require.GreaterOrEqual(t, c.rest(), 0, "P3: never converges: %s", c)
		require.Equal(t, made, c.made, "a set was made while paused")
		ordered, live := int32(0), 0
		for _, s := range c.setsOf(c.deployment.UID) {
			ordered += s.Spec.Replicas
			live++
		}
		ceiling, _ := limitsOf(&c.deployment.Spec)
		require.LessOrEqual(t, int(ordered), ceiling, "%s", c)
		if live > 0 && c.deployment.Spec.Strategy.Kind != deployment.Recreate {
			require.GreaterOrEqual(t, ordered, c.deployment.Spec.Replicas, "%s", c)
		}
		c.observe = func(_ *deployment.Observation, p deployment.Plan) {
			require.Nil(t, p.Write, "P28: %s", p.Why)
			require.False(t, p.ReadLive, "P28: %s", p.Why)
		}
		for range 3 {
			c.now = c.shell.pass().At
		}
	})
}

// TestRecreateNeverOverlaps: without failures, in any order of events, machines of two templates
// never exist at once, not even terminating ones.
func TestRecreateNeverOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.edit(func(s *deployment.Spec) { s.Strategy.Kind = deployment.Recreate })
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 20).Draw(t, "crash") == 0 {
				c.crash()
			}
			c.move()
			used := map[string]bool{}
			for _, m := range c.machines {
				used[m.Owner.UID] = true
			}
			require.LessOrEqual(t, len(used), 1, "machines of several sets: %s", c)
		}
		require.GreaterOrEqual(t, c.rest(), 0)
		requireComplete(t, c.world)
	})
}

// TestRevisions: when all has converged, the new set alone has the highest revision, which the
// deployment has too. No history is left beyond the limit, and no request unanswered.
func TestRevisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			c.move()
		}
		require.GreaterOrEqual(t, c.rest(), 0)
		highest, old, news := int64(0), 0, 0
		d := c.deployment
		require.Nil(t, d.Spec.RollbackTo, "an answer to the request is due")
		for _, s := range c.setsOf(d.UID) {
			highest = max(highest, s.Revision)
			if s.Revision != d.Revision && !s.Deleted() {
				old++
			}
		}
		require.Equal(t, highest, d.Revision)
		for _, s := range c.setsOf(d.UID) {
			if s.Revision == highest {
				require.Equal(t, d.Spec.Template.Spec.Class, s.Spec.Template.Spec.Class)
				news++
			}
		}
		require.Equal(t, 1, news, "sets of the deployment's revision")
		if limit := d.Spec.RevisionHistoryLimit; limit != nil {
			require.LessOrEqual(t, old, int(*limit), "more history than is wanted")
		}
	})
}

// TestPausedLeavesRoomForWhatIsAnnounced: the new set was to have two machines, then none; it may
// still create them. The old set, which follows a raised size while paused, gets no room that they
// need (P7).
func TestPausedLeavesRoomForWhatIsAnnounced(t *testing.T) {
	d := stored(4)
	d.Spec.Paused = true
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
		another(d, "large", 1, 2), ownSet(d, "web-a", 0),
	}}
	o.Sets[1].Set.Revision, o.Sets[1].Set.Instructions.Reservation.Reserved = 2, 2
	plan := decide(t, o, begin)
	require.Len(t, plan.Scale, 1)
	require.Equal(t, "web-large", plan.Scale[0].Set.Name)
	require.Equal(t, int32(3), plan.Scale[0].Set.Spec.Replicas, "%s", plan.Why)
	o.Sets[1].Set.Instructions.Reservation.Settled = 2
	require.Equal(t, int32(4), decide(t, o, begin).Scale[0].Set.Spec.Replicas)
}
