package deployment_test

import (
	"cmp"
	"fmt"
	"math"
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

// settledObservation returns a deployment of n running machines, with nothing to do.
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
		newest, ordered := "", int32(0)
		for _, c := range o.Sets {
			if !c.Set.Deleted() && c.Set.Spec.Template.Spec.Class.Name == "small" && (newest == "" || older(o, c.Set, newest)) {
				newest = c.Set.UID
			}
		}
		for _, c := range o.Sets {
			ordered += max(0, c.Set.Spec.Replicas)
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
		want.Unavailable = max(0, ordered-want.Available)
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
		if plan.Write != nil { // it records only that the count of failures has begun
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
		o.Sets = withMachine(o.Sets, order.Machine.UID, order.Machine)
	}
	for _, order := range plan.Delete {
		order.Set.DeletedAt = begin
	}
	for _, order := range resized {
		apply(o, order)
	}
	for _, order := range plan.Create {
		s := order.Set.Clone()
		s.UID = "created"
		o.Sets = append(o.Sets, deployment.Children{Set: s})
	}
}

// older reports whether a set, and not the one with the UID than, is the new set if both have the wanted template: it
// has the higher revision or, if these are equal, is older.
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

// TestStatusInterval: the first change of the status is written at once, the next one exactly when the interval is
// over. A clock that was set back delays nothing.
func TestStatusInterval(t *testing.T) {
	o := settledObservation(t, 2)
	o.Sets[0].Machines = o.Sets[0].Machines[:1]
	at := func(sinceWritten time.Duration) deployment.Plan {
		o.StatusWritten = begin.Add(-sinceWritten)
		return decide(t, o, begin)
	}
	require.NotNil(t, at(time.Second).Write)
	require.NotNil(t, at(time.Hour).Write)
	require.NotNil(t, at(-time.Hour).Write)
	for _, chooseEarly := range []time.Duration{0, time.Nanosecond, time.Second - time.Nanosecond} {
		plan := at(chooseEarly)
		require.Nil(t, plan.Write)
		require.Equal(t, begin.Add(time.Second-chooseEarly), plan.At)
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

// TestProgressInterval: a status with mere progress waits for ProgressInterval; one that first says that all machines are available
// waits for nothing.
func TestProgressInterval(t *testing.T) {
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
		}, 0},
		"an operation has failed": {func(o *deployment.Observation) {
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
			require.Equal(t, c.after == 0, plan.Write != nil)
			o.StatusWritten = begin.Add(-c.after)
			plan, err = deployment.Decide(o, p, begin)
			require.NoError(t, err)
			require.NotNil(t, plan.Write)
		})
	}
}

