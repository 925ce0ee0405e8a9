package preview_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/preview"
)

// defaultModel returns a model in which nothing fails.
func defaultModel() preview.Model {
	return preview.Model{Create: 90 * time.Second, Delete: 30 * time.Second, Start: startTime}
}

// TestPreviewTakesItsTime: with a surge of one, each replacement takes the time of a creation, and the last
// deletion comes on top.
func TestPreviewTakesItsTime(t *testing.T) {
	d, sets := rolling(4)
	line := predict(t, d, sets, defaultModel())
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 4*90*time.Second+30*time.Second, line.Duration, 4, &line)
	assert.Equal(t, preview.Bounds{Replicas: 4, Surge: 1, Floor: 4, Ceiling: 5}, line.Bounds)
	assert.Equal(t, [5]int64{4, 5, 4, 4, 0},
		[...]int64{int64(line.LowestAvailable), int64(line.HighestTotal), line.Created, line.Deleted, line.Failed})
	assert.Equal(t, rollout.ReasonDone, deployment.RolloutOf(line.Ending.Waits).Reason)
	assert.Contains(t, line.Ending.String(), "complete after 6m3")
	assert.Equal(t, d.Key, line.Key)
	require.Len(t, line.Steps, 1+4+4)
	assert.Equal(t, deployment.ReasonCreate, line.Steps[0].Why.Reason)
	last := line.Steps[8]
	assert.Equal(t, "web-old", last.Set)
	assert.False(t, last.New)
	requireDuration(t, 4*90*time.Second, last.After, 4, &line)
	assert.Equal(t, preview.Counts{Old: 1, New: 4, OldAvailable: 1, NewAvailable: 4, Ready: 5}, last.Seen)
	assert.Equal(t, preview.Counts{Old: 4, OldAvailable: 4, Ready: 4}, line.Samples[0].Counts)
}

func TestPreviewCountsMinReady(t *testing.T) {
	d, sets := rolling(2)
	d.Spec.MinReady = 10 * time.Second
	sets[0].Set.Spec.MinReady = 10 * time.Second
	line := predict(t, d, sets, defaultModel())
	require.True(t, line.Complete)
	requireDuration(t, 2*(90+10+1)*time.Second+30*time.Second, line.Duration, 2, &line)

	sets[0].Machines[0].Status.Since = startTime
	line = predict(t, d, sets, defaultModel())
	assert.Equal(t, preview.Counts{Old: 2, OldAvailable: 1, Ready: 2}, line.Samples[0].Counts)
	assert.Equal(t, preview.Sample{After: 11 * time.Second, Counts: preview.Counts{Old: 2, New: 1, OldAvailable: 2, Ready: 2}},
		line.Samples[2], "time alone has changed the counts")
	assert.EqualValues(t, 1, line.LowestAvailable)
}

// TestPreviewFails: Model.Fail says which creations fail, at the end of their creation timeout.
func TestPreviewFails(t *testing.T) {
	for name, c := range map[string]struct {
		fail    rollout.IntOrPercent
		timeout time.Duration // of the template
		failed  int64
		last    time.Duration
	}{
		"the first":             {rollout.IntOrPercent{Value: 1}, 0, 1, 20 * time.Minute},
		"every tenth":           {percent(10), 0, 1, 9*90*time.Second + 20*time.Minute},
		"after the template's":  {rollout.IntOrPercent{Value: 1}, time.Hour, 1, time.Hour},
		"more than are created": {percent(9), 0, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			d, sets := rolling(10)
			d.Spec.Template.Spec.Config.CreationTimeout = c.timeout
			model := defaultModel()
			model.Fail = c.fail
			line := predict(t, d, sets, model)
			require.True(t, line.Complete, "%s", describe(&line))
			assert.Equal(t, c.failed, line.Failed)
			assert.Equal(t, 10+c.failed, line.Created)
			last := time.Duration(0)
			for i := range line.Steps {
				if s := &line.Steps[i]; s.Reason() == machineset.ReasonDeleteFailed.String() {
					last = s.After
				}
			}
			assert.InDelta(t, c.last, last, float64(5*time.Minute), "%s", describe(&line))
		})
	}
}

