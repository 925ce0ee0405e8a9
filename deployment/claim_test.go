package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

func orphaned(c deployment.Children) *machineset.Set {
	s := c.Set.Clone()
	s.Owner = nil
	return s
}

// TestP10Adopts: a deployment adopts a set only if it has no owner, matches the selector, is in this namespace and is
// not being deleted, by a live read.
// Invariants: P10
func TestP10Adopts(t *testing.T) {
	d := stored(1)
	yes := orphaned(ownSet(d, "yes", 0))
	owned, deleted, elsewhere, other := yes.Clone(), yes.Clone(), yes.Clone(), yes.Clone()
	owned.Owner = &object.Owner{Kind: "Other", UID: "other"}
	deleted.DeletedAt = begin
	elsewhere.Namespace = "elsewhere"
	other.Labels = map[string]string{"app": "other"}
	o := &deployment.Observation{Deployment: d, Orphans: []*machineset.Set{owned, deleted, nil, yes, elsewhere, other}}
	plan := decide(t, o, begin)
	require.True(t, plan.ReadLive)
	require.Empty(t, plan.Adopt)

	o.Read = live
	plan = decide(t, o, begin)
	require.Len(t, plan.Adopt, 1)
	adopted := plan.Adopt[0].Set
	require.Equal(t, "yes", adopted.Name)
	require.Equal(t, &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "web-uid"}, adopted.Owner)
	require.True(t, adopted.HasFinalizer(machineset.Finalizer))
	require.Equal(t, yes.Spec, adopted.Spec)
	require.Equal(t, yes.Instructions, adopted.Instructions)
	require.Nil(t, yes.Owner, "the observed set is read-only")
}

// TestAdoptedGetsHashLabel: an adopted set and its template get the hash label. The selector does not, because the
// set's machines would no longer match it.
func TestAdoptedGetsHashLabel(t *testing.T) {
	d := stored(1)
	bare := orphaned(ownSet(d, "bare", 0))
	delete(bare.Labels, hashLabel)
	delete(bare.Spec.Template.Labels, hashLabel)
	delete(bare.Spec.Selector.Labels, hashLabel)
	o := &deployment.Observation{Deployment: d, Read: live, Orphans: []*machineset.Set{bare}}
	adopted := decide(t, o, begin).Adopt[0].Set
	require.Equal(t, "s6vfvz2m2l", adopted.Labels[hashLabel])
	require.Equal(t, "s6vfvz2m2l", adopted.Spec.Template.Labels[hashLabel])
	require.Equal(t, bare.Spec.Selector, adopted.Spec.Selector)
	require.NotContains(t, bare.Labels, hashLabel)
	require.NotContains(t, bare.Spec.Template.Labels, hashLabel)

	bare.Labels[hashLabel] = "kept"
	adopted = decide(t, o, begin).Adopt[0].Set
	require.Equal(t, "kept", adopted.Labels[hashLabel])
	require.Equal(t, "kept", adopted.Spec.Template.Labels[hashLabel])
}

// TestReleases: a set that the selector no longer matches is released.
func TestReleases(t *testing.T) {
	d := stored(1)
	kept, gone, deleted := ownSet(d, "kept", 1), ownSet(d, "gone", 0), ownSet(d, "deleted", 0)
	gone.Set.Labels = map[string]string{"app": "other"}
	deleted.Set.Labels = gone.Set.Labels
	deleted.Set.DeletedAt = begin
	o := &deployment.Observation{Deployment: d, Sets: []deployment.Children{kept, gone, deleted}}
	require.True(t, decide(t, o, begin).ReadLive)
	o.Read = live
	plan := decide(t, o, begin)
	require.Len(t, plan.Release, 1)
	require.Equal(t, "gone", plan.Release[0].Set.Name)
	require.Nil(t, plan.Release[0].Set.Owner)
	require.NotNil(t, gone.Set.Owner, "the observed set is read-only")
}

// TestAnnouncedMachinesCount: machines that an old set is still about to create count, so that the new set does not
// get their room.
func TestAnnouncedMachinesCount(t *testing.T) {
	d := stored(3)
	d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 3}, rollout.IntOrPercent{Value: 1}
	old, current := ownSet(d, "web-old", 3), ownSet(d, "web-new", 0)
	old.Set.CreatedAt = begin.AddDate(0, 0, -1)
	old.Set.Spec.Template.Spec.Class.Name = "tiny"
	old.Set.Spec.Replicas = 2
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, current}}
	for _, line := range []struct {
		settled int64 // of 5 reserved; 3 is seen, 4 and 5 are not; nonsense announces nothing
		room    int32
	}{{-1, 3}, {6, 3}, {0, 1}, {1, 1}, {2, 1}, {3, 1}, {4, 2}, {5, 3}} {
		o.Sets[0].Set.Instructions.Reservation = machineset.Reservation{Settled: line.settled, Reserved: 5}
		plan := decide(t, o, begin)
		require.Len(t, plan.Scale, 1)
		require.Equal(t, line.room, plan.Scale[0].Set.Spec.Replicas, "settled: %d", line.settled)
	}
	o.Sets[0].Set.Instructions.Reservation.Reserved = 1 << 40
	require.Empty(t, decide(t, o, begin).Scale)
}

