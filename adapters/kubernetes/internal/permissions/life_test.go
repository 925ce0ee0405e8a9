package permissions

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// step is a part of a fleet's life: an action of a user, and its result.
type step struct {
	name string
	do   func(*world)
	done func(*world) bool
}

// life returns the steps of the samples' life: the deployment is created, rolled while a budget
// protects some of its two pods, scaled, and deleted by force while volumes are attached. A pool is
// scaled and deleted as well. The classes are deleted last. minAvailable is the budget's.
func life(minAvailable int32) []step {
	return []step{
		{"creation", (*world).create, func(w *world) bool { return w.settled(3) && w.poolSettled(2) }},
		{"pods", func(w *world) { w.createPods(minAvailable) }, func(w *world) bool { return w.pods() == 2 }},
		{"rollout", func(w *world) { w.patch(`{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`) },
			func(w *world) bool { return w.settled(3) && w.onlyClass("large") && w.pods() == 2 }},
		{"scaling", func(w *world) { w.patch(`{"spec":{"replicas":2}}`) }, func(w *world) bool { return w.settled(2) && len(w.machines()) == 2 }},
		{"scaling the pool", func(w *world) { w.patchPool(`{"spec":{"replicas":1}}`) }, func(w *world) bool { return w.poolSettled(1) }},
		{"deletion of the pool", (*world).deletePool, (*world).poolGone},
		{"deletion", (*world).deleteByForce, func(w *world) bool { return len(w.machines()) == 0 && w.gone() }},
		{"classes", (*world).deleteClasses, (*world).classesGone},
	}
}

// run runs the steps of a life, to the end or until enough returns true.
func (w *world) run(minAvailable int32, enough func() bool) {
	w.Helper()
	for _, s := range life(minAvailable) {
		s.do(w)
		done := false
		if !lab.Await(patience, func() bool { done = s.done(w); return done || enough() }) {
			w.Log(strings.Join(logged.with(w.namespace), ""))
			require.Fail(w, s.name+" is not completed", "Refusals: %s", strings.Join(w.refusals(), ""))
		}
		if !done {
			return
		}
	}
}

// create stores the samples in the world's namespace.
func (w *world) create() {
	w.Helper()
	samples, err := config.Objects("samples")
	require.NoError(w, err)
	for _, o := range samples {
		o.SetNamespace(w.namespace)
		switch o.GetKind() {
		case "MachineClass":
			require.NoError(w, unstructured.SetNestedField(o.Object, w.namespace, "providerSpec", "cluster"))
			require.NoError(w, unstructured.SetNestedField(o.Object, w.namespace, "secretRef", "namespace"))
		case "MachinePool":
			require.NoError(w, unstructured.SetNestedField(o.Object, w.namespace, "spec", "clusterName"))
			require.NoError(w, unstructured.SetNestedField(o.Object, w.namespace+"-pool", "spec", "template", "nodeTemplate", "labels", "example.com/pool"))
		case "MachineDeployment":
			require.NoError(w, unstructured.SetNestedField(o.Object, w.namespace, "spec", "template", "spec", "nodeTemplate", "metadata", "labels", "example.com/pool"))
		}
		require.NoError(w, w.admin.Create(w.Context(), o))
	}
}

func (w *world) meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: w.namespace, Name: name, Labels: map[string]string{"app": "mill"}}
}

// createPods creates two pods for the fleet's nodes, and a disruption budget for them.
func (w *world) createPods(minAvailable int32) {
	w.Helper()
	least, two := intstr.FromInt32(minAvailable), int32(2)
	pick := &metav1.LabelSelector{MatchLabels: map[string]string{"app": "mill"}}
	require.NoError(w, w.admin.Create(w.Context(), &policyv1.PodDisruptionBudget{
		ObjectMeta: w.meta("mill"), Spec: policyv1.PodDisruptionBudgetSpec{MinAvailable: &least, Selector: pick},
	}))
	require.NoError(w, w.admin.Create(w.Context(), &appsv1.Deployment{ObjectMeta: w.meta("mill"), Spec: appsv1.DeploymentSpec{
		Replicas: &two, Selector: pick,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pick.MatchLabels}, Spec: corev1.PodSpec{
			NodeSelector: map[string]string{"example.com/pool": w.namespace},
			Containers:   []corev1.Container{{Name: "mill", Image: "mill"}},
		}},
	}}))
}

// pods counts the running pods.
func (w *world) pods() (running int) {
	w.Helper()
	list := &corev1.PodList{}
	require.NoError(w, w.admin.List(w.Context(), list, client.InNamespace(w.namespace)))
	for i := range list.Items {
		if p := &list.Items[i]; p.DeletionTimestamp == nil && p.Status.Phase == corev1.PodRunning {
			running++
		}
	}
	return running
}

