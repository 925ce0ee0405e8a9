package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// gatheringFleet returns a fleet of six with a surge of three, whose orders gather for a second.
func gatheringFleet(t *testing.T) *scenario {
	d := web(6)
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 3}
	s := newScenario(t, d)
	s.shell.p.Gather, s.shell.p.ProgressInterval = time.Second, 3*time.Second
	s.settle()
	return s
}

// amidWave returns a gatheringFleet in a rollout, when the first of three new machines has come up.
func amidWave(t *testing.T) *scenario {
	s := gatheringFleet(t)
	s.edit(class("large"))
	s.shell.pass()
	s.pass(time.Second)
	s.runSetControllers()
	s.shell.pass()
	s.advanceMachine(s.pending()[0])
	return s
}

// comeUp lets the pending machines come up one by one, with a decision after each.
func (s *scenario) comeUp(n int, every time.Duration) {
	for _, m := range s.pending()[:n] {
		s.pass(every)
		s.advanceMachine(m)
		s.decide()
	}
}

func (s *scenario) pending() (out []*machine.Machine) {
	for _, m := range s.machines {
		if m.Status.Phase == machine.PhasePending && !m.Deleted() {
			out = append(out, m)
		}
	}
	return out
}

func init() {
	scenarios["gather"] = func(t *testing.T) *scenario {
		s := gatheringFleet(t)
		s.comment("a new class: the first orders are given at once")
		s.edit(class("large"))
		s.decide()
		s.pass(time.Second)
		s.runSetControllers()
		s.decide()
		s.comment("new machines come up one by one: old ones go when all are there")
		s.comeUp(3, 300*time.Millisecond)
		s.comment("the sets follow, and three more may come")
		s.pass(100 * time.Millisecond)
		s.runSetControllers()
		s.decide()
		s.runSetControllers()
		s.comment("one of the next wave does not come up: the others are not waited for for longer than a second")
		s.comeUp(2, 300*time.Millisecond)
		s.pass(699 * time.Millisecond)
		s.decide()
		s.pass(time.Millisecond)
		s.decide()
		s.comment("another size is wanted: that does not wait")
		s.edit(replicas(8))
		s.decide()
		return s
	}
}

// TestGathering: waiting orders are given at the latest when Policy.Gather is over, and at once in each of these
// cases.
func TestGathering(t *testing.T) {
	for name, change := range map[string]func(*scenario){
		"its time is over":       func(s *scenario) { s.pass(1) },
		"the clock was set back": func(s *scenario) { s.pass(-time.Second) },
		"half of its deadline is over": func(s *scenario) {
			s.pass(1 - time.Second/2)
			s.edit(func(spec *deployment.Spec) { spec.ProgressDeadline = time.Second })
			s.deployment.Status.ObservedGeneration = s.deployment.Generation
		},
		"orders do not gather":  func(s *scenario) { s.shell.p.Gather = 0 },
		"nothing is to join it": func(s *scenario) { s.advanceMachine(s.pending()[1]); s.advanceMachine(s.pending()[0]) },
	} {
		t.Run(name, func(t *testing.T) {
			s := amidWave(t)
			s.pass(10 * time.Second)

			waiting := s.shell.pass()
			require.Equal(t, decision.Why{Reason: deployment.ReasonBatched, For: time.Second}, waiting.Why)
			require.Equal(t, s.now, waiting.Gathering)
			require.Equal(t, s.now.Add(time.Second), waiting.At)
			s.shell.gathering = time.Time{} // a new process waits from its own start
			require.Equal(t, s.now, s.shell.pass().Gathering)
			s.pass(time.Second - 1)
			require.Equal(t, decision.Why{Reason: deployment.ReasonBatched, For: 1}, s.shell.pass().Why)
			require.Equal(t, int32(6), s.sets[0].Spec.Replicas)

			change(s)
			s.shell.decided = func(_ *deployment.Observation, p deployment.Plan) {
				if len(p.Scale) > 0 { // after a conflict they do not wait again
					require.Equal(t, waiting.Gathering, p.Gathering)
				}
			}
			plan := s.shell.pass()
			require.NotEqual(t, deployment.ReasonBatched, plan.Why.Reason)
			require.Zero(t, plan.Gathering)
			require.Less(t, s.sets[0].Spec.Replicas, int32(6))
		})
	}
}

// TestOrdersGatherBeforeStatusIsWritten: after a change of the spec orders do not gather. But while the next status
// is delayed, only a change of the size is recognized as such a change.
func TestOrdersGatherBeforeStatusIsWritten(t *testing.T) {
	for name, line := range map[string]struct {
		ago     time.Duration // of the last status
		change  func(*deployment.Spec)
		gathers bool
	}{
		"long after":     {time.Second, func(s *deployment.Spec) { s.ProgressDeadline = time.Hour }, false},
		"a moment after": {time.Second - 1, func(s *deployment.Spec) { s.ProgressDeadline = time.Hour }, true},
		"another size":   {time.Second - 1, func(s *deployment.Spec) { s.Replicas = 5 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			s := amidWave(t)
			s.edit(line.change)
			s.shell.written = s.now.Add(-line.ago)
			plan := s.shell.pass()
			require.Equal(t, line.gathers, plan.Why.Reason == deployment.ReasonBatched, "%s", plan.Why)
			require.Equal(t, line.gathers, s.sets[0].Spec.Replicas == 6)
		})
	}
}

