package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
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

// apps is the workload of a world: its pods, the controllers that keep their number, and the
// budgets. They behave as an API server and its controllers do.
type apps struct {
	w       *World
	apps    []App
	pods    []*pod // existing, in the order of their creation
	number  int
	budgets map[string]*drain.Budget // by app, as their status says
	// tell receives the name of a node whose pods have changed.
	tell []func(node string)
}

// pod is a pod of an app. drain.Pod is what others see: it is replaced, never changed.
type pod struct {
	*drain.Pod
	app     string
	index   int       // among the pods with volumes of its app
	node    string    // empty: not bound yet
	tried   time.Time // the last attempt to evict it
	triedBy *process
	healthy bool
	kept    bool // a finalizer keeps its object
}

// active reports whether a pod counts for its controller: it has neither finished nor been told to
// terminate.
func (p *pod) active() bool { return p.GraceEnds.IsZero() && !p.Finished }

// AddApp starts a workload.
func (w *World) AddApp(a App) {
	w.apps.apps = append(w.apps.apps, a)
	if a.MinAvailable > 0 {
		labels := object.Selector{Labels: map[string]string{"app": a.Name}}
		w.apps.budgets[a.Name] = &drain.Budget{
			Key: object.Key{Namespace: "apps", Name: a.Name}, Selector: &labels, Generation: 1, ObservedGeneration: 1,
			DesiredHealthy: int32(a.MinAvailable), ExpectedPods: int32(a.Replicas),
		}
	}
	w.apps.keep()
}

// Healthy is how many pods of an app are healthy.
func (w *World) Healthy(app string) (n int) {
	for _, p := range w.apps.pods {
		if p.app == app && p.healthy && p.active() {
			n++
		}
	}
	return n
}

// PodsOn returns how many pods on a node have not finished.
func (w *World) PodsOn(node string) (n int) {
	for _, p := range w.apps.on(node) {
		if !p.Finished {
			n++
		}
	}
	return n
}

// keep brings every app to its number, binds pods to nodes, and recounts the budgets, as
// controllers and scheduler do.
func (a *apps) keep() {
	for i := range a.apps {
		app := &a.apps[i]
		a.tidy(app)
		a.grow(app)
		a.shed(app)
	}
	for _, p := range a.pods {
		if p.node == "" && p.active() {
			a.bind(p)
		}
	}
	a.w.volumes.look()
	for name, b := range a.budgets {
		now := *b
		now.CurrentHealthy, now.Disrupted, now.ExpectedPods = int32(a.w.Healthy(name)), 0, int32(a.expected(name))
		now.DisruptionsAllowed = max(now.CurrentHealthy-now.DesiredHealthy, 0)
		a.budgets[name] = &now
	}
}

// resize changes how many pods an app has. Surplus pods terminate as if a user had deleted them.
func (a *apps) resize(name string, n int) {
	for i := range a.apps {
		if app := &a.apps[i]; app.Name == name {
			app.Replicas = max(n, 0)
			a.soon()
		}
	}
}

// soon schedules a pass of the controllers after a moment.
func (a *apps) soon() {
	if len(a.apps) > 0 {
		a.w.clock.after(time.Second+a.w.upTo(2*time.Second), a.keep)
	}
}

func (a *apps) count(app string) (n int) {
	for _, p := range a.pods {
		if p.app == app && p.active() {
			n++
		}
	}
	return n
}

// expected is how many pods a budget that names a number expects: one for each object, finished
// ones included, without those that were told to terminate.
func (a *apps) expected(app string) (n int) {
	for _, p := range a.pods {
		if p.app == app && p.GraceEnds.IsZero() {
			n++
		}
	}
	return n
}

// shed terminates surplus pods, the youngest first.
func (a *apps) shed(app *App) {
	for i := len(a.pods) - 1; i >= 0 && a.count(app.Name) > app.Replicas; i-- {
		if p := a.pods[i]; p.app == app.Name && p.active() {
			a.terminate(p, p.Grace)
		}
	}
}

// grow makes the pods that are missing.
func (a *apps) grow(app *App) {
	if app.Volumes > 0 {
		for i := range app.Replicas {
			a.addNumbered(app, i)
		}
		return
	}
	for a.count(app.Name) < app.Replicas {
		a.add(app)
	}
}

// addNumbered makes the pod of a number, unless one is there. The pods of a Job have names of their
// own, so another takes the place of one that has finished or is terminating.
func (a *apps) addNumbered(app *App, i int) {
	name := fmt.Sprintf("%s-%d", app.Name, i)
	if slices.ContainsFunc(a.pods, func(p *pod) bool {
		return p.app == app.Name && p.index == i && (app.Work == 0 || p.active())
	}) {
		return
	}
	a.add(app)
	last := a.pods[len(a.pods)-1]
	last.index = i
	p := last.Pod // not seen by anything yet
	if p.Priority = int32(i % 2); app.Work == 0 {
		p.Name, p.Owner.Kind = name, "StatefulSet"
	}
	for v := range app.Volumes {
		p.Claims = append(p.Claims, fmt.Sprintf("%s-%d", name, v))
	}
}

