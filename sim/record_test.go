package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/store"
)

// stormy returns options with which anything fails, with the loops of package safety.
func stormy(seed uint64) sim.Options {
	return sim.Options{Seed: seed, Faults: storm(), Manager: manager.Options{Policies: manager.Policies{Safety: sim.SafetyPolicy()}}}
}

// TestRecordingChangesNothing: a run is the same with and without recorders, and two runs with the same
// seed give the same history.
func TestRecordingChangesNothing(t *testing.T) {
	tell := func(record bool) (story string, h *history.History) {
		r := &run{t: t}
		o := stormy(3)
		o.Manager.Hooks.Event = func(_ manager.Kind, key object.Key, _ manager.EventType, reason, why string) {
			story += fmt.Sprintln(r.w.Now().Format("15:04:05.000"), key.Name, reason, why)
		}
		r.open(o, fleet(4, deployment.Strategy{}))
		defer r.w.Close()
		if record {
			h = r.w.Record("web").History()
			recorder := r.w.Record("web")
			defer func() { h = recorder.History() }()
		}
		r.wait(time.Hour)
		r.roll("large")
		r.wait(2 * time.Hour)
		return story, h
	}
	without, _ := tell(false)
	with, first := tell(true)
	require.NotEmpty(t, without)
	require.Equal(t, without, with)
	_, second := tell(true)
	require.Equal(t, first, second)
	require.NotEmpty(t, first.Samples)
}

// TestRecorderCountsWhatIsThere compares the counts of a recorder with a count of the whole fleet, after
// every change in a run in which machines fail, are rolled, updated in place and deleted by hand. It does
// the same with recorders that start later.
func TestRecorderCountsWhatIsThere(t *testing.T) {
	for name, strategy := range map[string]deployment.Strategy{
		"rolling":  {MaxSurge: rollout.IntOrPercent{Value: 1}},
		"in place": {Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := &run{t: t}
			r.open(stormy(9), fleet(4, strategy))
			defer r.w.Close()
			looks, parts := 0, history.Sample{}
			record := func() *sim.Recorder {
				recorder := r.w.Record("web")
				r.w.Watch(func() { // is called after the recorder has counted
					want := r.countFleet()
					if !assert.Equal(t, want, countsOnly(recorder.History().Last())) {
						t.FailNow()
					}
					looks++
					parts = add(parts, want)
				})
				return recorder
			}
			first := record()
			r.wait(40 * time.Minute)
			record()
			r.roll("large")
			r.wait(20 * time.Minute)
			r.removeOne()
			r.wait(2 * time.Hour)
			record()
			r.scale(2)
			r.wait(time.Hour)
			require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
			r.w.StopFaults()
			r.wait(6 * time.Hour)
			assert.Greater(t, looks, 500)
			for part, n := range map[string]int{
				"old": parts.OldAvailable, "new": parts.NewAvailable, "pending": parts.Pending, "unknown": parts.Unknown,
				"crash loop": parts.CrashLoop, "failed": parts.Failed, "terminating": parts.Terminating,
			} {
				assert.Positive(t, n, part)
			}
			assert.Equal(t, strategy.Kind == deployment.InPlaceUpdate, parts.Updating > 0)
			assert.Zero(t, countsOnly(first.History().Last()))
		})
	}
}

// countFleet returns a sample with the counts of the whole fleet, without bounds.
func (r *run) countFleet() (s history.Sample) {
	d, err := r.w.Deployments().Get(ctx, web)
	if err != nil {
		return s
	}
	if !d.Deleted() {
		s.Wanted = int(d.Spec.Replicas)
	}
	sets, err := r.w.Sets().List(ctx, store.Query{})
	require.NoError(r.t, err)
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, set := range sets {
		if !set.OwnedBy(d.UID) {
			continue
		}
		for _, m := range machines {
			if m.OwnedBy(set.UID) {
				tallyMachine(&s, m, set.Spec.Template.Spec.Class.Name == d.Spec.Template.Spec.Class.Name)
			}
		}
	}
	return s
}

