package cluster_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
)

// awaitPods waits until the cache has n pods of the node, all of them running, and returns them. The
// cache lags behind the API server.
func (w *world) awaitPods(node string, n int) (pods []*drain.Pod) {
	w.Helper()
	eventually(w.T, "the pods of the node", func() bool {
		found, complete, err := w.cache.Workload().Pods.On(w.Context(), node)
		require.NoError(w, err)
		pods = found
		pending := func(p *drain.Pod) bool { return p.Pending }
		return complete && len(found) == n && !slices.ContainsFunc(found, pending)
	})
	return pods
}

// claimTemplate returns the claim of a generic ephemeral volume.
func claimTemplate() *corev1.PersistentVolumeClaimTemplate {
	return &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// TestPods: all fields of a drain.Pod are read, from the cache and live.
func TestPods(t *testing.T) {
	w := newWorld(t)
	node, other := w.node("a", nil).Name, w.node("b", nil).Name
	w.pod("elsewhere", other, nil)
	yes, grace, controller := true, int64(7), metav1.OwnerReference{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "d", UID: "u"}
	controller.Controller = &yes
	made := w.pod("p", node, func(p *corev1.Pod) {
		p.Annotations = map[string]string{"note": "1"}
		p.OwnerReferences = []metav1.OwnerReference{controller}
		p.Spec.TerminationGracePeriodSeconds = &grace
		p.Spec.PriorityClassName = "system-node-critical"
		p.Spec.Volumes = []corev1.Volume{
			{Name: "a", VolumeSource: corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data"}}},
			{Name: "b", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
			{Name: "c", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: claimTemplate()}}},
		}
		p.Finalizers = []string{"millwright.test/hold"}
	})
	want := &drain.Pod{
		Key: object.Key{Namespace: w.name, Name: "p"}, UID: string(made.UID),
		Owner:  &object.Owner{Kind: drain.DaemonSet, Name: "d", UID: "u"},
		Labels: made.Labels, Annotations: map[string]string{"note": "1"}, Priority: 2000001000,
		CreatedAt: made.CreationTimestamp.UTC(), Grace: 7 * time.Second, Claims: []string{"data", "p-c"},
	}
	require.Equal(t, []*drain.Pod{want}, w.awaitPods(node, 1))
	live, err := w.cache.Workload().Pods.(drains.LivePods).Live(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, []*drain.Pod{want}, live)

	// The pod is being deleted, then finished, then gone.
	pods := w.client.CoreV1().Pods(w.name)
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	eventually(t, "the pod to have a grace period", func() bool { return !w.awaitPods(node, 1)[0].GraceEnds.IsZero() })
	_, err = pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	eventually(t, "the pod to be finished", func() bool { return w.awaitPods(node, 1)[0].Finished })
	_, err = pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.awaitPods(node, 0)
	w.awaitPods(other, 1)
	eventually(t, "all caches to be filled", w.cache.Synced)
}

// TestNothingIsCompleteBeforeItWasRead: a cache that was not filled yet says so. Its answers do not
// look like those about an empty node.
func TestNothingIsCompleteBeforeItWasRead(t *testing.T) {
	c := newCluster(t, server.Config) // Run is never called, so the caches stay empty
	load := c.Workload()
	_, complete, err := load.Pods.On(t.Context(), "n")
	require.NoError(t, err)
	require.False(t, complete)
	_, complete, err = load.Budgets.In(t.Context(), []string{"default"})
	require.NoError(t, err)
	require.False(t, complete)
	_, complete, err = load.Volumes.Bound(t.Context(), []object.Key{{Name: "c"}})
	require.NoError(t, err)
	require.False(t, complete)
	_, err = load.Volumes.VolumeAttachments(t.Context(), "n", nil)
	require.ErrorContains(t, err, "not read yet")
	attached, err := load.Volumes.VolumesAttached(t.Context(), "n")
	require.NoError(t, err)
	require.Nil(t, attached, "must say that it is not known")
	require.False(t, c.Synced())
}

func TestBudgets(t *testing.T) {
	w := newWorld(t)
	w.allow(w.budget("b"), 2)
	budgets := w.cache.Workload().Budgets
	var found []*drain.Budget
	eventually(t, "the budget", func() bool {
		got, complete, err := budgets.In(t.Context(), []string{w.name, "default"})
		require.NoError(t, err)
		found = got
		return complete && len(got) == 1 && got[0].DisruptionsAllowed == 2
	})
	require.Equal(t, &drain.Budget{
		Key: object.Key{Namespace: w.name, Name: "b"},
		Selector: &object.Selector{
			Labels:       map[string]string{"app": "mill"},
			Requirements: []object.Requirement{{Key: "tier", Operator: object.DoesNotExist}},
		},
		Generation: 1, ObservedGeneration: 1, DisruptionsAllowed: 2, CurrentHealthy: 3, DesiredHealthy: 1, ExpectedPods: 3,
	}, found[0])
	require.True(t, found[0].Selects(&drain.Pod{Key: object.Key{Namespace: w.name}, Labels: map[string]string{"app": "mill"}}))
	none, _, err := budgets.In(t.Context(), []string{"default"})
	require.NoError(t, err)
	require.Empty(t, none)
}

// volume creates a persistent volume with a claimRef to a claim of the test's namespace. bound sets
// its phase to Bound.
func (w *world) volume(name, claim string, source corev1.PersistentVolumeSource, bound bool) string {
	w.Helper()
	pv := &corev1.PersistentVolume{
		ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name},
		Spec: corev1.PersistentVolumeSpec{
			Capacity: corev1.ResourceList{"storage": resource.MustParse("1Gi")}, AccessModes: []corev1.PersistentVolumeAccessMode{"ReadWriteOnce"},
			PersistentVolumeSource: source, ClaimRef: &corev1.ObjectReference{Namespace: w.name, Name: claim, UID: types.UID("uid-" + claim)},
		},
	}
	pv, err := w.client.CoreV1().PersistentVolumes().Create(w.Context(), pv, metav1.CreateOptions{})
	require.NoError(w, err)
	if bound {
		pv.Status.Phase = corev1.VolumeBound
		_, err = w.client.CoreV1().PersistentVolumes().UpdateStatus(w.Context(), pv, metav1.UpdateOptions{})
		require.NoError(w, err)
	}
	return pv.Name
}

