package sim

import (
	"slices"
	"time"
)

// Pods end in steps, as kubelets and controllers end them. First their containers end. Then the
// kubelet reports the pod as finished. The object is deleted some time later, once no finalizer
// keeps it. A pod that ends by itself is finished too, and its object stays until its controller, a
// drain or the cluster deletes it.

// ended removes a pod that was told to terminate and whose containers have ended. Its object stays
// for a while as a finished one, if Faults say so. atOnce skips the wait for a kubelet, as the API
// server does without a grace; then only a finalizer keeps the object.
func (a *apps) ended(p *pod, atOnce bool) {
	f := &a.w.o.Faults
	if !slices.Contains(a.pods, p) || p.kept {
		return
	}
	stays := time.Duration(0)
	if p.node != "" && !atOnce && !p.Finished {
		stays = a.w.upTo(f.PodEnd)
	}
	if p.node != "" && a.w.happens(f.KeptPod) {
		p.kept = true
		stays += time.Second + a.w.upTo(f.KeptPodFor)
		a.w.count(PodKept)
	}
	if stays == 0 {
		a.gone(p)
		return
	}
	if !p.Finished {
		a.w.count(PodFinished)
		a.finish(p)
	}
	a.w.clock.after(stays, func() { a.gone(p) })
}

// finish reports a pod as finished.
func (a *apps) finish(p *pod) {
	over := *p.Pod
	over.Finished = true
	p.Pod, p.healthy = &over, false
	a.changed(p.node)
	a.soon()
}

// gone deletes the object of a pod.
func (a *apps) gone(p *pod) {
	if i := slices.Index(a.pods, p); i >= 0 {
		a.pods = slices.Delete(a.pods, i, i+1)
		a.changed(p.node)
		a.soon()
	}
}

// live schedules the end of a pod that has become healthy, if it is a pod that ends by itself.
func (a *apps) live(p *pod) {
	if work := a.of(p).Work; work > 0 {
		a.ends(p, time.Second+a.w.upTo(work), PodCompleted)
	}
	if a.w.happens(a.w.o.Faults.FailedPod) {
		a.ends(p, a.w.upTo(time.Hour), PodFailed)
	}
}

// ends schedules a pod to end by itself after a while, unless it is told to terminate before.
func (a *apps) ends(p *pod, after time.Duration, how Fault) {
	a.w.clock.after(after, func() {
		if !p.active() || !slices.Contains(a.pods, p) || how == PodFailed && a.w.faultsStopped {
			return
		}
		a.w.count(how)
		a.finish(p)
		a.w.clock.after(finishedStays, func() { a.remains(p) })
	})
}

// finishedStays is how long the object of a pod that has ended by itself stays, unless something
// deletes it before.
const finishedStays = time.Hour

// remains deletes the object of a pod that ended by itself long ago, as clusters do.
func (a *apps) remains(p *pod) {
	if p.GraceEnds.IsZero() && slices.Contains(a.pods, p) {
		a.terminate(p, 0)
	}
}

// tidy deletes the finished pods of an app whose pods have names of their own, as the
// controller of a StatefulSet does before it makes another of that name.
func (a *apps) tidy(app *App) {
	if app.Volumes == 0 || app.Work > 0 {
		return
	}
	for _, p := range slices.Clone(a.pods) {
		if p.app == app.Name && p.Finished && p.GraceEnds.IsZero() {
			a.terminate(p, 0)
		}
	}
}

// of returns the app of a pod.
func (a *apps) of(p *pod) *App {
	i := slices.IndexFunc(a.apps, func(app App) bool { return app.Name == p.app })
	return &a.apps[i]
}
