package main

import (
	"context"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"
)

// fakeKubelet makes every bound pod Running and Ready after the startup, and takes
// a deleted one away later, as a kubelet would. It leaves nodes to the tests.
func fakeKubelet(c *cluster) func(context.Context) {
	inf := c.f.Core().V1().Pods().Informer()
	return func(ctx context.Context) {
		zero := int64(0)
		handle := func(o any) {
			p, ok := o.(*v1.Pod)
			if !ok || p.Spec.NodeName == "" {
				return
			}
			switch {
			case p.DeletionTimestamp != nil:
				time.AfterFunc(c.pods.termination, func() {
					_ = c.cs.CoreV1().Pods(p.Namespace).Delete(ctx, p.Name, metav1.DeleteOptions{
						GracePeriodSeconds: &zero, Preconditions: metav1.NewUIDPreconditions(string(p.UID))})
				})
			case p.Status.Phase == v1.PodPending:
				time.AfterFunc(c.pods.startup, func() { runPod(ctx, c, p.DeepCopy()) })
			}
		}
		_, _ = inf.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: handle, UpdateFunc: func(_, n any) { handle(n) }})
		<-ctx.Done()
	}
}

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
	// a conflict is no matter: the newer pod comes by as an update, still Pending
	_, _ = c.cs.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, p, metav1.UpdateOptions{})
}
