package deployment_test

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// statusOf returns the status that a plan writes.
func statusOf(t require.TestingT, p deployment.Plan) deployment.Status {
	require.IsType(t, &deployment.UpdateStatus{}, p.Write, "%s", p.Why)
	return p.Write.(*deployment.UpdateStatus).Status
}

// settledObservation is one of n machines, all running, with nothing to write.
func settledObservation(t require.TestingT, n int) *deployment.Observation {
	d := stored(int32(n))
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", n)}}
	d.Status = statusOf(t, decide(t, o, begin))
	require.Nil(t, decide(t, o, begin).Write)
	return o
}

// TestCounts compares the numbers of the status with a slow count.
func TestCounts(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		plan := untilStatus(t, o)
		var want deployment.Status
		newest, told := "", int32(0)
		for _, c := range o.Sets {
			if !c.Set.Deleted() && c.Set.Spec.Template.Spec.Class.Name == "small" && (newest == "" || older(o, c.Set, newest)) {
				newest = c.Set.UID
			}
		}
		for _, c := range o.Sets {
			told += max(0, c.Set.Spec.Replicas)
			for _, m := range c.Machines {
				if m.Deleted() {
					continue
				}
				want.Replicas++
				if c.Set.UID == newest {
					want.Updated++
				}
				if m.Ready() {
					want.Ready++
				}
				if m.Ready() && !m.AvailableAt(o.Deployment.Spec.MinReady).After(begin) {
					want.Available++
				}
			}
		}
		want.Unavailable = max(0, told-want.Available)
		got := statusOf(t, plan)
		require.Equal(t, []int32{want.Replicas, want.Updated, want.Ready, want.Available, want.Unavailable},
			[]int32{got.Replicas, got.Updated, got.Ready, got.Available, got.Unavailable})
		require.Equal(t, o.Deployment.Generation, got.ObservedGeneration)
	})
}

// untilStatus carries out plans until one writes the whole status.
func untilStatus(t require.TestingT, o *deployment.Observation) deployment.Plan {
	plan := decide(t, o, begin)
	for decisions := 0; plan.Write == nil || plan.Why.Reason == deployment.ReasonCount; decisions++ {
		require.Less(t, decisions, mostDecisions)
		if plan.Write != nil { // only that failures are counted
			o.Deployment.Status = statusOf(t, plan)
		} else {
			follow(t, o, plan)
		}
		plan = decide(t, o, begin)
	}
	return plan
}

// follow carries out the orders of a plan in the observation.
func follow(t require.TestingT, o *deployment.Observation, plan deployment.Plan) {
	resized := slices.Concat(plan.Scale, plan.Push, plan.Handover)
	changed := slices.Concat(plan.Mark, plan.Move)
	require.Positive(t, len(resized)+len(plan.Create)+len(plan.Delete)+len(changed), "%s", plan.Why)
	for _, order := range changed {
		o.Sets = regrouped(o.Sets, order.Machine.UID, order.Machine)
	}
	for _, order := range plan.Delete {
		order.Set.DeletedAt = begin
	}
	for _, order := range resized {
		apply(o, order)
	}
	for _, order := range plan.Create {
		s := order.Set.Clone()
		s.UID = "born"
		o.Sets = append(o.Sets, deployment.Children{Set: s})
	}
}

// older reports whether a set comes before another as the new one: it was the new one later, or
// else it is older.
func older(o *deployment.Observation, s *machineset.Set, than string) bool {
	for _, c := range o.Sets {
		if c.Set.UID == than {
			if s.Revision != c.Set.Revision {
				return s.Revision > c.Set.Revision
			}
			return s.CreatedAt.Before(c.Set.CreatedAt) || s.CreatedAt.Equal(c.Set.CreatedAt) && s.Name < c.Set.Name
		}
	}
	return false
}

