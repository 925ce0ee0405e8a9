package deployment_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// created returns the set that a deployment without sets creates.
func created(t require.TestingT, d *deployment.Deployment) *machineset.Set {
	plan := decide(t, &deployment.Observation{Deployment: d, Read: live}, begin)
	require.Len(t, plan.Create, 1, "%s", plan.Why)
	return plan.Create[0].Set
}

func hashOf(t require.TestingT, d *deployment.Deployment) string {
	return strings.TrimPrefix(created(t, d).Name, d.Name+"-")
}

// TestHashGolden pins hashes for ever, because the names of existing sets depend on them. If a line fails, do not
// change the line.
func TestHashGolden(t *testing.T) {
	for _, line := range []struct {
		hash   string
		change func(*deployment.Deployment)
	}{
		{"s6vfvz2m2l", func(*deployment.Deployment) {}},
		{"5kzb2xwqvl", func(d *deployment.Deployment) { d.Status.Collisions = 1 }},
		{"qxskcvg5r7", func(d *deployment.Deployment) { d.Status.Collisions = 2147483647 }},
		{"tw5lbjtnhb", func(d *deployment.Deployment) { d.Status.Collisions = -1 }},
		{"nrhvcpxkhh", func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Name = "large" }},
		{"d4lzngsxd4", func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.APIGroup = "example.com" }},
		{"mctt9w8t9m", func(d *deployment.Deployment) { d.Spec.Template.Labels["tier"] = "front" }},
		{"khnwvfq4vj", func(d *deployment.Deployment) { d.Spec.Template.Labels["tier"] = "" }},
		{"lhchcwcvtf", func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"a": "bc"} }},
		{"4rnwmww5b6", func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"ab": "c"} }},
		{"wcqg7wdrvj", func(d *deployment.Deployment) {
			d.Spec.Template.Annotations = map[string]string{"z": "1", "a": "2", "ü": "日本"}
		}},
	} {
		d := stored(1)
		line.change(d)
		require.Equal(t, line.hash, hashOf(t, d))
	}
}

// TestHashDependsOn: the hash depends on the fields that decide whether templates are the same, on the collision count,
// and on nothing else.
func TestHashDependsOn(t *testing.T) {
	same := map[string]func(*deployment.Deployment){
		"hash label":    func(d *deployment.Deployment) { d.Spec.Template.Labels[hashLabel] = "anything" },
		"node template": func(d *deployment.Deployment) { d.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"a": "b"} },
		"configuration": func(d *deployment.Deployment) { d.Spec.Template.Spec.Config.DrainTimeout = time.Hour },
		"class kind":    func(d *deployment.Deployment) { d.Spec.Template.Spec.Class.Kind = "Foreign" },
		"replicas":      func(d *deployment.Deployment) { d.Spec.Replicas = 9 },
		"min ready":     func(d *deployment.Deployment) { d.Spec.MinReady = time.Hour },
		"no difference between no annotations and none": func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{} },
	}
	for name, change := range same {
		d := stored(1)
		change(d)
		require.Equal(t, "s6vfvz2m2l", hashOf(t, d), name)
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{ownSet(stored(1), "web-old", 1)}}
		require.Empty(t, decide(t, o, begin).Create, "another template: %s", name)
	}
	rapid.Check(t, func(t *rapid.T) {
		texts := rapid.MapOfN(rapid.StringMatching(`[a-c]{1,2}`), rapid.StringMatching(`[a-c]{0,2}`), 0, 3)
		draw := func() *deployment.Deployment {
			d := stored(1)
			maps.Copy(d.Spec.Template.Labels, texts.Draw(t, "labels"))
			d.Spec.Template.Annotations = texts.Draw(t, "annotations")
			d.Spec.Template.Spec.Class.Name = rapid.StringMatching(`[a-c]{1,2}`).Draw(t, "class")
			return d
		}
		a, b := draw(), draw()
		o := &deployment.Observation{Deployment: a, Read: live, Sets: []deployment.Children{ownSet(b, "web-old", 1)}}
		o.Sets[0].Set.Labels["app"] = "web"
		rollout := len(decide(t, o, begin).Create) > 0
		require.Equal(t, hashOf(t, a) != hashOf(t, b), rollout)
	})
}

