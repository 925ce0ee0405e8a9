package sim

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
)

// App is a workload of equal pods with a disruption budget. A controller keeps their number.
type App struct {
	Name     string
	Replicas int
	// MinAvailable is how many pods the budget keeps healthy during evictions. Zero means no
	// budget.
	MinAvailable int
	Grace        time.Duration // of each pod
	// Boot is how long a pod takes from its binding to being healthy.
	Boot time.Duration
	// Volumes is how many persistent volumes each pod has. If it is zero, all pods are alike.
	// Otherwise each pod has a number, which gives its name and its volumes, and a pod that is gone
	// is replaced by one with the same number.
	Volumes int
	// Work makes the app a Job: each of its pods completes at most that long after it became
	// healthy, and another takes its place. If Work is zero, pods run until they are told to
	// terminate.
	Work time.Duration
}

// appPod is a pod of an app. drain.Pod is what others see: it is replaced, never changed.
type appPod struct {
	*drain.Pod
	app     string
	index   int    // among the pods with volumes of its app
	node    string // empty: not bound yet
	healthy bool
	kept    bool // a finalizer keeps its object
}

// boundPod is a pod as an event shows it, and the node that it is bound to.
type boundPod struct {
	*drain.Pod
	node string
}

func (p *appPod) bound() boundPod { return boundPod{p.Pod, p.node} }

// active reports whether a pod counts for its controller: it has neither finished nor been told to
// terminate.
func (p *appPod) active() bool { return p.GraceEnds.IsZero() && !p.Finished }

// workload is what runs in the cluster: apps and their pods.
type workload struct {
	*ground
	apps []App
	pods []*appPod // existing, in the order of their creation

	// reconcile is a pass of the controllers. tell receives the name of a node whose pods have
	// changed.
	reconcile func()
	tell      func(node string)
}

// soon schedules a pass of the controllers after a moment.
func (w *workload) soon() {
	if len(w.apps) > 0 {
		w.After(time.Second+w.upTo(2*time.Second), w.reconcile)
	}
}

// changed tells of a change of the pods of a node.
func (w *workload) changed(node string) {
	if node != "" && w.tell != nil {
		w.tell(node)
	}
}

// appOf returns the app of a pod.
func (w *workload) appOf(p *appPod) *App {
	i := slices.IndexFunc(w.apps, func(app App) bool { return app.Name == p.app })
	return &w.apps[i]
}

// on are the pods bound to a node.
func (w *workload) on(node string) (pods []*appPod) {
	for _, p := range w.pods {
		if p.node == node {
			pods = append(pods, p)
		}
	}
	return pods
}

// healthy is how many pods of an app are healthy.
func (w *workload) healthy(app string) (n int) {
	for _, p := range w.pods {
		if p.app == app && p.healthy && p.active() {
			n++
		}
	}
	return n
}

// running counts the pods of a node that run and were not told to terminate.
func (w *workload) running(node string) (n int) {
	for _, p := range w.on(node) {
		if p.active() {
			n++
		}
	}
	return n
}