// TestThrottle: the first change is written at once, the next not before the interval is over, to
// the nanosecond. A clock that was set back blocks nothing.
func TestThrottle(t *testing.T) {
	o := settledObservation(t, 2)
	o.Sets[0].Machines = o.Sets[0].Machines[:1]
	at := func(sinceWritten time.Duration) deployment.Plan {
		o.StatusWritten = begin.Add(-sinceWritten)
		return decide(t, o, begin)
	}
	require.NotNil(t, at(time.Second).Write)
	require.NotNil(t, at(time.Hour).Write)
	require.NotNil(t, at(-time.Hour).Write)
	for _, early := range []time.Duration{0, time.Nanosecond, time.Second - time.Nanosecond} {
		plan := at(early)
		require.Nil(t, plan.Write)
		require.Equal(t, begin.Add(time.Second-early), plan.At)
	}
	o.StatusWritten = time.Time{}
	require.NotNil(t, decide(t, o, begin).Write)

	// If there is nothing else to wait for, the plan waits for the throttle.
	o = settledObservation(t, 1)
	o.Sets[0].Machines[0].Status.LastOperation = failed("out of room")
	o.StatusWritten = begin.Add(-time.Millisecond)
	why := decide(t, o, begin).Why
	require.Equal(t, rollout.ReasonDone, deployment.RolloutOf(why).Reason)
	why.Cause = nil
	require.Equal(t, decision.Why{Reason: deployment.ReasonThrottled, For: 999 * time.Millisecond}, why)

	p := deployment.DefaultPolicy()
	p.StatusInterval = object.Off
	plan, err := deployment.Decide(o, p, begin)
	require.NoError(t, err)
	require.NotNil(t, plan.Write)
}

// TestProgressIsTold: mere progress waits longer than the rest, and the end does not.
func TestProgressIsTold(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.ProgressInterval = time.Minute
	for name, c := range map[string]struct {
		change func(*deployment.Observation)
		after  time.Duration
	}{
		"fewer are available": {func(o *deployment.Observation) {
			o.Sets[0].Machines[0].Status.Phase = machine.PhasePending
			o.Sets[0].Machines[1].Status.Phase = machine.PhasePending
		}, time.Minute},
		"all are available": {func(o *deployment.Observation) {
			for _, m := range o.Sets[0].Machines {
				m.Status.Phase = machine.PhaseRunning
			}
		}, time.Second},
		"one has failed to do what it was told": {func(o *deployment.Observation) {
			o.Sets[0].Machines[0].Status.LastOperation = failed("out of room")
		}, time.Second},
		"another size was wanted": {func(o *deployment.Observation) { o.Deployment.Status.Wanted++ }, time.Second},
		"another generation":      {func(o *deployment.Observation) { o.Deployment.Generation++ }, time.Second},
		"a condition":             {func(o *deployment.Observation) { o.Deployment.Status.Conditions = nil }, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			o := settledObservation(t, 3)
			o.Sets[0].Machines[0].Status.Phase = machine.PhasePending
			o.Deployment.Status = statusOf(t, decide(t, o, begin))
			c.change(o)
			o.StatusWritten = begin.Add(1 - c.after)
			plan, err := deployment.Decide(o, p, begin)
			require.NoError(t, err)
			require.Nil(t, plan.Write)
			o.StatusWritten = begin.Add(-c.after)
			plan, err = deployment.Decide(o, p, begin)
			require.NoError(t, err)
			require.NotNil(t, plan.Write)
		})
	}
}

