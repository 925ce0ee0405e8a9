package drain_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// epoch has a fraction of a second, as real times do.
var epoch = time.Date(2026, 5, 4, 6, 30, 0, 250e6, time.UTC)

const here, there = "node-1", "node-2"

// pod is a pod of the model. Its first fields say how it will behave.
type pod struct {
	drain.Pod
	lasts       time.Duration // from the request to terminate until the pod ends; 0: its grace
	stuck       bool          // the pod never ends, not even when it is killed (a finalizer)
	ends        time.Time     // when the pod ends; zero: nobody requested it to terminate
	objectStays time.Duration // how long the object of a finished pod stays; 0: the pod is removed without finishing
	ended       bool          // the pod finished because it was requested to terminate
	gone        time.Time     // when the pod finished, or its object was removed; zero: it runs
	// returns: the controller creates another pod, which is bound to this node in spite of the cordon.
	returns bool
}

// unhealthy reports whether budgets do not count the pod as healthy.
func (p *pod) unhealthy() bool { return p.Pending || p.NotReady }

// budget is a disruption budget with the pods it counts.
type budget struct {
	drain.Budget
	elsewhere int32         // healthy pods on other nodes
	lag       time.Duration // from a change of a pod to the status that counts it
	heals     time.Duration // from a pod's end to its healthy replacement; 0: never
	frozen    bool          // no controller computes the status
	update    time.Time     // when the status will be computed; zero: nothing is due
}

// event is something that happens in the cluster at a time.
type event struct {
	at time.Time
	do func()
}

// call is one call that the cluster answered.
type call struct {
	at       time.Time
	kind     drain.Kind
	uid      string
	name     string
	result   drain.Result
	finished bool // the pod had finished before the call
}

// cluster is an API server with the controllers that matter here: it evicts as
// policy/v1 documents it.
type cluster struct {
	now         time.Time
	node        *machine.Node
	pods        []*pod
	budgets     []*budget
	volumes     []*drain.Volume
	attachments []*drain.Attachment
	events      []event
	calls       []call
	writes      int

	noEviction          bool
	fails               func(kind drain.Kind, name string) bool
	detachAfterPodEnd   time.Duration // from a pod's end to the detachment; negative: never
	reattachAfterDetach time.Duration // from the detachment to the attachment elsewhere; negative: never
	serial              int
}

func newCluster() *cluster {
	return &cluster{now: epoch, detachAfterPodEnd: 10 * time.Second, reattachAfterDetach: 5 * time.Second, node: &machine.Node{
		Meta:       object.Meta{Key: object.Key{Name: here}, UID: "node-uid", Version: "1"},
		Conditions: []object.Condition{{Type: machine.NodeReady, Status: object.True, Since: epoch.Truncate(time.Second)}},
	}}
}

func (c *cluster) uid(prefix string) string {
	c.serial++
	return fmt.Sprintf("%s-%d", prefix, c.serial)
}

// add adds a pod that runs on the node.
func (c *cluster) add(name string, change ...func(*pod)) *pod {
	p := &pod{Pod: drain.Pod{
		Key: object.Key{Namespace: "default", Name: name}, UID: c.uid(name), Grace: 30 * time.Second,
		CreatedAt: c.now.Add(-time.Hour).Truncate(time.Second),
		Labels:    map[string]string{"app": name},
		Owner:     &object.Owner{Kind: "ReplicaSet", Name: name, UID: "owner-" + name},
	}}
	for _, f := range change {
		f(p)
	}
	c.pods = append(c.pods, p)
	for _, b := range c.budgets {
		if b.Selects(&p.Pod) {
			c.compute(b)
		}
	}
	return p
}

// volume returns a change that gives a pod volumes, which are attached to the node.
func (c *cluster) volume(names ...string) func(*pod) {
	return func(p *pod) {
		for _, name := range names {
			p.Claims = append(p.Claims, "claim-"+name)
			if slices.ContainsFunc(c.volumes, func(v *drain.Volume) bool { return v.Name == name }) {
				continue
			}
			c.volumes = append(c.volumes, &drain.Volume{
				Name: name, Claim: object.Key{Namespace: p.Namespace, Name: "claim-" + name}, Driver: "disk.example", Handle: "zone-a/" + name,
			})
			c.attachments = append(c.attachments, &drain.Attachment{Name: "att-" + name, Volume: name, Node: here, Attached: true})
		}
	}
}