func TestPreviewOfNothing(t *testing.T) {
	d := stored(3)
	line := predict(t, d, []deployment.Children{setWithMachines(d, "web-a", 3)}, defaultModel())
	assert.True(t, line.Complete)
	assert.Empty(t, line.Steps)
	assert.Zero(t, line.Duration)
	assert.Len(t, line.Samples, 1)
	assert.EqualValues(t, 3, line.Samples[0].NewAvailable)
}

// TestPreviewOfFirstCreation: a deployment that is not stored yet can be previewed.
func TestPreviewOfFirstCreation(t *testing.T) {
	line := predict(t, web(5), nil, defaultModel())
	assert.True(t, line.Complete)
	requireDuration(t, 90*time.Second, line.Duration, 1, &line)
	assert.EqualValues(t, 5, line.Created)
	assert.EqualValues(t, 5, line.HighestTotal)

	line = predict(t, web(0), nil, defaultModel())
	assert.True(t, line.Complete)
	assert.Len(t, line.Steps, 1, "a set is created for zero machines, too")
	assert.Zero(t, line.HighestTotal)
}

// TestPreviewOfMachinesInTransition: machines in transition at the start take the rest of their time, and late
// ones the whole time.
func TestPreviewOfMachinesInTransition(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machine.Machine)
		want   time.Duration
	}{
		"coming up":       {inPhase(machine.PhasePending, time.Minute), 30 * time.Second},
		"late":            {inPhase(machine.PhasePending, time.Hour), 90 * time.Second},
		"from the future": {inPhase(machine.PhasePending, -time.Hour), 90 * time.Second},
		"looping":         {inPhase(machine.PhaseCrashLoopBackOff, 15*time.Minute), 5*time.Minute + 90*time.Second},
		"unhealthy":       {inPhase(machine.PhaseUnknown, 4*time.Minute), 6*time.Minute + 90*time.Second},
		"failed":          {inPhase(machine.PhaseFailed, time.Minute), 90 * time.Second},
		"going": {func(m *machine.Machine) {
			m.DeletedAt = startTime.Add(-10 * time.Second)
		}, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			d := stored(2)
			set := setWithMachines(d, "web-a", 2)
			c.change(set.Machines[1])
			line := predict(t, d, []deployment.Children{set}, defaultModel())
			require.True(t, line.Complete, "%s", describe(&line))
			requireDuration(t, c.want, line.Duration, 25, &line)
			assert.Zero(t, line.Failed, "failed machines among those that the preview created")
		})
	}
}

// TestPreviewWithoutHealthTimeout: an unhealthy machine without a health timeout is never replaced.
func TestPreviewWithoutHealthTimeout(t *testing.T) {
	d := stored(2)
	d.Spec.Template.Spec.Config.DisableHealthTimeout = true
	set := setWithMachines(d, "web-a", 2)
	set.Set.Spec.Template = d.Spec.Template.Clone()
	m := set.Machines[1]
	inPhase(machine.PhaseUnknown, 4*time.Minute)(m)
	m.Spec.Config.DisableHealthTimeout = true
	line := predict(t, d, []deployment.Children{set}, defaultModel())
	assert.False(t, line.Complete, "%s", describe(&line))
	assert.Zero(t, line.Created, "%s", describe(&line))
}

// inPhase returns a function that makes a machine be in a phase, and exist, for a time.
func inPhase(phase machine.Phase, since time.Duration) func(*machine.Machine) {
	return func(m *machine.Machine) {
		m.Status.Phase, m.Status.Since, m.CreatedAt = phase, startTime.Add(-since), startTime.Add(-since)
	}
}

