package cluster

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Cluster holds apps with their pods, disruption budgets and volumes, and does what the controllers do.
// New makes it.
type Cluster struct {
	*workload
	volumes *volumes
	number  int                      // of pods created so far
	budgets map[string]*drain.Budget // by app
}

// New returns a cluster without apps.
func New(w World) *Cluster {
	c := &Cluster{workload: &workload{world: w}, budgets: map[string]*drain.Budget{}}
	c.volumes, c.reconcile = &volumes{workload: c.workload}, c.reconcileApps
	return c
}

// Watch sets the function that receives the name of each node whose pods have changed.
func (c *Cluster) Watch(changed func(node string)) { c.tell = changed }

// StopFaults detaches all stuck volumes.
func (c *Cluster) StopFaults() { c.volumes.stopFaults() }

// Start adds an app.
func (c *Cluster) Start(app App) {
	c.apps = append(c.apps, app)
	if app.MinAvailable > 0 {
		labels := object.Selector{Labels: map[string]string{"app": app.Name}}
		c.budgets[app.Name] = &drain.Budget{
			Key: object.Key{Namespace: "apps", Name: app.Name}, Selector: &labels, Generation: 1, ObservedGeneration: 1,
			DesiredHealthy: int32(app.MinAvailable), ExpectedPods: int32(app.Replicas),
		}
	}
	c.reconcileApps()
}

// reconcileApps brings every app to its number of pods, binds pods to nodes, attaches volumes, and
// updates the budgets, as the controllers and the scheduler do.
func (c *Cluster) reconcileApps() {
	for i := range c.apps {
		app := &c.apps[i]
		c.deleteFinished(app)
		c.createMissing(app)
		c.deleteSurplus(app)
	}
	for _, p := range c.pods {
		if p.node == "" && p.active() {
			c.bind(p)
		}
	}
	c.volumes.attachAndDetach()
	for name, b := range c.budgets {
		now := *b
		now.CurrentHealthy, now.Disrupted, now.ExpectedPods = int32(c.Healthy(name)), 0, int32(c.expected(name))
		now.DisruptionsAllowed = max(now.CurrentHealthy-now.DesiredHealthy, 0)
		c.budgets[name] = &now
	}
}

// deleteFinished deletes the finished pods of an app whose pods are numbered, as the controller of a
// StatefulSet does before it creates another pod with that name.
func (c *Cluster) deleteFinished(app *App) {
	if app.Volumes == 0 || app.Work > 0 {
		return
	}
	for _, p := range slices.Clone(c.pods) {
		if p.app == app.Name && p.Finished && p.GraceEnds.IsZero() {
			c.terminate(p, 0)
		}
	}
}

// Resize changes how many pods an app has. Surplus pods terminate as if a user had deleted them.
func (c *Cluster) Resize(name string, n int) {
	for i := range c.apps {
		if app := &c.apps[i]; app.Name == name {
			app.Replicas = max(n, 0)
			c.Soon()
		}
	}
}

func (c *Cluster) activeOf(app string) (n int) {
	for _, p := range c.pods {
		if p.app == app && p.active() {
			n++
		}
	}
	return n
}

// expected returns how many pods a budget with a fixed number expects: all pods that were not told to
// terminate, including finished ones.
func (c *Cluster) expected(app string) (n int) {
	for _, p := range c.pods {
		if p.app == app && p.GraceEnds.IsZero() {
			n++
		}
	}
	return n
}

// deleteSurplus tells surplus pods to terminate, the youngest first.
func (c *Cluster) deleteSurplus(app *App) {
	for i := len(c.pods) - 1; i >= 0 && c.activeOf(app.Name) > app.Replicas; i-- {
		if p := c.pods[i]; p.app == app.Name && p.active() {
			c.terminate(p, p.Grace)
		}
	}
}

// createMissing creates the missing pods.
func (c *Cluster) createMissing(app *App) {
	if app.Volumes > 0 {
		for i := range app.Replicas {
			c.addNumbered(app, i)
		}
		return
	}
	for c.activeOf(app.Name) < app.Replicas {
		c.add(app)
	}
}

// addNumbered creates the pod with a number, unless it exists. The pods of a Job have unique names, so
// the next pod need not wait until a finished or terminating one is gone.
func (c *Cluster) addNumbered(app *App, i int) {
	name := fmt.Sprintf("%s-%d", app.Name, i)
	if slices.ContainsFunc(c.pods, func(p *pod) bool {
		return p.app == app.Name && p.index == i && (app.Work == 0 || p.active())
	}) {
		return
	}
	c.add(app)
	last := c.pods[len(c.pods)-1]
	last.index = i
	p := last.Pod // may be changed, because nothing has seen it yet
	if p.Priority = int32(i % 2); app.Work == 0 {
		p.Name, p.Owner.Kind = name, "StatefulSet"
	}
	for v := range app.Volumes {
		p.Claims = append(p.Claims, fmt.Sprintf("%s-%d", name, v))
	}
}

func (c *Cluster) add(app *App) {
	c.number++
	c.pods = append(c.pods, &pod{app: app.Name, Pod: &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: fmt.Sprintf("%s-%d", app.Name, c.number)}, UID: fmt.Sprintf("pod-%d", c.number),
		Owner:  &object.Owner{Kind: "ReplicaSet", Name: app.Name, UID: "app-" + app.Name},
		Labels: map[string]string{"app": app.Name}, CreatedAt: c.world.Now(), Grace: app.Grace,
		ToleratesCordon: app.Tolerates,
	}})
	if app.Work > 0 {
		c.pods[len(c.pods)-1].Owner.Kind = "Job"
	}
}

