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
	scenarios["preserved-during-a-rollout"] = preservedWhileRolling
	scenarios["preserved-and-scaled-down"] = preservedAndScaledDown
	scenarios["preserve-share"] = preserveShare
}

// preserve preserves a machine until a time. A zero time ends that.
func (w *world) preserve(name string, until time.Time) {
	w.changeMachine(name, func(m *machine.Machine) {
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: w.second(), Until: until}
		if until.IsZero() {
			m.Status.Preservation = machine.Preservation{Ended: w.second()}
		}
	})
}

// mayPreserve reports whether a machine can be preserved and released without a gap in availability: it is available,
// its set has no surplus and has not chosen it for deletion before its size was raised again, and no more machines are
// preserved than must be available.
func (c *chaos) mayPreserve(m *machine.Machine) bool {
	_, floor := limitsOf(&c.deployment.Spec)
	for _, s := range c.sets {
		if n := c.numbers(s); m.OwnedBy(s.UID) && (n.actual > n.spec || slices.Contains(c.chosen[s.UID], m.Name)) {
			return false
		}
	}
	return available(m, c.deployment.Spec.MinReady, c.now) && c.countPreserved() < floor
}

// machinePreserved preserves a machine, or ends that. Without faults, only a machine that mayPreserve allows.
func (c *chaos) machinePreserved() {
	if len(c.machines) == 0 {
		return
	}
	m := drawOne(c.t, "preserved", c.machines)
	switch {
	case m.Deleted(), c.deployment == nil:
	case m.Preserved(c.now):
		c.preserve(m.Name, time.Time{})
	case c.mayPreserve(m), c.faults && (m.Ready() || m.Status.Phase == machine.PhaseFailed):
		c.preserve(m.Name, c.now.Add(time.Duration(rapid.IntRange(1, 60).Draw(c.t, "seconds"))*time.Second))
	}
}

// TestP7UnderFaultsPreserved is TestP7UnderFaults with preserved machines: they count towards R + S, and the floor is
// R − U less their number. When none is preserved any more, the fleet converges (P3).
// Invariants: P3 P7
func TestP7UnderFaultsPreserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		c.preserves = true
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.randomStep()
		}
		for _, m := range c.machines {
			if m.Preserved(c.now) {
				c.preserve(m.Name, time.Time{})
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}

// TestP7EndToEndPreserved is TestP7EndToEnd with running machines that users preserve and release. Only Recreate
// makes a set delete a preserved machine. A rollout completes although preserved machines of old sets stay.
// Invariants: P7
func TestP7EndToEndPreserved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		c.preserves, c.observe = true, c.checkPreservedStay
		spec := &c.deployment.Spec
		ceiling, floor := limitsOf(spec)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.randomStep()
			total, usable, now := c.sums()
			preserved, leaving := c.countPreserved(), 0
			for _, s := range c.sets { // a machine that was preserved after its set was ordered to delete it
				n := c.numbers(s)
				leaving += n.preserved - n.stay()
			}
			require.LessOrEqual(t, total, ceiling, "P7: machines in all: %s", c)
			require.GreaterOrEqual(t, now, floor-preserved-leaving, "P7: machines available: %s", c)
			require.GreaterOrEqual(t, usable, floor-preserved, "P7: machines available once the sets have followed: %s", c)
		}
		for _, m := range c.machines { // they stay preserved
			if m.Preserved(c.now) {
				c.preserve(m.Name, c.now.Add(10000*time.Hour))
			}
		}
		c.preserves = false
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		preserved, d := min(c.countPreserved(), int(spec.Replicas)), c.deployment
		require.Equal(t, preserved, int(d.Status.Preserved))
		require.Equal(t, int(spec.Replicas)-preserved, int(d.Status.Available), "%s", c)
		require.Equal(t, object.True, object.FindCondition(d.Status.Conditions, deployment.ConditionAvailable).Status)
		if d.Spec.Strategy.Kind != deployment.Recreate {
			require.Equal(t, deployment.ProgressAvailable, object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing).Reason, "%s", c)
		}
		for _, s := range c.sets {
			if s.Spec.Replicas == 0 {
				continue // the order that resizes it again will write them
			}
			require.Equal(t, machine.RolloutMarks{}, s.Instructions.Marks, "marks of a rollout that is over")
		}
	})
}

// checkPreservedStay requires that no set is lowered below the number of its preserved machines, except by
// Recreate, or if more machines are preserved than are wanted in total.
func (c *chaos) checkPreservedStay(o *deployment.Observation, p deployment.Plan) {
	if o.Deployment.Spec.Strategy.Kind == deployment.Recreate || c.countPreserved() > int(o.Deployment.Spec.Replicas) {
		return
	}
	for _, order := range p.Scale {
		preserved := 0
		for _, child := range o.Sets {
			for _, m := range child.Machines {
				if child.Set.UID == order.Set.UID && m.Preserved(c.now) {
					preserved++
				}
			}
		}
		require.GreaterOrEqual(c.t, order.Why.Want, min(order.Why.Have, int64(preserved)), "%s", order.Why)
	}
}

// countPreserved counts the preserved machines, without those that their sets were already ordered to delete.
func (c *chaos) countPreserved() (n int) {
	if c.deployment == nil {
		return 0
	}
	for _, s := range c.setsOf(c.deployment.UID) {
		n += c.numbers(s).stay()
	}
	return n
}