// TestFailedMachineList compares the list of failed machines with a sort of all.
func TestFailedMachineList(t *testing.T) {
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

// TestTimesInAnotherLocation: if a store returns times in another location, the status has not changed.
func TestTimesInAnotherLocation(t *testing.T) {
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

// TestCompleteRolloutStaysComplete: a complete rollout stays complete when machines fail or the fleet is scaled, until
// another template is wanted.
func TestCompleteRolloutStaysComplete(t *testing.T) {
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
	require.Equal(t, deployment.ProgressCreated, progressing(t, o, begin).Reason, "a reserved name is no machine yet")
	o.Sets[1].Set.Instructions.Reservation.Settled = 1
	require.Equal(t, deployment.ProgressCreated, progressing(t, o, begin).Reason, "its first machine came before the status")
	o.Sets[0].Set.CreatedAt = begin.Add(time.Second)
	require.Equal(t, deployment.ProgressFound, progressing(t, o, begin).Reason, "another set is younger")
	o.Sets[0].Set.CreatedAt, o.Deployment.CreatedAt = begin, begin.Add(time.Second)
	require.Equal(t, deployment.ProgressFound, progressing(t, o, begin).Reason, "it was adopted")
}

// TestReplicaFailure: a refused order is reported first, then the new set's failure, then that of the oldest set.
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

// TestRefusalWaits: after a refusal no order is given in the same pass, and the waits of later passes get longer.
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

// TestInPlaceCountsChangeStatus: the status is written even if only the counts of updates in place change.
func TestInPlaceCountsChangeStatus(t *testing.T) {
	a := deployment.Status{InPlace: deployment.InPlaceCounts{Candidates: 1}}
	b := a.Clone()
	require.True(t, a.Equal(&b))
	b.InPlace.Failed = 1
	require.False(t, a.Equal(&b))
}

// TestMissing: Missing names one missing thing at a time, and what holds it up.
func TestMissing(t *testing.T) {
	complete := func() *deployment.Deployment {
		d := &deployment.Deployment{Meta: object.Meta{Generation: 4}, Spec: deployment.Spec{Replicas: 10}}
		d.Status = deployment.Status{ObservedGeneration: 4, Replicas: 10, Updated: 10, Ready: 10, Available: 10}
		return d
	}
	for missing, change := range map[string]func(*deployment.Deployment){
		"":                                func(d *deployment.Deployment) { d.Spec.Paused = true },
		"the deployment is being deleted": func(d *deployment.Deployment) { d.DeletedAt = begin },
		"the current spec has not been observed yet": func(d *deployment.Deployment) { d.Status.ObservedGeneration = 3 },
		"the spec is invalid: no selector": func(d *deployment.Deployment) {
			d.Status.Conditions = []object.Condition{{Type: deployment.ConditionSpecValid, Status: object.False, Message: "no selector"}}
		},
		"9 of 10 machines are updated":    func(d *deployment.Deployment) { d.Status.Updated = 9 },
		"old machines are still there: 2": func(d *deployment.Deployment) { d.Status.Replicas = 12 },
		"more machines than wanted: 1":    func(d *deployment.Deployment) { d.Status.Replicas, d.Status.Updated = 11, 11 },
		"7 of 10 machines are available":  func(d *deployment.Deployment) { d.Status.Available = 7 },
		"more machines than wanted: 10":   func(d *deployment.Deployment) { d.Spec.Replicas = 0 },
		"0 of 10 machines are updated":    func(d *deployment.Deployment) { d.Status = deployment.Status{ObservedGeneration: 4} },
		"0 of 10 machines are updated; the deployment is paused": func(d *deployment.Deployment) {
			d.Spec.Paused, d.Status.Updated = true, 0
		},
		"7 of 10 machines are available, 3 are kept for inspection": func(d *deployment.Deployment) {
			d.Status.Available, d.Status.Preserved = 7, 3
		},
		"8 of 10 machines are updated; there was no progress within 10m0s": func(d *deployment.Deployment) {
			d.Spec.ProgressDeadline, d.Status.Updated = 10*time.Minute, 8
			d.Status.Conditions = []object.Condition{{
				Type: deployment.ConditionProgressing, Status: object.False, Reason: deployment.ProgressDeadlineExceeded,
			}}
		},
	} {
		d := complete()
		change(d)
		require.Equal(t, missing, deployment.Missing(d))
		require.Equal(t, missing == "", deployment.Complete(d))
	}
}

// TestCompleteIsProgressAvailable: a deployment that is Complete also has the reason ProgressAvailable, for any fleet.
func TestCompleteIsProgressAvailable(t *testing.T) {
	available := func(t *rapid.T, d *deployment.Deployment) {
		c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
		require.Equal(t, deployment.ProgressAvailable, c.Reason, "%+v", d.Status)
	}
	t.Run("any", rapid.MakeCheck(func(t *rapid.T) {
		d := reported(t, drawLive(t))
		if d != nil && deployment.Complete(d) && !d.Spec.Paused {
			available(t, d)
		}
	}))
	t.Run("complete", rapid.MakeCheck(func(t *rapid.T) {
		d := reported(t, drawComplete(t))
		require.Empty(t, deployment.Missing(d))
		available(t, d)
	}))
}

// reported returns the deployment with the next status that is written for it. Nil: something else is written first.
func reported(t *rapid.T, o *deployment.Observation) *deployment.Deployment {
	plan := decide(t, o, begin)
	for decisions := 0; plan.Write == nil; decisions++ {
		require.Less(t, decisions, mostDecisions)
		follow(t, o, plan)
		plan = decide(t, o, begin)
	}
	written, ok := plan.Write.(*deployment.UpdateStatus)
	if !ok {
		return nil
	}
	d := o.Deployment.Clone()
	d.Status = written.Status
	return d
}

// drawComplete returns a fleet in which only a status is left to be written: all wanted machines exist and are
// available, and older sets are empty.
func drawComplete(t *rapid.T) *deployment.Observation {
	o := drawLive(t)
	d := o.Deployment
	d.Spec.Paused, d.Spec.MinReady, d.Spec.RevisionHistoryLimit = false, 0, nil
	d.Revision = 9
	o.Sets = slices.DeleteFunc(o.Sets, func(c deployment.Children) bool {
		return c.Set.Deleted() || c.Set.Spec.Template.Spec.Class == d.Spec.Template.Spec.Class
	})
	for i := range o.Sets {
		s := o.Sets[i].Set
		o.Sets[i] = deployment.Children{Set: s}
		s.Spec.Replicas, s.Spec.MinReady = 0, 0
	}
	wanted := ownSet(d, "web-a", int(d.Spec.Replicas))
	wanted.Set.Revision = d.Revision
	o.Sets = append(o.Sets, wanted)
	return o
}

// slow returns a rollout in which a machine of the new set does not come up. Its status was stored at begin.
func slow(t *testing.T, deadline time.Duration) *deployment.Observation {
	d := stored(2)
	d.Spec.ProgressDeadline = deadline
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
		another(d, "large", 0, 2), ownSet(d, "web-a", 1),
	}}
	o.Sets[0].Set.Instructions.Marks.Avoid = true // the rollout is under way
	o.Sets[1].Machines[0].Status.Phase = machine.PhasePending
	d.Status = statusOf(t, decide(t, o, begin))
	require.Equal(t, begin, d.Status.ProgressedAt)
	require.Nil(t, decide(t, o, begin).Write)
	return o
}