// bind binds a pod to the node with the fewest pods, among those that accept it.
func (c *Cluster) bind(p *pod) {
	best, fewest := "", 0
	for _, n := range c.world.Nodes() {
		if !takesPods(n, p.ToleratesCordon) {
			continue
		}
		if here := len(c.on(n.Name)); best == "" || here < fewest {
			best, fewest = n.Name, here
		}
	}
	if best == "" {
		return
	}
	p.node = best
	c.changed(best)
	c.world.After(max(time.Second, c.appOf(p).Boot), func() { c.run(p) })
	c.volumes.attachAndDetach()
}

// run makes a pod healthy once it has its volumes.
func (c *Cluster) run(p *pod) {
	switch {
	case !p.active() || !slices.Contains(c.pods, p):
	case !c.volumes.mounted(p):
		c.world.After(mountRetry, func() { c.run(p) })
	default:
		p.healthy = true
		c.Soon()
		c.scheduleEnd(p)
	}
}

// mountRetry is how often a pod checks whether it has its volumes.
const mountRetry = 15 * time.Second

// takesPods reports whether a node accepts a pod. tolerates says that the pod tolerates cordons and taints.
func takesPods(n *machine.Node, tolerates bool) bool {
	ready := object.FindCondition(n.Conditions, machine.NodeReady)
	if n.Deleted() || ready == nil || ready.Status != object.True {
		return false
	}
	return tolerates || !n.Unschedulable && !slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Effect == object.NoSchedule })
}

// find returns the pod of an order, or nil if it is gone, even if another pod has its name.
func (c *Cluster) find(o drain.Order) *pod {
	for _, p := range c.pods {
		if p.Key == o.Pod && p.UID == o.UID {
			return p
		}
	}
	return nil
}

// Evict answers as the eviction API does. It respects the budgets, and counts down the disruptions that
// they allow until their controller counts again.
func (c *Cluster) Evict(o drain.Order) drain.Answer {
	p := c.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if !p.GraceEnds.IsZero() || !p.healthy && p.node == "" {
		return drain.Answer{Result: drain.Accepted}
	}
	c.world.Emit(EvictionTried{p.bound()})
	if p.Finished { // no budget applies
		c.terminate(p, 0)
		return drain.Answer{Result: drain.Accepted}
	}
	if b := c.budgets[p.app]; b != nil && p.healthy {
		if b.DisruptionsAllowed <= 0 {
			return drain.Answer{Result: drain.Refused, Message: "the budget does not allow it"}
		}
		now := *b
		now.DisruptionsAllowed, now.Disrupted = now.DisruptionsAllowed-1, now.Disrupted+1
		c.budgets[p.app] = &now
	}
	c.world.Emit(PodEvicted{p.bound(), c.volumes.statesOf(p)})
	c.terminate(p, p.Grace)
	return drain.Answer{Result: drain.Accepted}
}

// Delete answers as the deletion of a pod does.
func (c *Cluster) Delete(o drain.Order) drain.Answer {
	p := c.find(o)
	if p == nil {
		return drain.Answer{Result: drain.NotFound}
	}
	if p.GraceEnds.IsZero() {
		c.world.Emit(PodDeleted{p.bound()})
	}
	grace := p.Grace
	if o.Now || p.Finished {
		grace = 0
	}
	c.terminate(p, grace)
	return drain.Answer{Result: drain.Accepted}
}

// Lost ends the pods of a node that is gone or whose VM is gone, as a cluster's garbage collector does, and
// detaches its stuck volumes.
func (c *Cluster) Lost(node string) {
	for _, p := range c.on(node) {
		c.containersEnded(p, true)
	}
	c.volumes.lost(node)
}

// EvictionTried is the event that an eviction was ordered. It may be refused.
type EvictionTried struct{ Pod Pod }

// PodEvicted is the event that an eviction has told a pod to terminate. It has the states of the pod's
// volumes.
type PodEvicted struct {
	Pod     Pod
	Volumes []Volume
}

// PodDeleted is the event that a pod was ordered to be deleted, and had not been told to terminate before.
type PodDeleted struct{ Pod Pod }

// Budgets returns the budgets of a namespace.
func (c *Cluster) Budgets(namespace string) (out []*drain.Budget) {
	for _, app := range c.apps {
		if b := c.budgets[app.Name]; b != nil && b.Namespace == namespace {
			out = append(out, b)
		}
	}
	return out
}

// Detach answers as the deletion of an attachment does.
func (c *Cluster) Detach(attachment string) drain.Answer {
	for _, v := range c.volumes.all {
		if v.at == nil || v.at.Name != attachment {
			continue
		}
		c.world.Emit(DetachOrdered{v.state()})
		if v.at.DeletedAt.IsZero() {
			c.volumes.detach(v)
		}
		return drain.Answer{Result: drain.Accepted}
	}
	return drain.Answer{Result: drain.NotFound}
}

// Bound returns the volumes that are bound to claims.
func (c *Cluster) Bound(claims []object.Key) (out []*drain.Volume) {
	for _, v := range c.volumes.all {
		if slices.Contains(claims, v.Claim) {
			out = append(out, v.Volume)
		}
	}
	return out
}

// Attachments returns the attachments to a node, and those of the volumes with these names.
func (c *Cluster) Attachments(node string, names []string) []*drain.Attachment {
	out := []*drain.Attachment{}
	for _, v := range c.volumes.all {
		if v.on(node) || v.at != nil && slices.Contains(names, v.Name) {
			out = append(out, v.at)
		}
	}
	return out
}

// UsersOf returns the pods that use a volume, on any node.
func (c *Cluster) UsersOf(volume string) (pods []*drain.Pod) {
	for _, p := range c.pods {
		if slices.ContainsFunc(c.volumes.of(p), func(v *persistentVolume) bool { return v.Name == volume }) {
			pods = append(pods, p.Pod)
		}
	}
	return pods
}
