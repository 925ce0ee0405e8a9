package cluster

import (
	"slices"
	"time"
)

// Pods end in steps, as kubelets and controllers end them. First their containers end. Then the
// kubelet reports the pod as finished. The object is deleted some time later, once no finalizer
// keeps it. A pod that ends by itself is finished too, and its object stays until its controller, a
// drain or the cluster deletes it.

// terminate ends a pod within its grace.
func (w *workload) terminate(p *pod, grace time.Duration) {
	if p.GraceEnds.IsZero() || grace == 0 {
		going := *p.Pod
		going.GraceEnds = w.world.Now().Add(grace)
		p.Pod = &going
		w.world.After(w.world.UpTo(grace), func() { w.ended(p, grace == 0) })
	}
	w.changed(p.node)
	w.Soon()
}

// ended removes a pod that was told to terminate and whose containers have ended. Its object stays
// for a while as a finished one, if Faults say so. atOnce skips the wait for a kubelet, as the API
// server does without a grace; then only a finalizer keeps the object.
func (w *workload) ended(p *pod, atOnce bool) {
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
		w.deleted(p)
		return
	}
	if !p.Finished {
		w.world.Count(PodFinished)
		w.finish(p)
	}
	w.world.After(stays, func() { w.deleted(p) })
}

// finish reports a pod as finished.
func (w *workload) finish(p *pod) {
	over := *p.Pod
	over.Finished = true
	p.Pod, p.healthy = &over, false
	w.changed(p.node)
	w.Soon()
}

// deleted deletes the object of a pod.
func (w *workload) deleted(p *pod) {
	if i := slices.Index(w.pods, p); i >= 0 {
		w.pods = slices.Delete(w.pods, i, i+1)
		w.changed(p.node)
		w.Soon()
	}
}

// live schedules the end of a pod that has become healthy, if it is a pod that ends by itself.
func (w *workload) live(p *pod) {
	if work := w.appOf(p).Work; work > 0 {
		w.ends(p, time.Second+w.world.UpTo(work), PodCompleted)
	}
	if w.world.Happens(w.world.Faults().FailedPod) {
		w.ends(p, w.world.UpTo(time.Hour), PodFailed)
	}
}

// ends schedules a pod to end by itself after a while, unless it is told to terminate before.
func (w *workload) ends(p *pod, after time.Duration, how Fault) {
	w.world.After(after, func() {
		if !p.active() || !slices.Contains(w.pods, p) || how == PodFailed && w.world.Stopped() {
			return
		}
		w.world.Count(how)
		w.finish(p)
		w.world.After(finishedStays, func() { w.remains(p) })
	})
}

// finishedStays is how long the object of a pod that has ended by itself stays, unless something
// deletes it before.
const finishedStays = time.Hour

// remains deletes the object of a pod that ended by itself long ago, as clusters do.
func (w *workload) remains(p *pod) {
	if p.GraceEnds.IsZero() && slices.Contains(w.pods, p) {
		w.terminate(p, 0)
	}
}
