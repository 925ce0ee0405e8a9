package cluster

import (
	"slices"
	"time"
)

// Pods end in steps. First their containers end. Then the kubelet reports the pod as finished. The
// object is deleted some time later, once no finalizer keeps it. A pod that ends by itself is finished,
// too, and its object stays until its controller, a drain or the cluster deletes it.

// terminate tells a pod to terminate within a grace period.
func (w *workload) terminate(p *pod, grace time.Duration) {
	if p.GraceEnds.IsZero() || grace == 0 {
		terminating := *p.Pod
		terminating.GraceEnds = w.world.Now().Add(grace)
		p.Pod = &terminating
		w.world.After(w.world.UpTo(grace), func() { w.containersEnded(p, grace == 0) })
	}
	w.changed(p.node)
	w.Soon()
}

// containersEnded is called when the containers of a pod have ended, or its node is gone. It deletes the
// pod's object, or keeps it for a while as finished, if Faults say so. atOnce means that there is no
// kubelet to wait for; then only a finalizer keeps the object.
func (w *workload) containersEnded(p *pod, atOnce bool) {
	f := w.world.Faults()
	if !slices.Contains(w.pods, p) || p.kept {
		return
	}
	stays := time.Duration(0)
	if p.node != "" && !atOnce && !p.Finished {
		stays = w.world.UpTo(f.PodEnd)
	}
	if p.node != "" && w.world.Happens(f.KeptPod) {
		p.kept = true
		stays += time.Second + w.world.UpTo(f.KeptPodFor)
		w.world.Count(PodKept)
	}
	if stays == 0 {
		w.deleteObject(p)
		return
	}
	if !p.Finished {
		w.world.Count(PodFinished)
		w.finish(p)
	}
	w.world.After(stays, func() { w.deleteObject(p) })
}

// finish reports a pod as finished.
func (w *workload) finish(p *pod) {
	finished := *p.Pod
	finished.Finished = true
	p.Pod, p.healthy = &finished, false
	w.changed(p.node)
	w.Soon()
}

// deleteObject deletes the object of a pod.
func (w *workload) deleteObject(p *pod) {
	if i := slices.Index(w.pods, p); i >= 0 {
		w.pods = slices.Delete(w.pods, i, i+1)
		w.changed(p.node)
		w.Soon()
	}
}

// scheduleEnd schedules the end of a healthy pod that will end by itself: complete or fail.
func (w *workload) scheduleEnd(p *pod) {
	if work := w.appOf(p).Work; work > 0 {
		w.endAfter(p, time.Second+w.world.UpTo(work), PodCompleted)
	}
	if w.world.Happens(w.world.Faults().FailedPod) {
		w.endAfter(p, w.world.UpTo(time.Hour), PodFailed)
	}
}

// endAfter makes a pod end by itself after a while, unless it is told to terminate before. Once faults have
// stopped, no pod fails.
func (w *workload) endAfter(p *pod, after time.Duration, how Fault) {
	w.world.After(after, func() {
		if !p.active() || !slices.Contains(w.pods, p) || how == PodFailed && w.world.Stopped() {
			return
		}
		w.world.Count(how)
		w.finish(p)
		w.world.After(finishedStays, func() { w.collect(p) })
	})
}

// finishedStays is how long the object of a pod that has ended by itself stays at most.
const finishedStays = time.Hour

// collect deletes the object of a pod that has ended by itself, as a cluster's garbage collector does.
func (w *workload) collect(p *pod) {
	if p.GraceEnds.IsZero() && slices.Contains(w.pods, p) {
		w.terminate(p, 0)
	}
}