// TestNewSetObject: all fields of a new set.
func TestNewSetObject(t *testing.T) {
	d := stored(3)
	d.Spec.MinReady = time.Minute
	d.Spec.Strategy.MaxSurge.Value = 2
	d.Spec.Selector.Requirements = []object.Requirement{{Key: "app", Operator: object.In, Values: []string{"web"}}}
	d.Spec.Template.Labels["tier"] = "front"
	d.Spec.Template.Annotations = map[string]string{"note": "x"}
	d.Spec.Template.Spec.NodeTemplate.Taints = []object.Taint{{Key: "a", Effect: object.NoSchedule}}
	d.Spec.Template.Spec.Config.NodeConditions = []string{"A"}
	before := d.Clone()

	s := created(t, d)
	hash := strings.TrimPrefix(s.Name, "web-")
	want := &machineset.Set{}
	want.Namespace, want.Name = namespace, s.Name
	want.Labels = map[string]string{"app": "web", "tier": "front", hashLabel: hash}
	want.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": "3", "deployment.kubernetes.io/max-replicas": "5"}
	want.Finalizers = []string{machineset.Finalizer}
	want.Owner = &object.Owner{Kind: deployment.OwnerKind, Name: "web", UID: "web-uid"}
	want.Revision = 1
	want.Spec = machineset.Spec{MinReady: time.Minute, Selector: d.Spec.Selector.Clone(), Template: d.Spec.Template.Clone()}
	want.Spec.Selector.Labels[hashLabel] = hash
	want.Spec.Template.Labels[hashLabel] = hash
	require.Equal(t, want, s)

	s.UID = "u"
	require.NoError(t, s.Validate())
	// Nothing of the set is the deployment's.
	s.Spec.Selector.Labels["x"], s.Spec.Template.Labels["x"], s.Spec.Template.Annotations["x"], s.Labels["x"] = "", "", "", ""
	s.Spec.Selector.Requirements[0].Values[0] = "x"
	s.Spec.Template.Spec.NodeTemplate.Taints[0].Key = "x"
	s.Spec.Template.Spec.Config.NodeConditions[0] = "x"
	require.Equal(t, before, d)
}

// TestFindNewSet: of sets with the wanted template the oldest is the new set; if several are of the same age, the first
// by name. One that is being deleted never is.
func TestFindNewSet(t *testing.T) {
	d := stored(4)
	d.Spec.Strategy.MaxSurge.Value = 4
	younger, older, oldest := ownSet(d, "web-a", 0), ownSet(d, "web-c", 0), ownSet(d, "web-b", 0)
	younger.Set.CreatedAt = begin.Add(time.Second)
	oldest.Set.CreatedAt = begin.Add(-time.Hour)
	oldest.Set.DeletedAt = begin
	namesake := ownSet(d, "web-d", 0)
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{younger, namesake, older, oldest}}
	plan := decide(t, o, begin)
	require.Len(t, plan.Scale, 1)
	require.Equal(t, "web-c", plan.Scale[0].Set.Name)
	require.Equal(t, int32(4), plan.Scale[0].Set.Spec.Replicas)
}

