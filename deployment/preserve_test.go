package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

const preserveKey = "node.machine.sapcloud.io/preserve"

func init() {
	stories["preserved-during-a-rollout"] = preservedWhileRolling
	stories["preserved-and-scaled-down"] = preservedAndScaledDown
	stories["preserve-share"] = preserveShare
}

// preserve keeps a machine for inspection until a time, or ends that.
func (w *world) preserve(name string, until time.Time) {
	w.changeMachine(name, func(m *machine.Machine) {
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: w.second(), Until: until}
		if until.IsZero() {
			m.Status.Preservation = machine.Preservation{Ended: w.second()}
		}
	})
}

// keepable reports whether keeping a machine and releasing it again makes nothing missing: it is
// available, no machine of its set was told to go, its set has not chosen it to go before its size
// was raised again, and no more are kept than must be available.
func (c *chaos) keepable(m *machine.Machine) bool {
	_, floor := limitsOf(&c.deployment.Spec)
	for _, s := range c.sets {
		if n := c.numbers(s); m.OwnedBy(s.UID) && (n.actual > n.spec || slices.Contains(c.chosen[s.UID], m.Name)) {
			return false
		}
	}
	return available(m, c.deployment.Spec.MinReady, c.now) && c.kept() < floor
}

// machinePreserved keeps a machine, or ends that. Without faults only one that is keepable is kept.
func (c *chaos) machinePreserved() {
	if len(c.machines) == 0 {
		return
	}
	m := one(c.t, "preserved", c.machines)
	switch {
	case m.Deleted(), c.deployment == nil:
	case m.Preserved(c.now):
		c.preserve(m.Name, time.Time{})
	case c.keepable(m), c.faults && (m.Ready() || m.Status.Phase == machine.PhaseFailed):
		c.preserve(m.Name, c.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(c.t, "seconds"))*time.Second))
	}
}

// TestP7UnderFaultsPreserved is TestP7UnderFaults with machines that are kept for inspection: they
// count towards R + S, and the floor is R − U less their number. When none is kept any more, the
// fleet converges (P3).
// Invariants: P3 P7
func TestP7UnderFaultsPreserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		c.preserves = true
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.move()
		}
		for _, m := range c.machines {
			if m.Preserved(c.now) {
				c.preserve(m.Name, time.Time{})
			}
		}
		require.GreaterOrEqual(t, c.rest(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}

// TestP7EndToEndPreserved is TestP7EndToEnd with running machines that users keep and release. Only
// Recreate tells a set to delete one of them. A rollout completes with those that stay.
// Invariants: P7
func TestP7EndToEndPreserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.rest(), 0)
		c.hire()
		c.preserves, c.observe = true, c.checkAside
		spec := &c.deployment.Spec
		ceiling, floor := limitsOf(spec)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.move()
			total, usable, now := c.sums()
			kept, going := c.kept(), 0
			for _, s := range c.sets { // kept by a user who came too late
				n := c.numbers(s)
				going += n.preserved - n.stay()
			}
			require.LessOrEqual(t, total, ceiling, "P7: machines in all: %s", c)
			require.GreaterOrEqual(t, now, floor-kept-going, "P7: machines available: %s", c)
			require.GreaterOrEqual(t, usable, floor-kept, "P7: machines available once the sets have followed: %s", c)
		}
		for _, m := range c.machines { // they stay as they are
			if m.Preserved(c.now) {
				c.preserve(m.Name, c.now.Add(10000*time.Hour))
			}
		}
		c.preserves = false
		require.GreaterOrEqual(t, c.rest(), 0, "P3: never converges: %s", c)
		kept, d := min(c.kept(), int(spec.Replicas)), c.deployment
		require.Equal(t, kept, int(d.Status.Preserved))
		require.Equal(t, int(spec.Replicas)-kept, int(d.Status.Available), "%s", c)
		require.Equal(t, object.True, object.FindCondition(d.Status.Conditions, deployment.ConditionAvailable).Status)
		if d.Spec.Strategy.Kind != deployment.Recreate {
			require.Equal(t, deployment.ProgressAvailable, object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing).Reason, "%s", c)
		}
		for _, s := range c.sets {
			if s.Spec.Replicas == 0 {
				continue // if it comes back, its resizing takes them along
			}
			require.Equal(t, machine.RolloutMarks{}, s.Instructions.Marks, "marks of a rollout that is over")
		}
	})
}

// checkAside requires that no set is lowered to fewer machines than are kept in it, except by
// Recreate, or if more are kept than are wanted in total.
func (c *chaos) checkAside(o *deployment.Observation, p deployment.Plan) {
	if o.Deployment.Spec.Strategy.Kind == deployment.Recreate || c.kept() > int(o.Deployment.Spec.Replicas) {
		return
	}
	for _, order := range p.Scale {
		kept := 0
		for _, child := range o.Sets {
			for _, m := range child.Machines {
				if child.Set.UID == order.Set.UID && m.Preserved(c.now) {
					kept++
				}
			}
		}
		require.GreaterOrEqual(c.t, order.Why.Want, min(order.Why.Have, int64(kept)), "%s", order.Why)
	}
}

