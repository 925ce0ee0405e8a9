package controllers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	storagev1 "k8s.io/api/storage/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
)

// keepFinalizer prevents the deletion of pods in these tests.
const keepFinalizer = "example.com/keep"

// podSpec returns the spec of a pod that runs on a node of the test.
func (w *world) podSpec() corev1.PodSpec {
	grace := int64(5)
	return corev1.PodSpec{
		Containers:                    []corev1.Container{{Name: "c", Image: "none"}},
		NodeSelector:                  map[string]string{corev1.LabelInstanceTypeStable: w.namespace},
		TerminationGracePeriodSeconds: &grace,
	}
}

// pod returns the pod of that name, or nil.
func (w *world) pod(name string) *corev1.Pod {
	w.Helper()
	p := &corev1.Pod{}
	err := w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, p)
	require.NoError(w, client.IgnoreNotFound(err))
	if err != nil {
		return nil
	}
	return p
}

// boundVolume creates a claim and a volume that are bound to each other, as the volume controller
// does. It returns the volume's name.
func (w *world) boundVolume(claim string) string {
	w.Helper()
	name, none := w.namespace+"-"+claim, ""
	size := corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}
	modes := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce}
	pvc := &corev1.PersistentVolumeClaim{ObjectMeta: w.meta(claim), Spec: corev1.PersistentVolumeClaimSpec{
		AccessModes: modes, VolumeName: name, StorageClassName: &none, Resources: corev1.VolumeResourceRequirements{Requests: size},
	}}
	pvc.Annotations = map[string]string{"pv.kubernetes.io/bind-completed": "yes"}
	require.NoError(w, w.client.Create(w.Context(), pvc))
	pv := &corev1.PersistentVolume{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: corev1.PersistentVolumeSpec{
		Capacity: size, AccessModes: modes, ClaimRef: &corev1.ObjectReference{Namespace: w.namespace, Name: claim, UID: pvc.UID},
		PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: "disk.example.com", VolumeHandle: name}},
	}}
	require.NoError(w, w.client.Create(w.Context(), pv))
	pv.Status.Phase = corev1.VolumeBound
	require.NoError(w, w.client.Status().Update(w.Context(), pv))
	pvc.Status.Phase = corev1.ClaimBound
	require.NoError(w, w.client.Status().Update(w.Context(), pvc))
	return name
}

// attach creates a VolumeAttachment that is attached.
func (w *world) attach(volume, node string) *storagev1.VolumeAttachment {
	w.Helper()
	a := &storagev1.VolumeAttachment{ObjectMeta: metav1.ObjectMeta{Name: volume + "-" + node}, Spec: storagev1.VolumeAttachmentSpec{
		Attacher: "disk.example.com", NodeName: node, Source: storagev1.VolumeAttachmentSource{PersistentVolumeName: &volume},
	}}
	require.NoError(w, w.client.Create(w.Context(), a))
	a.Status.Attached = true
	require.NoError(w, w.client.Status().Update(w.Context(), a))
	return a
}

// stateful creates a StatefulSet of one pod, with a volume and a finalizer, and waits for the pod.
func (w *world) stateful(name string) {
	w.Helper()
	one, labels := int32(1), map[string]string{"app": name}
	spec := w.podSpec()
	spec.Volumes = []corev1.Volume{{Name: "data", VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "data-" + name},
	}}}
	require.NoError(w, w.client.Create(w.Context(), &appsv1.StatefulSet{ObjectMeta: w.meta(name), Spec: appsv1.StatefulSetSpec{
		Replicas: &one, Selector: &metav1.LabelSelector{MatchLabels: labels}, ServiceName: name,
		Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: labels, Finalizers: []string{keepFinalizer}}, Spec: spec},
	}}))
	w.eventually("the pod to be ready", func() bool { p := w.pod(name + "-0"); return p != nil && isReady(p) })
}

