package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
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

// checkHeld checks that a resize does nothing that a pause or the strategy Recreate forbids.
func (c *chaos) checkHeld(order deployment.Order, pass *deployment.Deployment) {
	raised := order.Why.Want > order.Why.Have
	if !raised {
		if pass.Spec.Paused && deployment.RolloutOf(order.Why).Reason == rollout.ReasonRecreate {
			c.t.Fatalf("rolled out while paused: %s", order.Why)
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
			c.t.Fatalf("new machines beside %d machines of %s: %s", len(child.Machines), child.Set.Name, order.Why)
		}
	}
}

// checkPrune checks that an old set may be deleted.
func (c *chaos) checkPrune(order deployment.Order, pass *deployment.Deployment) {
	if pass.Deleted() {
		return
	}
	s := order.Set
	old, wanted := c.history(pass)
	machines, coming := 0, 0
	for _, child := range c.shell.o.Sets {
		if child.Set.UID == s.UID {
			machines, coming = len(child.Machines), c.known(child, 0).coming
		}
	}
	switch {
	case pass.Spec.RevisionHistoryLimit == nil || old <= int(*pass.Spec.RevisionHistoryLimit):
		c.t.Fatalf("%s is deleted, but there are only %d old sets", s.Name, old)
	case s.Spec.Replicas != 0 || machines > 0 || coming > 0:
		c.t.Fatalf("%s is deleted while it is in use", s.Name)
	case s.Status.ObservedGeneration < s.Generation || s.Status.Replicas != 0:
		c.t.Fatalf("%s is deleted before its status says that it is empty", s.Name)
	case s.Spec.Template.Spec.Class.Name == pass.Spec.Template.Spec.Class.Name && wanted < 2:
		c.t.Fatalf("%s is deleted, but it is the new set", s.Name)
	}
}

// history counts the old sets that the shell knows, and all sets of the wanted template.
func (c *chaos) history(pass *deployment.Deployment) (old, wanted int) {
	for _, child := range c.shell.o.Sets {
		if child.Set.Deleted() {
			continue
		}
		old++
		if child.Set.Spec.Template.Spec.Class.Name == pass.Spec.Template.Spec.Class.Name {
			wanted++
		}
	}
	if wanted > 0 {
		old-- // one of them is the new set
	}
	return old, wanted
}

// checkProgress checks a decision against the progress deadline: it must not be reported as exceeded too early, and no
// wait may last longer.
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

// TestPausedFollowsReplicas: after any faults, a paused fleet reaches its size, creates no set, and then needs no more
// calls (P3, P28). In the end the sizes sum to R or more, and to R + S at most.
// Invariants: P3
func TestPausedFollowsReplicas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			c.randomStep()
		}
		c.edit(func(s *deployment.Spec) { s.Paused = true })
		c.pause = true
		created := c.setsCreated
		c.shell.refuse, c.shell.age = nil, nil
		c.shell.end()
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		require.Equal(t, created, c.setsCreated, "a set was created while paused")
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

// TestRecreateNeverOverlaps: without failures, machines of two templates never exist at the same time, not even
// terminating ones, whatever the order of events.
func TestRecreateNeverOverlaps(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.edit(func(s *deployment.Spec) { s.Strategy.Kind = deployment.Recreate })
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			if rapid.IntRange(0, 20).Draw(t, "crash") == 0 {
				c.crash()
			}
			c.randomStep()
			used := map[string]bool{}
			for _, m := range c.machines {
				used[m.Owner.UID] = true
			}
			require.LessOrEqual(t, len(used), 1, "machines of several sets: %s", c)
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		requireComplete(t, c.world)
	})
}

// TestRevisions: when all has converged, only the new set has the highest revision, and the deployment has it, too. No
// old sets are left beyond the history limit, and no rollback request is left.
func TestRevisions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 150).Draw(t, "steps") {
			c.randomStep()
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		highest, old, news := int64(0), 0, 0
		d := c.deployment
		require.Nil(t, d.Spec.RollbackTo, "the rollback request was not answered")
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
			require.LessOrEqual(t, old, int(*limit), "more old sets than the history limit")
		}
	})
}

