package machinepool_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world is one pool, its provider, its cluster and the maker of its bootstrap data. It makes no
// decisions.
type world struct {
	now    time.Time
	policy *machinepool.Policy
	class  *machine.Class

	history []*machinepool.Pool // every version stored, the last one current
	gone    bool

	group   *group // nil: there is none
	groups  int    // ever made
	numbers int    // of instances ever made
	nodes   map[string]*machine.Node
	boot    *machinepool.BootstrapAnswer
	config  bool // what makes the bootstrap data is there
	drains  map[string]time.Time
	kept    []string
	slow    time.Duration          // how long a node takes to become empty
	matches bool                   // nodes are matched by what they carry
	spell   func(id string) string // what a node carries as its provider ID; nil: the ID
	choose  machinepool.Features
	noDrain bool
	secret  string // version of the class's secrets
	// repairs: the provider keeps the size of the group and replaces each instance that is removed.
	repairs bool
	removed int // instances that it has replaced
	// violation is what must never happen, and did.
	violation string
}

// group is the provider's side of a pool.
type group struct {
	id        string
	target    int32
	instances map[string]*machinepool.Instance
	ready     bool
	failure   string
	made      machinepool.Applied
	updates   int
}

func newWorld() *world {
	secret := "boot"
	n := int32(3)
	p := &machinepool.Pool{
		Meta: object.Meta{
			Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "u1", Version: "1", Generation: 1, CreatedAt: start,
		},
		Spec: machinepool.Spec{
			ClusterName: "blue", Replicas: &n,
			Template: machinepool.Template{
				Class:     machine.ClassRef{Name: "small"},
				Bootstrap: machinepool.Bootstrap{Config: "kubeadm", DataSecret: &secret},
			},
		},
	}
	return &world{
		now: start, policy: machinepool.DefaultPolicy(), history: []*machinepool.Pool{p},
		class:  &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}, UID: "c1", Generation: 1}},
		nodes:  map[string]*machine.Node{},
		boot:   &machinepool.BootstrapAnswer{Ready: true, Found: true, TokenExpires: start.Add(15 * time.Minute)},
		config: true, drains: map[string]time.Time{},
		choose: machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true},
	}
}

func (w *world) pool() *machinepool.Pool { return w.history[len(w.history)-1] }

// store keeps a new version of the pool, as a store does.
func (w *world) store(p *machinepool.Pool) {
	old := w.pool()
	if !p.SpecEqual(old) {
		p.Generation = old.Generation + 1
	}
	p.Version = fmt.Sprint(len(w.history) + 1)
	w.history = append(w.history, p)
	w.gone = p.Deleted() && len(p.Finalizers) == 0
}

// edit changes the pool as a user does.
func (w *world) edit(change func(*machinepool.Pool)) {
	p := w.pool().Clone()
	change(p)
	w.store(p)
}

func (w *world) scaleTo(n int32) {
	w.edit(func(p *machinepool.Pool) { p.Spec.Replicas = &n })
}

func (w *world) roll(class string) {
	w.edit(func(p *machinepool.Pool) { p.Spec.Template.Class.Name = class })
}

func (w *world) remove() { w.edit(func(p *machinepool.Pool) { p.DeletedAt = w.now }) }

// supply lets the provider work: instances come and go until the group has its size.
func (w *world) supply() {
	if w.group == nil {
		return
	}
	w.group.ready = true
	for _, id := range w.ids() {
		if w.group.instances[id].Going {
			w.drop(id)
		}
	}
	for int32(len(w.group.instances)) < w.group.target {
		w.numbers++
		id := fmt.Sprintf("blue:///%d", w.numbers)
		w.group.instances[id] = &machinepool.Instance{ProviderID: id}
	}
	for ids := w.ids(); int32(len(ids)) > w.group.target; ids = ids[:len(ids)-1] {
		w.drop(ids[len(ids)-1])
	}
}

// drop removes an instance, and its node with it.
func (w *world) drop(id string) {
	delete(w.group.instances, id)
	delete(w.nodes, id)
	delete(w.drains, id)
}

func (w *world) ids() []string {
	if w.group == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(w.group.instances))
}

// join makes all instances ready nodes.
func (w *world) join() {
	for _, id := range w.ids() {
		if w.nodes[id] == nil {
			w.nodes[id] = w.newNode(id)
		}
	}
}

func (w *world) newNode(id string) *machine.Node {
	name := "node-" + id[strings.LastIndex(id, "/")+1:]
	carried := id
	if w.spell != nil {
		carried = w.spell(id)
	}
	return &machine.Node{
		Meta:       object.Meta{Key: object.Key{Name: name}, UID: "uid-" + name, CreatedAt: w.now},
		ProviderID: carried,
		Conditions: []object.Condition{{Type: machine.NodeReady, Status: object.True, Since: w.now.Truncate(time.Second)}},
	}
}

