package simulated

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	kubetesting "k8s.io/client-go/testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/object"
)

func classOf(t *testing.T, spec Spec) *machine.Class {
	t.Helper()
	text, err := json.Marshal(spec)
	require.NoError(t, err)
	return &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "c"}}, Provider: Name, ProviderSpec: text}
}

func provider(t *testing.T, o Options) *Provider {
	t.Helper()
	if o.Dir == "" {
		o.Dir = t.TempDir()
	}
	p, err := New(o)
	require.NoError(t, err)
	return p
}

// TestPoolDriver: the provider keeps the contract of pool drivers.
// Invariants: P38
func TestPoolDriver(t *testing.T) {
	pooldrivertest.Run(t, pooldrivertest.Suite{New: func(t *testing.T) pooldrivertest.Setup {
		o := Options{Dir: t.TempDir()}
		p := provider(t, o)
		return pooldrivertest.Setup{
			Driver: p, Class: classOf(t, Spec{Cluster: "blue", Size: "s", Capacity: capacity}), Changed: classOf(t, Spec{Cluster: "blue", Size: "l", Capacity: capacity}),
			OtherCluster: classOf(t, Spec{Cluster: "green", Size: "s"}), Invalid: classOf(t, Spec{Cluster: "No name"}),
			Secret:    &machine.Secret{Data: map[string][]byte{"token": []byte("of-the-account")}},
			Bootstrap: &machine.Secret{Data: map[string][]byte{"userData": []byte("join-with-a-secret")}},
			Count: func() int {
				all, err := p.disk.instances()
				require.NoError(t, err)
				return len(all)
			},
			AskDrain:  func(id string) { p.askDrain(t, id) },
			Exhaust:   func(context.Context) func() { return p.fill(t, "blue") },
			Leftovers: func() []string { return p.files(t) },
			Again:     func() pooldriver.Driver { return provider(t, o) },
		}
	}})
}

// capacity is more than the test suites use at a time.
const capacity = 50

// fill uses up the capacity of a cluster with another group.
func (p *Provider) fill(t *testing.T, cluster string) (restore func()) {
	t.Helper()
	req := request(t, "filler")
	there, err := p.disk.count(cluster, req.Pool.Key)
	require.NoError(t, err)
	_, err = p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: int32(capacity - there)})
	require.NoError(t, err)
	return func() {
		_, err := p.DeletePool(context.Background(), &pooldriver.DeletePoolRequest{Request: req})
		require.NoError(t, err)
	}
}

// files returns the paths of all files of groups and VMs.
func (p *Provider) files(t *testing.T) (all []string) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(string(p.disk), func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() && e.Name() != ".lock" {
			all = append(all, path)
		}
		return err
	}))
	return all
}

// askDrain requests the drain of an instance.
func (p *Provider) askDrain(t *testing.T, id string) {
	t.Helper()
	all, err := p.disk.groups()
	require.NoError(t, err)
	for _, g := range all {
		g.Draining = append(g.Draining, id)
		require.NoError(t, p.disk.save(g))
		require.NoError(t, p.work(g)) // removes the ID from groups that don't have the instance
	}
}

// TestDriver: the provider keeps the contract of drivers, also if it has groups.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
		o := Options{Dir: t.TempDir()}
		p := provider(t, o)
		_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: request(t, "beside"), Replicas: 2})
		require.NoError(t, err)
		return drivertest.Setup{
			Driver: p, Class: classOf(t, Spec{Cluster: "blue", Size: "s", Capacity: capacity}), Different: classOf(t, Spec{Cluster: "blue", Size: "l"}),
			Again:        func() driver.Driver { return provider(t, o) },
			Exhaust:      func(context.Context) func() { return p.fill(t, "blue") },
			Leftovers:    func() []string { return p.files(t) },
			PageSize:     3, // any number, because there are no pages
			OtherCluster: classOf(t, Spec{Cluster: "green"}), Invalid: classOf(t, Spec{Cluster: "No name"}),
			Count: func() int {
				all, err := p.VMs("blue")
				require.NoError(t, err)
				theirs, err := p.VMs("green")
				require.NoError(t, err)
				return len(all) + len(theirs)
			},
		}
	}})
}

func request(t *testing.T, name string) pooldriver.Request {
	return pooldriver.Request{Class: classOf(t, Spec{Cluster: "blue", Size: "s"}), Pool: &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}}
}