// TestRevisionIsRecordedDespiteSlowReads: after the status has reported a rollout, the deployment's revision is
// recorded, even if the live read before that takes longer than a second and the next status is delayed (P28).
func TestRevisionIsRecordedDespiteSlowReads(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.ProgressInterval = time.Minute
	d := stored(3)
	o := &deployment.Observation{Deployment: d, Sets: []deployment.Children{ownSet(d, "web-a", 0)}}
	set := o.Sets[0].Set
	set.Spec.Replicas, set.Revision, set.Instructions.Reservation = 3, 2, machineset.Reservation{}
	d.Revision = 1
	plan, err := deployment.Decide(o, p, begin)
	require.NoError(t, err)
	d.Status, o.StatusWritten = statusOf(t, plan), begin
	require.Equal(t, begin.Truncate(time.Second), d.Status.ProgressedAt)
	for _, at := range []time.Time{begin, begin.Add(2 * time.Second)} {
		plan, err = deployment.Decide(o, p, at)
		require.NoError(t, err)
		if !o.Read.Live() {
			require.Equal(t, decision.Why{Reason: deployment.ReasonReadLive, Name: deployment.ReasonRecord.String()}, plan.Why)
			o.Read = live
		}
	}
	require.Equal(t, deployment.ReasonRecord, plan.Why.Reason)
}

// TestGatherWaitsForNoneUnderAStrictQuota: if no machine is being deleted and none is about to
// become available, orders do not gather.
func TestGatherWaitsForNoneUnderAStrictQuota(t *testing.T) {
	s := amidWave(t)
	s.shell.p.StrictQuota = true
	for _, m := range s.pending() {
		s.advanceMachine(m)
	}
	old := s.sets[0].Name
	before := s.set(old).Spec.Replicas
	s.shell.pass()
	require.Less(t, s.set(old).Spec.Replicas, before, "no other order is expected, so this one does not wait")
}

// TestResizesNeedAFreshLiveRead: a live read allows no resize from machineset.DeleteWithin after its end on. A live
// read that ended in the future allows none either.
// Invariants: P7
func TestResizesNeedAFreshLiveRead(t *testing.T) {
	o := settledObservation(t, 3)
	o.Deployment.Spec.Replicas, o.Read.Ended = 4, begin
	for after, fresh := range map[time.Duration]bool{
		0: true, machineset.DeleteWithin - 1: true, machineset.DeleteWithin: false, -time.Second: false,
	} {
		plan := decide(t, o, begin.Add(after))
		require.Equal(t, fresh, len(plan.Scale) == 1, "%s", after)
		require.Equal(t, !fresh, plan.ReadLive, "%s", after)
		if fresh {
			require.Equal(t, begin.Add(machineset.DeleteWithin), plan.Until)
		}
	}
	o.Read.Ended = time.Time{}
	require.Len(t, decide(t, o, begin.Add(time.Hour)).Scale, 1, "if the end of the read is not known, it does not expire")
}

// TestMarksNeedAFreshLiveRead: a machine is selected because enough others were available when
// they were read. So the selection needs a fresh live read, as the deletion of a set does.
// Invariants: P7
func TestMarksNeedAFreshLiveRead(t *testing.T) {
	mark := func() *deployment.Observation {
		d := stored(3)
		rollsInPlace(d, 3, 0, 1)
		old := another(d, "large", 1, 3)
		old.Set.Instructions.Handover.Closed = true
		return &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	}
	prune := func() *deployment.Observation {
		o := settledObservation(t, 3)
		o.Sets = append(o.Sets, another(o.Deployment, "large", 0, 0))
		o.Deployment.Spec.RevisionHistoryLimit = ptr(0)
		return o
	}
	for name, o := range map[string]*deployment.Observation{"mark": mark(), "delete": prune()} {
		o.Read.Ended = begin.Add(10 * time.Minute)
		for after, fresh := range map[time.Duration]bool{
			0: true, machineset.DeleteWithin - 1: true, machineset.DeleteWithin: false, -time.Second: false,
		} {
			plan := decide(t, o, o.Read.Ended.Add(after))
			require.Equal(t, fresh, len(plan.Mark)+len(plan.Delete) > 0, "%s after %s: %s", name, after, plan.Why)
			require.Equal(t, !fresh, plan.ReadLive, "%s after %s", name, after)
			if fresh {
				require.Equal(t, o.Read.Ended.Add(machineset.DeleteWithin), plan.Until)
			}
		}
	}
}