func condition(d *deployment.Deployment, o *deployment.Observation, t *testing.T, now time.Time) (object.ConditionStatus, string) {
	if plan := decide(t, o, now); plan.Write != nil {
		d.Status = statusOf(t, plan)
	}
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	return c.Status, c.Reason
}

// TestDeadlineToTheNanosecond: the deadline passes a second late, because its start was rounded down. The next decision
// is due exactly then.
// Invariants: P21
func TestDeadlineToTheNanosecond(t *testing.T) {
	for _, deadline := range []time.Duration{time.Second, 1500 * time.Millisecond, 9 * time.Minute} {
		o := slow(t, deadline)
		due := begin.Add(deadline + time.Second)
		require.Equal(t, due, decide(t, o, begin).At)
		chooseEarly := decide(t, o, due.Add(-1))
		require.Nil(t, chooseEarly.Write)
		require.Equal(t, due, chooseEarly.At)
		status, reason := condition(o.Deployment, o, t, due)
		require.Equal(t, []any{object.False, deployment.ProgressDeadlineExceeded}, []any{status, reason})
		require.Equal(t, begin, o.Deployment.Status.ProgressedAt)
		rest := decide(t, o, due)
		require.Nil(t, rest.Write)
		require.Equal(t, due.Add(10*time.Minute), rest.At, "no other event is known")
	}
	for _, never := range []time.Duration{0, math.MaxInt64} {
		o := slow(t, never)
		require.Nil(t, decide(t, o, begin.AddDate(20, 0, 0)).Write)
	}
}

// TestDeadlineCountsFromProgress: each kind of progress restarts the deadline, even if it was exceeded. Anything else
// does not.
func TestDeadlineCountsFromProgress(t *testing.T) {
	later := begin.Add(time.Hour)
	for name, line := range map[string]struct {
		change func(*deployment.Observation)
		reason string
	}{
		"a new machine available": {func(o *deployment.Observation) { o.Sets[1].Machines[0].Status.Phase = machine.PhaseRunning }, deployment.ProgressUpdated},
		"an old machine gone": {func(o *deployment.Observation) {
			o.Sets[0].Set.Spec.Replicas = 1
			o.Sets[0].Machines = o.Sets[0].Machines[:1]
		}, deployment.ProgressUpdated},
		"another template": {func(o *deployment.Observation) {
			o.Sets = append(o.Sets, another(o.Deployment, "huge", 2, 0))
			o.Deployment.Spec.Template.Spec.Class.Name = "huge"
			o.Deployment.Generation++
		}, deployment.ProgressCreated},
		"an old machine unavailable": {func(o *deployment.Observation) {
			o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
		}, deployment.ProgressDeadlineExceeded},
		"paused":              {func(o *deployment.Observation) { o.Deployment.Spec.Paused = true }, deployment.ProgressDeadlineExceeded},
		"a longer deadline":   {func(o *deployment.Observation) { o.Deployment.Spec.ProgressDeadline = 24 * time.Hour }, deployment.ProgressCreated},
		"no deadline":         {func(o *deployment.Observation) { o.Deployment.Spec.ProgressDeadline = 0 }, deployment.ProgressCreated},
		"its time is unknown": {func(o *deployment.Observation) { o.Deployment.Status.ProgressedAt = time.Time{} }, deployment.ProgressCreated},
		"nothing":             {func(*deployment.Observation) {}, deployment.ProgressDeadlineExceeded},
	} {
		o := slow(t, time.Minute)
		_, reason := condition(o.Deployment, o, t, begin.Add(2*time.Minute))
		require.Equal(t, deployment.ProgressDeadlineExceeded, reason)
		line.change(o)
		for plan := decide(t, o, later); len(plan.Scale)+len(plan.Push) > 0; plan = decide(t, o, later) {
			follow(t, o, plan)
		}
		_, reason = condition(o.Deployment, o, t, later)
		require.Equal(t, line.reason, reason, name)
		progressed := line.reason == deployment.ProgressUpdated || name == "another template"
		require.Equal(t, progressed || name == "its time is unknown", o.Deployment.Status.ProgressedAt.Equal(later), name)
	}
}