// TestFailedSummaries compares the list with a sort of all.
func TestFailedSummaries(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := stored(3)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(d, "web-a", 3), ownSet(d, "web-b", 0)}}
		o.Sets[0].Set.DeletedAt = begin // its machines are listed as well
		o.Sets[1].Set.Spec.Replicas = 3
		var want []machineset.FailedMachine
		made := make(map[string]time.Time)
		for _, i := range rapid.SliceOfNDistinct(rapid.IntRange(100, 999), 0, 40, rapid.ID[int]).Draw(t, "machines") {
			child := &o.Sets[i%2]
			m := &machine.Machine{Status: machine.Status{Phase: machine.PhaseUnknown}}
			m.Name, m.Spec.ProviderID = fmt.Sprintf("m-%d", i), fmt.Sprintf("id-%d", i)
			m.Owner = &object.Owner{UID: child.Set.UID}
			m.CreatedAt = begin.Add(time.Duration(rapid.IntRange(0, 5).Draw(t, "age")) * time.Second)
			made[m.Name] = m.CreatedAt
			if i%3 > 0 {
				m.Status.LastOperation = failed("out of room")
			}
			if i%5 == 0 {
				m.DeletedAt = begin
			}
			if i%3 > 0 && i%5 > 0 {
				want = append(want, machineset.FailedMachine{Name: m.Name, ProviderID: m.Spec.ProviderID, Owner: child.Set.Name, LastOperation: m.Status.LastOperation})
			}
			child.Machines = append(child.Machines, m)
		}
		slices.SortFunc(want, func(a, b machineset.FailedMachine) int {
			return cmp.Or(made[b.Name].Compare(made[a.Name]), strings.Compare(a.Name, b.Name))
		})
		failing := int32(len(want))
		p := deployment.DefaultPolicy()
		limit := rapid.IntRange(0, 25).Draw(t, "limit")
		p.FailedSummaries = cmp.Or(limit, object.Off)
		want = want[:min(len(want), limit)]

		o.Deployment.DeletedAt = begin // nothing but the status is left to do
		o.Sets[1].Set.DeletedAt = begin
		plan, err := deployment.Decide(o, p, begin)
		require.NoError(t, err)
		require.Equal(t, append([]machineset.FailedMachine{}, want...), append([]machineset.FailedMachine{}, statusOf(t, plan).Failed...))
		require.Equal(t, failing, statusOf(t, plan).Failing)
	})
}

// TestStatusSurvivesStores: a status that comes back with times in another location is the same
// status.
func TestStatusSurvivesStores(t *testing.T) {
	o := settledObservation(t, 1)
	o.Sets[0].Machines[0].Status.LastOperation = failed("out of room")
	d := o.Deployment
	d.Status = statusOf(t, decide(t, o, begin.Add(time.Hour)))
	elsewhere := time.FixedZone("elsewhere", 3600)
	require.NotEmpty(t, d.Status.Failed)
	for i := range d.Status.Conditions {
		d.Status.Conditions[i].Since = d.Status.Conditions[i].Since.In(elsewhere)
	}
	for i := range d.Status.Failed {
		d.Status.Failed[i].LastOperation.Time = d.Status.Failed[i].LastOperation.Time.In(elsewhere)
	}
	require.Nil(t, decide(t, o, begin.Add(2*time.Hour)).Write)

	same := d.Status.Clone()
	same.Conditions[0].Since = same.Conditions[0].Since.UTC()
	require.True(t, same.Equal(&d.Status))
	same.Conditions[0].Since = same.Conditions[0].Since.Add(time.Second)
	require.False(t, same.Equal(&d.Status))
	same = d.Status.Clone()
	same.Failed[0].LastOperation.Time = same.Failed[0].LastOperation.Time.Add(time.Second)
	require.False(t, same.Equal(&d.Status))
}

// progressing returns the condition of that type in the next decision.
func progressing(t require.TestingT, o *deployment.Observation, now time.Time) object.Condition {
	c := object.FindCondition(statusOf(t, decide(t, o, now)).Conditions, deployment.ConditionProgressing)
	require.NotNil(t, c)
	return *c
}