// TestCapacity: VMs and instances share the capacity. A group can always be made smaller.
func TestCapacity(t *testing.T) {
	p := provider(t, Options{})
	class := classOf(t, Spec{Cluster: "blue", Capacity: 3})
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m"}}}
	_, err := p.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: class})
	require.NoError(t, err)
	req := request(t, "web")
	req.Class = class
	_, err = p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 3})
	require.Equal(t, codes.ResourceExhausted, codes.Of(err))
	_, err = p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 2})
	require.NoError(t, err)
	_, err = p.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: req, To: 3})
	require.Equal(t, codes.ResourceExhausted, codes.Of(err))
	m.Name = "n"
	_, err = p.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: class})
	require.Equal(t, codes.ResourceExhausted, codes.Of(err))
	_, err = p.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: req, To: 1})
	require.NoError(t, err)
	_, err = p.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: req, To: 2})
	require.NoError(t, err, "the instances of the group itself must not count twice")
	_, err = p.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: req, To: 1})
	require.NoError(t, err)
	clusters, err := p.disk.clusters()
	require.NoError(t, err)
	require.Equal(t, []string{"blue"}, clusters, "the folder of groups is not a cluster")
	_, err = p.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: class})
	require.NoError(t, err)
}

// ids returns the IDs of the instances of pool web.
func ids(t *testing.T, p *Provider) (all []string) {
	t.Helper()
	found, err := p.Instances("blue", object.Key{Namespace: "fleet", Name: "web"})
	require.NoError(t, err)
	for _, v := range found {
		all = append(all, v.ID)
	}
	return all
}

// TestTend: lost instances are replaced. The drain of outdated instances is requested one at a time, and
// only if all others have booted. New instances are spread over the zones.
func TestTend(t *testing.T) {
	p := provider(t, Options{})
	req := request(t, "web")
	_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 3})
	require.NoError(t, err)
	before := ids(t, p)
	lost, err := p.Instances("blue", req.Pool.Key)
	require.NoError(t, err)
	require.NoError(t, os.Remove(filepath.Join(p.options.Dir, ".groups", "blue", "fleet", "web", lost[1].Machine)))
	require.NoError(t, p.tend())
	after := ids(t, p)
	require.Len(t, after, 3)
	require.Subset(t, after, []string{before[0], before[2]})
	require.NotContains(t, after, before[1])

	req.Pool.Spec.FailureDomains = []string{"a", "b"}
	_, err = p.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: req})
	require.NoError(t, err)
	require.Equal(t, after, ids(t, p), "an update alone removes nothing")
	p.askDrain(t, after[2])
	require.NoError(t, p.tend())
	require.Equal(t, after[2:], awaiting(t, p, req), "one drain at a time")
	for range 3 {
		require.NoError(t, p.tend())
		require.NoError(t, p.tend())
		awaiting := awaiting(t, p, req)
		require.Len(t, awaiting, 1)
		_, err := p.InstancesDrained(t.Context(), &pooldriver.InstancesDrainedRequest{Request: req, ProviderIDs: awaiting})
		require.NoError(t, err)
		require.NotContains(t, ids(t, p), awaiting[0])
		require.Len(t, ids(t, p), 3)
	}
	require.NoError(t, p.tend())
	require.Empty(t, awaiting(t, p, req))
	zones := map[string]int{}
	all, err := p.Instances("blue", req.Pool.Key)
	require.NoError(t, err)
	for _, v := range all {
		zones[v.Zone]++
	}
	require.Equal(t, map[string]int{"a": 2, "b": 1}, zones)

	slow := provider(t, Options{Dir: p.options.Dir, Boot: time.Hour})
	_, err = slow.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: req, To: 4})
	require.NoError(t, err)
	req.Class = classOf(t, Spec{Cluster: "blue", Size: "l"})
	_, err = slow.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: req})
	require.NoError(t, err)
	require.NoError(t, slow.tend())
	require.Empty(t, awaiting(t, p, req), "the new instance has not booted yet")
}

// TestTendWithinBounds: with a surge, new instances are added before outdated ones are removed. No more
// are drained at a time than may be unavailable.
func TestTendWithinBounds(t *testing.T) {
	p := provider(t, Options{})
	req := request(t, "web")
	_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 4})
	require.NoError(t, err)
	before := ids(t, p)
	req.Pool.Spec.RollingUpdate = &machinepool.RollingUpdate{
		MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: 1},
	}
	_, err = p.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: req})
	require.NoError(t, err)
	require.NoError(t, p.tend())
	require.Equal(t, before, ids(t, p), "a change of the bounds replaces nothing")

	req.Class = classOf(t, Spec{Cluster: "blue", Size: "l"})
	slow := provider(t, Options{Dir: p.options.Dir, Boot: time.Hour})
	_, err = slow.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: req})
	require.NoError(t, err)
	require.NoError(t, slow.tend())
	require.Len(t, ids(t, slow), 5, "one more, for the surge")
	require.Equal(t, before[:1], awaiting(t, slow, req), "one of four may be unavailable")
	require.NoError(t, slow.tend())
	require.Len(t, awaiting(t, slow, req), 1)

	most := 0
	for range 10 {
		require.NoError(t, p.tend())
		waiting := awaiting(t, p, req)
		most = max(most, len(waiting))
		require.LessOrEqual(t, len(ids(t, p)), 5)
		_, err = p.InstancesDrained(t.Context(), &pooldriver.InstancesDrainedRequest{Request: req, ProviderIDs: waiting})
		require.NoError(t, err)
	}
	require.Equal(t, 1, most)
	after := ids(t, p)
	require.Len(t, after, 4)
	for _, id := range before {
		require.NotContains(t, after, id)
	}
}