func TestPreviewEndings(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*deployment.Deployment, []deployment.Children, *preview.Model)
		reason preview.EndReason
		want   string
	}{
		"limit": {func(_ *deployment.Deployment, _ []deployment.Children, m *preview.Model) {
			m.Limit = 100 * time.Second
		},
			preview.EndLimit, "not complete after 1m40s, which is as far as the preview looks: "},
		"stuck": {func(_ *deployment.Deployment, c []deployment.Children, _ *preview.Model) {
			c[0].Set.Spec.Selector.Labels = nil
		}, preview.EndStuck, "waiting for 1 surplus machine of set web-old to be removed (spec.selector must not be empty"},
		"failing": {func(_ *deployment.Deployment, _ []deployment.Children, m *preview.Model) { m.Fail = percent(100) },
			preview.EndFailing, "every creation fails"},
		"rollout stopped": {func(d *deployment.Deployment, _ []deployment.Children, m *preview.Model) {
			m.Fail, d.Spec.Strategy = percent(100), deployment.DefaultStrategy()
			d.Spec.Strategy.StopAfter.Value = 2
		}, preview.EndRolloutStopped, "the rollout has stopped: 2 machines failed, the limit is 2"},
		"refused": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) { d.Spec.Replicas = -1 },
			preview.EndRefused, "refused: spec.replicas must not be negative"},
		"foreign": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) {
			d.Finalizers, d.DeletedAt = nil, begin
		},
			preview.EndRefused, "without our finalizer"},
		"paused": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) { d.Spec.Paused = true },
			preview.EndPaused, "on hold after 0s: paused: nothing is rolled"},
		"paused and scaled": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) {
			d.Spec.Paused, d.Spec.Replicas = true, 5
		},
			preview.EndPaused, "on hold after 1m3"},
		"paused and smaller": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) {
			d.Spec.Paused, d.Spec.Replicas = true, 1
		},
			preview.EndPaused, "on hold after 3"},
		"paused, and paused machines": {func(d *deployment.Deployment, c []deployment.Children, _ *preview.Model) {
			d.Spec.Paused = true
			c[0].Machines[0].Annotations = map[string]string{machine.DefaultPolicy().Keys.Paused: "true"}
			c[0].Machines[0].Status.Phase = machine.PhasePending
		},
			preview.EndPaused, "on hold after 24h"},
		"paused, one kept": {func(d *deployment.Deployment, c []deployment.Children, _ *preview.Model) {
			d.Spec.Paused = true
			c[0].Machines[0].Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: "now"}
			c[0].Machines[0].Status.Preservation = machine.Preservation{Request: "now", Since: startTime.Add(-time.Hour), Until: startTime.Add(time.Hour)}
		},
			preview.EndPaused, "on hold after 0s"},
		"deleted": {func(d *deployment.Deployment, _ []deployment.Children, _ *preview.Model) { d.DeletedAt = begin },
			preview.EndComplete, "complete after 3"},
	} {
		t.Run(name, func(t *testing.T) {
			d, sets := rolling(3)
			model := defaultModel()
			c.change(d, sets, &model)
			line := predict(t, d, sets, model)
			requireConsistent(t, &line)
			assert.Equal(t, c.reason, line.Ending.Reason, "%s", describe(&line))
			assert.Contains(t, line.Ending.String(), c.want)
		})
	}
}

// TestPreviewOfADeadline: while a machine fails, the rollout makes no progress, and exceeds its deadline.
func TestPreviewOfADeadline(t *testing.T) {
	d, sets := rolling(2)
	d.Spec.ProgressDeadline = 10 * time.Minute
	model := defaultModel()
	line := predict(t, d, sets, model)
	assert.Zero(t, line.Overdue)
	model.Fail = rollout.IntOrPercent{Value: 1}
	line = predict(t, d, sets, model)
	assert.InDelta(t, 10*time.Minute, line.Overdue, float64(3*time.Minute))
	assert.True(t, line.Complete)
}

// TestPreviewOfARollback: the answer to the request is a step, and the preview shows the rollout after it.
func TestPreviewOfARollback(t *testing.T) {
	d, sets := rolling(2)
	sets[0].Set.Revision, d.Revision = 1, 1
	d.Spec.RollbackTo = &deployment.Rollback{Revision: 1}
	line := predict(t, d, sets, defaultModel())
	require.Len(t, line.Steps, 1, "%s", describe(&line))
	assert.Equal(t, deployment.ReasonRollbackDone, line.Steps[0].Why.Reason)
	assert.Equal(t, "web-old", line.Steps[0].Set)
	assert.True(t, line.Complete)

	d.Spec.RollbackTo.Revision = 7
	line = predict(t, d, sets, defaultModel())
	assert.Equal(t, deployment.ReasonRollbackRevisionNotFound, line.Steps[0].Why.Reason)
	assert.EqualValues(t, 2, line.Created, "the rollout continues after the refusal")
}

