package controllers_test

import (
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// hasty sets a short health timeout and short waits before orphans are deleted.
func hasty(o *controllers.Options) {
	o.MachinePolicy, o.SafetyPolicy = machine.DefaultPolicy(), safety.DefaultPolicy()
	o.MachinePolicy.HealthTimeout = 2 * time.Second
	o.SafetyPolicy.OrphanGap, o.SafetyPolicy.OrphanSoon = time.Second, time.Second
}

// createVM creates a VM without a machine.
func (w *world) createVM(cluster, name, size string) {
	w.Helper()
	m := &machine.Machine{}
	m.Name = name
	c := &machine.Class{}
	c.Provider, c.ProviderSpec = simulated.Name, []byte(`{"cluster":"`+cluster+`","size":"`+size+`"}`)
	_, err := w.provider.CreateMachine(w.Context(), &driver.CreateMachineRequest{Machine: m, Class: c})
	require.NoError(w, err)
}

// TestOrphans: a VM without a machine is deleted. VMs of machines and VMs of another cluster stay.
// Invariants: P15
func TestOrphans(t *testing.T) {
	t.Parallel()
	o := quick
	o.Period = 100 * time.Millisecond
	w := newWorld(t, o)
	w.class("small", "s")
	w.createVM(w.namespace, "nobodys", "orphan")
	w.createVM(w.namespace+"-other", "theirs", "s")
	w.manage(hasty)
	w.deployment("web", "small", 2)
	w.eventually("two machines", w.settled("web", 2))
	w.eventually("the orphan to be gone", func() bool { return maps.Equal(map[string]int{"s": 2}, w.vms()) })

	// If the finalizers of a machine are removed by force, its VM remains without a machine.
	lost := w.machines()[0]
	w.merge(&lost, `{"metadata":{"finalizers":null}}`)
	require.NoError(t, client.IgnoreNotFound(w.client.Delete(t.Context(), &lost)))
	w.eventually("another machine", func() bool { return len(w.names()) == 2 && w.settled("web", 2)() })
	w.eventually("the VM without a machine to be gone, if there is one", func() bool { return maps.Equal(map[string]int{"s": 2}, w.vms()) })
	theirs, err := w.provider.VMs(w.namespace + "-other")
	require.NoError(t, err)
	assert.Len(t, theirs, 1)
}

// TestLostVM: if a VM is gone, its node becomes unhealthy, and its machine is replaced. The node is
// deleted as well.
func TestLostVM(t *testing.T) {
	t.Parallel()
	o := quick
	o.Period = 100 * time.Millisecond
	w := newWorld(t, o)
	w.manage(hasty)
	w.class("small", "s")
	w.deployment("web", "small", 3)
	w.eventually("three machines", w.settled("web", 3))
	names := w.names()
	w.removeVM(names[0])
	w.eventually("the machine to be replaced", func() bool {
		now := w.names()
		return len(now) == 3 && !slices.Contains(now, names[0]) && w.settled("web", 3)()
	})
	assert.Subset(t, w.names(), names[1:])
	w.eventually("its node to be gone", func() bool { return w.nodes() == 3 })
	assert.Equal(t, map[string]int{"s": 3}, w.vms())
}

// TestLostNode: if a user deletes a node, its machine is replaced. Other machines stay.
func TestLostNode(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage(hasty)
	w.class("small", "s")
	w.deployment("web", "small", 2)
	w.eventually("two machines", w.settled("web", 2))
	names := w.names()
	// A node without the finalizer would just be registered again.
	w.eventually("the node to have its finalizer", func() bool {
		node, err := w.core.CoreV1().Nodes().Get(t.Context(), names[0], metav1.GetOptions{})
		return err == nil && len(node.Finalizers) > 0
	})
	require.NoError(t, w.core.CoreV1().Nodes().Delete(t.Context(), names[0], metav1.DeleteOptions{}))
	w.eventually("the machine to be replaced", func() bool {
		now := w.names()
		return len(now) == 2 && !slices.Contains(now, names[0]) && w.settled("web", 2)()
	})
	assert.Contains(t, w.names(), names[1])
	w.eventually("the VMs", func() bool { return maps.Equal(map[string]int{"s": 2}, w.vms()) })
	m := &v1alpha1.Machine{}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKey{Namespace: w.namespace, Name: names[1]}, m))
	assert.Equal(t, "Running", string(m.Status.CurrentStatus.Phase))
}
