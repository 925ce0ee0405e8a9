package deployment_test

import (
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// another returns a set of d with another class. Sets with a lower revision are older.
func another(d *deployment.Deployment, class string, revision int64, n int) deployment.Children {
	c := ownSet(d, "web-"+class, n)
	c.Set.Spec.Template.Spec.Class.Name = class
	c.Set.Revision = revision
	c.Set.CreatedAt = begin.Add(time.Duration(min(max(revision, 0), 9)) * time.Minute)
	return c
}

// TestRevisionNumbers: the new set keeps its revision while that is the highest, and otherwise gets the next number.
// Negative revisions count as none. After the largest number there is no next.
func TestRevisionNumbers(t *testing.T) {
	for _, line := range []struct {
		own    int64
		others []int64
		want   int64
	}{
		{0, nil, 1}, {1, nil, 1}, {7, nil, 7}, {-3, nil, 1}, {math.MinInt64, nil, 1},
		{1, []int64{1}, 2}, {3, []int64{1, 2}, 3}, {1, []int64{2, 3}, 4}, {0, []int64{-5}, 1},
		{1, []int64{math.MaxInt64}, math.MaxInt64}, {math.MaxInt64, []int64{math.MaxInt64}, math.MaxInt64},
		{1, []int64{math.MaxInt64 - 1}, math.MaxInt64},
	} {
		o := settledObservation(t, 1)
		o.Sets[0].Set.Revision = line.own
		for i, revision := range line.others {
			o.Sets = append(o.Sets, another(o.Deployment, classes[i+1], revision, 0))
		}
		plan := decide(t, o, begin)
		if line.own != line.want {
			require.Len(t, plan.Push, 1, "%+v", line)
			require.Equal(t, decision.Why{Reason: deployment.ReasonRevision, Name: "web-a", Number: line.want}, plan.Why)
			require.Equal(t, line.want, plan.Push[0].Set.Revision)
			require.True(t, plan.Push[0].Set.SpecEqual(o.Sets[0].Set), "the revision is not part of the spec")
			o.Sets[0].Set = plan.Push[0].Set
			plan = decide(t, o, begin)
		}
		require.Empty(t, plan.Push)
		for i := 0; plan.Write != nil && i < 3; i++ {
			if update, ok := plan.Write.(*deployment.Update); ok {
				require.Equal(t, line.want, update.Deployment.Revision)
				require.Empty(t, update.Event)
				o.Deployment = update.Deployment
			} else {
				o.Deployment = o.Deployment.Clone()
				o.Deployment.Status = statusOf(t, plan)
			}
			plan = decide(t, o, begin)
		}
		require.Nil(t, plan.Write)
		require.Equal(t, line.want, o.Deployment.Revision)
	}
}

// TestRevisionIsWrittenWithTheSize: the new set gets its revision in the write that resizes it. Other sets keep theirs.
func TestRevisionIsWrittenWithTheSize(t *testing.T) {
	o := settledObservation(t, 2)
	o.Deployment.Spec.Strategy.MaxUnavailable.Value = 1
	back := another(o.Deployment, "large", 0, 0)
	o.Sets = append(o.Sets, back)
	o.Deployment.Spec.Template.Spec.Class.Name = "large"
	plan := decide(t, o, begin)
	require.Len(t, plan.Scale, 2)
	for _, order := range plan.Scale {
		require.Equal(t, map[string]int64{"web-a": 1, "web-large": 2}[order.Set.Name], order.Set.Revision)
	}
}

// TestPruneConditions: an old set is deleted only if all conditions are met; each is missing once here.
func TestPruneConditions(t *testing.T) {
	for name, spare := range map[string]func(*deployment.Observation, *deployment.Children){
		"no limit": func(o *deployment.Observation, _ *deployment.Children) { o.Deployment.Spec.RevisionHistoryLimit = nil },
		"within the limit": func(o *deployment.Observation, _ *deployment.Children) {
			o.Deployment.Spec.RevisionHistoryLimit = ptr(1)
		},
		"a deleted machine":    func(_ *deployment.Observation, c *deployment.Children) { c.Machines = withDeletedMachine(c) },
		"a machine announced":  func(_ *deployment.Observation, c *deployment.Children) { c.Set.Instructions.Reservation.Reserved = 1 },
		"not observed":         func(_ *deployment.Observation, c *deployment.Children) { c.Set.Generation = 2 },
		"says it has machines": func(_ *deployment.Observation, c *deployment.Children) { c.Set.Status.Replicas = 1 },
		"being deleted":        func(_ *deployment.Observation, c *deployment.Children) { c.Set.DeletedAt = begin },
		"an order was refused": func(o *deployment.Observation, _ *deployment.Children) { o.Failed = &machine.Outcome{} },
		"a rollout": func(o *deployment.Observation, _ *deployment.Children) {
			o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown
		},
		"": func(*deployment.Observation, *deployment.Children) {},
	} {
		o := settledObservation(t, 2)
		o.Deployment.Spec.RevisionHistoryLimit = ptr(0)
		o.Sets = append(o.Sets, another(o.Deployment, "large", 0, 0))
		old := &o.Sets[1]
		old.Set.Generation, old.Set.Status.ObservedGeneration = 1, 1
		spare(o, old)
		plan := decide(t, o, begin)
		require.Equal(t, name == "", len(plan.Delete) == 1, name)
		if name == "" {
			o.Read.Ended = begin
			require.Equal(t, begin.Add(machineset.DeleteWithin), decide(t, o, begin).Until)
			require.True(t, decide(t, o, begin.Add(machineset.DeleteWithin)).ReadLive)
			o.Read = decision.Freshness{}
			require.True(t, decide(t, o, begin).ReadLive)
		}
	}
}

// TestPruneWhilePaused: while a rollout is paused, old sets beyond the limit are deleted, but none that has machines,
// may get some, or whose status counts some.
func TestPruneWhilePaused(t *testing.T) {
	for name, spare := range map[string]func(*deployment.Children){
		"a deleted machine":    func(c *deployment.Children) { c.Machines = withDeletedMachine(c) },
		"a machine announced":  func(c *deployment.Children) { c.Set.Instructions.Reservation.Reserved = 1 },
		"not observed":         func(c *deployment.Children) { c.Set.Generation = 2 },
		"says it has machines": func(c *deployment.Children) { c.Set.Status.Replicas = 1 },
		"":                     func(*deployment.Children) {},
	} {
		o := settledObservation(t, 2)
		o.Deployment.Spec.RevisionHistoryLimit, o.Deployment.Spec.Paused = ptr(0), true
		o.Sets = append(o.Sets, another(o.Deployment, "large", 0, 0))
		old := &o.Sets[1]
		old.Set.Generation, old.Set.Status.ObservedGeneration = 1, 1
		spare(old)
		require.Equal(t, name == "", len(decide(t, o, begin).Delete) == 1, name)
	}
}

func withDeletedMachine(c *deployment.Children) []*machine.Machine {
	m := &machine.Machine{}
	m.DeletedAt, m.Owner = begin, &object.Owner{UID: c.Set.UID}
	return []*machine.Machine{m}
}

// TestPruneKeepsSetForScaling: if no set has the template, because it was changed while paused, and no set is in
// use, the youngest set stays even with a history limit of 0, because scaling up needs it.
func TestPruneKeepsSetForScaling(t *testing.T) {
	d := stored(0)
	d.Spec.RevisionHistoryLimit, d.Spec.Paused = ptr(0), true
	d.Spec.Template.Spec.Class.Name = "huge"
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
		another(d, "small", 1, 0), another(d, "large", 2, 0),
	}}
	plan := decide(t, o, begin)
	require.Len(t, plan.Delete, 1)
	require.Equal(t, "web-small", plan.Delete[0].Set.Name)
	o.Sets[0].Set.DeletedAt = begin
	require.Empty(t, decide(t, o, begin).Delete)
	d.Spec.Replicas = 3
	plan = decide(t, o, begin)
	require.Len(t, plan.Scale, 1)
	require.Equal(t, "web-large", plan.Scale[0].Set.Name)
}