// TestPreviewOfTwoSetsOfOneName: a stale cache may show a deleted set beside another one with its name. The
// preview still completes.
func TestPreviewOfTwoSetsOfOneName(t *testing.T) {
	d, sets := rolling(4)
	twin := setWithMachines(d, "web-old", 3)
	class("medium")(&d.Spec)
	twin.Set.UID = "twin"
	for _, m := range twin.Machines {
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: "web-old", UID: "twin"}
	}
	line := predict(t, d, append(sets, twin), defaultModel())
	assert.Equal(t, preview.EndComplete, line.Ending.Reason, "%s", line.Ending)
}

// TestPreviewOfATakenName: if a set of another owner has the name of the new set, the new set gets another
// name.
func TestPreviewOfATakenName(t *testing.T) {
	d, sets := rolling(2)
	line := predict(t, d, sets, defaultModel())
	other := deployment.Children{Set: &machineset.Set{}}
	other.Set.Namespace, other.Set.Name, other.Set.UID = d.Namespace, line.Steps[0].Set, "other"
	again := predict(t, d, append(sets, other), defaultModel())
	require.True(t, again.Complete, "%s", describe(&again))
	assert.Len(t, again.Steps, len(line.Steps))
	assert.NotEqual(t, line.Steps[0].Set, again.Steps[0].Set)
	requireDuration(t, line.Duration, again.Duration, 2, &line)
}

// TestPreviewUsesPolicies: the preview uses the key of the hash label in the given policy, and does not change
// the policies.
func TestPreviewUsesPolicies(t *testing.T) {
	d, sets := rolling(20)
	sets[0].Set.Spec.Template.Labels["hash"] = "old"
	model := defaultModel()
	model.Policy, model.SetPolicy = deployment.DefaultPolicy(), machineset.DefaultPolicy()
	model.Policy.Keys.TemplateHash = "hash"
	model.SetPolicy.Burst = 7
	d.Spec.Template.Spec.Class.Name = "small"
	delete(sets[0].Set.Spec.Template.Labels, hashLabel)
	delete(sets[0].Set.Spec.Selector.Labels, hashLabel)
	d.Spec.Replicas = 55
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	assert.Len(t, line.Steps, 1, "no rollout: only the hash label differs")
	assert.EqualValues(t, 7, model.SetPolicy.Burst)
	assert.Equal(t, time.Second, model.Policy.StatusInterval, "the preview changed the caller's policy")
}

func TestModelValidate(t *testing.T) {
	for want, m := range map[string]preview.Model{
		"model.create must not be negative":             {Create: -1},
		"model.delete must not be negative":             {Delete: -1},
		"model.fail must not be negative":               {Fail: rollout.IntOrPercent{Value: -1}},
		"model.fail must not be more than 100%":         {Fail: percent(101)},
		"model.fail must not be more than 1000000":      {Fail: rollout.IntOrPercent{Value: 1_000_001}},
		"model.update must not be negative":             {Update: -1},
		"model.updateVM must not be negative":           {UpdateVM: -1},
		"model.failUpdate must not be negative":         {FailUpdate: rollout.IntOrPercent{Value: -1}},
		"model.failUpdate must not be more than 100%":   {FailUpdate: percent(101)},
		"model.limit must not be negative":              {Limit: -1},
		"model.limit must not be more than 87600h0m0s":  {Limit: preview.MaxLimit + 1},
		"model.capacity must not be negative":           {Capacity: -1},
		"model.pods must be from 0 to 1000":             {Pods: preview.MaxPods + 1},
		"model.podEnd must not be negative":             {PodEnd: -1},
		"model.patience must not be negative":           {Patience: -1},
		"model.start must be zero or from 1970 to 9999": {Start: time.Unix(-1, 0)},
		"policy.resync must be at least a second":       {Policy: &deployment.Policy{Resync: 1}},
		"policy.burst must be from 1 to 10000":          {SetPolicy: &machineset.Policy{Burst: -1}},
		"":                                              {},
	} {
		err := m.Validate()
		if want == "" {
			assert.NoError(t, err)
			continue
		}
		assert.EqualError(t, err, want)
		assert.ErrorIs(t, err, object.ErrInvalid)
		_, err = sim.Preview(t.Context(), web(1), nil, m)
		assert.EqualError(t, err, want)
	}
}