func tallyMachine(s *history.Sample, m *machine.Machine, current bool) {
	switch {
	case m.Deleted():
		s.Terminating++
	case m.Ready() && current:
		s.NewAvailable++
	case m.Ready():
		s.OldAvailable++
	default:
		map[machine.Phase]func(){
			"": func() { s.Pending++ }, "Pending": func() { s.Pending++ }, "Unknown": func() { s.Unknown++ },
			"CrashLoopBackOff": func() { s.CrashLoop++ }, "Failed": func() { s.Failed++ }, "InPlaceUpdating": func() { s.Updating++ },
			"InPlaceUpdateSuccessful": func() { s.Updating++ }, "InPlaceUpdateFailed": func() { s.Updating++ },
		}[m.Status.Phase]()
	}
}

// countsOnly returns a sample without what countFleet leaves out.
func countsOnly(s history.Sample) history.Sample {
	s.After, s.Floor, s.Ceiling, s.MinAvailable, s.MaxTotal, s.Short, s.Over = 0, 0, 0, 0, 0, 0, 0
	return s
}

func add(a, b history.Sample) history.Sample {
	a.OldAvailable, a.NewAvailable, a.Pending = a.OldAvailable+b.OldAvailable, a.NewAvailable+b.NewAvailable, a.Pending+b.Pending
	a.Updating, a.Unknown, a.CrashLoop = a.Updating+b.Updating, a.Unknown+b.Unknown, a.CrashLoop+b.CrashLoop
	a.Failed, a.Terminating = a.Failed+b.Failed, a.Terminating+b.Terminating
	return a
}

// removeOne deletes a running machine, as a user does.
func (r *run) removeOne() {
	r.t.Helper()
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		if m.Ready() {
			require.NoError(r.t, r.w.Machines().Delete(ctx, m.Key, m.UID))
			return
		}
	}
	require.Fail(r.t, "no machine is ready")
}

// TestRecordedBounds: at rest, the recorded floor and ceiling are those of the strategy. During a change
// they are the widest since the fleet was last complete.
func TestRecordedBounds(t *testing.T) {
	r := &run{t: t}
	r.open(sim.Options{}, fleet(4, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}, MaxUnavailable: rollout.IntOrPercent{Value: 1}}))
	defer r.w.Close()
	recorder := r.w.Record("web")
	last := recorder.History().Last()
	assert.Equal(t, []int{4, 3, 6}, []int{last.Wanted, last.Floor, last.Ceiling}, "before the first change")
	r.awaitComplete()
	r.wait(time.Hour)
	last = recorder.History().Last()
	assert.Equal(t, []int{4, 3, 6, 4}, []int{last.Wanted, last.Floor, last.Ceiling, last.NewAvailable})
	r.scale(9)
	r.wait(time.Second)
	last = recorder.History().Last()
	assert.Equal(t, []int{9, 3, 11}, []int{last.Wanted, last.Floor, last.Ceiling}, "the widest bounds since the fleet was complete")
	r.awaitComplete()
	r.wait(time.Hour)
	last = recorder.History().Last()
	assert.Equal(t, []int{9, 8, 11, 9}, []int{last.Wanted, last.Floor, last.Ceiling, last.NewAvailable})
	h := recorder.History()
	assert.Equal(t, r.w.Now().Sub(h.Start), h.Length, "the time after the last change is missing")
}

// texts returns the texts of all marks of a kind.
func texts(h *history.History, kind history.Kind) (out []string) {
	for i := range h.Marks {
		if h.Marks[i].Kind == kind {
			out = append(out, h.Marks[i].What)
		}
	}
	return out
}