// TestProgressSticks: a complete rollout stays complete when machines fail or the fleet is scaled,
// until another template is wanted, even if no old machine exists.
func TestProgressSticks(t *testing.T) {
	o := settledObservation(t, 3)
	o.Sets[0].Set.Instructions.Reservation = machineset.Reservation{Settled: 3, Reserved: 3}
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	require.Equal(t, deployment.ProgressAvailable, progressing(t, o, begin).Reason)
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	for i := range o.Sets[0].Machines {
		o.Sets[0].Machines[i].DeletedAt = begin
	}
	require.Equal(t, deployment.ProgressAvailable, progressing(t, o, begin).Reason)

	o.Deployment.Spec.Template.Spec.Class.Name = "large"
	o.Sets = append(o.Sets, ownSet(o.Deployment, "web-b", 0))
	o.Sets[0].Set.Spec.Replicas = 0
	o.Sets[1].Set.Spec.Replicas, o.Sets[1].Set.Revision = 3, 2
	require.Equal(t, deployment.ProgressCreated, progressing(t, o, begin).Reason)
	o.Sets[1].Set.Instructions.Reservation.Reserved = 1
	o.Deployment.Status.Conditions = nil
	require.Equal(t, deployment.ProgressCreated, progressing(t, o, begin).Reason, "a name is no machine yet")
	o.Sets[1].Set.Instructions.Reservation.Settled = 1
	require.Equal(t, deployment.ProgressCreated, progressing(t, o, begin).Reason, "its first machine came before the status")
	o.Sets[0].Set.CreatedAt = begin.Add(time.Second)
	require.Equal(t, deployment.ProgressFound, progressing(t, o, begin).Reason, "it was there before another")
	o.Sets[0].Set.CreatedAt, o.Deployment.CreatedAt = begin, begin.Add(time.Second)
	require.Equal(t, deployment.ProgressFound, progressing(t, o, begin).Reason, "it was adopted")
}

// TestReplicaFailure: the new set's failures come first, then the oldest's. A refusal comes before
// any.
func TestReplicaFailure(t *testing.T) {
	o := settledObservation(t, 2)
	failing := func(reason string, status object.ConditionStatus) []object.Condition {
		return []object.Condition{{Type: machineset.ConditionReplicaFailure, Status: status, Reason: reason, Message: "why"}}
	}
	got := func() *object.Condition {
		return object.FindCondition(statusOf(t, decide(t, o, begin)).Conditions, deployment.ConditionReplicaFailure)
	}
	old := ownSet(o.Deployment, "web-old", 0)
	old.Set.CreatedAt, old.Set.Revision = begin.Add(-time.Hour), 0
	old.Set.Spec.Template.Spec.Class.Name = "tiny"
	old.Set.Status.Conditions = failing("Old", object.True)
	o.Sets = append(o.Sets, old)
	require.Equal(t, "Old", got().Reason)
	o.Sets[0].Set.Status.Conditions = failing("New", object.True)
	require.Equal(t, object.Condition{
		Type: deployment.ConditionReplicaFailure, Status: object.True, Reason: "New", Message: "why", Since: begin,
	}, *got())
	o.Failed = &machine.Outcome{Code: codes.Aborted, Message: "never in a condition"}
	require.Equal(t, deployment.FailureRefused, got().Reason)
	require.NotContains(t, got().Message, "never")
	o.Failed = nil
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	o.Sets[0].Set.Status.Conditions, o.Sets[1].Set.Status.Conditions = failing("New", object.False), nil
	require.Nil(t, got())
}

// TestRefusalWaits: no order in the same pass, then longer and longer.
func TestRefusalWaits(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.Replicas = 5
	require.NotEmpty(t, decide(t, o, begin).Scale)
	o.Failed = &machine.Outcome{Code: codes.PermissionDenied, Message: "no"}
	o.Deployment.Status = statusOf(t, decide(t, o, begin))
	for failures, wait := range []time.Duration{5 * time.Second, 5 * time.Second, 10 * time.Second, 20 * time.Second} {
		o.Failures = failures
		plan := decide(t, o, begin)
		require.Equal(t, begin.Add(wait), plan.At)
		require.Equal(t, deployment.ReasonOrderRefused, plan.Why.Reason)
		require.Equal(t, plan.Why, plan.Warn)
		require.Empty(t, plan.Scale)
	}
}

// TestStatusTellsOfUpdatesInPlace: a change of the counts of updates in place alone changes the
// status.
func TestStatusTellsOfUpdatesInPlace(t *testing.T) {
	a := deployment.Status{InPlace: deployment.InPlaceCounts{Candidates: 1}}
	b := a.Clone()
	require.True(t, a.Equal(&b))
	b.InPlace.Failed = 1
	require.False(t, a.Equal(&b))
}
