package main

import (
	"context"
	"encoding/json"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"
)

// These annotations of a pod say how long after it became Running its containers end by themselves, with
// status 0 or another. The value is a duration in Go's syntax.
const (
	completesAfter = "kubelab/completes-after"
	failsAfter     = "kubelab/fails-after"
)

// fakeKubelet makes bound pods Running and Ready, and ends deleted pods as a kubelet does since Kubernetes
// 1.27: the containers end, the phase becomes Succeeded, and some time later the object is deleted with
// grace 0. Finalizers may keep the object even then. A pod that ends by itself stays, as Succeeded or
// Failed. fakeKubelet does nothing about nodes.
func fakeKubelet(c *cluster) func(context.Context) {
	inf := c.f.Core().V1().Pods().Informer()
	return func(ctx context.Context) {
		handle := func(o any) {
			p, ok := o.(*v1.Pod)
			if !ok || p.Spec.NodeName == "" {
				return
			}
			finished := p.Status.Phase == v1.PodSucceeded || p.Status.Phase == v1.PodFailed
			switch {
			case p.DeletionTimestamp != nil && finished:
				time.AfterFunc(c.pods.report, func() { removePod(ctx, c, p) })
			case p.DeletionTimestamp != nil:
				time.AfterFunc(c.pods.termination, func() { endPod(ctx, c, p, v1.PodSucceeded) })
			case p.Status.Phase == v1.PodPending:
				time.AfterFunc(c.pods.startup, func() { runPod(ctx, c, p.DeepCopy()) })
			}
		}
		_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, n any) { handle(n) }})
		<-ctx.Done()
	}
}

// removePod deletes the object of a pod with grace 0.
func removePod(ctx context.Context, c *cluster, p *v1.Pod) {
	zero := int64(0)
	_ = c.cs.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
}

// endPod writes to the status that the containers of a pod have ended, unless the status says so already.
func endPod(ctx context.Context, c *cluster, p *v1.Pod, phase v1.PodPhase) {
	now, err := c.cs.CoreV1().Pods(p.Namespace).Get(ctx, p.Name, metav1.GetOptions{})
	if err != nil || now.UID != p.UID || now.Status.Phase == v1.PodSucceeded || now.Status.Phase == v1.PodFailed {
		return
	}
	status := now.Status.DeepCopy()
	status.Phase = phase
	for i := range status.Conditions {
		if t := status.Conditions[i].Type; t == v1.PodReady || t == v1.ContainersReady {
			status.Conditions[i].Status, status.Conditions[i].Reason = v1.ConditionFalse, "PodCompleted"
		}
	}
	code := int32(0)
	if phase == v1.PodFailed {
		code = 1
	}
	for i := range status.ContainerStatuses {
		k, started := &status.ContainerStatuses[i], false
		k.Ready, k.Started = false, &started
		k.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"uid": p.UID}, "status": status})
	if err != nil {
		return
	}
	_, _ = c.cs.CoreV1().Pods(p.Namespace).Patch(ctx, p.Name, types.MergePatchType, patch, metav1.PatchOptions{}, "status")
}

// runPod writes to the status that a pod is Running and Ready. If the pod has the annotations, it ends the
// pod later.
func runPod(ctx context.Context, c *cluster, p *v1.Pod) {
	now, started := metav1.Now(), true
	p.Status.Phase, p.Status.StartTime = v1.PodRunning, &now
	for _, t := range []v1.PodConditionType{v1.PodInitialized, v1.ContainersReady, v1.PodReady} {
		p.Status.Conditions = append(p.Status.Conditions, v1.PodCondition{Type: t, Status: v1.ConditionTrue, LastTransitionTime: now})
	}
	for _, k := range p.Spec.Containers {
		p.Status.ContainerStatuses = append(p.Status.ContainerStatuses, v1.ContainerStatus{Name: k.Name, Image: k.Image,
			Ready: true, Started: &started, State: v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: now}}})
	}
	// After a conflict there will be an event with the newer pod, still Pending.
	if _, err := c.cs.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{}); err != nil {
		return
	}
	for key, phase := range map[string]v1.PodPhase{completesAfter: v1.PodSucceeded, failsAfter: v1.PodFailed} {
		if d, err := time.ParseDuration(p.Annotations[key]); err == nil {
			time.AfterFunc(d, func() { endPod(ctx, c, p, phase) })
		}
	}
}