// TestPausedLeavesRoomForWhatIsAnnounced: the new set was ordered to have two machines, and then none, but may still
// create them. When the paused deployment is scaled up, the old set must not get the room that they need (P7).
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

func init() {
	for name, run := range map[string]func(*testing.T) *scenario{
		"paused-before-the-rollout":    pausedBefore,
		"paused-amid-rollout":          pausedAmid,
		"paused-from-the-beginning":    pausedFirst,
		"revision-of-a-returning-set":  revisionReturns,
		"revision-rides-on-other-news": revisionRides,
		"revision-of-adopted-sets":     revisionAdopted,
		"history-limited":              historyLimited,
		"history-in-use":               historyInUse,
		"history-delete-refused":       historyRefused,
		"rollback-to-the-last":         rollbackLast,
		"rollback-to-a-revision":       rollbackTo,
		"rollback-not-possible":        rollbackImpossible,
		"rollback-template-invalid":    rollbackInvalid,
		"rollback-while-paused":        rollbackPaused,
		"deadline-exceeded":            deadlineExceeded,
		"deadline-and-pause":           deadlinePaused,
		"deadline-changed":             deadlineChanged,
		"recreate":                     recreate,
		"recreate-announced-machine":   recreateAnnounced,
		"recreate-scaled-and-paused":   recreateScaled,
	} {
		scenarios[name] = run
	}
}

func paused(yes bool) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.Paused = yes }
}

func rollback(to int64) func(*deployment.Spec) {
	return func(s *deployment.Spec) { s.RollbackTo = &deployment.Rollback{Revision: to} }
}

func keeping(n int32) *deployment.Deployment {
	d := web(2)
	d.Spec.RevisionHistoryLimit = &n
	return d
}

// rolled lets rollouts to these classes converge, one after the other, without writing them down.
func (s *scenario) rolled(names ...string) *scenario {
	for _, name := range names {
		s.edit(class(name))
		s.settle()
	}
	return s
}

func pausedBefore(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("paused, and another class is wanted, and 5 machines")
	s.edit(paused(true))
	s.edit(class("large"))
	s.edit(replicas(5))
	s.decide()
	s.runRounds(1)
	s.comment("resumed")
	s.edit(paused(false))
	s.decide()
	s.runRounds(2)
	return s
}

func pausedAmid(t *testing.T) *scenario {
	s := settled(t, web(4))
	s.edit(class("large"))
	s.decide()
	s.runRounds(3)
	s.comment("paused, and 6 machines are wanted")
	s.edit(paused(true))
	s.edit(replicas(6))
	s.decide()
	s.runRounds(1)
	s.comment("and 3")
	s.edit(replicas(3))
	s.decide()
	s.runRounds(1)
	s.comment("resumed")
	s.edit(paused(false))
	s.decide()
	s.runRounds(2)
	return s
}

func pausedFirst(t *testing.T) *scenario {
	d := web(2)
	d.Spec.Paused = true
	s := newScenario(t, d)
	s.decide()
	s.runRounds(1)
	s.comment("resumed")
	s.edit(paused(false))
	s.decide()
	return s
}

func revisionReturns(t *testing.T) *scenario {
	s := settled(t, web(2)).rolled("large")
	s.comment("the first class again: its set has revision 1, and the one in use revision 2")
	s.edit(class("small"))
	s.decide()
	s.runRounds(1)
	s.noteRevisions()
	return s
}