// TestPreviewIgnoresMarks: the steps of a rollout are the same with and without rollout marks.
func TestPreviewIgnoresMarks(t *testing.T) {
	d, sets := rolling(3)
	plain := predict(t, d, sets, defaultModel())
	sets[0].Set.Instructions.Marks.Avoid = true
	assert.Equal(t, plain.Steps, predict(t, d, sets, defaultModel()).Steps)
}

// TestPreviewIgnoresMaxAge: a preview predicts a rollout as if machines had no maximum age. The rollout waits
// for a paused machine.
func TestPreviewIgnoresMaxAge(t *testing.T) {
	d, sets := rolling(4)
	plain := predict(t, d, sets, defaultModel())
	d.Spec.MaxAge, sets[0].Set.Spec.MaxAge = time.Hour, time.Hour
	require.Equal(t, plain, predict(t, d, sets, defaultModel()))
	sets[0].Machines[0].Annotations = map[string]string{machine.DefaultPolicy().Keys.Paused: "true"}
	line := predict(t, d, sets, defaultModel())
	require.False(t, line.Complete)
	require.EqualValues(t, 3, line.Deleted)
	require.Contains(t, line.Ending.String(), "is paused")
	sets[0].Set.Annotations = map[string]string{machine.DefaultPolicy().Keys.Paused: "true"}
	line = predict(t, d, sets, defaultModel())
	require.Zero(t, line.Deleted)
	require.Contains(t, line.Ending.String(), "set web-old is paused, with 4 machines")
}

// requireDuration requires a time that is as long as expected, or up to 3 s longer for each creation.
func requireDuration(t require.TestingT, want, got time.Duration, creations int, line *preview.Timeline) {
	require.GreaterOrEqual(t, got, want, "%s", describe(line))
	require.LessOrEqual(t, got, want+time.Duration(creations)*3*time.Second, "%s", describe(line))
}

// TestPreviewRefusesTooMany: a fleet that is too large for a preview is an error.
func TestPreviewRefusesTooMany(t *testing.T) {
	d, sets := rolling(3)
	d.Spec.Replicas = preview.MaxMachines + 1
	_, err := sim.Preview(t.Context(), d, sets, defaultModel())
	require.ErrorIs(t, err, object.ErrInvalid)
	d, sets = rolling(3)
	sets[0].Set.Spec.Replicas = math.MaxInt32
	_, err = sim.Preview(t.Context(), d, sets, defaultModel())
	require.ErrorIs(t, err, object.ErrInvalid)
}

// TestPreviewPrunes: old sets above the limit are deleted at the end, the lowest revision first.
func TestPreviewPrunes(t *testing.T) {
	for limit, pruned := range []int{2, 1, 0} {
		d, sets := rolling(2)
		older := setWithMachines(d, "web-older", 0)
		older.Set.Spec.Template.Spec.Class.Name = "ancient"
		sets[0].Set.Revision, d.Revision = 2, 2
		d.Spec.RevisionHistoryLimit = new(int32)
		*d.Spec.RevisionHistoryLimit = int32(limit)
		line := predict(t, d, append(sets, older), defaultModel())
		require.True(t, line.Complete, "%s", describe(&line))
		requireDuration(t, 2*90*time.Second+30*time.Second, line.Duration, 2, &line)
		var gone []string
		for i := range line.Steps {
			if line.Steps[i].Why.Reason == deployment.ReasonPrune {
				gone = append(gone, line.Steps[i].Set)
			}
		}
		require.Equal(t, []string{"web-older", "web-old"}[:pruned], append([]string{}, gone...), "%s", describe(&line))
	}
}