// TestFinishedPodKeptByAFinalizer: an evicted pod has finished, its volume is still attached, and a
// finalizer keeps the pod object. The drain waits for the volume, not for the object. When the
// finalizer is removed, the StatefulSet creates the pod again.
// Invariants: P21
func TestFinishedPodKeptByAFinalizer(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.class("small", w.namespace)
	w.deployment("web", "small", 1)
	w.eventually("the machine", w.settled("web", 1))
	name := w.names()[0]
	volume := w.boundVolume("data-db")
	attachment := w.attach(volume, name)
	w.stateful("db")
	before := w.pod("db-0")
	require.Equal(t, name, before.Spec.NodeName)
	defer w.release("db-0")

	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	finished := func(p *corev1.Pod) bool {
		return p != nil && p.UID == before.UID && p.DeletionTimestamp != nil && p.Status.Phase == corev1.PodSucceeded
	}
	w.eventually("the pod to finish", func() bool { return finished(w.pod("db-0")) })
	w.eventually("the drain to wait for the volume", func() bool { return strings.Contains(w.description(name), volume) })
	require.True(t, finished(w.pod("db-0")))
	require.NoError(t, w.client.Delete(t.Context(), attachment))
	w.eventually("the machine to be gone", func() bool { return !slices.Contains(w.names(), name) })
	require.True(t, finished(w.pod("db-0")), "the drain must not wait for the pod object")

	w.release("db-0")
	w.eventually("the new pod to be ready", func() bool {
		p := w.pod("db-0")
		return p != nil && p.UID != before.UID && isReady(p) && p.Spec.NodeName != name
	})
}

// release removes a pod's finalizers.
func (w *world) release(name string) {
	w.Helper()
	p := w.pod(name)
	if p == nil {
		return
	}
	w.merge(p, `{"metadata":{"finalizers":null}}`)
}

// complete sets the status of a pod whose containers have succeeded, as a kubelet does.
func (w *world) complete(name string) {
	w.Helper()
	p := w.pod(name)
	require.NotNil(w, p)
	p.Status.Phase = corev1.PodSucceeded
	for i := range p.Status.Conditions {
		if c := &p.Status.Conditions[i]; c.Type == corev1.PodReady || c.Type == corev1.ContainersReady {
			c.Status, c.Reason = corev1.ConditionFalse, "PodCompleted"
		}
	}
	for i := range p.Status.ContainerStatuses {
		c, started := &p.Status.ContainerStatuses[i], false
		c.Ready, c.Started = false, &started
		c.State = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{FinishedAt: metav1.Now()}}
	}
	require.NoError(w, w.client.Status().Update(w.Context(), p))
}

// TestJobCompletesAmidADrain: a budget refuses the eviction of a Job's pod, and the pod completes
// while its node is drained. The drain then deletes the pod and ends. The Job succeeds, because its
// tracking finalizer keeps the pod until the Job has counted it.
// Invariants: P21
func TestJobCompletesAmidADrain(t *testing.T) {
	t.Parallel()
	w := newWorld(t, steady)
	w.manage()
	w.class("small", w.namespace)
	w.deployment("web", "small", 1)
	w.eventually("the machine", w.settled("web", 1))
	labels := map[string]string{"app": "work"}
	spec := w.podSpec()
	spec.RestartPolicy = corev1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: w.meta("work"), Spec: batchv1.JobSpec{Template: corev1.PodTemplateSpec{
		ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec,
	}}}
	require.NoError(t, w.client.Create(t.Context(), job))
	w.budget("work", labels, 1)
	pods := func() []corev1.Pod {
		list := &corev1.PodList{}
		require.NoError(t, w.client.List(t.Context(), list, client.InNamespace(w.namespace), client.MatchingLabels(labels)))
		return list.Items
	}
	w.eventually("the pod to be ready", func() bool { p := pods(); return len(p) == 1 && isReady(&p[0]) })
	before := pods()[0]
	require.Contains(t, before.Finalizers, batchv1.JobTrackingFinalizer)
	name := before.Spec.NodeName
	require.NoError(t, w.client.Delete(t.Context(), &v1alpha1.Machine{ObjectMeta: w.meta(name)}))
	w.eventually("the drain to wait for the budget", func() bool { return strings.Contains(w.description(name), "budget "+w.namespace+"/work") })
	require.Len(t, pods(), 1)

	w.complete(before.Name)
	w.eventually("the machine to be gone", func() bool { return !slices.Contains(w.names(), name) })
	w.eventually("the job to have succeeded", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(job), job))
		return job.Status.Succeeded == 1
	})
	require.Zero(t, job.Status.Failed)
	require.Empty(t, pods(), "the drain must delete the pod, and the Job must create no other")
}