// kept counts machines that are kept and not told to go since before.
func (c *chaos) kept() (n int) {
	if c.deployment == nil {
		return 0
	}
	for _, s := range c.setsOf(c.deployment.UID) {
		n += c.numbers(s).stay()
	}
	return n
}

// TestPreserveSharesAddUp: for any sets and deployments, no write of a share lets more machines be
// kept in total than the limit, unless more were allowed, or kept, before.
func TestPreserveSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := stored(3)
		d.Spec.AutoPreserve = rapid.Int32Range(0, 4).Draw(t, "limit")
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", 3), another(d, "large", 0, 2)}}
		if rapid.Bool().Draw(t, "three") {
			o.Sets = append(o.Sets, another(d, "huge", 0, 2))
		}
		for i := range o.Sets {
			o.Sets[i].Set.Spec.AutoPreserve = rapid.Int32Range(0, 4).Draw(t, "share")
			for _, m := range o.Sets[i].Machines {
				if rapid.IntRange(0, 3).Draw(t, "kept") == 0 {
					m.Status.Phase = machine.PhaseFailed
					m.Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
				}
			}
		}
		for range 30 {
			before := claims(o)
			plan := decide(t, o, begin)
			if plan.Write != nil || !plan.At.IsZero() {
				break
			}
			follow(t, o, plan)
			require.LessOrEqual(t, claims(o), max(before, int(d.Spec.AutoPreserve)), "%s", plan.Why)
		}
		shares := int32(0)
		for _, c := range o.Sets {
			shares += c.Set.Spec.AutoPreserve
		}
		require.LessOrEqual(t, shares, d.Spec.AutoPreserve)
	})
}

// TestRecreateKeepsNoOldMachines: none of an old template may exist beside the new ones. Those of
// the new set are kept.
func TestRecreateKeepsNoOldMachines(t *testing.T) {
	for class, to := range map[string]int32{"large": 0, "web-a": 1} {
		d := stored(1)
		d.Spec.Strategy = deployment.Strategy{Kind: deployment.Recreate}
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", 0), another(d, "large", 0, 2)}}
		if class == "web-a" {
			o.Sets = []deployment.Children{ownSet(d, "web-a", 2)}
		}
		for _, m := range o.Sets[len(o.Sets)-1].Machines {
			m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(time.Hour)}
		}
		plan := upToScale(t, o)
		require.Len(t, plan.Scale, 1, class)
		require.Equal(t, to, plan.Scale[0].Set.Spec.Replicas, class)
	}
}

// TestCompleteBesideKeptMachines: a rollout that was complete with an old
// machine kept stays so when a new one fails.
func TestCompleteBesideKeptMachines(t *testing.T) {
	d := stored(3)
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", 2), another(d, "large", 0, 1)}}
	for i := range o.Sets {
		o.Sets[i].Set.Instructions.Reservation.Reserved, o.Sets[i].Set.Instructions.Reservation.Settled = 3, 3
	}
	o.Sets[1].Machines[0].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(time.Hour)}
	for range 2 {
		for range 5 {
			plan := decide(t, o, begin)
			status, ok := plan.Write.(*deployment.UpdateStatus)
			if ok {
				d.Status = status.Status
				break
			}
			follow(t, o, plan)
		}
		c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
		require.Equal(t, deployment.ProgressAvailable, c.Reason)
		o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	}
	require.EqualValues(t, 1, d.Status.Available)
}

// TestTurnsAreTaken: machines that are kept lose their selection, because they would begin at any
// time otherwise.
func TestTurnsAreTaken(t *testing.T) {
	for _, how := range []deployment.Orchestration{deployment.Automatic, deployment.Manual} {
		d := stored(2)
		d.Spec.Strategy = deployment.Strategy{Kind: deployment.InPlaceUpdate, Orchestration: how}
		d.Status.RolloutFailures.Revision = 1
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", 0), another(d, "large", 0, 2)}}
		o.Sets[1].Set.Instructions.Handover.Closed = true
		for _, m := range o.Sets[1].Machines {
			m.Spec.InPlace = machine.InPlaceCandidate
		}
		m := o.Sets[1].Machines[0]
		m.Spec.InPlace, m.Annotations = machine.InPlaceSelected, map[string]string{"millwright-go/in-place-target": "web-web-a"}
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(time.Hour)}
		taken := false
		for _, order := range upToMark(t, o).Mark {
			taken = taken || order.Machine.Name == m.Name && order.Machine.Spec.InPlace == machine.InPlaceWaiting
		}
		require.Equal(t, how == deployment.Automatic, taken)
	}
}

// upToMark carries out what comes before the first marking of machines.
func upToMark(t require.TestingT, o *deployment.Observation) deployment.Plan {
	for decisions := 0; ; decisions++ {
		require.Less(t, decisions, mostDecisions, "there is always something before the first marking")
		plan := decide(t, o, begin)
		if len(plan.Mark) > 0 || plan.Write != nil || !plan.At.IsZero() {
			return plan
		}
		follow(t, o, plan)
	}
}