// awaiting returns the IDs of the instances that await their drain.
func awaiting(t *testing.T, p *Provider, req pooldriver.Request) (all []string) {
	t.Helper()
	a, err := p.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: req})
	require.NoError(t, err)
	for _, i := range a.Instances {
		if i.AwaitsDrain {
			all = append(all, i.ProviderID)
		}
	}
	return all
}

// TestRemovalAfterACrash: an instance that was marked for removal is removed by the next process, and
// no other one is.
// Invariants: P38
func TestRemovalAfterACrash(t *testing.T) {
	p := provider(t, Options{})
	req := request(t, "web")
	_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 3})
	require.NoError(t, err)
	all := ids(t, p)
	g, err := p.disk.group("blue", req.Pool.Key)
	require.NoError(t, err)
	g.Target, g.Removing = 2, []string{all[0]}
	require.NoError(t, p.disk.save(g)) // then the process crashes
	next := provider(t, Options{Dir: p.options.Dir})
	a, err := next.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: req})
	require.NoError(t, err)
	require.Len(t, a.Instances, 3)
	_, err = next.DeleteInstances(t.Context(), &pooldriver.DeleteInstancesRequest{Request: req, ProviderIDs: all[:1]})
	require.NoError(t, err)
	require.Equal(t, all[1:], ids(t, next))
	g, err = p.disk.group("blue", req.Pool.Key)
	require.NoError(t, err)
	require.Empty(t, g.Removing)
	require.EqualValues(t, 2, g.Target)
}

// TestPoolNodes: each instance registers a node with the labels, annotations and taints of the pool. The
// node is deleted with the instance. Nodes of others stay.
func TestPoolNodes(t *testing.T) {
	client := fake.NewClientset()
	for name, id := range map[string]string{"elsewhere": "simulated:///red/1", "another": "cloud:///1", "above": "simulated:///../1"} {
		n := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{poolLabel: "web"}}, Spec: corev1.NodeSpec{ProviderID: id}}
		_, err := client.CoreV1().Nodes().Create(t.Context(), n, metav1.CreateOptions{})
		require.NoError(t, err)
	}
	p := provider(t, Options{Nodes: client, Period: 20 * time.Millisecond})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- p.Run(ctx) }()
	req := request(t, "web")
	req.Pool.Spec.Template.NodeTemplate = machine.NodeTemplate{
		Labels: map[string]string{"a": "1"}, Annotations: map[string]string{"b": "2"}, Taints: []object.Taint{{Key: "c", Effect: object.NoExecute}},
	}
	_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 2})
	require.NoError(t, err)
	list := func() []corev1.Node {
		all, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
		require.NoError(t, err)
		return all.Items
	}
	require.Eventually(t, func() bool { return len(list()) == 5 }, time.Minute, 10*time.Millisecond)
	found := 0
	for _, n := range list() {
		if n.Labels["a"] == "1" {
			found++
			require.Equal(t, "2", n.Annotations["b"])
			require.Equal(t, []corev1.Taint{{Key: "c", Effect: corev1.TaintEffectNoExecute}}, n.Spec.Taints)
			require.Equal(t, "s", n.Labels[corev1.LabelInstanceTypeStable])
			require.Contains(t, ids(t, p), n.Spec.ProviderID)
		}
	}
	require.Equal(t, 2, found)
	_, err = p.DeletePool(t.Context(), &pooldriver.DeletePoolRequest{Request: req})
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(list()) == 3 }, time.Minute, 10*time.Millisecond)
	stop()
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestNodeThatMissedHeartbeats: after missed heartbeats, a node reports that it is ready again.
func TestNodeThatMissedHeartbeats(t *testing.T) {
	ctx, client := t.Context(), fake.NewClientset()
	p := provider(t, Options{Nodes: client, Heartbeat: time.Minute})
	v := VM{Machine: "a", Cluster: "blue", ID: "simulated:///blue/1"}
	b := &boot{vm: v}
	p.nodes.known["blue/a"] = b
	p.nodes.join(ctx, b)
	ready := func() corev1.ConditionStatus {
		n, err := client.CoreV1().Nodes().Get(ctx, "a", metav1.GetOptions{})
		require.NoError(t, err)
		require.Len(t, n.Status.Conditions, 1)
		return n.Status.Conditions[0].Status
	}
	p.nodes.heartbeats(ctx)
	p.nodes.silence(ctx, v)
	b.renewed = time.Now().Add(-2 * time.Minute)
	p.nodes.heartbeats(ctx)
	require.Equal(t, corev1.ConditionUnknown, ready(), "too few missed heartbeats for a report")
	b.renewed = time.Now().Add(-silentAfter * time.Minute)
	p.nodes.heartbeats(ctx)
	require.Equal(t, corev1.ConditionTrue, ready())
}

