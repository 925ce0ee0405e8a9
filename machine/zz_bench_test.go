package machine

import (
	"fmt"
	"testing"
	"time"

	"github.com/millwright-go/millwright/object"
)

func BenchmarkDecideSettled(b *testing.B) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	labels := map[string]string{}
	for i := range 10 {
		labels[fmt.Sprintf("example.org/label-%d", i)] = fmt.Sprintf("value-%d", i)
	}
	conds := []object.Condition{{Type: "Ready", Status: "True", Reason: "KubeletReady", Message: "kubelet is posting ready status", Since: now}}
	for _, t := range []string{"KernelDeadlock", "ReadonlyFilesystem", "DiskPressure", "NetworkUnavailable", "MemoryPressure", "PIDPressure"} {
		conds = append(conds, object.Condition{Type: t, Status: "False", Reason: "KubeletHas", Message: "kubelet has no x", Since: now})
	}
	m := &Machine{Meta: object.Meta{Key: object.Key{Namespace: "f", Name: "m-1"}, Finalizers: []string{Finalizer}, CreatedAt: now, Generation: 2},
		Spec:   Spec{Class: ClassRef{Name: "c"}, ProviderID: "p://1", NodeName: "n-1", NodeTemplate: NodeTemplate{Labels: labels}},
		Status: Status{Phase: PhaseRunning, Since: now, Conditions: conds}}
	n := &Node{Meta: object.Meta{Key: object.Key{Name: "n-1"}, Finalizers: []string{Finalizer}, CreatedAt: now}, ProviderID: "p://1", Conditions: conds}
	p := DefaultPolicy()
	n.Labels = map[string]string{p.Keys.NodeMachine: "m-1", "kubernetes.io/hostname": "n-1", "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64"}
	for k, v := range labels {
		n.Labels[k] = v
	}
	m = m.Clone()
	n.Applied = Applied{Generation: 2, NodeTemplate: m.Spec.NodeTemplate.Clone()}
	n = n.Clone()
	o := &Observation{Machine: m, Class: &Class{Meta: object.Meta{Generation: 1}}, Node: &NodeAnswer{Name: "n-1", Node: n}}
	b.ReportAllocs()
	for b.Loop() {
		plan, err := Decide(o, p, now)
		if err != nil || plan.Write != nil || plan.Effect != nil {
			b.Fatal(plan, err)
		}
	}
}