// TestDeletion: without our finalizer nothing is done. With it, all sets are deleted at once, and the finalizer is
// removed when a live read finds no set.
func TestDeletion(t *testing.T) {
	d := stored(2)
	d.DeletedAt = begin
	o := &deployment.Observation{Deployment: d, Sets: []deployment.Children{ownSet(d, "a", 1), ownSet(d, "b", 1)}}
	o.Orphans = []*machineset.Set{orphaned(ownSet(d, "c", 1))}
	require.True(t, decide(t, o, begin).ReadLive)
	o.Read = live
	require.Len(t, decide(t, o, begin).Delete, 2)
	o.Sets[1].Set.DeletedAt = begin
	require.Len(t, decide(t, o, begin).Delete, 1)

	o.Sets, o.Read = nil, decision.Freshness{}
	require.True(t, decide(t, o, begin).ReadLive, "a cache without sets does not show that there are none")
	o.Read = live
	require.Empty(t, decide(t, o, begin).Write.(*deployment.Update).Deployment.Finalizers)

	d.Finalizers = []string{deployment.Finalizer, object.OrphanDependents}
	o.Sets = []deployment.Children{ownSet(d, "a", 1)}
	plan := decide(t, o, begin)
	require.Equal(t, deployment.Plan{At: begin.Add(deployment.DefaultPolicy().Resync), Why: decision.Why{Reason: deployment.ReasonOrphaning}}, plan)

	d.Finalizers = []string{"somebody's"}
	o.Sets = []deployment.Children{ownSet(d, "a", 1)}
	plan = decide(t, o, begin)
	require.Equal(t, deployment.Plan{Why: decision.Why{Reason: deployment.ReasonNoFinalizer}}, plan)
}

// TestChangedSelectorIsRefused: if selector and template are changed together, the selector matches no existing
// machine. Then no set is released or created; the machines still count, and the condition SpecValid says what to do.
// An old set without machines, and one that a user has relabelled, are released as usual.
func TestChangedSelectorIsRefused(t *testing.T) {
	changed := map[string]string{"app": "other"}
	for name, of := range map[string]struct {
		machines int
		relabel  bool
		deleted  bool
		refused  bool
	}{
		"with machines": {machines: 3, refused: true}, "empty": {}, "relabelled": {machines: 3, relabel: true},
		"being deleted": {machines: 3, deleted: true},
	} {
		d := stored(3)
		set := ownSet(d, "web-a", of.machines)
		if of.relabel {
			set.Set.Labels = changed
		} else {
			d.Spec.Selector.Labels, d.Spec.Template.Labels = changed, changed
		}
		if of.deleted {
			set.Set.DeletedAt = begin
		}
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{set}}
		plan := decide(t, o, begin)
		if of.deleted {
			require.Contains(t, plan.Why.String(), "no set has the wanted template", "a set that is being deleted is not refused")
			continue
		}
		require.Equal(t, of.refused, len(plan.Release) == 0, name)
		if !of.refused {
			continue
		}
		status := plan.Write.(*deployment.UpdateStatus).Status
		require.EqualValues(t, of.machines, status.Available)
		c := object.FindCondition(status.Conditions, deployment.ConditionSpecValid)
		require.Equal(t, object.False, c.Status)
		require.Contains(t, c.Message, "set web-a, whose machines (3) would run on")
		d.Status = status
		require.Contains(t, decide(t, o, begin).Warn.String(), "spec.selector")
	}
}

// TestScaleUpDisabledLabelIsRemoved: another manager puts a label on the old sets of an update in place, so that they
// create no machines, and never removes it. If such a set becomes the new one again, the label is removed, with any
// strategy.
func TestScaleUpDisabledLabelIsRemoved(t *testing.T) {
	key := deployment.DefaultPolicy().Keys.ScaleUpDisabled
	require.Equal(t, machineset.DefaultPolicy().Keys.ScaleUpDisabled, key)
	for name, c := range map[string]struct {
		change func(current, old *machineset.Set, d *deployment.Deployment)
		opened bool
	}{
		"in place":          {func(_, _ *machineset.Set, d *deployment.Deployment) { d.Spec.Strategy = inPlace(3, 0, 1).Spec.Strategy }, true},
		"rolling":           {func(_, _ *machineset.Set, _ *deployment.Deployment) {}, true},
		"deployment paused": {func(_, _ *machineset.Set, d *deployment.Deployment) { d.Spec.Paused = true }, true},
		"closed, too":       {func(s, _ *machineset.Set, _ *deployment.Deployment) { s.Instructions.Handover.Closed = true }, true},
		"old":               {func(s, old *machineset.Set, _ *deployment.Deployment) { s.Labels, old.Labels = old.Labels, s.Labels }, false},
		"set paused": {func(s, _ *machineset.Set, _ *deployment.Deployment) {
			s.Annotations = map[string]string{deployment.DefaultPolicy().Keys.Paused: "true"}
		}, false},
	} {
		d := stored(3)
		current, old := ownSet(d, "web-a", 3), another(d, "large", 0, 0)
		current.Machines = current.Machines[:1]
		if current.Set.Labels == nil {
			current.Set.Labels = map[string]string{}
		}
		current.Set.Labels[key], current.Set.Labels["team"] = "true", "a"
		c.change(current.Set, old.Set, d)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, current}}
		opened := false
		for range 5 {
			plan := decide(t, o, begin.Add(100*time.Hour))
			for _, order := range plan.Push {
				require.NotEqual(t, old.Set.Name, order.Set.Name, name)
				_, barred := order.Set.Labels[key]
				if opened = opened || !barred; opened {
					require.Equal(t, "a", order.Set.Labels["team"], name)
					require.EqualValues(t, 1, order.Set.Spec.Replicas, "%s: what it has; the next order says the rest", name)
				}
				apply(o, order)
			}
			if len(plan.Push) == 0 || opened {
				break
			}
		}
		require.Equal(t, c.opened, opened, name)
		if opened {
			require.Empty(t, decide(t, o, begin.Add(100*time.Hour)).Push, "%s: it is opened once", name)
		}
	}
}
