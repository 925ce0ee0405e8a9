package machine_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// settledObservation returns the observation of a healthy Running machine with 7 conditions
// and a template of 10 labels that is applied to its node.
func settledObservation(t require.TestingT) (*world, *machine.Observation) {
	w := newWorld(t)
	w.createMachine(func(m *machine.Machine) {
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

// A fleet is settled most of the time, so a decision about a settled machine allocates nothing.
func TestDecidingAboutASettledMachineAllocatesNothing(t *testing.T) {
	w, o := settledObservation(t)
	plan, err := machine.Decide(o, w.policy, w.now)
	require.NoError(t, err)
	require.Equal(t, machine.Plan{Why: decision.Why{Reason: machine.ReasonHealthy, Name: node}}, plan)
	require.Zero(t, testing.AllocsPerRun(100, func() {
		_, _ = machine.Decide(o, w.policy, w.now)
	}))
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

// As BenchmarkDecideSettled, but the record on the node has no generation, so that every label is compared.
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

// A creation from beginning to end, the models included: 14 decisions.
func BenchmarkCreation(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		w := newWorld(b)
		w.createMachine()
		(&shell{w: w}).settle(bound)
	}
}
