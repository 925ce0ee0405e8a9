package controllers_test

import (
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// scale does what kubectl scale does: it reads the scale and writes it, and repeats that after a
// conflict.
func (w *world) scale(o client.Object, from, to int32) {
	w.Helper()
	w.eventually("the scale to be written", func() bool {
		scale := &autoscalingv1.Scale{}
		require.NoError(w, w.client.SubResource("scale").Get(w.Context(), o, scale))
		require.Equal(w, from, scale.Spec.Replicas)
		require.Equal(w, from, scale.Status.Replicas)
		scale.Spec.Replicas = to
		err := w.client.SubResource("scale").Update(w.Context(), o, client.WithSubResourceBody(scale))
		require.True(w, err == nil || apierrors.IsConflict(err), "%v", err)
		return err == nil
	})
}

// gone reports whether an object no longer exists.
func (w *world) gone(o client.Object) func() bool {
	return func() bool {
		err := w.client.Get(w.Context(), client.ObjectKeyFromObject(o), o)
		require.NoError(w, client.IgnoreNotFound(err))
		return apierrors.IsNotFound(err)
	}
}

func (w *world) sets() []v1alpha1.MachineSet {
	w.Helper()
	list := &v1alpha1.MachineSetList{}
	require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
	return list.Items
}

// TestScale: the scale subresource scales up, down, to nothing and back, without a rollout. The
// machines that stay are the same.
// Invariants: P4
func TestScale(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 2)
	first := w.names()
	w.scale(d, 2, 6)
	w.eventually("six machines", w.settled("web", 6))
	assert.Subset(t, w.names(), first)
	six := w.names()
	w.scale(d, 6, 3)
	w.eventually("three machines", w.settled("web", 3))
	w.eventually("three VMs", func() bool { return w.vms()["s"] == 3 })
	assert.Subset(t, six, w.names())
	w.scale(d, 3, 0)
	w.eventually("no machines", w.settled("web", 0))
	w.eventually("all VMs to be gone", func() bool { return len(w.vms()) == 0 })
	w.scale(d, 0, 1)
	w.eventually("one machine", w.settled("web", 1))
	assert.NotContains(t, six, w.names()[0], "a new machine has the name of a deleted one")
	assert.Len(t, w.sets(), 1)
}

// machineSet stores a set without a deployment.
func (w *world) machineSet(name, class string, replicas int32) *v1alpha1.MachineSet {
	w.Helper()
	labels := map[string]string{"lone": name}
	s := &v1alpha1.MachineSet{ObjectMeta: w.meta(name), Spec: v1alpha1.MachineSetSpec{
		Replicas: replicas, Selector: &metav1.LabelSelector{MatchLabels: labels},
		Template: v1alpha1.MachineTemplateSpec{
			ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
			Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: class}},
		},
	}}
	require.NoError(w, w.client.Create(w.Context(), s))
	return s
}

// setSettled reports whether all machines of a set are available.
func (w *world) setSettled(s *v1alpha1.MachineSet, replicas int32) func() bool {
	return func() bool {
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKeyFromObject(s), s))
		return s.Status.ObservedGeneration >= s.Generation && s.Status.Replicas == replicas && s.Status.AvailableReplicas == replicas
	}
}

// TestAdoptionAndRelease: a set adopts a machine without an owner that its selector matches, instead
// of creating one. It releases a machine whose labels no longer match, and creates another. The
// released machine keeps its VM.
// Invariants: P10
func TestAdoptionAndRelease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	alone := &v1alpha1.Machine{ObjectMeta: w.meta("found"), Spec: v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}}}
	alone.Labels = map[string]string{"lone": "web"}
	require.NoError(t, w.client.Create(t.Context(), alone))
	w.eventually("the machine without an owner to run", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(alone), alone))
		return alone.Status.CurrentStatus.Phase == "Running"
	})
	require.Empty(t, alone.OwnerReferences)

	s := w.machineSet("web", "small", 2)
	w.eventually("two machines", w.setSettled(s, 2))
	require.Contains(t, w.names(), "found")
	require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(alone), alone))
	assert.Equal(t, s.UID, metav1.GetControllerOf(alone).UID)

	w.merge(alone, `{"metadata":{"labels":{"lone":"other"}}}`)
	w.eventually("the machine to be released", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(alone), alone))
		return len(alone.OwnerReferences) == 0
	})
	w.eventually("another machine in its place", func() bool {
		return w.setSettled(s, 2)() && len(w.machines()) == 3 && maps.Equal(map[string]int{"s": 3}, w.vms())
	})
	assert.Equal(t, "Running", string(alone.Status.CurrentStatus.Phase))

	lone := w.machineSet("second", "small", 0)
	w.merge(lone, `{"spec":{"selector":{"matchLabels":{"lone":"other"}},"template":{"metadata":{"labels":{"lone":"other"}}},"replicas":1}}`)
	w.eventually("the other set to adopt it", w.setSettled(lone, 1))
	assert.Len(t, w.machines(), 3)
}

// TestDeploymentAdoptsSets: when a deployment is deleted by kubectl delete --cascade=orphan, its
// sets and their machines stay. A new deployment that selects the sets adopts them, and replaces no
// machine.
func TestDeploymentAdoptsSets(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 2)
	names := w.names()
	require.NoError(t, w.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	w.eventually("the deployment to be gone", w.gone(d))
	require.Len(t, w.sets(), 1)
	assert.Nil(t, metav1.GetControllerOf(&w.sets()[0]))
	assert.Nil(t, w.sets()[0].DeletionTimestamp)
	assert.Equal(t, names, w.names())

	w.deployment("web", "small", 2)
	w.eventually("another deployment to adopt them", w.settled("web", 2))
	assert.Equal(t, names, w.names())
	assert.Equal(t, map[string]int{"s": 2}, w.vms())
	require.Len(t, w.sets(), 1)
	assert.Equal(t, "web", metav1.GetControllerOf(&w.sets()[0]).Name)
}