// protect gives a budget to the pods with the label app=name. It wants a number of healthy pods (desired), and
// counts those on other nodes (elsewhere) besides those here.
func (c *cluster) protect(name string, desired, elsewhere int32, change ...func(*budget)) *budget {
	b := &budget{elsewhere: elsewhere, heals: 20 * time.Second, lag: 2 * time.Second, Budget: drain.Budget{
		Key: object.Key{Namespace: "default", Name: name}, Generation: 1, DesiredHealthy: desired,
		Selector: &object.Selector{Labels: map[string]string{"app": name}},
	}}
	for _, f := range change {
		f(b)
	}
	c.budgets = append(c.budgets, b)
	c.compute(b)
	return b
}

// healthy returns the true number of healthy pods. The budget's status reports it late.
func (c *cluster) healthy(b *budget) int32 {
	n := b.elsewhere
	for _, p := range c.pods {
		if b.Selects(&p.Pod) && p.ends.IsZero() && !p.Finished && !p.unhealthy() {
			n++
		}
	}
	return n
}

// compute does what the disruption controller does.
func (c *cluster) compute(b *budget) {
	if b.frozen {
		return
	}
	b.ObservedGeneration, b.Disrupted, b.update = b.Generation, 0, time.Time{}
	b.CurrentHealthy = c.healthy(b)
	b.ExpectedPods = max(b.ExpectedPods, b.CurrentHealthy)
	b.DisruptionsAllowed = max(b.CurrentHealthy-b.DesiredHealthy, 0)
}

// recomputeBudgetsOf has the status of the pod's budgets computed after their lag.
func (c *cluster) recomputeBudgetsOf(p *pod) {
	for _, b := range c.budgets {
		if b.Selects(&p.Pod) && b.update.IsZero() {
			b.update = c.now.Add(b.lag)
			c.at(b.lag, func() { c.compute(b) })
		}
	}
}

// at schedules an event.
func (c *cluster) at(after time.Duration, do func()) {
	c.events = append(c.events, event{c.now.Add(after), do})
}

// next returns the time of the next event. Zero: there is none.
func (c *cluster) next() time.Time {
	var first time.Time
	for _, e := range c.events {
		if first.IsZero() || e.at.Before(first) {
			first = e.at
		}
	}
	return first
}

// advance lets time pass, and makes all due events happen.
func (c *cluster) advance(to time.Time) {
	for {
		at := c.next()
		if at.IsZero() || at.After(to) {
			break
		}
		i := slices.IndexFunc(c.events, func(e event) bool { return e.at.Equal(at) })
		e := c.events[i]
		c.events = slices.Delete(c.events, i, i+1)
		if e.at.After(c.now) {
			c.now = e.at
		}
		e.do()
	}
	if to.After(c.now) {
		c.now = to
	}
}

func (c *cluster) find(uid string) *pod {
	for _, p := range c.pods {
		if p.UID == uid {
			return p
		}
	}
	return nil
}

// call carries out one order about a pod.
func (c *cluster) call(kind drain.Kind, o drain.Order) drain.Answer {
	a := drain.Answer{Kind: kind, At: c.now}
	p := c.find(o.UID)
	finished := p != nil && p.Finished
	switch {
	case c.fails != nil && c.fails(kind, o.Pod.Name):
		a.Result, a.Message = drain.Failed, "the API server has a headache"
	case p == nil:
		a.Result = drain.NotFound
	case kind == drain.Evicted:
		c.evict(p, &a)
	case kind == drain.Killed:
		a.Result = drain.Accepted
		c.terminate(p, 0)
	default:
		a.Result = drain.Accepted
		c.terminate(p, p.Grace)
	}
	c.calls = append(c.calls, call{c.now, kind, o.UID, o.Pod.Name, a.Result, finished})
	return a
}

// evict follows the rules of policy/v1. No budget is checked for a pod that is terminating, finished or pending.
// Several budgets are an error. A pod that is not ready is evicted if the budget's policy or its numbers allow it,
// and does not reduce the allowance. A budget with a stale status refuses with Retry-After. Every other eviction
// reduces the allowance at once.
func (c *cluster) evict(p *pod, a *drain.Answer) {
	var applies []*budget
	for _, b := range c.budgets {
		if b.Selects(&p.Pod) {
			applies = append(applies, b)
		}
	}
	unchecked := !p.GraceEnds.IsZero() || p.Finished || p.Pending
	a.Result = drain.Refused
	switch {
	case c.noEviction:
		a.Result = drain.NoEvictionAPI
	case unchecked || len(applies) == 0:
		a.Result = drain.Accepted
		c.terminate(p, p.Grace)
	case len(applies) > 1:
		a.Result, a.Message = drain.Failed, "the pod has more than one budget"
	case p.NotReady && (applies[0].AlwaysAllow || applies[0].DesiredHealthy > 0 && applies[0].CurrentHealthy >= applies[0].DesiredHealthy):
		a.Result = drain.Accepted
		c.terminate(p, p.Grace)
	case applies[0].Stale():
		a.RetryAfter = 10 * time.Second
	case applies[0].DisruptionsAllowed > 0:
		applies[0].DisruptionsAllowed--
		applies[0].Disrupted++
		a.Result = drain.Accepted
		c.terminate(p, p.Grace)
	}
}