func revisionRides(t *testing.T) *scenario {
	s := settled(t, web(0)).rolled("large")
	s.comment("the first class again, with another node template: one write of the set for both")
	s.edit(func(spec *deployment.Spec) {
		spec.Template.Spec.Class.Name = "small"
		spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a"}
	})
	s.decide()
	s.noteRevisions()
	s.comment("the other one again, while none is wanted: nothing for the revision to go with")
	s.edit(class("large"))
	s.pass(time.Minute)
	s.decide()
	s.noteRevisions()
	return s
}

func revisionAdopted(t *testing.T) *scenario {
	s := newScenario(t, web(1))
	s.changeSet(s.orphan("web-legacy", "small", 1).Name, func(set *machineset.Set) { set.Revision = 7 })
	s.changeSet(s.orphan("web-later", "large", 0).Name, func(set *machineset.Set) { set.Revision = 9 })
	s.decide()
	s.noteRevisions()
	return s
}

// noteRevisions writes down the revision of each object.
func (s *scenario) noteRevisions() {
	s.comment("revision %d", s.deployment.Revision)
	for _, set := range s.sets {
		s.comment("revision %d: %s", set.Revision, set.Name)
	}
}

func historyLimited(t *testing.T) *scenario {
	s := settled(t, keeping(1)).rolled("large")
	s.comment("a third class: the oldest set goes when the rollout is complete")
	s.edit(class("huge"))
	s.decide()
	s.runRounds(5)
	return s
}

func historyInUse(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.edit(class("large"))
	s.decide()
	s.edit(class("huge"))
	s.decide()
	s.runRounds(2)
	s.comment("paused, and one old set is to be kept: the older one is in use, and the younger one not above the limit")
	s.edit(func(spec *deployment.Spec) { spec.Paused, spec.RevisionHistoryLimit = true, ptr(1) })
	s.decide()
	s.runRounds(1)
	s.comment("resumed: the older one goes when it is empty and the rollout complete")
	s.edit(paused(false))
	s.decide()
	s.runRounds(4)
	return s
}

func historyRefused(t *testing.T) *scenario {
	s := settled(t, web(1)).rolled("large", "huge")
	s.comment("no history is to be kept, and the store refuses the first deletion")
	s.edit(func(spec *deployment.Spec) { spec.RevisionHistoryLimit = ptr(0) })
	s.refuseWith(1)
	s.decide()
	s.comment("again")
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
	s.runRounds(1)
	return s
}

func rollbackLast(t *testing.T) *scenario {
	s := settled(t, web(2)).rolled("large")
	s.comment("back")
	s.edit(rollback(0))
	s.decide()
	s.runRounds(1)
	s.noteRevisions()
	return s
}

func rollbackTo(t *testing.T) *scenario {
	s := settled(t, web(1)).rolled("large", "huge")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) {
		set.Annotations = map[string]string{"change-cause": "the first", "deployment.kubernetes.io/desired-replicas": "1"}
	})
	s.comment("back to revision 1")
	s.edit(rollback(1))
	s.decide()
	s.comment("annotations %v, labels of the template %v", s.deployment.Annotations, s.deployment.Spec.Template.Labels)
	return s
}

func rollbackImpossible(t *testing.T) *scenario {
	s := settled(t, web(1))
	for _, to := range []int64{0, 5, 1} {
		s.comment("back to revision %d", to)
		s.edit(rollback(to))
		s.pass(time.Minute)
		s.decide()
	}
	return s
}

func rollbackInvalid(t *testing.T) *scenario {
	s := settled(t, web(1)).rolled("large")
	s.comment("the first set's template does not match the selector any more")
	s.changeSet(s.sets[0].Name, func(set *machineset.Set) { set.Spec.Template.Labels = map[string]string{"app": "db"} })
	s.edit(rollback(1))
	s.decide()
	return s
}

func rollbackPaused(t *testing.T) *scenario {
	s := settled(t, web(1)).rolled("large")
	s.comment("back to the last revision, but paused: the request waits, and history is not touched")
	s.edit(paused(true))
	s.edit(rollback(0))
	s.edit(func(spec *deployment.Spec) { spec.RevisionHistoryLimit = ptr(0) })
	s.decide()
	s.comment("resumed")
	s.edit(paused(false))
	s.pass(time.Minute)
	s.decide()
	return s
}