// TestEachPushedField: a change of each of these fields is pushed to the set, and changes nothing else there.
func TestEachPushedField(t *testing.T) {
	for what, change := range map[string]func(*deployment.Spec){
		"node template":      func(s *deployment.Spec) { s.Template.Spec.NodeTemplate.Annotations = map[string]string{"a": "b"} },
		"configuration":      func(s *deployment.Spec) { s.Template.Spec.Config.DisableHealthTimeout = true },
		"class kind":         func(s *deployment.Spec) { s.Template.Spec.Class.Kind = "Foreign" },
		"minimum ready time": func(s *deployment.Spec) { s.MinReady = time.Minute },
	} {
		d := stored(1)
		child := ownSet(d, "web-a", 1)
		change(&d.Spec)
		o := &deployment.Observation{Deployment: d, Sets: []deployment.Children{child}}
		require.True(t, decide(t, o, begin).ReadLive)
		o.Read = live
		plan := decide(t, o, begin)
		require.Len(t, plan.Push, 1)
		require.Equal(t, what, plan.Why.Detail)
		pushed := plan.Push[0].Set
		require.Equal(t, d.Spec.Template.Spec, pushed.Spec.Template.Spec)
		require.Equal(t, d.Spec.MinReady, pushed.Spec.MinReady)
		require.Equal(t, child.Set.Meta, pushed.Meta, "only these fields change")
		require.Equal(t, child.Set.Spec.Template.Labels, pushed.Spec.Template.Labels)

		o.Sets[0].Set = pushed
		require.Empty(t, decide(t, o, begin.Add(time.Hour)).Push)
	}
}

// TestReplicaAnnotations: the annotations with R and R + S are written only together with a size, and never read.
func TestReplicaAnnotations(t *testing.T) {
	d := stored(3)
	child := ownSet(d, "web-a", 3)
	child.Set.Annotations = map[string]string{"deployment.kubernetes.io/desired-replicas": "77", "note": "kept"}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{child}}
	plan := decide(t, o, begin)
	require.Empty(t, plan.Scale)
	require.IsType(t, &deployment.UpdateStatus{}, plan.Write)

	d.Spec.Replicas = 4
	plan = decide(t, o, begin)
	require.Len(t, plan.Scale, 1)
	require.Equal(t, map[string]string{
		"deployment.kubernetes.io/desired-replicas": "4", "deployment.kubernetes.io/max-replicas": "5", "note": "kept",
	}, plan.Scale[0].Set.Annotations)
	require.Equal(t, "77", child.Set.Annotations["deployment.kubernetes.io/desired-replicas"], "the observed set is read-only")

	p := deployment.DefaultPolicy()
	p.Keys.DesiredReplicas, p.Keys.MaxReplicas = "", ""
	plan, err := deployment.Decide(o, p, begin)
	require.NoError(t, err)
	require.Equal(t, child.Set.Annotations, plan.Scale[0].Set.Annotations)
}

// TestCollisions: while the name of the new set is taken, the next one is tried. All names differ, and the collision is
// recorded before the next name is used.
func TestCollisions(t *testing.T) {
	d := stored(1)
	o := &deployment.Observation{Deployment: d, Read: live}
	names := map[string]bool{}
	for i := range 20 {
		plan := decide(t, o, begin)
		require.Len(t, plan.Create, 1)
		name := plan.Create[0].Set.Name
		require.False(t, names[name])
		names[name] = true

		holder := plan.Create[0].Set.Clone()
		holder.UID, holder.Owner = "other", &object.Owner{UID: "other"}
		o.Taken = &deployment.Taken{Name: name, Set: holder}
		plan = decide(t, o, begin)
		require.Equal(t, deployment.ReasonNameTaken, plan.Why.Reason)
		status := plan.Write.(*deployment.UpdateStatus).Status
		require.Equal(t, int32(i+1), status.Collisions)
		o.Deployment = o.Deployment.Clone()
		o.Deployment.Status = status
	}
}

// growing returns a rolling update of a deployment of five. The new set has three machines, whose names are not settled
// yet, and room for two more.
func growing(t *testing.T) (*deployment.Observation, *deployment.Policy) {
	o, p := settledObservation(t, 3), deployment.DefaultPolicy()
	d := o.Deployment
	o.Read, d.Spec.Replicas, p.Names = live, 5, 100
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 2}
	d.Status.RolloutFailures.Revision = 2 // the count of failures has begun, if there is one
	o.Sets = append(o.Sets, another(d, "large", 1, 1))
	set := o.Sets[0].Set
	set.Instructions.Reservation = machineset.Reservation{Settled: 4, Reserved: 7, At: begin}
	for i, m := range o.Sets[0].Machines {
		m.Name = set.MachineName(int64(5 + i))
	}
	return o, p
}

