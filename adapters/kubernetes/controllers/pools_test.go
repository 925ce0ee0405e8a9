package controllers_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// quickPools returns a policy with the shortest allowed intervals between checks of a group.
func quickPools() *machinepool.Policy {
	p := machinepool.DefaultPolicy()
	p.Period, p.Poll = time.Second, time.Second
	return p
}

// brisk is quick, with a provider that notices lost VMs after 300 ms.
var brisk = simulated.Options{Create: 20 * time.Millisecond, Boot: 100 * time.Millisecond, Delete: 20 * time.Millisecond, Period: 300 * time.Millisecond}

// withPools makes the controllers reconcile pools as well.
func (w *world) withPools(o *controllers.Options) {
	o.PoolDriver, o.PoolPolicy = w.provider, quickPools()
}

// machinePool stores a pool without bootstrap data.
func (w *world) machinePool(name, class string, replicas int32) *poolsv1alpha1.MachinePool {
	w.Helper()
	none := ""
	p := &poolsv1alpha1.MachinePool{ObjectMeta: w.meta(name), Spec: poolsv1alpha1.MachinePoolSpec{
		ClusterName: w.namespace, Replicas: &replicas,
		Template: poolsv1alpha1.MachinePoolTemplate{
			Class:     v1alpha1.ClassSpec{Kind: "MachineClass", Name: class},
			Bootstrap: poolsv1alpha1.MachinePoolBootstrap{DataSecret: &none},
		},
	}}
	require.NoError(w, w.client.Create(w.Context(), p))
	return p
}

func (w *world) getPool(name string) *poolsv1alpha1.MachinePool {
	w.Helper()
	p := &poolsv1alpha1.MachinePool{}
	require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, p))
	return p
}

// running reports whether a pool has the given number of ready machines, each of them with a known
// instance and node, and no terminating ones.
func (w *world) running(name string, replicas int32) func() bool {
	return func() bool {
		p := w.getPool(name)
		s := &p.Status
		return s.Phase == "Running" && s.ObservedGeneration == p.Generation && *p.Spec.Replicas == replicas && s.Replicas == replicas &&
			s.ReadyReplicas == replicas && s.AvailableReplicas == replicas && s.UnavailableReplicas == 0 && len(s.Leaving) == 0 &&
			len(p.Spec.ProviderIDs) == int(replicas) && len(s.NodeRefs) == int(replicas) && sameMachines(p)
	}
}

// sameMachines reports whether all machines in the status of a pool are in its spec. The two are
// written one after the other, first the spec.
func sameMachines(p *poolsv1alpha1.MachinePool) bool {
	return !slices.ContainsFunc(p.Status.NodeRefs, func(ref poolsv1alpha1.MachinePoolNode) bool {
		return !slices.Contains(p.Spec.ProviderIDs, ref.ProviderID)
	})
}

// failed reports whether a pool is in phase Failed, for that reason.
func (w *world) failed(name string, reason machinepool.FailureReason) func() bool {
	return func() bool {
		s := w.getPool(name).Status
		return s.Phase == "Failed" && s.FailureReason == string(reason)
	}
}

// instances counts the instances of a pool's group, by size.
func (w *world) instances(name string) map[string]int {
	w.Helper()
	all, err := w.provider.Instances(w.namespace, object.Key{Namespace: w.namespace, Name: name})
	require.NoError(w, err)
	counts := map[string]int{}
	for _, v := range all {
		counts[v.Size]++
	}
	return counts
}

// requireConsistent requires that the pool's spec and status match its group and its nodes.
func (w *world) requireConsistent(name string) {
	w.Helper()
	p := w.getPool(name)
	all, err := w.provider.Instances(w.namespace, object.Key{Namespace: w.namespace, Name: name})
	require.NoError(w, err)
	var ids []string
	nodes := map[string]string{}
	for _, v := range all {
		ids = append(ids, v.ID)
		nodes[v.ID] = v.Machine
	}
	slices.Sort(ids)
	require.Equal(w, ids, p.Spec.ProviderIDs)
	for _, ref := range p.Status.NodeRefs {
		n, err := w.target.CoreV1().Nodes().Get(w.Context(), ref.Name, metav1.GetOptions{})
		require.NoError(w, err)
		require.Equal(w, ref.UID, string(n.UID))
		require.Equal(w, ref.ProviderID, n.Spec.ProviderID)
		require.Equal(w, nodes[ref.ProviderID], ref.Name)
		require.False(w, n.Spec.Unschedulable)
	}
}