func (w *world) get(name string, o client.Object) error {
	return w.admin.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, o)
}

func (w *world) patch(body string) {
	w.Helper()
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "web"}}
	require.NoError(w, w.admin.Patch(w.Context(), d, client.RawPatch("application/merge-patch+json", []byte(body))))
}

// settled reports whether the deployment has the given number of machines, all of them available and
// of its current template.
func (w *world) settled(replicas int32) bool {
	w.Helper()
	d := &v1alpha1.MachineDeployment{}
	require.NoError(w, w.get("web", d))
	s := d.Status
	return s.ObservedGeneration >= d.Generation && s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas && s.Replicas == replicas
}

// poolSettled reports whether the pool has the given number of machines, all of them ready.
func (w *world) poolSettled(replicas int32) bool {
	w.Helper()
	p := &poolsv1alpha1.MachinePool{}
	require.NoError(w, w.get("batch", p))
	s := p.Status
	return s.ObservedGeneration == p.Generation && s.Phase == "Running" && s.Replicas == replicas && s.ReadyReplicas == replicas && len(s.Leaving) == 0
}

func (w *world) patchPool(body string) {
	w.Helper()
	p := &poolsv1alpha1.MachinePool{ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "batch"}}
	require.NoError(w, w.admin.Patch(w.Context(), p, client.RawPatch("application/merge-patch+json", []byte(body))))
}

func (w *world) deletePool() {
	w.Helper()
	require.NoError(w, w.admin.Delete(w.Context(), &poolsv1alpha1.MachinePool{ObjectMeta: w.meta("batch")}))
}

func (w *world) poolGone() bool {
	return apierrors.IsNotFound(w.get("batch", &poolsv1alpha1.MachinePool{}))
}

func (w *world) machines() []v1alpha1.Machine {
	w.Helper()
	list := &v1alpha1.MachineList{}
	require.NoError(w, w.admin.List(w.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

// onlyClass reports whether all machines are of that class.
func (w *world) onlyClass(class string) bool {
	return !slices.ContainsFunc(w.machines(), func(m v1alpha1.Machine) bool { return m.Spec.Class.Name != class })
}

// deleteByForce attaches a volume to each node, and deletes the deployment and its machines by force,
// without regard to their pods.
func (w *world) deleteByForce() {
	w.Helper()
	for _, m := range w.machines() {
		volume := "volume-" + m.Name
		require.NoError(w, w.admin.Create(w.Context(), &storagev1.VolumeAttachment{
			ObjectMeta: metav1.ObjectMeta{Name: m.Name},
			Spec:       storagev1.VolumeAttachmentSpec{Attacher: "disk.example.com", NodeName: m.Labels["node"], Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume}},
		}))
		node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: m.Labels["node"]}}
		attached := client.RawPatch("application/merge-patch+json", []byte(`{"status":{"volumesAttached":[{"name":"disk","devicePath":""}]}}`))
		require.NoError(w, w.admin.Status().Patch(w.Context(), node, attached))
		forced := client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"labels":{"force-deletion":"True"}}}`))
		require.NoError(w, w.admin.Patch(w.Context(), &m, forced))
	}
	d := &v1alpha1.MachineDeployment{ObjectMeta: w.meta("web")}
	require.NoError(w, w.admin.Delete(w.Context(), d))
}

// gone reports whether the deployment is gone.
func (w *world) gone() bool {
	return client.IgnoreNotFound(w.get("web", &v1alpha1.MachineDeployment{})) == nil && w.get("web", &v1alpha1.MachineDeployment{}) != nil
}

func (w *world) deleteClasses() {
	w.Helper()
	for _, o := range []client.Object{
		&v1alpha1.MachineClass{ObjectMeta: w.meta("small")}, &v1alpha1.MachineClass{ObjectMeta: w.meta("large")}, &corev1.Secret{ObjectMeta: w.meta("sample")},
	} {
		require.NoError(w, w.admin.Delete(w.Context(), o))
	}
}

func (w *world) classesGone() bool {
	return w.get("small", &v1alpha1.MachineClass{}) != nil && w.get("large", &v1alpha1.MachineClass{}) != nil && w.get("sample", &corev1.Secret{}) != nil
}

// TestRulesSuffice: with the permissions of the manifests and no others, all steps succeed and nothing
// is refused.
func TestRulesSuffice(t *testing.T) {
	w := newWorld(t, permission{})
	stop := w.manage()
	w.run(1, func() bool { return false })
	stop()
	require.NoError(t, <-w.ended)
	require.Empty(t, w.refusals())
	events := &corev1.EventList{}
	require.NoError(t, w.admin.List(t.Context(), events, client.InNamespace(w.namespace)))
	require.True(t, slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.InvolvedObject.Kind == "Machine" }))
}