// TestRollbackAnswers: which set a rollback request means, and how it is answered.
func TestRollbackAnswers(t *testing.T) {
	for _, line := range []struct {
		to       int64
		template string // the class that is wanted before
		deleted  string // the class of a set that is being deleted
		reason   decision.Reason
		class    string // afterwards
	}{
		{0, "huge", "", deployment.ReasonRollbackDone, "large"},
		{0, "tiny", "", deployment.ReasonRollbackDone, "huge"}, // changed and not rolled out yet
		{0, "huge", "large", deployment.ReasonRollbackDone, "small"},
		{1, "huge", "", deployment.ReasonRollbackDone, "small"},
		{1, "huge", "small", deployment.ReasonRollbackRevisionNotFound, "huge"},
		{3, "huge", "", deployment.ReasonRollbackTemplateUnchanged, "huge"},
		{4, "huge", "", deployment.ReasonRollbackRevisionNotFound, "huge"},
		{-1, "huge", "", deployment.ReasonRollbackRevisionNotFound, "huge"},
	} {
		d := stored(0)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
			another(d, "large", 2, 0), another(d, "huge", 3, 0), another(d, "small", 1, 0),
		}}
		for i := range o.Sets {
			o.Sets[i].Set.Annotations = map[string]string{deployment.DefaultPolicy().Keys.RaisedFrom: "0 7"}
			if o.Sets[i].Set.Spec.Template.Spec.Class.Name == line.deleted {
				o.Sets[i].Set.DeletedAt = begin
			}
		}
		d.Spec.Template.Spec.Class.Name = line.template
		d.Annotations = map[string]string{"kept": "yes"}
		d.Spec.RollbackTo = &deployment.Rollback{Revision: line.to}
		before := d.Clone()
		plan := decide(t, o, begin)
		require.Equal(t, line.reason, plan.Why.Reason, "%+v", line)
		require.IsType(t, &deployment.Update{}, plan.Write)
		update := plan.Write.(*deployment.Update)
		require.Equal(t, line.reason == deployment.ReasonRollbackDone, update.Event == deployment.EventNormal)
		require.NotEmpty(t, update.Event)
		require.Nil(t, update.Deployment.Spec.RollbackTo)
		want := before.Clone()
		want.Spec.RollbackTo = nil
		want.Spec.Template.Spec.Class.Name = line.class
		require.Equal(t, want, update.Deployment, "nothing else is changed")
		require.Equal(t, before, d, "observed objects are read-only")

		o.Read = decision.Freshness{}
		require.True(t, decide(t, o, begin).ReadLive)
		o.Read, o.Failed = live, &machine.Outcome{}
		require.NotEqual(t, line.reason, decide(t, o, begin).Why.Reason, "after a refusal")
	}
}