// TestFinalizers: a deleted class and its secret stay until the machines that use them are gone.
// Invariants: P14
func TestFinalizers(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 2)
	class := &v1alpha1.MachineClass{ObjectMeta: w.meta("small")}
	secret := &corev1.Secret{ObjectMeta: w.meta("small")}
	require.NoError(t, w.client.Delete(t.Context(), class))
	require.NoError(t, w.client.Delete(t.Context(), secret))
	for _, m := range w.machines() {
		assert.Contains(t, m.Finalizers, machine.Finalizer)
	}
	for _, s := range w.sets() {
		assert.Contains(t, s.Finalizers, machineset.Finalizer)
	}
	// Machines can be replaced while class and secret are being deleted.
	gone := w.machines()[0]
	require.NoError(t, w.client.Delete(t.Context(), &gone))
	w.eventually("another machine in its place", func() bool { return w.gone(&gone)() && w.settled("web", 2)() })
	for _, o := range []client.Object{class, secret} {
		require.False(t, w.gone(o)(), "%T", o)
		assert.Len(t, o.GetFinalizers(), 1)
		assert.NotNil(t, o.GetDeletionTimestamp())
	}
	require.NoError(t, w.client.Delete(t.Context(), d))
	w.eventually("all to be gone", func() bool { return w.gone(d)() && len(w.machines()) == 0 && len(w.vms()) == 0 })
	w.eventually("the class to be gone", w.gone(class))
	w.eventually("the secret to be gone", w.gone(secret))
}

// TestForegroundDeletion: the owner references work with the garbage collector of Kubernetes: with
// --cascade=foreground the deployment is deleted last.
func TestForegroundDeletion(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 3)
	for _, m := range w.machines() {
		owner := metav1.GetControllerOf(&m)
		require.NotNil(t, owner)
		assert.True(t, *owner.BlockOwnerDeletion)
		assert.Equal(t, "MachineSet", owner.Kind)
	}
	require.NoError(t, w.client.Delete(t.Context(), d, client.PropagationPolicy(metav1.DeletePropagationForeground)))
	w.eventually("all to be gone", func() bool {
		// The machines are counted before it is checked that the deployment is gone.
		machines, ended := len(w.machines()), w.gone(d)()
		require.False(t, ended && machines > 0 && len(w.machines()) > 0, "the deployment was gone before its machines")
		return ended
	})
	assert.Empty(t, w.vms())
	assert.Empty(t, w.sets())
}

// TestMachinesStayBehind: when a set is deleted by kubectl delete --cascade=orphan, its machines go
// on running without an owner.
func TestMachinesStayBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	w.manage()
	w.class("small", "s")
	s := w.machineSet("web", "small", 3)
	w.eventually("three machines", w.setSettled(s, 3))
	names := w.names()
	require.Equal(t, metav1.FinalizerOrphanDependents, object.OrphanDependents)
	require.NoError(t, w.client.Delete(t.Context(), s, client.PropagationPolicy(metav1.DeletePropagationOrphan)))
	w.eventually("the set to be gone", w.gone(s))
	assert.Equal(t, names, w.names())
	for _, m := range w.machines() {
		assert.Empty(t, m.OwnerReferences)
		assert.Nil(t, m.DeletionTimestamp)
		assert.Equal(t, "Running", string(m.Status.CurrentStatus.Phase))
	}
	assert.Equal(t, map[string]int{"s": 3}, w.vms())
}

// TestAutoscalerWithAnotherClock: an autoscaler writes the size, the names of the machines to delete and the
// time in one update. Exactly those machines are deleted, however wrong its clock is, and also if it
// writes names without times, as earlier versions do.
// Invariants: P20
func TestAutoscalerWithAnotherClock(t *testing.T) {
	t.Parallel()
	w, d := fleetOf(t, 5)
	const scaledAt = `"machine.sapcloud.io/last-deployment-replica-change-by-scaler-time":"%s"`
	for i, clock := range []time.Duration{2 * time.Second, time.Hour, -time.Hour, 0} {
		names := w.names()
		victim, other, replicas := names[len(names)/2], names[0], int32(len(names)-1)
		w.merge(&v1alpha1.Machine{ObjectMeta: w.meta(other)}, `{"metadata":{"annotations":{"machinepriority.machine.sapcloud.io":"1"}}}`)
		at := time.Now().Add(clock).UTC().Format(time.RFC3339)
		chosen, written := victim+"~"+at, fmt.Sprintf(scaledAt, at)
		if i == 3 { // no times; the annotation with the time is still that of the change before
			chosen, written = victim, `"theirs":"x"`
		}
		w.merge(d, fmt.Sprintf(`{"metadata":{"annotations":{"node.machine.sapcloud.io/trigger-deletion-by-mcm":"%s",%s}},"spec":{"replicas":%d}}`, chosen, written, replicas))
		w.eventually("one machine less", func() bool { return w.settled("web", replicas)() && len(w.machines()) == int(replicas) })
		require.NotContains(t, w.names(), victim, "clock %s ahead: another machine was deleted", clock)
		require.Contains(t, w.names(), other)
		w.eventually("the annotation with the names to be removed", func() bool {
			_, left := w.get("web").Annotations["node.machine.sapcloud.io/trigger-deletion-by-mcm"]
			return !left
		})
	}
}