// TestPoolLife: when a pool is created, scaled, given another template and deleted, its group,
// instances and nodes change accordingly.
// Invariants: P39
func TestPoolLife(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.manage(w.withPools)
	w.class("small", "s")
	w.class("large", "l")
	p := w.machinePool("web", "small", 3)
	w.eventually("three machines", w.running("web", 3))
	w.requireConsistent("web")
	stored := w.getPool("web")
	require.Contains(t, stored.Finalizers, machinepool.Finalizer)
	require.NotEmpty(t, stored.Status.GroupID)
	require.True(t, stored.Status.BootstrapReady && stored.Status.InfrastructureReady)
	require.Equal(t, "small", stored.Status.Applied.Template.Class.Name)
	w.eventually("an event", w.hasEvent("web", "CallDone: CreatePool is done"))
	class := &v1alpha1.MachineClass{ObjectMeta: w.meta("small")}
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(class), class))
	require.Contains(t, class.Finalizers, machine.Finalizer, "the pool uses the class")

	before := stored.Spec.ProviderIDs
	w.scale(p, 3, 5)
	w.eventually("five machines", w.running("web", 5))
	require.Subset(t, w.getPool("web").Spec.ProviderIDs, before)
	w.scale(p, 5, 0)
	w.eventually("no machine", w.running("web", 0))
	w.eventually("the nodes to be gone", func() bool { return w.nodes() == 0 })
	w.scale(p, 0, 2)
	w.eventually("two machines", w.running("web", 2))

	w.merge(p, `{"spec":{"template":{"class":{"name":"large"},"nodeTemplate":{"labels":{"a":"b"},"taints":[{"key":"c","effect":"NoSchedule"}]}}}}`)
	w.eventually("machines of the other class", func() bool { return maps.Equal(map[string]int{"l": 2}, w.instances("web")) && w.running("web", 2)() })
	w.requireConsistent("web")
	for _, ref := range w.getPool("web").Status.NodeRefs {
		n := w.nodeOf(ref.Name)
		require.Equal(t, "b", n.Labels["a"])
		require.Equal(t, "c", n.Spec.Taints[0].Key)
	}
	require.NoError(t, w.client.Delete(t.Context(), class))
	w.eventually("the unused class to be gone", w.gone(class))

	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to be gone", w.gone(p))
	w.eventually("the nodes to be gone", func() bool { return w.nodes() == 0 })
	require.Empty(t, w.instances("web"))
	require.Empty(t, w.machines())
}

// TestPoolWaitsForBootstrapData: a pool that names no secret, or one that does not exist, waits and
// creates nothing. It continues as soon as it names a secret that exists.
func TestPoolWaitsForBootstrapData(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.class("small", "s")
	p := w.machinePool("web", "small", 1)
	w.merge(p, `{"spec":{"template":{"bootstrap":{"dataSecret":null}}}}`)
	q := w.machinePool("api", "small", 1)
	w.merge(q, `{"spec":{"template":{"bootstrap":{"dataSecret":"join"}}}}`)
	w.manage(w.withPools)
	for _, name := range []string{"web", "api"} {
		w.eventually(name+" to wait", func() bool { return w.getPool(name).Status.Phase == "Pending" })
		require.Empty(t, w.instances(name))
	}
	require.Equal(t, int32(1), *w.getPool("web").Spec.Replicas)
	require.NoError(t, w.client.Create(t.Context(), &corev1.Secret{ObjectMeta: w.meta("join"), Data: map[string][]byte{"userData": []byte("x")}}))
	w.merge(p, `{"spec":{"template":{"bootstrap":{"dataSecret":"join"}}}}`)
	w.eventually("web", w.running("web", 1))
	w.eventually("api", w.running("api", 1))
	require.Equal(t, "join", *w.getPool("web").Spec.Template.Bootstrap.DataSecret)
}

// TestPoolOfAnAutoscaler: while a pool is annotated as autoscaled, its spec follows the provider's
// size. Without the annotation, the group follows the spec.
// Invariants: P31
func TestPoolOfAnAutoscaler(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.manage(w.withPools)
	w.class("small", "s")
	p := w.machinePool("web", "small", 2)
	w.merge(p, `{"metadata":{"annotations":{"millwright-go/autoscaled":"true"}}}`)
	w.eventually("two machines", w.running("web", 2))
	for _, n := range []int32{4, 1} {
		require.NoError(t, w.provider.Resize(w.namespace, object.Key{Namespace: w.namespace, Name: "web"}, n))
		w.eventually(fmt.Sprint(n, " machines"), w.running("web", n))
	}
	w.merge(p, `{"metadata":{"annotations":{"millwright-go/autoscaled":null}}}`)
	require.NoError(t, w.provider.Resize(w.namespace, object.Key{Namespace: w.namespace, Name: "web"}, 3))
	w.eventually("the group to have the spec's size again", func() bool { return w.instances("web")["s"] == 1 && w.running("web", 1)() })
}