// TestNamesComeWithTheSize: a growing set gets reserved names for its new machines, if all its earlier names became
// machines and nothing delays its creations.
func TestNamesComeWithTheSize(t *testing.T) {
	condition := func(typ string) func(*deployment.Observation, *deployment.Policy) {
		return func(o *deployment.Observation, _ *deployment.Policy) {
			o.Sets[0].Set.Status.Conditions = []object.Condition{{Type: typ, Status: object.True, Reason: "Any"}}
		}
	}
	untouched := machineset.Reservation{Settled: 4, Reserved: 7, At: begin}
	settled := machineset.Reservation{Settled: 7, Reserved: 7, At: begin}
	given := func(n int64) machineset.Reservation {
		return machineset.Reservation{Settled: 7, Reserved: 7 + n, At: later}
	}
	for name, line := range map[string]struct {
		change func(*deployment.Observation, *deployment.Policy)
		want   machineset.Reservation
	}{
		"":     {want: given(2)},
		"one":  {func(_ *deployment.Observation, p *deployment.Policy) { p.Names = 1 }, given(1)},
		"none": {func(_ *deployment.Observation, p *deployment.Policy) { p.Names = 0 }, settled},
		"a set that settled": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Set.Instructions.Reservation.Settled = 7
			}, given(2),
		},
		"a smaller size": {
			func(o *deployment.Observation, _ *deployment.Policy) { o.Deployment.Spec.Replicas = 1 }, settled,
		},
		"a machine is yet to come": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Machines = o.Sets[0].Machines[:2]
			}, untouched,
		},
		"a machine is being deleted": {
			func(o *deployment.Observation, _ *deployment.Policy) { o.Sets[0].Machines[0].DeletedAt = begin }, settled,
		},
		"a reservation that can't be": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Set.Instructions.Reservation.Settled = 8
			},
			machineset.Reservation{Settled: 8, Reserved: 7, At: begin},
		},
		"a strict quota": {func(_ *deployment.Observation, p *deployment.Policy) { p.StrictQuota = true }, settled},
		"in place": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Deployment.Spec.Strategy.Kind, o.Sets[1].Set.Instructions.Handover.Closed = deployment.InPlaceUpdate, true
			}, settled,
		},
		"no rollout":        {func(o *deployment.Observation, _ *deployment.Policy) { o.Sets = o.Sets[:1] }, settled},
		"paused":            {func(o *deployment.Observation, _ *deployment.Policy) { o.Deployment.Spec.Paused = true }, settled},
		"frozen":            {condition(machineset.ConditionFrozen), settled},
		"slow creations":    {condition(deployment.ConditionCreationSlowed), settled},
		"slow replacements": {condition(deployment.ConditionReplacementSlowed), settled},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := growing(t)
			if line.change != nil {
				line.change(o, p)
			}
			plan, err := deployment.Decide(o, p, later)
			require.NoError(t, err)
			i := slices.IndexFunc(plan.Scale, func(order deployment.Order) bool { return order.Set.Name == o.Sets[0].Set.Name })
			require.GreaterOrEqual(t, i, 0, "%s", plan.Why)
			require.Equal(t, line.want, plan.Scale[i].Set.Instructions.Reservation)
		})
	}
}

// TestNamesOfMachinesThatFailed: a set reserves the name of a failed machine's replacement itself.
func TestNamesOfMachinesThatFailed(t *testing.T) {
	o, p := growing(t)
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseFailed
	plan, err := deployment.Decide(o, p, later)
	require.NoError(t, err)
	require.EqualValues(t, 9, plan.Scale[0].Set.Instructions.Reservation.Reserved)
}
