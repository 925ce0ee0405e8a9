package machine_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// settledObservation is a Running machine with which all is well: 7 conditions,
// and a template of 10 labels that is on its node.
func settledObservation(t require.TestingT) (*world, *machine.Observation) {
	w := newWorld(t)
	w.give(func(m *machine.Machine) {
		m.Spec.NodeTemplate.Labels = map[string]string{}
		for i := range 10 {
			m.Spec.NodeTemplate.Labels[fmt.Sprintf("example.org/label-%d", i)] = fmt.Sprintf("value-%d", i)
		}
	})
	s := &shell{w: w}
	s.settle(bound)
	w.cluster.change(node, func(n *machine.Node) {
		for _, typ := range []string{"KernelDeadlock", "ReadonlyFilesystem", "NetworkUnavailable", "MemoryPressure", "PIDPressure"} {
			n.Conditions = append(n.Conditions, object.Condition{
				Type: typ, Status: object.False, Reason: "KubeletSaysSo", Message: "kubelet has no " + typ, Since: w.now,
			})
		}
	})
	s.settle(bound)
	o := s.observe()
	require.Equal(t, machine.PhaseRunning, o.Machine.Status.Phase)
	require.Len(t, o.Machine.Status.Conditions, 7)
	return w, o
}

// A fleet is settled most of the time: deciding so allocates nothing.
func TestDecidingAboutASettledMachineAllocatesNothing(t *testing.T) {
	w, o := settledObservation(t)
	plan, err := machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	require.Equal(t, machine.Plan{Why: decision.Why{Reason: machine.ReasonHealthy, Name: node}}, plan)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = machine.Decide(o, w.policy, w.now)
	}))
}

// disturbances are what keeps a machine from being settled, and what does not.
var disturbances = []func(*rapid.T, *machine.Observation){
	func(*rapid.T, *machine.Observation) {},
	func(_ *rapid.T, o *machine.Observation) { o.Frozen = true },
	func(_ *rapid.T, o *machine.Observation) { o.NoCluster = true },
	func(_ *rapid.T, o *machine.Observation) { o.Node = nil },
	func(_ *rapid.T, o *machine.Observation) { o.Node.Node = nil },
	func(_ *rapid.T, o *machine.Observation) { o.Node.Name = "other" },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Taints = anyTaints.Draw(t, "taints") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Conditions = anyConditions.Draw(t, "conditions") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.DeletedAt = anyTime.Draw(t, "deleted") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Finalizers = anyFinalizer.Draw(t, "finalizers") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Labels = anyMap.Draw(t, "labels") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Applied.Generation = 0 },
	func(_ *rapid.T, o *machine.Observation) {
		labels := map[string]string{machine.DefaultPolicy().Keys.NodeMachine: "m-2"}
		for k, v := range o.Machine.Spec.NodeTemplate.Labels {
			labels[k] = v
		}
		o.Node.Node.Labels = labels
	},
	func(_ *rapid.T, o *machine.Observation) { o.Machine.Finalizers = nil },
	func(_ *rapid.T, o *machine.Observation) { // unhealthy, and said so already
		down := []object.Condition{{Type: machine.NodeReady, Status: object.False}}
		o.Node.Node.Conditions, o.Machine.Status.Conditions = down, slices.Clone(down)
	},
	func(t *rapid.T, o *machine.Observation) { o.Class = maybe(t, "class", anyClass) },
	func(t *rapid.T, o *machine.Observation) { o.NodeSynced = maybe(t, "synced", anyOutcome) },
	func(t *rapid.T, o *machine.Observation) { o.Machine.Finalizers = anyFinalizer.Draw(t, "finalizers") },
	func(t *rapid.T, o *machine.Observation) { o.Machine.Status.Phase = anyPhase.Draw(t, "phase") },
	func(t *rapid.T, o *machine.Observation) {
		o.Machine.Status.Conditions = anyConditions.Draw(t, "conditions")
	},
	func(t *rapid.T, o *machine.Observation) { o.Machine.Spec.Class.Name = "" },
	func(t *rapid.T, o *machine.Observation) {
		o.Machine.Spec.NodeTemplate, o.Machine.Generation = anyTemplate(t), o.Machine.Generation+1
	},
	func(t *rapid.T, o *machine.Observation) { o.Machine.Spec.InPlace = anyRequest.Draw(t, "request") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Applied.Update = anyMarks(t) },
	func(t *rapid.T, o *machine.Observation) { o.Machine.Status.Preservation = anyPreservation(t) },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Applied.Preserved = anyPreservedMarks(t) },
	func(t *rapid.T, o *machine.Observation) { o.Machine.Annotations = anyMap.Draw(t, "annotations") },
	func(t *rapid.T, o *machine.Observation) { o.Node.Node.Annotations = anyMap.Draw(t, "annotations") },
	func(_ *rapid.T, o *machine.Observation) { // left from a preservation, and said so already
		told := object.Condition{Type: machine.NodePreserved, Status: object.True}
		o.Node.Node.Conditions = append(slices.Clone(o.Node.Node.Conditions), told)
		o.Machine.Status.Conditions = append(slices.Clone(o.Machine.Status.Conditions), told)
		o.Node.Node.Applied.Preserved.Since = epoch.Add(-time.Hour)
	},
	func(_ *rapid.T, o *machine.Observation) { // left from an update, and said so already
		told := object.Condition{Type: machine.NodeInPlaceUpdate, Status: object.True}
		o.Node.Node.Conditions = append(slices.Clone(o.Node.Node.Conditions), told)
		o.Machine.Status.Conditions = append(slices.Clone(o.Machine.Status.Conditions), told)
		o.Node.Node.Applied.Update.Since = epoch.Add(-time.Hour)
	},
	func(_ *rapid.T, o *machine.Observation) {
		o.Node.Node.Labels = maps.Clone(o.Node.Node.Labels)
		if o.Node.Node.Labels == nil {
			o.Node.Node.Labels = map[string]string{}
		}
		for _, key := range []string{
			machine.DefaultPolicy().Keys.SelectedForUpdate, machine.DefaultPolicy().Keys.CandidateForUpdate,
		} {
			o.Node.Node.Labels[key] = "true"
		}
	},
	func(t *rapid.T, o *machine.Observation) { o.VMSpec = maybe(t, "wanted", anyVMSpec) },
	func(t *rapid.T, o *machine.Observation) {
		o.Machine.Status.VMSpec, o.Machine.Spec.ProviderID = anyVMSpec(t), "p://1"
	},
	func(_ *rapid.T, o *machine.Observation) { // as its class says
		o.Class = &machine.Class{ProviderSpec: []byte(`{"tags":{}}`)}
		o.VMSpec = pointer(machine.SplitSpec(o.Class, []string{"tags"}))
		o.Machine.Status.VMSpec = *o.VMSpec
	},
	func(t *rapid.T, o *machine.Observation) {
		c := object.Condition{Type: machine.ConditionSpecValid, Status: object.False}
		o.Machine.Status.Conditions = append(o.Machine.Status.Conditions, c)
	},
}