// terminate starts the termination of a pod. A repeated request can only shorten its time.
func (c *cluster) terminate(p *pod, grace time.Duration) {
	ends := c.now.Add(grace)
	if p.GraceEnds.IsZero() || ends.Before(p.GraceEnds) {
		p.GraceEnds = ends.Truncate(time.Second)
	}
	if p.stuck {
		p.ends = ends
		c.recomputeBudgetsOf(p)
		return
	}
	gone, end := ends, c.end
	if grace == 0 {
		end = c.remove // without a grace, the object goes at once
	} else if p.lasts > 0 {
		gone = c.now.Add(p.lasts)
	}
	if p.returns && p.ends.IsZero() && p.Owner.Kind != "StatefulSet" {
		c.at(time.Second, func() { c.comeBack(p) })
	}
	if p.ends.IsZero() || gone.Before(p.ends) || grace == 0 && p.Finished {
		p.ends = gone
		c.recomputeBudgetsOf(p)
		c.events = append(c.events, event{gone, func() { end(p) }})
	}
}

// end does what a kubelet does when the containers of a deleted pod have ended: the pod finishes,
// and its object goes a moment later.
func (c *cluster) end(p *pod) {
	if p.objectStays == 0 || p.Finished {
		c.remove(p)
		return
	}
	p.Finished, p.ended, p.gone = true, true, c.now
	c.at(p.objectStays, func() { c.remove(p) })
}

// remove removes the object of a pod. Later its volumes move, and its replacement becomes healthy.
func (c *cluster) remove(p *pod) {
	i := slices.Index(c.pods, p)
	if i < 0 {
		return
	}
	c.pods = slices.Delete(c.pods, i, i+1)
	if p.gone.IsZero() {
		p.gone = c.now
	}
	c.recomputeBudgetsOf(p)
	if p.returns && p.Owner.Kind == "StatefulSet" {
		c.at(time.Second, func() { c.comeBack(p) })
	}
	for _, b := range c.budgets {
		if b.Selects(&p.Pod) && b.heals > 0 {
			c.at(b.heals, func() { b.elsewhere++; c.recomputeBudgetsOf(p) })
		}
	}
	for _, v := range c.volumes {
		claimed := v.Claim.Namespace == p.Namespace && slices.Contains(p.Claims, v.Claim.Name)
		if claimed && c.detachAfterPodEnd >= 0 && !c.used(v.Name) {
			c.at(c.detachAfterPodEnd, func() { c.moveVolume(v.Name) })
		}
	}
}

// comeBack creates the next pod of an old pod's controller, on this node and with the same volumes.
func (c *cluster) comeBack(old *pod) {
	c.add(old.Name, func(p *pod) {
		p.Key, p.Labels, p.Owner, p.Grace, p.Claims, p.ToleratesCordon = old.Key, old.Labels, old.Owner, old.Grace, old.Claims, old.ToleratesCordon
		p.CreatedAt, p.lasts, p.returns = c.now.Truncate(time.Second), old.lasts, true
	})
	for _, v := range c.volumes {
		if slices.Contains(old.Claims, v.Claim.Name) {
			c.attachments = slices.DeleteFunc(c.attachments, func(a *drain.Attachment) bool { return a.Volume == v.Name })
			c.attachments = append(c.attachments, &drain.Attachment{Name: "att-" + v.Name, Volume: v.Name, Node: here, Attached: true})
		}
	}
}

// used reports whether a pod here uses a volume.
func (c *cluster) used(volume string) bool {
	return slices.ContainsFunc(c.pods, func(p *pod) bool { return !p.Finished && slices.Contains(p.Claims, "claim-"+volume) })
}

// moveVolume detaches a volume that no pod here uses, and attaches it elsewhere.
func (c *cluster) moveVolume(volume string) {
	if c.used(volume) {
		return
	}
	before := len(c.attachments)
	c.attachments = slices.DeleteFunc(c.attachments, func(a *drain.Attachment) bool { return a.Volume == volume && a.Node == here })
	if len(c.attachments) == before || c.reattachAfterDetach < 0 {
		return
	}
	c.at(c.reattachAfterDetach, func() {
		c.attachments = append(c.attachments, &drain.Attachment{Name: "new-" + volume, Volume: volume, Node: there, Attached: true})
	})
}
