package cluster_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/adapters/kubernetes/cluster"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestNodeOnTheServer: Update stores the metadata and spec of a machine.Node on the server, and
// UpdateStatus its status. Other fields of the stored node stay.
func TestNodeOnTheServer(t *testing.T) {
	w := newWorld(t)
	label := machine.DefaultPolicy().Keys.NodeMachine
	raw := w.node("a", func(n *corev1.Node) {
		n.Labels = map[string]string{label: "m-1", "theirs": "stays"}
		n.Spec.PodCIDR = "10.1.2.0/24"
	})
	raw.Status = corev1.NodeStatus{
		Capacity:    corev1.ResourceList{"cpu": resource.MustParse("4")},
		Allocatable: corev1.ResourceList{"cpu": resource.MustParse("3500m")},
		Conditions:  []corev1.NodeCondition{{Type: "Ready", Status: "True", Reason: "Up", LastTransitionTime: metav1.Unix(1_800_000_000, 0)}},
		NodeInfo:    corev1.NodeSystemInfo{KernelVersion: "6.1"},
	}
	raw, err := w.client.CoreV1().Nodes().UpdateStatus(t.Context(), raw, metav1.UpdateOptions{})
	require.NoError(t, err)

	nodes := w.cache.Nodes()
	n, err := nodes.Live().Get(t.Context(), object.Key{Name: raw.Name})
	require.NoError(t, err)
	require.Equal(t, []object.Condition{{Type: "Ready", Status: object.True, Reason: "Up", Since: time.Unix(1_800_000_000, 0).UTC()}}, n.Conditions)
	require.Equal(t, map[string]string{"cpu": "4"}, n.Capacity)

	c := n.Clone()
	c.Unschedulable, c.ProviderID = true, "memory:///blue/1"
	c.Taints = []object.Taint{{Key: "mill", Value: "x", Effect: object.NoExecute}}
	c.AddFinalizer(machine.NodeFinalizer)
	c.Annotations = map[string]string{"note": "1"}
	c.Applied.Labels, c.Applied.Generation = map[string]string{"pool": "a"}, 7
	c.Drain = &machine.DrainRecord{Since: time.Unix(1_800_000_100, 0).UTC(), Turn: machine.DrainTurn{UID: "u", Volumes: []string{"v"}}}
	c.Capacity = map[string]string{"cpu": "9", "example.com/lots": "17"} // Update must not write the status
	written, err := nodes.Update(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, map[string]string{"cpu": "4"}, written.Capacity)
	status := written.Clone()
	status.Capacity["example.com/lots"] = "17"
	status.Conditions = object.SetCondition(status.Conditions, object.Condition{Type: machine.NodeTerminating, Status: object.True, Reason: "ScaleDown", Since: time.Unix(1_800_000_200, 0).UTC()})
	status.Unschedulable = false // UpdateStatus must not write the spec
	_, err = nodes.UpdateStatus(t.Context(), status)
	require.NoError(t, err)

	got, err := nodes.Live().Get(t.Context(), n.Key)
	require.NoError(t, err)
	want := status.Clone()
	want.Unschedulable, want.Version = true, got.Version
	require.Equal(t, want.Clone(), got.Clone())

	have := w.stored(raw.Name)
	require.Equal(t, "stays", have.Labels["theirs"])
	require.Equal(t, "10.1.2.0/24", have.Spec.PodCIDR)
	require.Equal(t, "6.1", have.Status.NodeInfo.KernelVersion)
	require.True(t, resource.MustParse("3500m").Equal(have.Status.Allocatable["cpu"]))
	require.True(t, resource.MustParse("17").Equal(have.Status.Capacity["example.com/lots"]))
	require.Equal(t, "generation=7", have.Annotations[keys.Applied])
	require.Len(t, have.Status.Conditions, 2)

	// A write by another program in between is a conflict.
	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), raw.Name, types.MergePatchType, []byte(`{"metadata":{"labels":{"new":"1"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	_, err = nodes.Update(t.Context(), got)
	require.ErrorIs(t, err, store.ErrConflict)
	bad := status.Clone()
	bad.Capacity["cpu"] = "many"
	_, err = nodes.UpdateStatus(t.Context(), bad)
	require.ErrorIs(t, err, store.ErrConflict, "the version is checked before the value")

	// The node is found by its machine's name, in the cache and live.
	for _, from := range []store.Reader[*machine.Node]{nodes, nodes.Live()} {
		for value, count := range map[string]int{"m-1": 1, "m-2": 0, "not/a label": 0} {
			found, err := from.List(t.Context(), store.Query{Index: manager.IndexMachine, Value: value})
			require.NoError(t, err)
			require.Len(t, found, count, "%s", value)
		}
	}
	// The node can be deleted once its finalizer is removed.
	fresh, err := nodes.Live().Get(t.Context(), n.Key)
	require.NoError(t, err)
	last := fresh.Clone()
	last.RemoveFinalizer(machine.NodeFinalizer)
	_, err = nodes.Update(t.Context(), last)
	require.NoError(t, err)
	require.NoError(t, nodes.Delete(t.Context(), n.Key, n.UID))
	require.ErrorIs(t, nodes.Delete(t.Context(), n.Key, n.UID), store.ErrNotFound)
}

// TestKeysOfRecords: records are in annotations with the names in Options.Keys.
func TestKeysOfRecords(t *testing.T) {
	w := newWorld(t)
	custom := keys
	custom.Drain = "custom.example/drain"
	raw := w.node("a", func(n *corev1.Node) { n.Annotations = map[string]string{custom.Drain: "{}", keys.Drain: "x"} })
	c, err := cluster.New(cluster.Options{Config: server.Config, Keys: custom})
	require.NoError(t, err)
	n, err := c.Nodes().Live().Get(t.Context(), object.Key{Name: raw.Name})
	require.NoError(t, err)
	require.Equal(t, &machine.DrainRecord{}, n.Drain)
	require.Equal(t, map[string]string{keys.Drain: "x"}, n.Annotations)
}

// fleet is a manager whose machines, sets and classes are in memory, with the nodes of a real API
// server.
type fleet struct {
	*world
	provider *drivertest.Memory
	options  manager.Options
}

// manage runs a manager until the test ends.
func (w *world) manage() *fleet {
	w.Helper()
	f := &fleet{world: w, provider: drivertest.NewMemory(drivertest.MemoryOptions{})}
	f.options = manager.InMemory(nil)
	f.options.Driver, f.options.Cluster = f.provider, w.cache
	m, err := manager.New(f.options)
	require.NoError(w, err)
	class := f.provider.Class(object.Key{Namespace: w.name, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
	class.SecretRef = &object.Key{Name: "boot"}
	_, err = f.options.Store.Classes.Create(w.Context(), class)
	require.NoError(w, err)
	_, err = f.options.Store.Secrets.Create(w.Context(), f.provider.Secret(object.Key{Namespace: w.name, Name: "boot"}))
	require.NoError(w, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	w.Cleanup(func() {
		cancel()
		require.NoError(w, <-ended)
	})
	return f
}

// edit changes a machine, and repeats that after a conflict with the manager.
func (f *fleet) edit(k object.Key, do func(*machine.Machine)) {
	f.Helper()
	eventually(f.T, "the machine to be edited", func() bool {
		m, err := f.options.Store.Machines.Get(f.Context(), k)
		require.NoError(f, err)
		c := m.Clone()
		do(c)
		_, err = f.options.Store.Machines.Update(f.Context(), c)
		return err == nil
	})
}

// TestThreeWayApplication: labels, annotations and taints that come from a machine's node template
// are changed and removed with the template. Those of other writers stay.
func TestThreeWayApplication(t *testing.T) {
	w := newWorld(t)
	f := w.manage()
	key := object.Key{Namespace: w.name, Name: "m-1"}
	m := &machine.Machine{Meta: object.Meta{Key: key}}
	m.Spec.Class.Name = "small"
	m.Spec.NodeTemplate = machine.NodeTemplate{
		Labels: map[string]string{"pool": "a", "removed": "1"}, Annotations: map[string]string{"note": "x"},
		Taints: []object.Taint{{Key: "mill", Value: "1", Effect: object.NoSchedule}},
	}
	_, err := f.options.Store.Machines.Create(t.Context(), m)
	require.NoError(t, err)
	var name string
	eventually(t, "the machine to have a node's name", func() bool {
		got, err := f.options.Store.Machines.Get(t.Context(), key)
		require.NoError(t, err)
		name = got.Spec.NodeName
		return name != ""
	})
	w.join(name)
	applied := func(labels map[string]string, taints ...string) func() bool {
		return func() bool {
			n := w.stored(name)
			for k, v := range labels {
				if n.Labels[k] != v {
					return false
				}
			}
			var have []string
			for _, taint := range n.Spec.Taints {
				if taint.Key == "mill" || taint.Key == "theirs" {
					have = append(have, taint.Key+"="+taint.Value)
				}
			}
			return len(have) == len(taints) && (len(have) == 0 || have[0] == taints[0])
		}
	}
	eventually(t, "the template on the node", applied(map[string]string{"pool": "a", "removed": "1", machine.DefaultPolicy().Keys.NodeMachine: "m-1"}, "mill=1"))
	require.Contains(t, w.stored(name).Finalizers, machine.NodeFinalizer)
	require.Equal(t, "x", w.stored(name).Annotations["note"])

	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"metadata":{"labels":{"theirs":"1"},"annotations":{"other":"1"}}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	f.edit(key, func(m *machine.Machine) {
		m.Spec.NodeTemplate = machine.NodeTemplate{Labels: map[string]string{"pool": "b"}}
	})
	eventually(t, "the other template on the node", applied(map[string]string{"pool": "b", "theirs": "1"}))
	n := w.stored(name)
	require.NotContains(t, n.Labels, "removed")
	require.NotContains(t, n.Annotations, "note")
	require.Equal(t, "1", n.Annotations["other"])
	require.JSONEq(t, `{"metadata":{"labels":{"pool":"b"}}}`, n.Annotations[keys.LastApplied])

	// The node is deleted with the machine.
	require.NoError(t, f.options.Store.Machines.Delete(t.Context(), key, ""))
	eventually(t, "machine and node to be gone", func() bool {
		_, err := w.client.CoreV1().Nodes().Get(t.Context(), name, metav1.GetOptions{})
		_, gone := f.options.Store.Machines.Get(t.Context(), key)
		return err != nil && gone != nil
	})
}

// join registers a node, as the kubelet of a VM does.
func (w *world) join(name string) {
	w.Helper()
	raw, err := w.client.CoreV1().Nodes().Create(w.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.ready(raw.Name)
}

// ready sets the condition Ready, as a kubelet does.
func (w *world) ready(name string) {
	w.Helper()
	_, err := w.client.CoreV1().Nodes().Patch(w.Context(), name, types.StrategicMergePatchType,
		[]byte(`{"status":{"conditions":[{"type":"Ready","status":"True","reason":"Up"}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(w, err)
}