// TestAmong: a percentage is spread evenly: of the first n, that percentage of n is meant, rounded down. A
// number means so many of the first.
func TestAmong(t *testing.T) {
	for _, percent := range []int32{0, 1, 25, 33, 50, 99, 100} {
		hits := int64(0)
		for n := int64(1); n <= 300; n++ {
			if preview.Among(n, rollout.IntOrPercent{Value: percent, Percent: true}) {
				hits++
			}
			require.Equal(t, n*int64(percent)/100, hits, "%d%% of %d", percent, n)
		}
	}
	require.True(t, preview.Among(3, rollout.IntOrPercent{Value: 3}))
	require.False(t, preview.Among(4, rollout.IntOrPercent{Value: 3}))
}

// countdownContext is a context that ends after Err was called left times.
type countdownContext struct {
	context.Context //nolint:containedctx // it is one
	left            int
}

func (p *countdownContext) Err() error {
	if p.left--; p.left < 0 {
		return context.Canceled
	}
	return nil
}

// TestPreviewEndsWithItsContext: a preview whose context ends returns the timeline so far.
// Invariants: P11
func TestPreviewEndsWithItsContext(t *testing.T) {
	d, sets := rolling(20)
	whole := predict(t, d, sets, defaultModel())
	last := time.Duration(0)
	for _, asked := range []int{0, 50, 200, 500} {
		line, err := sim.Preview(&countdownContext{t.Context(), asked}, d, sets, defaultModel())
		require.ErrorIs(t, err, context.Canceled)
		require.Equal(t, preview.EndStopped, line.Ending.Reason)
		require.False(t, line.Complete)
		requireConsistent(t, &line)
		require.Equal(t, whole.Steps[:len(line.Steps):len(line.Steps)], append([]preview.Step{}, line.Steps...), "the steps until then differ")
		require.GreaterOrEqual(t, line.Duration, last)
		last = line.Duration
	}
	require.Positive(t, last)
	require.Less(t, last, whole.Duration)
}

// TestPreviewDrainsPods: a node's pods end before its VM is deleted. That delays only the last of four
// replacements, because the others overlap.
func TestPreviewDrainsPods(t *testing.T) {
	d, sets := rolling(4)
	model := defaultModel()
	empty := predict(t, d, sets, model)
	model.Pods = 10
	atOnce := predict(t, d, sets, model)
	require.True(t, atOnce.Complete, "%s", describe(&atOnce))
	requireDuration(t, empty.Duration, atOnce.Duration, 2, &atOnce)

	model.PodEnd = 5 * time.Minute
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, empty.Duration+5*time.Minute, line.Duration, 2, &line)
	terminating := int32(0)
	for _, s := range line.Samples {
		terminating = max(terminating, s.Terminating)
	}
	require.EqualValues(t, 4, terminating, "a machine that is being drained does not count, so the next one may be created: %s", describe(&line))
}

// TestPreviewForcesDrains: a drain ends at its timeout, even if pods take longer.
func TestPreviewForcesDrains(t *testing.T) {
	d, sets := rolling(1)
	model := defaultModel()
	model.Pods, model.PodEnd = 3, 4*time.Hour
	model.MachinePolicy = machine.DefaultPolicy()
	model.MachinePolicy.DrainTimeout = time.Hour
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	expected := 90*time.Second + time.Hour + 30*time.Second
	require.InDelta(t, expected+3*time.Minute, line.Duration, float64(3*time.Minute), "waits have a jitter: %s", describe(&line))
}

// TestPreviewDrainsBeforeUpdates: a node is drained before it is updated in place.
func TestPreviewDrainsBeforeUpdates(t *testing.T) {
	d, sets := rollingInPlace(3, 0, 1)
	model := preview.Model{Update: 15 * time.Minute, Pods: 5, PodEnd: 2 * time.Minute, Start: startTime}
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 3*(15+2)*time.Minute, line.Duration, 30, &line)
	require.EqualValues(t, 3, line.Moved)
}