// stuck returns a rollout whose new machines do not come up.
func stuck(t *testing.T) *scenario {
	d := web(2)
	d.Spec.ProgressDeadline = 10 * time.Minute
	s := settled(t, d)
	s.comment("a class is wanted whose machines take long to come up; 10 minutes are the deadline")
	s.edit(class("slow"))
	s.decide()
	s.pass(time.Minute)
	s.runSetControllers()
	s.decide()
	return s
}

// advanceToNext lets time pass until the next decision is due.
func (s *scenario) advanceToNext() {
	s.pass(s.shell.last.At.Sub(s.now))
	s.decide()
}

func deadlineExceeded(t *testing.T) *scenario {
	s := stuck(t)
	s.comment("looking when there is reason to, and once more")
	s.advanceToNext()
	s.advanceToNext()
	s.advanceToNext()
	s.comment("the machine comes up")
	s.advanceMachines()
	s.decide()
	s.runRounds(3)
	return s
}

func deadlinePaused(t *testing.T) *scenario {
	s := stuck(t)
	s.comment("paused for an hour, then resumed: the clock starts again")
	for _, yes := range []bool{true, false} {
		s.edit(paused(yes))
		s.pass(time.Minute)
		s.decide()
		s.pass(time.Hour)
		s.decide()
	}
	s.comment("paused after the deadline: that stays, also when resumed")
	for _, yes := range []bool{true, false} {
		s.edit(paused(yes))
		s.pass(time.Minute)
		s.decide()
	}
	return s
}

func deadlineChanged(t *testing.T) *scenario {
	s := stuck(t)
	s.pass(time.Hour)
	s.decide()
	s.comment("a day is allowed now")
	s.edit(func(spec *deployment.Spec) { spec.ProgressDeadline = 24 * time.Hour })
	s.pass(time.Minute)
	s.decide()
	s.comment("10 minutes again, and then another class")
	s.edit(func(spec *deployment.Spec) { spec.ProgressDeadline = 10 * time.Minute })
	s.pass(time.Minute)
	s.decide()
	s.pass(time.Minute)
	s.edit(class("large"))
	s.decide()
	return s
}

func recreating(n int32) *deployment.Deployment {
	d := web(n)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.Recreate}
	return d
}

func recreate(t *testing.T) *scenario {
	s := settled(t, recreating(3))
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.comment("two machines begin to go")
	s.runSetController(s.sets[0])
	s.runSetController(s.sets[0])
	s.pass(time.Minute)
	s.decide()
	s.comment("all are going, and then gone")
	s.runSetControllers()
	s.pass(time.Minute)
	s.decide()
	s.runRounds(2)
	return s
}

func recreateAnnounced(t *testing.T) *scenario {
	s := newScenario(t, recreating(1))
	s.decide()
	s.comment("the set has announced its machine, and another class is wanted")
	s.runSetController(s.sets[0])
	s.edit(class("large"))
	s.pass(time.Minute)
	s.decide()
	s.comment("the machine is made although nobody wants it any more")
	s.runSetController(s.sets[0])
	s.pass(time.Minute)
	s.decide()
	s.runRounds(2)
	return s
}

func recreateScaled(t *testing.T) *scenario {
	s := settled(t, recreating(2))
	s.comment("none is wanted, then 3 of another class")
	s.edit(replicas(0))
	s.decide()
	s.edit(replicas(3))
	s.edit(class("large"))
	s.pass(time.Minute)
	s.decide()
	s.comment("paused before the old ones are gone: all to the new set, but not yet")
	s.edit(paused(true))
	s.runSetControllers()
	s.pass(time.Minute)
	s.decide()
	s.runRounds(2)
	return s
}
