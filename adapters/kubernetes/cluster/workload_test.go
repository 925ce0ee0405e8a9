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

// on returns the pods of a node in the cache, once there are n of them, and it knows of each that it
// runs: the server knows that before the cache does.
func (w *world) on(node string, n int) (pods []*drain.Pod) {
	w.Helper()
	eventually(w.T, "the pods of the node", func() bool {
		found, complete, err := w.cache.Workload().Pods.On(w.Context(), node)
		require.NoError(w, err)
		pods = found
		late := func(p *drain.Pod) bool { return p.Pending }
		return complete && len(found) == n && !slices.ContainsFunc(found, late)
	})
	return pods
}

// scratch is what a generic ephemeral volume asks for.
func scratch() *corev1.PersistentVolumeClaimTemplate {
	return &corev1.PersistentVolumeClaimTemplate{Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
		Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
	}}
}

// TestPods: a pod is read as a drain needs it.
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
			{Name: "c", VolumeSource: corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{VolumeClaimTemplate: scratch()}}},
		}
		p.Finalizers = []string{"millwright.test/hold"}
	})
	want := &drain.Pod{
		Key: object.Key{Namespace: w.name, Name: "p"}, UID: string(made.UID),
		Owner:  &object.Owner{Kind: drain.DaemonSet, Name: "d", UID: "u"},
		Labels: made.Labels, Annotations: map[string]string{"note": "1"}, Priority: 2000001000,
		CreatedAt: made.CreationTimestamp.UTC(), Grace: 7 * time.Second, Claims: []string{"data", "p-c"},
	}
	require.Equal(t, []*drain.Pod{want}, w.on(node, 1))
	live, err := w.cache.Workload().Pods.(drains.LivePods).Live(t.Context(), node)
	require.NoError(t, err)
	require.Equal(t, []*drain.Pod{want}, live)

	// It is being deleted, then finished, then gone.
	pods := w.client.CoreV1().Pods(w.name)
	require.NoError(t, pods.Delete(t.Context(), "p", metav1.DeleteOptions{}))
	eventually(t, "the end of its grace", func() bool { return !w.on(node, 1)[0].GraceEnds.IsZero() })
	_, err = pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"status":{"phase":"Succeeded"}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	eventually(t, "it to be finished", func() bool { return w.on(node, 1)[0].Finished })
	_, err = pods.Patch(t.Context(), "p", types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`), metav1.PatchOptions{})
	require.NoError(t, err)
	w.on(node, 0)
	w.on(other, 1)
	eventually(t, "all caches to be filled", w.cache.Synced)
}

// TestNothingIsCompleteBeforeItWasRead: an empty cache is not an empty node.
func TestNothingIsCompleteBeforeItWasRead(t *testing.T) {
	c := overConfig(t, server.Config) // never run
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
	_, err = load.Volumes.Attachments(t.Context(), "n", nil)
	require.ErrorContains(t, err, "not read yet")
	attached, err := load.Volumes.Attached(t.Context(), "n")
	require.NoError(t, err)
	require.Nil(t, attached, "it is not known")
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

// volume creates a volume that is bound to a claim of the test's namespace.
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

// attach creates an attachment.
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
	w.volume("free", "free", csi("h-2"), false) // the first, so that the others are not seen before
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
	require.Equal(t, "aws://zone/vol-1", spec.AWSElasticBlockStore.VolumeID, "as the cluster has it")
	require.Nil(t, w.cache.VolumeSpec("none"))

	node, other := w.node("a", nil).Name, w.node("b", nil).Name
	here, there := w.attach("here", one, node), w.attach("there", one, other)
	w.attach("unrelated", old, other)
	var names []string
	attachments := func(want ...string) func() bool {
		return func() bool {
			got, err := volumes.Attachments(t.Context(), node, []string{one})
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
	eventually(t, "one to be gone", attachments(there))
	a, err = volumes.Detach(t.Context(), here)
	require.NoError(t, err)
	require.Equal(t, drain.NotFound, a.Result)

	attached := func() []string {
		got, err := volumes.Attached(t.Context(), node)
		require.NoError(t, err)
		return got
	}
	eventually(t, "the node to be known", func() bool { return attached() != nil })
	require.Empty(t, attached())
	_, err = w.client.CoreV1().Nodes().Patch(t.Context(), node, types.MergePatchType,
		[]byte(`{"status":{"volumesAttached":[{"name":"kubernetes.io/csi/disk.example.com^h-1","devicePath":""}]}}`), metav1.PatchOptions{}, "status")
	require.NoError(t, err)
	eventually(t, "the node to say what is attached", func() bool {
		return slices.Equal(attached(), []string{"kubernetes.io/csi/disk.example.com^h-1"})
	})
}

// heard returns the nodes that a watch has yielded.
type heard struct {
	mu    sync.Mutex
	nodes map[string]int
}

func (h *heard) of(node string) int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.nodes[node]
}

// listen watches the workload until the test ends.
func (w *world) listen() *heard {
	w.Helper()
	h := &heard{nodes: map[string]int{}}
	ctx, cancel := context.WithCancel(context.Background())
	var listening sync.WaitGroup
	listening.Go(func() {
		for node, err := range w.cache.Workload().Pods.Watch(ctx) {
			if err != nil {
				return
			}
			h.mu.Lock()
			h.nodes[node]++
			h.mu.Unlock()
		}
	})
	w.Cleanup(func() { cancel(); listening.Wait() })
	return h
}

func TestWatchOfTheWorkload(t *testing.T) {
	w := newWorld(t)
	h := w.listen()
	node, other := w.node("a", nil).Name, w.node("b", nil).Name
	told := func(what string, node string, do func()) {
		t.Helper()
		before := h.of(node)
		do()
		eventually(t, what, func() bool { return h.of(node) > before })
	}
	told("a new pod", node, func() { w.pod("p", node, nil) })
	patch := func(body string, sub ...string) {
		_, err := w.client.CoreV1().Pods(w.name).Patch(t.Context(), "p", types.MergePatchType, []byte(body), metav1.PatchOptions{}, sub...)
		require.NoError(t, err)
	}
	told("a label", node, func() { patch(`{"metadata":{"labels":{"x":"y"}}}`) })
	one := w.volume("one", "data", csi("h-1"), true)
	told("an attachment", other, func() { w.attach("x", one, other) })

	// A change that a drain does not read wakes nothing: the pod's next change that a drain reads
	// is the first that the watch yields.
	before := h.of(node)
	patch(`{"status":{"message":"nobody cares"}}`, "status")
	told("another pod", other, func() { w.pod("q", other, nil) })
	require.Equal(t, before, h.of(node))
	told("a deletion", node, func() {
		require.NoError(t, w.client.CoreV1().Pods(w.name).Delete(t.Context(), "p", *metav1.NewDeleteOptions(0)))
	})
}

// TestDrain: a node of a real cluster is emptied within its budget, and the result is recorded on
// the node.
func TestDrain(t *testing.T) {
	w := newWorld(t)
	node := w.node("a", nil).Name
	b := w.budget("b")
	w.allow(b, 0)
	w.pod("p", node, func(p *corev1.Pod) {
		yes := true
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "r", UID: "u", Controller: &yes}}
	})
	w.on(node, 1)
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
	require.False(t, w.gone("p"), "against its budget")

	w.allow(b, 1)
	ahead = 2 * drain.Slot
	eventually(t, "the pod to be evicted", func() bool { pass(); return w.gone("p") })
	w.on(node, 0)
	require.True(t, pass().Done)
	require.Positive(t, len(w.stored(node).Annotations["millwright-go/drain"]))
}
