package sim

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// appControllers are the controllers of a world's workload, which keep the number of pods of each
// app, with the budgets. They behave as an API server and its controllers do.
type appControllers struct {
	*workload
	volumes *volumes
	nodes   *trackedStore[*machine.Node]
	number  int
	budgets map[string]*drain.Budget // by app, as their status says
}

func newAppControllers(g *ground, nodes *trackedStore[*machine.Node]) *appControllers {
	a := &appControllers{workload: &workload{ground: g}, nodes: nodes, budgets: map[string]*drain.Budget{}}
	a.volumes, a.reconcile = &volumes{workload: a.workload}, a.keep
	return a
}

// see follows the nodes. The cluster collects the pods of a node that is gone.
func (a *appControllers) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok {
		a.soon()
		if e.now == nil {
			a.lost(e.key.Name)
		}
	}
}

// start adds an app.
func (a *appControllers) start(app App) {
	a.apps = append(a.apps, app)
	if app.MinAvailable > 0 {
		labels := object.Selector{Labels: map[string]string{"app": app.Name}}
		a.budgets[app.Name] = &drain.Budget{
			Key: object.Key{Namespace: "apps", Name: app.Name}, Selector: &labels, Generation: 1, ObservedGeneration: 1,
			DesiredHealthy: int32(app.MinAvailable), ExpectedPods: int32(app.Replicas),
		}
	}
	a.keep()
}

// keep brings every app to its number, binds pods to nodes, and recounts the budgets, as
// controllers and scheduler do.
func (a *appControllers) keep() {
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
	a.volumes.look()
	for name, b := range a.budgets {
		now := *b
		now.CurrentHealthy, now.Disrupted, now.ExpectedPods = int32(a.healthy(name)), 0, int32(a.expected(name))
		now.DisruptionsAllowed = max(now.CurrentHealthy-now.DesiredHealthy, 0)
		a.budgets[name] = &now
	}
}

// tidy deletes the finished pods of an app whose pods have names of their own, as the
// controller of a StatefulSet does before it makes another of that name.
func (a *appControllers) tidy(app *App) {
	if app.Volumes == 0 || app.Work > 0 {
		return
	}
	for _, p := range slices.Clone(a.pods) {
		if p.app == app.Name && p.Finished && p.GraceEnds.IsZero() {
			a.terminate(p, 0)
		}
	}
}

// resize changes how many pods an app has. Surplus pods terminate as if a user had deleted them.
func (a *appControllers) resize(name string, n int) {
	for i := range a.apps {
		if app := &a.apps[i]; app.Name == name {
			app.Replicas = max(n, 0)
			a.soon()
		}
	}
}

func (a *appControllers) activeOf(app string) (n int) {
	for _, p := range a.pods {
		if p.app == app && p.active() {
			n++
		}
	}
	return n
}

// expected is how many pods a budget that names a number expects: one for each object, finished
// ones included, without those that were told to terminate.
func (a *appControllers) expected(app string) (n int) {
	for _, p := range a.pods {
		if p.app == app && p.GraceEnds.IsZero() {
			n++
		}
	}
	return n
}

// shed terminates surplus pods, the youngest first.
func (a *appControllers) shed(app *App) {
	for i := len(a.pods) - 1; i >= 0 && a.activeOf(app.Name) > app.Replicas; i-- {
		if p := a.pods[i]; p.app == app.Name && p.active() {
			a.terminate(p, p.Grace)
		}
	}
}

// grow makes the pods that are missing.
func (a *appControllers) grow(app *App) {
	if app.Volumes > 0 {
		for i := range app.Replicas {
			a.addNumbered(app, i)
		}
		return
	}
	for a.activeOf(app.Name) < app.Replicas {
		a.add(app)
	}
}

// addNumbered makes the pod of a number, unless one is there. The pods of a Job have names of their
// own, so another takes the place of one that has finished or is terminating.
func (a *appControllers) addNumbered(app *App, i int) {
	name := fmt.Sprintf("%s-%d", app.Name, i)
	if slices.ContainsFunc(a.pods, func(p *appPod) bool {
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

func (a *appControllers) add(app *App) {
	a.number++
	a.pods = append(a.pods, &appPod{app: app.Name, Pod: &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: fmt.Sprintf("%s-%d", app.Name, a.number)}, UID: fmt.Sprintf("pod-%d", a.number),
		Owner:  &object.Owner{Kind: "ReplicaSet", Name: app.Name, UID: "app-" + app.Name},
		Labels: map[string]string{"app": app.Name}, CreatedAt: a.Now(), Grace: app.Grace,
	}})
	if app.Work > 0 {
		a.pods[len(a.pods)-1].Owner.Kind = "Job"
	}
}

// bind puts a pod on the node with the fewest pods, among those that accept pods.
func (a *appControllers) bind(p *appPod) {
	best, fewest := "", 0
	for _, n := range a.nodes.all() {
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
	a.After(max(time.Second, a.appOf(p).Boot), func() { a.run(p) })
	a.volumes.look()
}

// run makes a pod healthy once it has its volumes.
func (a *appControllers) run(p *appPod) {
	switch {
	case !p.active() || !slices.Contains(a.pods, p):
	case !a.volumes.mounted(p):
		a.After(mountRetry, func() { a.run(p) })
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

// find returns the pod that an order means, or nil if that pod is gone or another one has its name.
func (a *appControllers) find(o drain.Order) *appPod {
	for _, p := range a.pods {
		if p.Key == o.Pod && p.UID == o.UID {
			return p
		}
	}
	return nil
}

// evict answers as the eviction API does. It asks the budgets and counts down what they allow until
// their controller counts again.
func (a *appControllers) evict(o drain.Order) drain.Answer {
	p := a.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if !p.GraceEnds.IsZero() || !p.healthy && p.node == "" {
		return drain.Answer{Result: drain.Accepted}
	}
	a.emit(evictionTried{p.bound()})
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
	a.emit(podEvicted{p.bound(), a.volumes.statesOf(p)})
	a.terminate(p, p.Grace)
	return drain.Answer{Result: drain.Accepted}
}

// remove answers as the deletion of a pod does.
func (a *appControllers) remove(o drain.Order) drain.Answer {
	p := a.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if p.GraceEnds.IsZero() {
		a.emit(podDeleted{p.bound()})
	}
	grace := p.Grace
	if o.Now || p.Finished {
		grace = 0
	}
	a.terminate(p, grace)
	return drain.Answer{Result: drain.Accepted}
}

// lost removes the pods of a node whose VM is gone.
func (a *appControllers) lost(node string) {
	for _, p := range a.on(node) {
		a.ended(p, true)
	}
	a.volumes.lost(node)
}

// These tell what is ordered of pods.
type (
	// evictionTried: an eviction was ordered. podEvicted: the pod was told to terminate. podDeleted:
	// its deletion was ordered, and it had not been told to terminate before.
	evictionTried struct{ pod boundPod }
	podEvicted    struct {
		pod     boundPod
		volumes []volumeState
	}
	podDeleted struct{ pod boundPod }
)