func csi(handle string) corev1.PersistentVolumeSource {
	return corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: handle}}
}

// attach creates a VolumeAttachment, and returns its name.
func (w *world) attach(name, volume, node string) string {
	w.Helper()
	a, err := w.client.StorageV1().VolumeAttachments().Create(w.Context(), &storagev1.VolumeAttachment{
		ObjectMeta: metav1.ObjectMeta{Name: w.name + "-" + name},
		Spec:       storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
	}, metav1.CreateOptions{})
	require.NoError(w, err)
	return a.Name
}

func TestVolumes(t *testing.T) {
	w := newWorld(t)
	volumes := w.cache.Workload().Volumes
	w.volume("free", "free", csi("h-2"), false) // created first: a cache that has the others has it, too
	one := w.volume("one", "data", csi("h-1"), true)
	old := w.volume("old", "old", corev1.PersistentVolumeSource{AWSElasticBlockStore: &corev1.AWSElasticBlockStoreVolumeSource{VolumeID: "aws://zone/vol-1"}}, true)
	host := w.volume("host", "host", corev1.PersistentVolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/x"}}, true)
	claims := []object.Key{}
	for _, name := range []string{"data", "data", "old", "host", "free", "none"} {
		claims = append(claims, object.Key{Namespace: w.name, Name: name})
	}
	var bound []*drain.Volume
	eventually(t, "the volumes", func() bool {
		got, complete, err := volumes.Bound(t.Context(), claims)
		require.NoError(t, err)
		bound = got
		return complete && len(got) == 3
	})
	require.Equal(t, []*drain.Volume{
		{Name: one, Claim: claims[0], Driver: "disk.example.com", Handle: "h-1"},
		{Name: old, Claim: claims[2], Driver: "ebs.csi.aws.com", Handle: "aws://zone/vol-1"},
		{Name: host, Claim: claims[3], Local: true},
	}, bound)

	var spec corev1.PersistentVolumeSpec
	require.NoError(t, json.Unmarshal(w.cache.VolumeSpec(old), &spec))
	require.Equal(t, "aws://zone/vol-1", spec.AWSElasticBlockStore.VolumeID, "the spec of the stored volume")
	require.Nil(t, w.cache.VolumeSpec("none"))

	node, other := w.node("a", nil).Name, w.node("b", nil).Name
	here, there := w.attach("here", one, node), w.attach("there", one, other)
	w.attach("unrelated", old, other)
	var names []string
	attachments := func(want ...string) func() bool {
		return func() bool {
			got, err := volumes.VolumeAttachments(t.Context(), node, []string{one})
			if err != nil {
				return false // not read yet
			}
			names = nil
			for _, a := range got {
				names = append(names, a.Name)
			}
			slices.Sort(names)
			return got != nil && slices.Equal(names, want)
		}
	}
	eventually(t, "the attachments", attachments(here, there))
	a, err := volumes.Detach(t.Context(), here)
	require.NoError(t, err)
	require.Equal(t, drain.Answer{Result: drain.Accepted}, a)
	eventually(t, "one attachment to be gone", attachments(there))
	a, err = volumes.Detach(t.Context(), here)
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, a.Result)

	attached := func() []string {
		got, err := volumes.VolumesAttached(t.Context(), node)
		require.NoError(t, err)
		return got
	}
	eventually(t, "the node to be in the cache", func() bool { return attached() != nil })
	require.Empty(t, attached())
	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType,
		[]byte(`{"status":{"volumesAttached":[{"name":"kubernetes.io/csi/disk.example.com^h-1","devicePath":""}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	eventually(t, "the node's status in the cache", func() bool {
		return slices.Equal(attached(), []string{"kubernetes.io/csi/disk.example.com^h-1"})
	})
}

// watchLog counts how often a watch has yielded each node.
type watchLog struct {
	mu    sync.Mutex
	nodes map[string]int
}

func (l *watchLog) count(node string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.nodes[node]
}

// watchWorkload watches the workload until the test ends.
func (w *world) watchWorkload() *watchLog {
	w.Helper()
	l := &watchLog{nodes: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var watching sync.WaitGroup
	watching.Go(func() {
		for node, err := range w.cache.Workload().Pods.Watch(ctx) {
			if err != nil {
				return
			}
			l.mu.Lock()
			l.nodes[node]++
			l.mu.Unlock()
		}
	})
	w.Cleanup(func() { cancel(); watching.Wait() })
	return l
}

func TestWatchOfTheWorkload(t *testing.T) {
	w := newWorld(t)
	log := w.watchWorkload()
	node, other := w.node("a", nil).Name, w.node("b", nil).Name
	yields := func(what string, node string, do func()) {
		t.Helper()
		before := log.count(node)
		do()
		eventually(t, what, func() bool { return log.count(node) > before })
	}
	yields("a new pod", node, func() { w.pod("p", node, nil) })
	patch := func(body string, sub ...string) {
		_, err := w.client.CoreV1().Pods(w.name).Patch(t.Context(), "p", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		require.NoError(t, err)
	}
	yields("a label", node, func() { patch(`{"metadata":{"labels":{"x":"y"}}}`) })
	one := w.volume("one", "data", csi("h-1"), true)
	yields("an attachment", other, func() { w.attach("x", one, other) })

	// A change of a field that drains don't read is not yielded. The event of another pod, which
	// comes later, shows that the watch has passed the change.
	before := log.count(node)
	patch(`{"status":{"message":"nobody cares"}}`, "status")
	yields("another pod", other, func() { w.pod("q", other, nil) })
	require.Equal(t, before, log.count(node), "a change that no drain reads was yielded")
	yields("a deletion", node, func() {
		require.NoError(t, w.client.CoreV1().Pods(w.name).Delete(t.Context(), "p", *metav1.NewDeleteOptions(0)))
	})
}

// TestDrain: against a real API server, a drain respects the pod disruption budget, and is recorded
// on the node.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	node := w.node("a", nil).Name
	b := w.budget("b")
	w.allow(b, 0)
	w.pod("p", node, func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: &yes}}
	})
	w.awaitPods(node, 1)
	ahead := time.Duration(0) // of the clock
	drainer, err := drains.New(drains.Options{
		Nodes: w.cache.Nodes(), Workload: w.cache.Workload(),
		Now: func() time.Time { return time.Now().Add(ahead) },
	})
	require.NoError(t, err)
	began := time.Now().Truncate(time.Second)
	pass := func() machine.DrainAnswer {
		t.Helper()
		n, err := w.cache.Nodes().Live().Get(t.Context(), object.Key{Name: node})
		require.NoError(t, err)
		a, err := drainer.Drain(t.Context(), &machine.Machine{}, &machine.DrainNode{Node: n, Since: began, Until: began.Add(time.Hour)})
		require.NoError(t, err)
		return a
	}
	eventually(t, "caches that are filled", w.cache.Synced)
	require.False(t, pass().Done)
	require.True(t, w.stored(node).Spec.Unschedulable)
	require.Contains(t, w.stored(node).Annotations["millwright-go/drain"], "cordoned=")
	require.False(t, w.gone("p"), "evicted against its budget")

	w.allow(b, 1)
	ahead = 2 * drain.Slot // past the interval between two attempts to evict a pod
	eventually(t, "the pod to be evicted", func() bool { pass(); return w.gone("p") })
	w.awaitPods(node, 0)
	require.True(t, pass().Done)
	require.Positive(t, len(w.stored(node).Annotations["millwright-go/drain"]))
}