// TestVMThatIsDeletedAsItJoinsLeavesNoNode: a VM is deleted while its node is being created. The node is
// deleted again.
func TestVMThatIsDeletedAsItJoinsLeavesNoNode(t *testing.T) {
	client := fake.NewClientset()
	p := provider(t, Options{Nodes: client})
	b := &boot{vm: VM{Machine: "a", Cluster: "blue", ID: "simulated:///blue/1"}}
	p.nodes.known["blue/a"] = b
	client.PrependReactor("create", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
		p.nodes.forget(b.vm)
		return false, nil, nil
	})
	p.nodes.join(t.Context(), b)
	nodes, err := client.CoreV1().Nodes().List(t.Context(), metav1.ListOptions{})
	require.NoError(t, err)
	require.Empty(t, nodes.Items)
}

// TestNoVMBootsOnceRunHasEnded: not even a VM that is created while Run ends.
func TestNoVMBootsOnceRunHasEnded(t *testing.T) {
	for range 100 {
		begun := make(chan bool, 1)
		client := fake.NewClientset()
		client.PrependReactor("list", "nodes", func(kubetesting.Action) (bool, runtime.Object, error) {
			begun <- true
			return false, nil, nil
		})
		p := provider(t, Options{Nodes: client, Period: time.Hour})
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- p.Run(ctx) }()
		<-begun
		var calls sync.WaitGroup
		for _, name := range []string{"a", "b", "c", "d"} {
			calls.Go(func() {
				p.nodes.expect(VM{Machine: name, Cluster: "blue", ID: "simulated:///blue/" + name, Booted: time.Now().Add(time.Hour)})
			})
		}
		stop()
		require.ErrorIs(t, <-ended, context.Canceled)
		calls.Wait()
		require.Nil(t, p.nodes.ctx)
	}
}

// TestPoolLatencies: creating and deleting a group takes the configured time. A call that has nothing to do
// takes none.
func TestPoolLatencies(t *testing.T) {
	p := provider(t, Options{Create: 150 * time.Millisecond, Delete: 150 * time.Millisecond})
	req := request(t, "web")
	took := func(do func() error) time.Duration {
		began := time.Now()
		require.NoError(t, do())
		return time.Since(began)
	}
	create := func() error {
		_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: 1})
		return err
	}
	remove := func() error {
		_, err := p.DeletePool(t.Context(), &pooldriver.DeletePoolRequest{Request: req})
		return err
	}
	require.Less(t, took(remove), 140*time.Millisecond)
	require.GreaterOrEqual(t, took(create), 150*time.Millisecond)
	require.Less(t, took(create), 140*time.Millisecond)
	require.GreaterOrEqual(t, took(remove), 150*time.Millisecond)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.CreatePool(ctx, &pooldriver.CreatePoolRequest{Request: req, Replicas: 1})
	require.Equal(t, codes.Canceled, codes.Of(err))
	require.Empty(t, ids(t, p))
}

// TestPoolCallsOfTwoProcesses: no call is lost if two processes make calls at the same time.
func TestPoolCallsOfTwoProcesses(t *testing.T) {
	const size = 24
	p := provider(t, Options{})
	q := provider(t, Options{Dir: p.options.Dir})
	req := request(t, "web")
	_, err := p.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: req, Replicas: size})
	require.NoError(t, err)
	var all sync.WaitGroup
	for i, id := range ids(t, p) {
		if i%4 == 0 {
			continue // these stay
		}
		by := []*Provider{p, q}[i%2]
		all.Go(func() {
			_, err := by.DeleteInstances(t.Context(), &pooldriver.DeleteInstancesRequest{Request: req, ProviderIDs: []string{id}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	a, err := q.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: req})
	require.NoError(t, err)
	require.EqualValues(t, size/4, a.Target)
	require.Len(t, a.Instances, size/4)
}