// TestChosenButKept: a scaler's choice of a machine that a user keeps is not passed on, because its
// set would delete another for it. The choice of one that the set keeps is passed on.
func TestChosenButKept(t *testing.T) {
	for request, handed := range map[string]int{machine.PreserveNow: 0, machine.PreserveAutomatically: 1} {
		o := settledObservation(t, 3)
		m := o.Sets[0].Machines[0]
		m.Status.Preservation = machine.Preservation{Request: request, Since: begin, Until: begin.Add(time.Hour)}
		d, err := deployment.ScaleDown(o, []string{m.Name}, 2, deployment.DefaultPolicy(), begin.Add(time.Minute))
		require.NoError(t, err)
		d.Generation++
		o.Deployment = d
		plan := decide(t, o, begin.Add(time.Minute))
		require.Len(t, plan.Scale, 1, "%s", plan.Why)
		require.Len(t, plan.Scale[0].Set.Instructions.DeletionCandidates, handed)
	}
}

// claims returns how many machines may be kept in all sets at the worst.
func claims(o *deployment.Observation) (n int) {
	for _, c := range o.Sets {
		used := 0
		for _, m := range c.Machines {
			if machineset.CountsAsAutoPreserved(m, preserveKey) {
				used++
			}
		}
		n += max(used, int(c.Set.Spec.AutoPreserve))
	}
	return n
}

func preservedWhileRolling(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("the second is kept for an hour")
	name := s.running(1)
	s.preserve(name, s.now.Add(time.Hour))
	s.decide()
	s.say("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.follow(6)
	require.False(t, s.machine(name).Deleted())
	s.say("the time is up")
	s.pass(time.Hour)
	s.decide()
	s.follow(3)
	return s
}

func preservedAndScaledDown(t *testing.T) *story {
	s := settled(t, web(4))
	name := s.running(1)
	s.say("the second failed and is kept")
	s.enter(name, machine.PhaseFailed)
	s.preserve(name, s.now.Add(time.Hour))
	s.decide()
	for _, n := range []int32{2, 1, 0} {
		s.edit(func(spec *deployment.Spec) { spec.Replicas = n })
		s.decide()
		s.follow(1)
		require.Equal(t, n == 0, s.machine(name) == nil || s.machine(name).Deleted())
	}
	return s
}

func preserveShare(t *testing.T) *story {
	s := settled(t, web(3))
	s.say("two failed machines may be kept at a time")
	s.edit(func(spec *deployment.Spec) { spec.AutoPreserve = 2 })
	s.decide()
	s.say("its set keeps one")
	s.changeMachine(s.running(1), func(m *machine.Machine) {
		m.Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
		m.Status.Phase = machine.PhaseFailed
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveAutomatically, Since: s.second(), Until: s.now.Add(time.Hour)}
	})
	s.decide()
	s.say("another class is wanted: the old set keeps what it has, the new one may keep the rest")
	s.edit(class("large"))
	s.decide()
	s.follow(4)
	s.say("the time is up")
	s.pass(time.Hour)
	s.decide()
	s.follow(3)
	return s
}

// Failed machines that are kept for inspection are counted over all sets. The status does not list
// them as failed.
func TestPreservedFailedMachinesAreNotListedAsFailed(t *testing.T) {
	o := settledObservation(t, 3)
	kept := machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(3 * time.Hour)}
	for i, phase := range []machine.Phase{machine.PhaseFailed, machine.PhaseRunning, machine.PhaseRunning} {
		m := o.Sets[0].Machines[i]
		m.Status.Phase, m.Status.LastOperation = phase, failed("the node is gone")
		if i < 2 {
			m.Status.Preservation = kept
		}
	}
	got := statusOf(t, decide(t, o, begin.Add(time.Hour)))
	require.Equal(t, []int32{2, 1, 2}, []int32{got.Preserved, got.PreservedFailed, got.Failing})
	var names []string
	for _, s := range got.Failed {
		names = append(names, s.Name)
	}
	require.ElementsMatch(t, []string{o.Sets[0].Machines[1].Name, o.Sets[0].Machines[2].Name}, names)

	got = statusOf(t, decide(t, o, kept.Until))
	require.Equal(t, []int32{0, 0, 3}, []int32{got.Preserved, got.PreservedFailed, got.Failing}, "its time is up")
}

// While Recreate is paused, no set grows beside a machine of another one, even if that machine is
// kept for inspection.
// Invariants: P7
func TestPausedRecreateSeesKeptMachines(t *testing.T) {
	o := settledObservation(t, 1)
	spec := &o.Deployment.Spec
	spec.Replicas, spec.Paused, spec.Strategy = 3, true, deployment.Strategy{Kind: deployment.Recreate}
	old := ownSet(o.Deployment, "web-old", 1)
	old.Set.Spec.Template.Spec.Class.Name = "other"
	o.Sets = append(o.Sets, old)
	o.Sets[0].Machines[0].Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(3 * time.Hour)}
	for range 3 {
		plan := decide(t, o, begin.Add(time.Hour))
		require.Empty(t, plan.Scale, "%s", plan.Why)
		if plan.Write == nil {
			break
		}
		o.Deployment.Status = statusOf(t, plan)
	}
}