// TestRecordedEdits: changes by the owner are recorded in words. Changes of the same objects by the manager
// are not.
func TestRecordedEdits(t *testing.T) {
	w, err := sim.New(quiet)
	require.NoError(t, err)
	defer w.Close()
	recorder := w.Record("web")
	require.NoError(t, w.AddClass("large"))
	_, err = w.Deployments().Create(ctx, fleet(2, deployment.Strategy{}))
	require.NoError(t, err)
	r := &run{t: t, w: w}
	r.awaitComplete()
	r.roll("large")
	r.awaitComplete()
	r.wait(time.Minute)
	r.edit("", func(s *deployment.Spec) { s.RollbackTo = &deployment.Rollback{} })
	r.wait(10 * time.Minute)
	r.awaitComplete()
	r.edit("", func(s *deployment.Spec) { s.Paused = true })
	r.edit("", func(s *deployment.Spec) { s.Paused = false })
	r.edit("", func(s *deployment.Spec) { s.Strategy.Kind = deployment.Recreate })
	r.edit("", func(s *deployment.Spec) { s.MinReady = time.Second })
	r.edit("", func(s *deployment.Spec) { s.Template.Annotations = map[string]string{"a": "b"} })
	r.wait(10 * time.Minute)
	r.removeOne()
	r.wait(10 * time.Minute)
	r.scale(1)
	require.NoError(t, w.Deployments().Delete(ctx, web, ""))
	require.NoError(t, w.Until(r.empty, patience))
	h := recorder.History()
	assert.Equal(t, []string{
		"created with 2 machines of class small", "class large wanted", "rollback asked for", "paused", "resumed",
		"strategy changed", "edited", "another template wanted", "a machine deleted by hand", "1 machine wanted", "deleted",
	}, texts(h, history.Edit))
	assert.Empty(t, texts(h, history.Fault))
	assert.Zero(t, countsOnly(h.Last()))
}

// TestRecordedFaults: faults and kills are recorded.
func TestRecordedFaults(t *testing.T) {
	r := &run{t: t}
	o := stormy(9)
	o.Faults.Kills = 4
	r.open(o, fleet(4, deployment.Strategy{}))
	defer r.w.Close()
	recorder := r.w.Record("web")
	r.wait(6 * time.Hour)
	h := recorder.History()
	tally := h.Tally()
	assert.Equal(t, 4, tally.Times[history.Kill])
	assert.Zero(t, tally.Times[history.Violation])
	for _, what := range []string{"call to the provider failed", "answer of a store lost", "answer of the provider lost"} {
		assert.Contains(t, texts(h, history.Fault), what)
	}
}

// TestRecordedViolation: a violation is in the history, with its text.
func TestRecordedViolation(t *testing.T) {
	r := &run{t: t}
	r.open(sim.Options{}, fleet(1, deployment.Strategy{}))
	defer r.w.Close()
	recorder := r.w.Record("web")
	r.awaitComplete()
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(t, err)
	m := machines[0].Clone()
	m.Finalizers = nil
	_, err = r.w.Machines().Update(ctx, m)
	require.NoError(t, err)
	require.NoError(t, r.w.Machines().Delete(ctx, m.Key, m.UID))
	require.ErrorContains(t, r.w.Run(time.Hour), "P14")
	violations := texts(recorder.History(), history.Violation)
	require.NotEmpty(t, violations)
	assert.Equal(t, "P14: a VM of machine "+m.Name+" lives, and its record is gone", violations[0])
}

// TestRecordedFreeze: a freeze is recorded from the moment at which the label is set until it is removed.
func TestRecordedFreeze(t *testing.T) {
	p := safety.DefaultPolicy()
	r := &run{t: t}
	r.open(sim.Options{Manager: manager.Options{Policies: manager.Policies{Safety: p}}}, fleet(2, deployment.Strategy{}))
	defer r.w.Close()
	recorder := r.w.Record("web")
	r.awaitComplete()
	d, err := r.w.Deployments().Get(ctx, web)
	require.NoError(t, err)
	at := r.w.Now()
	d = d.Clone()
	d.Labels = map[string]string{p.Keys.Freeze: "true"}
	_, err = r.w.Deployments().Update(ctx, d)
	require.NoError(t, err)
	freezes := func() (out []history.Mark) {
		for _, m := range recorder.History().Marks {
			if m.Kind == history.Freeze {
				out = append(out, m)
			}
		}
		return out
	}
	require.Len(t, freezes(), 1)
	late := r.w.Record("web").History()
	assert.Equal(t, []string{"frozen: too many machines"}, texts(late, history.Freeze), "the fleet was frozen when recording began")
	require.NoError(t, r.w.Until(func() bool {
		d, err := r.w.Deployments().Get(ctx, web)
		return err == nil && !p.Frozen(&d.Meta)
	}, time.Hour))
	thawed := r.w.Now()
	r.wait(time.Hour)
	require.Len(t, freezes(), 1)
	h := recorder.History()
	assert.Equal(t, at.Sub(h.Start), freezes()[0].After)
	assert.GreaterOrEqual(t, thawed.Sub(h.Start), freezes()[0].Until)
	assert.Less(t, freezes()[0].Until, h.Length)
}

