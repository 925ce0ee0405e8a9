package controllers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name}
}

// class stores a class of the simulated provider, and its secret.
func (w *world) class(name, size string) {
	w.Helper()
	require.NoError(w, w.client.Create(w.Context(), &corev1.Secret{
		ObjectMeta: w.meta(name), Data: map[string][]byte{"userData": []byte("join <<MACHINE_NAME>>")},
	}))
	spec, err := json.Marshal(simulated.Spec{Cluster: w.namespace, Size: size})
	require.NoError(w, err)
	require.NoError(w, w.client.Create(w.Context(), &v1alpha1.MachineClass{
		ObjectMeta: w.meta(name), Provider: simulated.Name, ProviderSpec: runtime.RawExtension{Raw: spec},
		SecretRef: &corev1.SecretReference{Namespace: w.namespace, Name: name},
	}))
}

// deployment stores a deployment with a rolling update that has a maxSurge of 20%.
func (w *world) deployment(name, class string, replicas int32) *v1alpha1.MachineDeployment {
	w.Helper()
	surge, none := intstr.FromString("20%"), intstr.FromInt32(0)
	labels := map[string]string{"pool": name}
	d := &v1alpha1.MachineDeployment{ObjectMeta: w.meta(name), Spec: v1alpha1.MachineDeploymentSpec{
		Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Strategy: v1alpha1.MachineDeploymentStrategy{
			Type:          "RollingUpdate",
			RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none}},
		},
		Template: v1alpha1.MachineTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
		},
	}}
	require.NoError(w, w.client.Create(w.Context(), d))
	return d
}

// fleetOf returns a world with running controllers and deployment web of n available machines. Their
// VMs have size "s".
func fleetOf(t *testing.T, n int32) (*world, *v1alpha1.MachineDeployment) {
	t.Helper()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	d := w.deployment("web", "small", n)
	w.eventually(fmt.Sprintf("%d machines", n), w.settled("web", n))
	return w, d
}

// settled reports whether a deployment has the given number of machines, all of them available and of
// its current template.
func (w *world) settled(name string, replicas int32) func() bool {
	return func() bool {
		d := w.get(name)
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas && s.Replicas == replicas
	}
}

func (w *world) get(name string) *v1alpha1.MachineDeployment {
	w.Helper()
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, d))
	return d
}

// vms counts the VMs of the test's cluster, by size.
func (w *world) vms() map[string]int {
	w.Helper()
	all, err := w.provider.VMs(w.namespace)
	require.NoError(w, err)
	counts := map[string]int{}
	for _, v := range all {
		counts[v.Size]++
	}
	return counts
}

func (w *world) machines() []v1alpha1.Machine {
	w.Helper()
	list := &v1alpha1.MachineList{}
	require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

// TestLife: when a deployment is created, rolled, scaled and deleted, VMs and nodes change
// accordingly.
func TestLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	w.class("large", "l")
	d := w.deployment("web", "small", 5)
	w.eventually("five machines", w.settled("web", 5))
	require.Equal(t, map[string]int{"s": 5}, w.vms())
	names := func() (names []string) {
		for _, m := range w.machines() {
			names = append(names, m.Name)
			require.Equal(t, "Running", string(m.Status.CurrentStatus.Phase))
			require.Equal(t, m.Name, m.Labels["node"])
		}
		slices.Sort(names)
		return names
	}
	before := names()

	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`))))
	w.eventually("the rollout to end", w.settled("web", 5))
	w.eventually("the old VMs and machines to be gone", func() bool {
		return maps.Equal(map[string]int{"l": 5}, w.vms()) && len(w.machines()) == 5
	})
	for _, name := range names() {
		require.NotContains(t, before, name)
	}

	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":2}}`))))
	w.eventually("two machines", w.settled("web", 2))
	w.eventually("three VMs to be gone", func() bool { return maps.Equal(map[string]int{"l": 2}, w.vms()) })

	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return len(w.vms()) == 0 && len(w.machines()) == 0 })
	w.eventually("the nodes to be gone", func() bool { return w.nodes() == 0 })
}

// nodes counts the nodes of the test's cluster.
func (w *world) nodes() (n int) {
	w.Helper()
	list, err := w.target.CoreV1().Nodes().List(w.Context(), metav1.ListOptions{})
	require.NoError(w, err)
	for _, node := range list.Items {
		if w.mine(&node) {
			n++
		}
	}
	return n
}

// mine reports whether a node belongs to the test's cluster.
func (w *world) mine(n *corev1.Node) bool {
	cluster, ours := simulated.ClusterOf(n.Spec.ProviderID)
	return ours && cluster == w.namespace
}