// TestP25DeadlineBeginsAnewAfterAnOutage: the deadline begins again after an outage, whether this process has seen the
// outage or only the machines' status says so.
// Invariants: P25
func TestP25DeadlineBeginsAnewAfterAnOutage(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		seconds := func(name string, low, high int64) time.Duration {
			return time.Duration(rapid.Int64Range(low, high).Draw(rt, name)) * time.Second
		}
		deadline := seconds("deadline", 1, 7200)
		outage := seconds("until the outage", 0, int64(deadline/time.Second))
		back := outage + seconds("its length", 1, 36000)
		o := slow(t, deadline)
		for at := outage; at < back; at += max(back/7, time.Second) {
			o.ClockFrom = begin.Add(at) // during the outage it is the present time
			status, _ := condition(o.Deployment, o, t, begin.Add(at))
			require.Equal(t, object.True, status, at)
		}
		o.ClockFrom = begin.Add(back)
		if rapid.Bool().Draw(rt, "restarted") {
			o.ClockFrom = time.Time{}
			set := rapid.IntRange(0, 1).Draw(rt, "set")
			o.Sets[set].Machines[0].Status.ClockFrom = begin.Add(back)
		}
		due := begin.Add(back + deadline + time.Second)
		chooseEarly := decide(t, o, due.Add(-1))
		require.Nil(t, chooseEarly.Write)
		require.Equal(t, due, chooseEarly.At)
		status, reason := condition(o.Deployment, o, t, due)
		require.Equal(t, []any{object.False, deployment.ProgressDeadlineExceeded}, []any{status, reason})
		o.ClockFrom = due.Add(time.Minute)
		require.Nil(t, decide(t, o, due.Add(2*time.Minute)).Write, "a deadline that was exceeded before an outage stays exceeded")
	})
}

// TestDeadlineIgnoresFutureOutage: the end of an outage in the future, as after a clock was set back, does not count.
func TestDeadlineIgnoresFutureOutage(t *testing.T) {
	o := slow(t, time.Minute)
	o.ClockFrom = begin.Add(time.Hour)
	o.Sets[0].Machines[0].Status.ClockFrom = begin.Add(2 * time.Hour)
	_, reason := condition(o.Deployment, o, t, begin.Add(2*time.Minute))
	require.Equal(t, deployment.ProgressDeadlineExceeded, reason)
}

// TestPauseAndResume: while a deployment is paused, the condition is Unknown, whatever it was before. When it is
// resumed, that counts as progress, so that the deadline restarts. A complete rollout is then complete again.
func TestPauseAndResume(t *testing.T) {
	o := slow(t, time.Minute)
	d := o.Deployment
	d.Spec.Paused = true
	status, reason := condition(d, o, t, begin.Add(time.Hour))
	require.Equal(t, []any{object.Unknown, deployment.ProgressPaused}, []any{status, reason})
	require.Equal(t, begin, d.Status.ProgressedAt)
	d.Spec.Paused = false
	status, reason = condition(d, o, t, begin.Add(2*time.Hour))
	require.Equal(t, []any{object.True, deployment.ProgressResumed}, []any{status, reason})
	_, reason = condition(d, o, t, begin.Add(2*time.Hour+time.Minute))
	require.Equal(t, deployment.ProgressResumed, reason)
	_, reason = condition(d, o, t, begin.Add(2*time.Hour+time.Minute+time.Second))
	require.Equal(t, deployment.ProgressDeadlineExceeded, reason)

	o = settledObservation(t, 2)
	o.Deployment.Spec.Paused = true
	_, reason = condition(o.Deployment, o, t, begin)
	require.Equal(t, deployment.ProgressPaused, reason)
	o.Deployment.Spec.Paused = false
	_, reason = condition(o.Deployment, o, t, begin.Add(time.Hour))
	require.Equal(t, deployment.ProgressAvailable, reason)
}

// TestNoDeadlineWhenComplete: when machines fail after a rollout, the progress deadline does not apply.
func TestNoDeadlineWhenComplete(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.ProgressDeadline = time.Minute
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	status, reason := condition(o.Deployment, o, t, begin.Add(time.Hour))
	require.Equal(t, []any{object.True, deployment.ProgressAvailable}, []any{status, reason})
}

// TestRecreateIsReportedUnavailable: with Recreate, the condition Available is False while machines are missing,
// although all may be missing.
func TestRecreateIsReportedUnavailable(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.Strategy.Kind = deployment.Recreate
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	c := object.FindCondition(statusOf(t, decide(t, o, begin)).Conditions, deployment.ConditionAvailable)
	require.Equal(t, object.False, c.Status)
}