// The short cut for settled machines gives the plan that the long way gives.
func TestTheShortCutLeadsToTheSamePlan(t *testing.T) {
	w, settled := settledObservation(t)
	rapid.Check(t, func(t *rapid.T) {
		first := rapid.SampledFrom(disturbances).Draw(t, "first")
		for i, second := range disturbances {
			o := cloned(settled)
			if first(t, o); o.Node != nil && o.Node.Node != nil {
				second(t, o)
			}
			plan, err := machine.Decide(o, w.policy, w.now)
			require.NoError(t, err)
			require.Equal(t, machine.DecideStepByStep(o, w.policy, w.now), plan, "disturbance %d", i)
		}
	})
}

func BenchmarkDecideSettled(b *testing.B) {
	w, o := settledObservation(b)
	b.ReportAllocs()
	for b.Loop() {
		if plan, err := machine.Decide(o, w.policy, w.now); err != nil || plan.Write != nil || plan.Effect != nil {
			b.Fatal(plan, err)
		}
	}
}

// The same where no generation vouches for the record: every label is compared.
func BenchmarkDecideSettledByComparison(b *testing.B) {
	w, o := settledObservation(b)
	n := o.Node.Node.Clone()
	n.Applied.Generation = 0
	o.Node = &machine.NodeAnswer{Name: n.Name, Node: n, Read: w.read()}
	b.ReportAllocs()
	for b.Loop() {
		if plan, err := machine.Decide(o, w.policy, w.now); err != nil || plan.Write != nil || plan.Effect != nil {
			b.Fatal(plan, err)
		}
	}
}

// A creation from beginning to end, model and all: 14 decisions.
func BenchmarkCreation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		w := newWorld(b)
		w.give()
		(&shell{w: w}).settle(bound)
	}
}