// TestPreserveSharesAddUp: for any observation, no write of a share lets the sets preserve more machines in total than
// the limit, unless they could preserve more before.
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
				if rapid.IntRange(0, 3).Draw(t, "preserved") == 0 {
					m.Status.Phase = machine.PhaseFailed
					m.Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
				}
			}
		}
		for range 30 {
			before := mostPreserved(o)
			plan := decide(t, o, begin)
			if plan.Write != nil || !plan.At.IsZero() {
				break
			}
			follow(t, o, plan)
			require.LessOrEqual(t, mostPreserved(o), max(before, int(d.Spec.AutoPreserve)), "%s", plan.Why)
		}
		shares := int32(0)
		for _, c := range o.Sets {
			shares += c.Set.Spec.AutoPreserve
		}
		require.LessOrEqual(t, shares, d.Spec.AutoPreserve)
	})
}

// TestRecreatePreservesNoOldMachines: with Recreate, preserved machines of old sets are deleted, because none may exist
// beside the new ones. Those of the new set stay.
func TestRecreatePreservesNoOldMachines(t *testing.T) {
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

// TestCompleteBesidePreservedMachines: a rollout that is complete although an old machine is preserved stays complete
// when a new machine fails.
func TestCompleteBesidePreservedMachines(t *testing.T) {
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

// TestPreservedMachinesAreDeselected: preserved machines are deselected, because their updates could begin at any time.
func TestPreservedMachinesAreDeselected(t *testing.T) {
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

// upToMark carries out plans until one marks machines, and returns it.
func upToMark(t require.TestingT, o *deployment.Observation) deployment.Plan {
	for decisions := 0; ; decisions++ {
		require.Less(t, decisions, mostDecisions, "no plan marks machines")
		plan := decide(t, o, begin)
		if len(plan.Mark) > 0 || plan.Write != nil || !plan.At.IsZero() {
			return plan
		}
		follow(t, o, plan)
	}
}

// TestChosenButPreserved: a scaler's choice of a machine that a user preserves is not given to the set, because the set
// would delete another one instead. The choice of a machine that the set itself preserves is given to it.
func TestChosenButPreserved(t *testing.T) {
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

// mostPreserved returns how many machines all sets together may preserve at most.
func mostPreserved(o *deployment.Observation) (n int) {
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

func preservedWhileRolling(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("the second is kept for an hour")
	name := s.running(1)
	s.preserve(name, s.now.Add(time.Hour))
	s.decide()
	s.comment("another class is wanted")
	s.edit(class("large"))
	s.decide()
	s.runRounds(6)
	require.False(t, s.machine(name).Deleted())
	s.comment("the time is up")
	s.pass(time.Hour)
	s.decide()
	s.runRounds(3)
	return s
}

func preservedAndScaledDown(t *testing.T) *scenario {
	s := settled(t, web(4))
	name := s.running(1)
	s.comment("the second failed and is kept")
	s.setPhase(name, machine.PhaseFailed)
	s.preserve(name, s.now.Add(time.Hour))
	s.decide()
	for _, n := range []int32{2, 1, 0} {
		s.edit(func(spec *deployment.Spec) { spec.Replicas = n })
		s.decide()
		s.runRounds(1)
		require.Equal(t, n == 0, s.machine(name) == nil || s.machine(name).Deleted())
	}
	return s
}

func preserveShare(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("two failed machines may be kept at a time")
	s.edit(func(spec *deployment.Spec) { spec.AutoPreserve = 2 })
	s.decide()
	s.comment("its set keeps one")
	s.changeMachine(s.running(1), func(m *machine.Machine) {
		m.Annotations = map[string]string{preserveKey: machine.PreserveAutomatically}
		m.Status.Phase = machine.PhaseFailed
		m.Status.Preservation = machine.Preservation{Request: machine.PreserveAutomatically, Since: s.second(), Until: s.now.Add(time.Hour)}
	})
	s.decide()
	s.comment("another class is wanted: the old set keeps what it has, the new one may keep the rest")
	s.edit(class("large"))
	s.decide()
	s.runRounds(4)
	s.comment("the time is up")
	s.pass(time.Hour)
	s.decide()
	s.runRounds(3)
	return s
}

// TestPreservedFailedMachinesAreNotListedAsFailed: failed machines that are preserved are counted over all sets,
// and not listed as failed.
func TestPreservedFailedMachinesAreNotListedAsFailed(t *testing.T) {
	o := settledObservation(t, 3)
	preservation := machine.Preservation{Request: machine.PreserveNow, Since: begin, Until: begin.Add(3 * time.Hour)}
	for i, phase := range []machine.Phase{machine.PhaseFailed, machine.PhaseRunning, machine.PhaseRunning} {
		m := o.Sets[0].Machines[i]
		m.Status.Phase, m.Status.LastOperation = phase, failed("the node is gone")
		if i < 2 {
			m.Status.Preservation = preservation
		}
	}
	got := statusOf(t, decide(t, o, begin.Add(time.Hour)))
	require.Equal(t, []int32{2, 1, 2}, []int32{got.Preserved, got.PreservedFailed, got.Failing})
	var names []string
	for _, s := range got.Failed {
		names = append(names, s.Name)
	}
	require.ElementsMatch(t, []string{o.Sets[0].Machines[1].Name, o.Sets[0].Machines[2].Name}, names)

	got = statusOf(t, decide(t, o, preservation.Until))
	require.Equal(t, []int32{0, 0, 3}, []int32{got.Preserved, got.PreservedFailed, got.Failing}, "its time is up")
}

// TestPausedRecreateWithPreservedMachines: while a deployment with Recreate is paused, no set grows beside a machine of
// another one, even if that machine is preserved.
// Invariants: P7
func TestPausedRecreateWithPreservedMachines(t *testing.T) {
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
