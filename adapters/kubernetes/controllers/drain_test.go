package controllers_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// steady makes the simulated provider renew its nodes' heartbeats, so that nodes stay ready in tests
// that last longer than the cluster waits for a heartbeat.
var steady = simulated.Options{Create: 20 * time.Millisecond, Boot: 100 * time.Millisecond, Delete: 20 * time.Millisecond, Heartbeat: 5 * time.Second}

// workload runs pods on the nodes of the test, spread over them, and waits until they are ready.
func (w *world) workload(name string, pods int32, change ...func(*corev1.PodSpec)) map[string]string {
	w.Helper()
	labels, none := map[string]string{"app": name}, int64(0)
	d := &appsv1.Deployment{ObjectMeta: w.meta(name), Spec: appsv1.DeploymentSpec{
		Replicas: &pods, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: corev1.PodSpec{
			Containers:                    []corev1.Container{{Name: "c", Image: "none"}},
			NodeSelector:                  map[string]string{corev1.LabelInstanceTypeStable: w.namespace},
			TerminationGracePeriodSeconds: &none,
			TopologySpreadConstraints: []corev1.TopologySpreadConstraint{{
				MaxSkew: 1, TopologyKey: corev1.LabelHostname, WhenUnsatisfiable: corev1.ScheduleAnyway,
				LabelSelector: &metav1.LabelSelector{MatchLabels: labels},
			}},
		}},
	}}
	for _, f := range change {
		f(&d.Spec.Template.Spec)
	}
	require.NoError(w, w.client.Create(w.Context(), d))
	w.eventually("the pods to be ready", func() bool {
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(d), d))
		return d.Status.ReadyReplicas == pods
	})
	return labels
}

// budget creates a disruption budget, and waits until the cluster has counted its pods.
func (w *world) budget(name string, labels map[string]string, minAvailable int) *policyv1.PodDisruptionBudget {
	w.Helper()
	n := intstr.FromInt32(int32(minAvailable))
	b := &policyv1.PodDisruptionBudget{ObjectMeta: w.meta(name), Spec: policyv1.PodDisruptionBudgetSpec{
		MinAvailable: &n, Selector: &metav1.LabelSelector{MatchLabels: labels},
	}}
	require.NoError(w, w.client.Create(w.Context(), b))
	w.eventually("the budget to be counted", func() bool {
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(b), b))
		return b.Status.ObservedGeneration == b.Generation && b.Status.ExpectedPods > 0
	})
	return b
}

// readyPods counts the ready pods at each version that the API server reports. seen returns the
// smallest and the largest number so far.
func (w *world) readyPods(begin int) (seen func() span) {
	w.Helper()
	var mu sync.Mutex
	all := span{begin, begin}
	follow(w, &corev1.PodList{}, func(list client.ObjectList) (out []*corev1.Pod) {
		items := list.(*corev1.PodList).Items
		for i := range items {
			out = append(out, &items[i])
		}
		return out
	}, func(pods map[string]*corev1.Pod) {
		n := 0
		for _, p := range pods {
			if p.DeletionTimestamp == nil && isReady(p) {
				n++
			}
		}
		mu.Lock()
		defer mu.Unlock()
		all.take(n)
	})
	return func() span {
		mu.Lock()
		defer mu.Unlock()
		return all
	}
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// hasEvent reports whether there is an event about an object whose reason and text contain all parts.
func (w *world) hasEvent(name string, parts ...string) func() bool {
	return func() bool {
		list := &eventsv1.EventList{}
		require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
		for _, e := range list.Items {
			if e.Regarding.Name == name && containsAll(e.Reason+": "+e.Note, parts) {
				return true
			}
		}
		return false
	}
}

func containsAll(text string, parts []string) bool {
	for _, part := range parts {
		if !strings.Contains(text, part) {
			return false
		}
	}
	return true
}

// description returns the description of a machine's last operation.
func (w *world) description(name string) string {
	w.Helper()
	m := &v1alpha1.Machine{}
	require.NoError(w, client.IgnoreNotFound(w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, m)))
	return m.Status.LastOperation.Description
}