// ready changes whether a node is.
func (w *world) ready(id string, status object.ConditionStatus) {
	n := w.nodes[id].Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.NodeReady, Status: status, Since: w.now.Truncate(time.Second)})
	w.nodes[id] = n
}

func (w *world) advance(d time.Duration) { w.now = w.now.Add(d) }

// observed returns what GetGroup answers.
func (w *world) observed() *machinepool.Group {
	if w.group == nil {
		return &machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound, Message: "no such group"}, At: w.now}
	}
	g := &machinepool.Group{ID: w.group.id, Target: w.group.target, Ready: w.group.ready, Failure: w.group.failure, At: w.now}
	for _, id := range w.ids() {
		g.Instances = append(g.Instances, *w.group.instances[id])
	}
	return g
}

func (w *world) violated(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

// autoscaled reports whether the current pool's size is the provider's.
func (w *world) autoscaled() bool {
	return w.policy.Autoscaled || w.pool().Annotations[w.policy.Keys.Autoscaled] == "true"
}

// carry carries an effect out at the provider, and checks that no order does what it must not.
func (w *world) carry(e machinepool.Effect, of *machinepool.Pool) *machinepool.Group {
	wanted := w.pool().Spec.Wanted()
	notFound := &machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound, Message: "no such group"}}
	switch e := e.(type) {
	case machinepool.CreateGroup:
		return w.create(e, of, wanted)
	case machinepool.ScaleGroup:
		switch {
		case w.group == nil:
			return notFound
		case w.autoscaled():
			w.violated("scaled to %d, though the size is the provider's", e.To)
		case e.To > wanted && e.To > w.group.target:
			w.violated("scaled up to %d, wanted are %d", e.To, wanted)
		}
		w.group.target = e.To
	case machinepool.UpdateGroup:
		if w.group == nil {
			return notFound
		}
		w.group.updates++
		w.group.made = madeFrom(of)
	case *machinepool.RemoveInstances:
		return w.dismiss(e.ProviderIDs, true)
	case *machinepool.TellDrained:
		return w.dismiss(e.ProviderIDs, false)
	case machinepool.ReplaceOne:
		return w.dismiss([]string{e.ProviderID}, false)
	case machinepool.DeleteGroup:
		w.group = nil
		w.nodes = map[string]*machine.Node{}
	}
	return &machinepool.Group{}
}

// madeFrom is what a group follows that was made or updated for a pool.
func madeFrom(p *machinepool.Pool) machinepool.Applied {
	spec := p.Spec.Clone()
	return machinepool.Applied{Template: spec.Template, RollingUpdate: spec.RollingUpdate}
}

// create makes the group unless there is one.
func (w *world) create(e machinepool.CreateGroup, of *machinepool.Pool, wanted int32) *machinepool.Group {
	if w.group == nil {
		if e.Replicas > wanted {
			w.violated("made with %d instances, wanted are %d", e.Replicas, wanted)
		}
		w.groups++
		w.group = &group{id: fmt.Sprintf("g%d", w.groups), target: e.Replicas, instances: map[string]*machinepool.Instance{}}
		if of != nil {
			w.group.made = madeFrom(of)
		}
	}
	return &machinepool.Group{ID: w.group.id, LastKnown: "made"}
}

func (w *world) dismiss(ids []string, shrink bool) *machinepool.Group {
	for _, id := range ids {
		if w.group == nil || w.group.instances[id] == nil {
			continue
		}
		drained, begun := w.drains[id]
		if !w.noDrain && w.nodes[id] != nil && (!begun || w.now.Before(drained)) && w.inTime(id) {
			w.violated("%s goes though it is not empty", id)
		}
		w.drop(id)
		if w.repairs {
			w.removed++
			w.supply()
			continue
		}
		if shrink {
			w.group.target--
			if w.group.target < w.pool().Spec.Wanted() || w.autoscaled() {
				w.violated("%s goes, %d are left, wanted are %d", id, w.group.target, w.pool().Spec.Wanted())
			}
		}
	}
	return &machinepool.Group{}
}

// inTime reports whether a leaving instance still has time to be drained.
func (w *world) inTime(id string) bool {
	for _, l := range w.pool().Status.Leaving {
		if l.ProviderID == id {
			return !w.now.After(l.Since.Add(w.policy.DrainTimeout))
		}
	}
	return true
}

// drain drains nodes that are known, as long as that takes.
func (w *world) drain(list []machinepool.Leaving, nodes map[string]*machine.Node) *machinepool.DrainAnswer {
	a := &machinepool.DrainAnswer{Detail: "a pod is being evicted"}
	for _, l := range list {
		if nodes[l.ProviderID] == nil {
			continue
		}
		if _, begun := w.drains[l.ProviderID]; !begun {
			w.drains[l.ProviderID] = w.now.Add(w.slow)
		}
		if done := w.drains[l.ProviderID]; !w.now.Before(done) {
			a.Done = append(a.Done, l.ProviderID)
		} else if a.At.IsZero() || done.Before(a.At) {
			a.At = done
		}
	}
	return a
}