func (a *apps) add(app *App) {
	a.number++
	a.pods = append(a.pods, &pod{app: app.Name, Pod: &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: fmt.Sprintf("%s-%d", app.Name, a.number)}, UID: fmt.Sprintf("pod-%d", a.number),
		Owner:  &object.Owner{Kind: "ReplicaSet", Name: app.Name, UID: "app-" + app.Name},
		Labels: map[string]string{"app": app.Name}, CreatedAt: a.w.clock.now, Grace: app.Grace,
	}})
	if app.Work > 0 {
		a.pods[len(a.pods)-1].Owner.Kind = "Job"
	}
}

// bind puts a pod on the node with the fewest pods, among those that accept pods.
func (a *apps) bind(p *pod) {
	best, fewest := "", 0
	for _, n := range a.w.nodes.all() {
		if !takesPods(n) {
			continue
		}
		if here := len(a.on(n.Name)); best == "" || here < fewest {
			best, fewest = n.Name, here
		}
	}
	if best == "" {
		return
	}
	p.node = best
	a.changed(best)
	a.w.clock.after(max(time.Second, a.of(p).Boot), func() { a.run(p) })
	a.w.volumes.look()
}

// run makes a pod healthy once it has its volumes.
func (a *apps) run(p *pod) {
	switch {
	case !p.active() || !slices.Contains(a.pods, p):
	case !a.w.volumes.mounted(p):
		a.w.clock.after(mountRetry, func() { a.run(p) })
	default:
		p.healthy = true
		a.soon()
		a.live(p)
	}
}

// mountRetry is how often a pod looks for its volumes.
const mountRetry = 15 * time.Second

func takesPods(n *machine.Node) bool {
	ready := object.FindCondition(n.Conditions, machine.NodeReady)
	if n.Unschedulable || n.Deleted() || ready == nil || ready.Status != object.True {
		return false
	}
	return !slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Effect == object.NoSchedule })
}

// on are the pods bound to a node.
func (a *apps) on(node string) (pods []*pod) {
	for _, p := range a.pods {
		if p.node == node {
			pods = append(pods, p)
		}
	}
	return pods
}

// staying counts the pods that a drain may not leave on a node. Two kinds don't count: pods that
// have finished, and pods whose grace ended half a minute ago by the manager's clock.
func (a *apps) staying(node string) (n int) {
	now := a.w.latest()
	for _, p := range a.on(node) {
		if !p.Finished && (p.GraceEnds.IsZero() || now.Before(p.GraceEnds.Add(overdue))) {
			n++
		}
	}
	return n
}

// overdue is how long a drain waits for a pod whose grace has ended.
const overdue = 30 * time.Second

func (a *apps) changed(node string) {
	if node == "" {
		return
	}
	for _, tell := range a.tell {
		tell(node)
	}
}

// find returns the pod that an order means, or nil if that pod is gone or another one has its name.
func (a *apps) find(o drain.Order) *pod {
	for _, p := range a.pods {
		if p.Key == o.Pod && p.UID == o.UID {
			return p
		}
	}
	return nil
}

// evict answers as the eviction API does. It asks the budgets and counts down what they allow until
// their controller counts again.
func (a *apps) evict(o drain.Order) drain.Answer {
	p := a.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if !p.GraceEnds.IsZero() || !p.healthy && p.node == "" {
		return drain.Answer{Result: drain.Accepted}
	}
	a.w.emit(evictionTried{p})
	if p.Finished { // no budget applies
		a.terminate(p, 0)
		return drain.Answer{Result: drain.Accepted}
	}
	if b := a.budgets[p.app]; b != nil && p.healthy {
		if b.DisruptionsAllowed <= 0 {
			return drain.Answer{Result: drain.Refused, Message: "the budget does not allow it"}
		}
		now := *b
		now.DisruptionsAllowed, now.Disrupted = now.DisruptionsAllowed-1, now.Disrupted+1
		a.budgets[p.app] = &now
	}
	a.w.emit(podEvicted{p})
	a.terminate(p, p.Grace)
	return drain.Answer{Result: drain.Accepted}
}

// remove answers as the deletion of a pod does.
func (a *apps) remove(o drain.Order) drain.Answer {
	p := a.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if p.GraceEnds.IsZero() {
		a.w.emit(podDeleted{p})
	}
	grace := p.Grace
	if o.Now || p.Finished {
		grace = 0
	}
	a.terminate(p, grace)
	return drain.Answer{Result: drain.Accepted}
}

// terminate ends a pod within its grace.
func (a *apps) terminate(p *pod, grace time.Duration) {
	if p.GraceEnds.IsZero() || grace == 0 {
		going := *p.Pod
		going.GraceEnds = a.w.clock.now.Add(grace)
		p.Pod = &going
		a.w.clock.after(a.w.upTo(grace), func() { a.ended(p, grace == 0) })
	}
	a.changed(p.node)
	a.soon()
}

// active counts the pods of a node that run and were not told to terminate.
func (a *apps) active(node string) (n int) {
	for _, p := range a.on(node) {
		if p.active() {
			n++
		}
	}
	return n
}

// lost removes the pods of a node whose VM is gone.
func (a *apps) lost(node string) {
	for _, p := range a.on(node) {
		a.ended(p, true)
	}
	a.w.volumes.lost(node)
}