// TestPoolFailures: a failure that needs a person is reported in status and events, and cleared
// once it is fixed. A lost instance is replaced.
// Invariants: P35
func TestPoolFailures(t *testing.T) {
	t.Parallel()
	w := newWorld(t, brisk)
	w.manage(w.withPools)
	w.class("small", "s")
	capacity := func(n int) {
		spec, err := json.Marshal(simulated.Spec{Cluster: w.namespace, Size: "s", Capacity: n})
		require.NoError(t, err)
		w.merge(&v1alpha1.MachineClass{ObjectMeta: w.meta("small")}, `{"providerSpec":`+string(spec)+`}`)
	}
	capacity(1)
	p := w.machinePool("web", "small", 2)
	w.eventually("the pool to fail because its group has too little room", w.failed("web", machinepool.FailureCreate))
	w.eventually("an event", w.hasEvent("web", "CallFailed", "has room for 1 VMs"))
	require.Contains(t, w.getPool("web").Status.FailureMessage, "room for 1 VMs")
	capacity(3)
	w.eventually("two machines as soon as the class allows it", w.running("web", 2))
	require.Empty(t, w.getPool("web").Status.FailureMessage)

	w.scale(p, 2, 4)
	w.eventually("the pool to fail again because its group has too little room", w.failed("web", machinepool.FailureUpdate))
	require.Equal(t, map[string]int{"s": 2}, w.instances("web"))
	w.merge(p, `{"spec":{"replicas":3}}`)
	w.eventually("three machines as soon as only three are desired", w.running("web", 3))

	all, err := w.provider.Instances(w.namespace, object.Key{Namespace: w.namespace, Name: "web"})
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(w.folder, ".groups", w.namespace, w.namespace, "web", all[0].Machine)))
	w.eventually("another instance in place of the lost one", func() bool {
		return !slices.Contains(w.getPool("web").Spec.ProviderIDs, all[0].ID) && w.running("web", 3)()
	})
	w.requireConsistent("web")

	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.MachineClass{ObjectMeta: w.meta("small")}))
	require.NoError(t, w.client.Delete(t.Context(), p))
	w.eventually("the pool to be gone, whose class is being deleted as well", w.gone(p))
	require.Empty(t, w.instances("web"))
}

// TestPoolReplacesANode: an annotation on a node makes the pool replace its instance. The budget is
// kept meanwhile.
// Invariants: P34
func TestPoolReplacesANode(t *testing.T) {
	t.Parallel()
	o := steady
	o.Period = 300 * time.Millisecond
	w := newWorld(t, o)
	w.manage(w.withPools)
	w.class("small", w.namespace) // the size is a label of the nodes, which the pods select
	p := w.machinePool("web", "small", 3)
	w.eventually("three machines", w.running("web", 3))
	labels := w.workload("shop", 3)
	w.budget("shop", labels, 2)
	seen := w.readyPods(3)
	old := w.getPool("web").Status.NodeRefs[0]
	w.merge(w.node(old.Name), `{"metadata":{"annotations":{"millwright-go/replace":"true"}}}`)
	w.eventually("another instance in its place", func() bool {
		return !slices.Contains(w.getPool("web").Spec.ProviderIDs, old.ProviderID) && w.running("web", 3)()
	})
	w.eventually("all pods to be ready again", func() bool { return w.readyPodsOf("shop") == 3 })
	w.scale(p, 3, 1)
	w.eventually("one machine", w.running("web", 1))
	w.eventually("all pods to be ready again", func() bool { return w.readyPodsOf("shop") == 3 })
	require.GreaterOrEqual(t, seen().least, 2, "the budget was not kept")
	require.Positive(t, w.calls.of("GET /apis/millwright-go.github.io/v1alpha1/namespaces/"+w.namespace+"/machinepools/web"), "the pool was not read live during the drain")
	w.requireConsistent("web")
}

func (w *world) readyPodsOf(app string) (n int) {
	w.Helper()
	list := &corev1.PodList{}
	require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels{"app": app}))
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil && isReady(p) {
			n++
		}
	}
	return n
}