// TestRollbackToAnInvalidTemplate: a rollback to a template that the selector no longer matches is refused. The request
// is removed, and the template stays as it is.
func TestRollbackToAnInvalidTemplate(t *testing.T) {
	d := stored(0)
	d.Spec.RollbackTo = &deployment.Rollback{Revision: 1}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{another(d, "small", 1, 0)}}
	o.Sets[0].Set.Spec.Template.Labels = nil
	plan := decide(t, o, begin)
	require.Equal(t, deployment.ReasonRollbackInvalid, plan.Why.Reason)
	update := plan.Write.(*deployment.Update)
	require.Equal(t, deployment.EventWarning, update.Event)
	want := d.Clone()
	want.Spec.RollbackTo = nil
	require.Equal(t, want, update.Deployment)
}

// TestCloneAndSpec: Clone copies rollback requests, history limits and revisions. Requests and limits are part of the
// spec, revisions are not.
func TestCloneAndSpec(t *testing.T) {
	d := stored(1)
	d.Revision = 3
	d.Spec.RevisionHistoryLimit, d.Spec.RollbackTo = ptr(2), &deployment.Rollback{Revision: 1}
	d.Status.ProgressedAt = begin
	c := d.Clone()
	require.Equal(t, d, c)
	*c.Spec.RevisionHistoryLimit, c.Spec.RollbackTo.Revision = 5, 6
	require.Equal(t, int32(2), *d.Spec.RevisionHistoryLimit)
	require.Equal(t, int64(1), d.Spec.RollbackTo.Revision)
	for _, change := range []func(*deployment.Deployment){
		func(d *deployment.Deployment) { d.Spec.RevisionHistoryLimit = nil },
		func(d *deployment.Deployment) { d.Spec.RevisionHistoryLimit = ptr(1) },
		func(d *deployment.Deployment) { d.Spec.RollbackTo = nil },
		func(d *deployment.Deployment) { d.Spec.RollbackTo.Revision = 0 },
		func(d *deployment.Deployment) { d.Spec.Paused = true },
		func(d *deployment.Deployment) { d.Spec.ProgressDeadline = time.Minute },
		func(d *deployment.Deployment) { d.Spec.Strategy.Kind = deployment.Recreate },
	} {
		c := d.Clone()
		change(c)
		require.False(t, d.SpecEqual(c))
		require.False(t, c.SpecEqual(d))
	}
	c = d.Clone()
	c.Revision++
	require.True(t, c.SpecEqual(d))
	c.Status.ProgressedAt = begin.Add(time.Second)
	require.False(t, c.Status.Equal(&d.Status))
	set := ownSet(d, "web-a", 0).Set
	require.Equal(t, set.Revision, set.Clone().Revision)
}