// TestRolloutKeepsABudget: all nodes below a workload are replaced. There are never fewer ready pods
// than the budget requires, and the budget refuses evictions meanwhile.
// Invariants: P22
func TestRolloutKeepsABudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.class("old", w.namespace)
	w.class("new", w.namespace)
	d := w.deploymentWith("web", "old", 2, `{"type":"RollingUpdate","rollingUpdate":{"maxSurge":2,"maxUnavailable":0}}`)
	labels := w.workload("app", 4)
	w.budget("app", labels, 3)
	ready := w.readyPods(4)
	var mu sync.Mutex
	refused := false
	w.followMachines(func(all map[string]*v1alpha1.Machine) {
		for _, m := range all {
			if strings.Contains(m.Status.LastOperation.Description, "budget "+w.namespace+"/app does not allow") {
				mu.Lock()
				refused = true
				mu.Unlock()
			}
		}
	})
	w.roll(d, "new")
	w.eventually("the rollout to end", w.settled("web", 2))
	w.eventually("the old VMs to be gone", func() bool { return len(w.machines()) == 2 && w.vms()[w.namespace] == 2 })
	assert.GreaterOrEqual(t, ready().least, 3)
	assert.Less(t, ready().least, 4, "no eviction was observed")
	mu.Lock()
	defer mu.Unlock()
	assert.True(t, refused, "the budget refused no eviction, or no machine's description says so")
}

// TestMisconfiguredBudget: while a machine waits because a budget never allows an eviction, the
// machine's status and an event name the budget. Pods that other budgets allow are evicted
// meanwhile. The deletion ends once the budget is deleted.
// Invariants: P22
func TestMisconfiguredBudget(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.class("small", w.namespace)
	d := w.deployment("web", "small", 1)
	w.eventually("the machine", w.settled("web", 1))
	labels := w.workload("app", 1)
	free := w.workload("free", 1)
	b := w.budget("never", labels, 1)
	w.budget("always", free, 0)
	name := w.names()[0]
	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	says := fmt.Sprintf("budget %s/never is misconfigured", w.namespace)
	w.eventually("the machine to say why", func() bool { return strings.Contains(w.description(name), says) })
	assert.Contains(t, w.description(name), "Initiate node drain", "the established marker of the stage")
	w.eventually("the event", w.hasEvent(name, says))
	w.eventually("the other pod to run on the new node", func() bool {
		pods := &corev1.PodList{}
		require.NoError(t, w.client.List(t.Context(), pods, client.InNamespace(w.namespace), client.MatchingLabels(free)))
		return len(pods.Items) == 1 && pods.Items[0].Spec.NodeName != name && isReady(&pods.Items[0])
	})
	require.Contains(t, w.names(), name)
	require.NoError(t, w.client.Delete(t.Context(), b))
	w.eventually("the machine to be gone", func() bool { return len(w.machines()) == 1 && w.settled("web", 1)() })
	assert.NotContains(t, w.names(), name)
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(d), d))
}

// TestPodsThatTolerateTheCordon: a pod tolerates the cordon and prefers the node of a machine that is
// deleted, so the scheduler binds each replacement of the pod to that node again. After a first round
// the drain ignores such pods, reports them in an event, and ends.
// Invariants: P49
func TestPodsThatTolerateTheCordon(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.class("small", w.namespace)
	w.deployment("web", "small", 1)
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	grace := int64(5)
	labels := w.workload("op", 1, func(s *corev1.PodSpec) {
		s.TerminationGracePeriodSeconds = &grace // long enough for the replacement to be bound meanwhile
		s.Tolerations = []corev1.Toleration{{Operator: corev1.TolerationOpExists}}
		s.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{PreferredDuringSchedulingIgnoredDuringExecution: []corev1.PreferredSchedulingTerm{{
			Weight: 100, Preference: corev1.NodeSelectorTerm{MatchExpressions: []corev1.NodeSelectorRequirement{{
				Key: corev1.LabelHostname, Operator: corev1.NodeSelectorOpIn, Values: []string{name},
			}}},
		}}}}
	})
	var mu sync.Mutex
	here := map[string]bool{}
	follow(w, &corev1.PodList{}, func(list client.ObjectList) (out []*corev1.Pod) {
		items := list.(*corev1.PodList).Items
		for i := range items {
			out = append(out, &items[i])
		}
		return out
	}, func(pods map[string]*corev1.Pod) {
		mu.Lock()
		defer mu.Unlock()
		for _, p := range pods {
			if p.Labels["app"] == labels["app"] && p.Spec.NodeName == name {
				here[string(p.UID)] = true
			}
		}
	})
	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	w.eventually("the machine to be gone", func() bool { return !slices.Contains(w.names(), name) })
	w.eventually("the event", w.hasEvent(name, "despite the cordon"))
	mu.Lock()
	defer mu.Unlock()
	assert.Greater(t, len(here), 1, "no replacement was bound to the node")
	// The drain looks at changes of pods five times a second, and compares creation times, which are whole seconds.
	assert.LessOrEqual(t, len(here), 11, "more than the pods of two seconds, and the one that stays until the VM is gone")
}
