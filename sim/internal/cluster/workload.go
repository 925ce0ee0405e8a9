package cluster

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
)

// App has the fields of sim.App.
type App struct {
	Name         string
	Replicas     int
	MinAvailable int
	Grace        time.Duration
	Boot         time.Duration
	Volumes      int
	Work         time.Duration
	Tolerates    bool
}

// Pod is a pod in an event, and the node to which it is bound.
type Pod struct {
	*drain.Pod
	Node string
}

// pod is a pod of an app. Its drain.Pod is what others see: it is replaced, never changed.
type pod struct {
	*drain.Pod
	app     string
	index   int    // its number, if the pods of its app have volumes
	node    string // empty: not bound yet
	healthy bool
	kept    bool // a finalizer keeps its object
}

func (p *pod) bound() Pod { return Pod{p.Pod, p.node} }

// active reports whether a pod counts for its controller: it has neither finished nor been told to
// terminate.
func (p *pod) active() bool { return p.GraceEnds.IsZero() && !p.Finished }

// workload holds the apps and their pods.
type workload struct {
	world World
	apps  []App
	pods  []*pod // existing, in the order of their creation

	// reconcile is a pass of the controllers. tell receives the name of a node whose pods have
	// changed.
	reconcile func()
	tell      func(node string)
}

// Soon schedules a pass of the controllers. It is called after changes of nodes and pods.
func (w *workload) Soon() {
	if len(w.apps) > 0 {
		w.world.After(time.Second+w.world.UpTo(2*time.Second), w.reconcile)
	}
}

// changed reports a change of the pods of a node.
func (w *workload) changed(node string) {
	if node != "" && w.tell != nil {
		w.tell(node)
	}
}

// appOf returns the app of a pod.
func (w *workload) appOf(p *pod) *App {
	i := slices.IndexFunc(w.apps, func(app App) bool { return app.Name == p.app })
	return &w.apps[i]
}

// on returns the pods bound to a node.
func (w *workload) on(node string) (pods []*pod) {
	for _, p := range w.pods {
		if p.node == node {
			pods = append(pods, p)
		}
	}
	return pods
}

// On returns the pods bound to a node.
func (w *workload) On(node string) (pods []*drain.Pod) {
	for _, p := range w.on(node) {
		pods = append(pods, p.Pod)
	}
	return pods
}

// Healthy returns how many pods of an app are healthy.
func (w *workload) Healthy(app string) (n int) {
	for _, p := range w.pods {
		if p.app == app && p.healthy && p.active() {
			n++
		}
	}
	return n
}

// Replicas returns how many pods an app should have.
func (w *workload) Replicas(app string) int {
	for _, a := range w.apps {
		if a.Name == app {
			return a.Replicas
		}
	}
	return 0
}