// TestSpans: a span lasts until it is ended, or until now.
func TestSpans(t *testing.T) {
	w, err := sim.New(quiet)
	require.NoError(t, err)
	defer w.Close()
	recorder := w.Record("web")
	w.Mark(history.Fault, "before")
	require.NoError(t, w.Run(time.Minute))
	end := w.Span(history.Outage, "the control plane")
	other := w.Span(history.Outage, "the target cluster")
	require.NoError(t, w.Run(time.Minute))
	end()
	require.NoError(t, w.Run(time.Minute))
	end()
	assert.Equal(t, []history.Mark{
		{What: "before", Times: 1},
		{After: time.Minute, Until: 2 * time.Minute, Kind: history.Outage, What: "the control plane", Times: 1},
		{After: time.Minute, Until: 3 * time.Minute, Kind: history.Outage, What: "the target cluster", Times: 1},
	}, recorder.History().Marks)
	require.NoError(t, w.Run(time.Minute))
	other()
	assert.Equal(t, 4*time.Minute, recorder.History().Marks[2].Until)
	assert.Len(t, recorder.History().Marks, 3)
}

// TestRecordersOfTwoFleets: each counts its own machines, and records changes by its own owner.
func TestRecordersOfTwoFleets(t *testing.T) {
	w, err := sim.New(quiet)
	require.NoError(t, err)
	defer w.Close()
	r := &run{t: t, w: w}
	one, other := w.Record("web"), w.Record("api")
	second := fleet(5, deployment.Strategy{})
	second.Name, second.Spec.Selector.Labels = "api", map[string]string{"app": "api"}
	second.Spec.Template.Labels = second.Spec.Selector.Labels
	for _, d := range []*deployment.Deployment{fleet(2, deployment.Strategy{}), second} {
		_, err := w.Deployments().Create(ctx, d)
		require.NoError(t, err)
	}
	require.NoError(t, w.Until(func() bool { return w.Complete("web") && w.Complete("api") }, patience))
	r.scale(3)
	r.awaitComplete()
	assert.Equal(t, history.Sample{Wanted: 3, NewAvailable: 3}, countsOnly(one.History().Last()))
	assert.Equal(t, history.Sample{Wanted: 5, NewAvailable: 5}, countsOnly(other.History().Last()))
	assert.Equal(t, []string{"created with 2 machines of class small", "3 machines wanted"}, texts(one.History(), history.Edit))
	assert.Equal(t, []string{"created with 5 machines of class small"}, texts(other.History(), history.Edit))
}

// TestFrozenSetsAreForgotten: a fleet is frozen only by its own sets, and only by those that still
// exist.
func TestFrozenSetsAreForgotten(t *testing.T) {
	p := safety.DefaultPolicy()
	r := &run{t: t}
	r.open(sim.Options{Manager: manager.Options{Policies: manager.Policies{Safety: p}}}, fleet(0, deployment.Strategy{}))
	defer r.w.Close()
	recorder, other := r.w.Record("web"), r.w.Record("api")
	r.wait(time.Minute)
	second := fleet(0, deployment.Strategy{})
	second.Name, second.Spec.Paused = "api", true // so that it gets no set
	_, err := r.w.Deployments().Create(ctx, second)
	require.NoError(t, err)
	sets, err := r.w.Sets().List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, sets, 1)
	s := sets[0].Clone()
	s.Finalizers = nil
	s.Labels[p.Keys.Freeze] = "true"
	stored, err := r.w.Sets().Update(ctx, s)
	require.NoError(t, err)
	require.NoError(t, r.w.Sets().Delete(ctx, stored.Key, stored.UID))
	r.wait(time.Hour)
	h := recorder.History()
	require.Equal(t, []string{"frozen: too many machines"}, texts(h, history.Freeze))
	for _, m := range h.Marks {
		if m.Kind == history.Freeze {
			assert.Equal(t, m.After, m.Until)
		}
	}
	assert.Empty(t, texts(other.History(), history.Freeze))
}
