package deployment_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// slow is a rollout in which a machine of the new set does not come up, with
// its status stored at begin.
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

// TestDeadlineToTheNanosecond: a second is added, because the start was rounded down. The next
// decision is then, if nothing else comes first.
// Invariants: P21
func TestDeadlineToTheNanosecond(t *testing.T) {
	for _, deadline := range []time.Duration{time.Second, 1500 * time.Millisecond, 9 * time.Minute} {
		o := slow(t, deadline)
		due := begin.Add(deadline + time.Second)
		require.Equal(t, due, decide(t, o, begin).At)
		early := decide(t, o, due.Add(-1))
		require.Nil(t, early.Write)
		require.Equal(t, due, early.At)
		status, reason := condition(o.Deployment, o, t, due)
		require.Equal(t, []any{object.False, deployment.ProgressDeadlineExceeded}, []any{status, reason})
		require.Equal(t, begin, o.Deployment.Status.ProgressedAt)
		rest := decide(t, o, due)
		require.Nil(t, rest.Write)
		require.Equal(t, due.Add(10*time.Minute), rest.At, "nothing more is known to come")
	}
	for _, never := range []time.Duration{0, math.MaxInt64} {
		o := slow(t, never)
		require.Nil(t, decide(t, o, begin.AddDate(20, 0, 0)).Write)
	}
}

// TestDeadlineCountsFromProgress: each kind of progress restarts it, and turns an exceeded one
// back. Anything else does not.
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

// TestP25DeadlineBeginsAnewAfterAnOutage: the time of an outage, and that before it, counts for no
// verdict, whether this process has seen the outage or only the machines know of it.
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
			o.ClockFrom = begin.Add(at) // as long as it lasts
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
		early := decide(t, o, due.Add(-1))
		require.Nil(t, early.Write)
		require.Equal(t, due, early.At)
		status, reason := condition(o.Deployment, o, t, due)
		require.Equal(t, []any{object.False, deployment.ProgressDeadlineExceeded}, []any{status, reason})
		o.ClockFrom = due.Add(time.Minute)
		require.Nil(t, decide(t, o, due.Add(2*time.Minute)).Write, "a verdict that came before an outage stays")
	})
}

// TestDeadlineHeedsNoClockOfTheFuture: a clock that was set back since delays no verdict.
func TestDeadlineHeedsNoClockOfTheFuture(t *testing.T) {
	o := slow(t, time.Minute)
	o.ClockFrom = begin.Add(time.Hour)
	o.Sets[0].Machines[0].Status.ClockFrom = begin.Add(2 * time.Hour)
	_, reason := condition(o.Deployment, o, t, begin.Add(2*time.Minute))
	require.Equal(t, deployment.ProgressDeadlineExceeded, reason)
}

// TestPauseAndResume: paused is Unknown, with any state before. Resumed is progress, so that the
// deadline restarts. A complete rollout is complete again.
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

// TestNoDeadlineWhenComplete: a failure after a rollout does not delay it.
func TestNoDeadlineWhenComplete(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.ProgressDeadline = time.Minute
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	status, reason := condition(o.Deployment, o, t, begin.Add(time.Hour))
	require.Equal(t, []any{object.True, deployment.ProgressAvailable}, []any{status, reason})
}

// TestRecreateIsNoticed: the condition Available reports the outage of a recreation, although all
// machines may be missing.
func TestRecreateIsNoticed(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.Strategy.Kind = deployment.Recreate
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
	c := object.FindCondition(statusOf(t, decide(t, o, begin)).Conditions, deployment.ConditionAvailable)
	require.Equal(t, object.False, c.Status)
}