// TestPreviewKeepsAMachine: an old machine that is kept for inspection is not available and not replaced. The
// rollout completes without it.
func TestPreviewKeepsAMachine(t *testing.T) {
	d, sets := rolling(3)
	kept := sets[0].Machines[1]
	kept.Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: "now"}
	kept.Status.Preservation = machine.Preservation{Request: "now", Since: startTime.Add(-time.Hour), Until: startTime.Add(5 * time.Hour)}
	line := predict(t, d, sets, defaultModel())
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 2*90*time.Second+30*time.Second, line.Duration, 2, &line)
	require.Equal(t, []int64{2, 2}, []int64{line.Created, line.Deleted})
	last := line.Samples[len(line.Samples)-1].Counts
	require.Equal(t, preview.Counts{Old: 1, New: 2, NewAvailable: 2, Ready: 3}, last, "%s", describe(&line))
}

// TestPreviewKeepsAFailedMachine: with AutoPreserve, the deployment keeps a failed machine, and is complete
// without a replacement.
func TestPreviewKeepsAFailedMachine(t *testing.T) {
	d, sets := rolling(3)
	d.Spec.AutoPreserve = 1
	model := defaultModel()
	model.Fail = rollout.IntOrPercent{Value: 1}
	line := predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	require.Equal(t, []int64{3, 3, 1}, []int64{line.Created, line.Deleted, line.Failed})
	last := line.Samples[len(line.Samples)-1].Counts
	require.Equal(t, preview.Counts{New: 3, NewAvailable: 2, Ready: 2}, last, "%s", describe(&line))
}

// TestPreviewOfACapacity: the provider has room for three VMs. A rollout that needs a fourth one is stuck. One
// that deletes first completes, but a creation that was refused is tried again only after ten minutes.
func TestPreviewOfACapacity(t *testing.T) {
	d, sets := rolling(3)
	model := defaultModel()
	model.Capacity = 3
	line := predict(t, d, sets, model)
	require.Equal(t, preview.EndStuck, line.Ending.Reason, "%s", describe(&line))
	require.EqualValues(t, 3, line.Samples[len(line.Samples)-1].Old, "old machines in the end: %s", describe(&line))
	require.EqualValues(t, 3, line.LowestAvailable)

	d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 1}
	line = predict(t, d, sets, model)
	require.True(t, line.Complete, "%s", describe(&line))
	require.Equal(t, []int64{3, 3, 0}, []int64{line.Created, line.Deleted, line.Failed})
	expected := 3 * (10*time.Minute + 90*time.Second)
	require.InDelta(t, expected+90*time.Second, line.Duration, float64(90*time.Second), "%s", describe(&line))

	model.Capacity = 4
	roomy := predict(t, d, sets, model)
	requireDuration(t, 3*90*time.Second, roomy.Duration, 2, &roomy)
}

// TestPreviewCompletesBesideAKeptMachine: a fleet with a machine that is kept for inspection is complete,
// although one machine fewer than wanted is available. The preview does not wait for the status to say so.
func TestPreviewCompletesBesideAKeptMachine(t *testing.T) {
	d := stored(3)
	d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 3}
	set := setWithMachines(d, "web-a", 3)
	kept := set.Machines[1]
	kept.Annotations = map[string]string{machine.DefaultPolicy().Keys.Preserve: "now"}
	kept.Status.Preservation = machine.Preservation{Request: "now", Since: startTime.Add(-time.Hour), Until: startTime.Add(5 * time.Hour)}
	d.Spec.Replicas = 4
	d.Status.Conditions = []object.Condition{
		{Type: deployment.ConditionProgressing, Status: object.True, Reason: deployment.ProgressAvailable},
		{Type: deployment.ConditionAvailable, Status: object.True, Reason: deployment.MinimumAvailable},
	}
	line := predict(t, d, []deployment.Children{set}, defaultModel())
	require.True(t, line.Complete, "%s", describe(&line))
	requireDuration(t, 90*time.Second, line.Duration, 1, &line)
}
