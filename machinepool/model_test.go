package machinepool_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

var start = time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)

// world has one pool, its provider, its cluster and the maker of its bootstrap data. It makes no decisions.
type world struct {
	now    time.Time
	policy *machinepool.Policy
	class  *machine.Class

	history []*machinepool.Pool // every version stored, the last one current
	gone    bool

	group   *group // nil: there is none
	groups  int    // how many were ever created
	numbers int    // how many instances were ever created
	nodes   map[string]*machine.Node
	boot    *machinepool.BootstrapAnswer
	config  bool                   // the object that makes the bootstrap data exists
	drains  map[string]time.Time   // when a node is empty that is being drained
	kept    []string               // instances of KeepNodes
	slow    time.Duration          // how long a node takes to become empty
	matches bool                   // nodes are found by the IDs they carry, as the manager does
	spell   func(id string) string // what a node carries as its provider ID; nil: the ID
	choose  machinepool.Features
	noDrain bool
	secret  string // version of the class's secrets
	// repairs: the provider keeps the size of the group and replaces each instance that is removed.
	repairs bool
	removed int // how many it has replaced
	// violation is the first forbidden thing that happened.
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

// store stores a new version of the pool.
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

// supply lets the provider create and remove instances until the group has its size.
func (w *world) supply() {
	if w.group == nil {
		return
	}
	w.group.ready = true
	for _, id := range w.ids() {
		if w.group.instances[id].Terminating {
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

// ready changes the Ready condition of an instance's node.
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

// carry carries an effect out at the provider, and records a violation if it is forbidden.
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
		return w.removeInstances(e.ProviderIDs, true)
	case *machinepool.ReportDrained:
		return w.removeInstances(e.ProviderIDs, false)
	case machinepool.ReplaceOne:
		return w.removeInstances([]string{e.ProviderID}, false)
	case machinepool.DeleteGroup:
		w.group = nil
		w.nodes = map[string]*machine.Node{}
	}
	return &machinepool.Group{}
}

// madeFrom returns what a group is made from that is created or updated for a pool.
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

// removeInstances removes instances, and with shrink lowers the target. It records a violation if one is
// removed undrained, or too many are.
func (w *world) removeInstances(ids []string, shrink bool) *machinepool.Group {
	for _, id := range ids {
		if w.group == nil || w.group.instances[id] == nil {
			continue
		}
		drained, begun := w.drains[id]
		if !w.noDrain && w.nodes[id] != nil && (!begun || w.now.Before(drained)) && w.inTime(id) {
			w.violated("%s is removed though it is not empty", id)
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
				w.violated("%s is removed, the target is now %d, wanted are %d", id, w.group.target, w.pool().Spec.Wanted())
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

// drain begins to drain the known nodes of the list, and answers which are empty. Each takes w.slow.
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

var states = func() *fsm.States[machinepool.Pool] {
	s, err := fsm.New(fsm.Pools()...)
	if err != nil {
		panic(err)
	}
	return s
}()

// changed returns the pool after a plan's write.
func changed(before *machinepool.Pool, plan *machinepool.Plan) *machinepool.Pool {
	after := before.Clone()
	switch write := plan.Write.(type) {
	case *machinepool.Update:
		after.Meta, after.Spec = write.Pool.CloneMeta(), write.Pool.Spec.Clone()
	case *machinepool.UpdateStatus:
		after.Status = write.Status.Clone()
	}
	return after
}

// ending is how a pass ended.
type ending int

const (
	waits ending = iota
	conflict
	died
	vanished
)

// shell is a process that carries out plans in a world. restart makes it forget what it knew.
type shell struct {
	w        *world
	group    *machinepool.Group // the last answer
	memory   machinepool.Memory
	failures int
	wait     machinepool.Plan // the last plan of the last pass

	// cached picks the version of the pool that a pass begins with.
	cached func(newest int) int
	// fault is called before each port call. An outcome is answered in its place.
	fault func(name string) *machine.Outcome
	// lie, if set, changes the provider's next answers about the group.
	lie func(*machinepool.Group)
	// kill is called before and after each port call.
	kill func() bool
	// onPlan, if set, is called with each plan.
	onPlan func(machinepool.Plan)
	// steps are the decisions of the last pass.
	steps  int
	writes int
	calls  []string
}

var errSpins = errors.New("the pass has no end")

// observe reads everything from caches.
func (s *shell) observe() *machinepool.Observation {
	w := s.w
	newest := len(w.history) - 1
	at := newest
	if s.cached != nil {
		at = min(max(0, s.cached(newest)), newest)
	}
	o := &machinepool.Observation{
		Pool: w.history[at], Class: w.class, Bootstrap: w.boot, NoDrain: w.noDrain,
		Failures: s.failures, Features: w.choose, Group: s.group, Memory: &s.memory, Secret: w.secret,
	}
	w.match(o)
	return o
}

// match puts the nodes of the pool's instances into an observation: with w.matches by the IDs they carry,
// as the manager does, otherwise all nodes, live.
func (w *world) match(o *machinepool.Observation) {
	if !w.matches {
		o.Nodes = w.nodes
		return
	}
	found, ids := map[string]*machine.Node{}, o.Pool.Spec.ProviderIDs
	var free []*machine.Node
	for _, of := range slices.Sorted(maps.Keys(w.nodes)) {
		n := w.nodes[of]
		if slices.Contains(ids, n.ProviderID) {
			found[n.ProviderID] = n
		} else {
			free = append(free, n)
		}
	}
	o.Nodes, o.Unmatched = found, nil
	if len(found) < len(ids) {
		o.Unmatched = machinepool.MatchNodes(ids, found, free)
	}
}

// pass makes one pass.
func (s *shell) pass() (ending, error) {
	o := s.observe()
	seen := map[string]bool{}
	for s.steps = 0; s.steps < 40; s.steps++ {
		plan, err := machinepool.Decide(o, s.w.policy, s.w.now)
		if err != nil {
			return waits, err
		}
		if s.onPlan != nil {
			s.onPlan(plan)
		}
		s.wait = plan
		switch {
		case plan.Write != nil:
			if plan.Effect != nil {
				return waits, errors.New("a plan with a write and an effect")
			}
			if end, err := s.write(o, plan); end != waits || err != nil {
				return end, err
			}
		case plan.Effect != nil:
			name := fmt.Sprintf("%T", plan.Effect)
			if seen[name] {
				return waits, fmt.Errorf("%s twice in a pass", name)
			}
			seen[name] = true
			if end := s.carry(o, plan.Effect); end != waits {
				return end, nil
			}
		default:
			return waits, nil
		}
	}
	return waits, errSpins
}

func (s *shell) write(o *machinepool.Observation, plan machinepool.Plan) (ending, error) {
	w := s.w
	if err := states.Fire(context.Background(), o.Pool, changed(o.Pool, &plan), o, plan.Move); err != nil {
		return waits, err
	}
	if s.killed() {
		return died, nil
	}
	s.writes++
	if w.gone {
		return vanished, nil
	}
	if o.Pool.Version != w.pool().Version {
		return conflict, nil
	}
	next := changed(w.pool(), &plan)
	w.store(next)
	if s.killed() {
		return died, nil
	}
	if w.gone {
		return vanished, nil
	}
	o.Pool, o.Fresh = next, true
	if _, ok := plan.Write.(*machinepool.Update); ok {
		w.match(o)
	}
	o.Announced = o.Announced || plan.Announces
	return waits, nil
}

// restart makes s a new process, which knows nothing of what the old one knew.
func (s *shell) restart() { s.group, s.memory, s.failures = nil, machinepool.Memory{}, 0 }

func (s *shell) killed() bool { return s.kill != nil && s.kill() }

func (s *shell) carry(o *machinepool.Observation, e machinepool.Effect) ending {
	name := fmt.Sprintf("%T", e)[len("machinepool."):]
	s.calls = append(s.calls, name)
	if s.killed() {
		return died
	}
	var fault *machine.Outcome
	if s.fault != nil {
		fault = s.fault(name)
	}
	s.answer(o, e, fault)
	if s.killed() {
		return died
	}
	o.Failures = s.failures
	return waits
}

// answer carries an effect out, or makes it fail, and puts the answer into the observation.
func (s *shell) answer(o *machinepool.Observation, e machinepool.Effect, fault *machine.Outcome) {
	w := s.w
	outcome := machine.Outcome{}
	var group *machinepool.Group
	if fault != nil {
		outcome = *fault
		group = &machinepool.Group{Outcome: outcome}
		s.failures++
	} else {
		s.failures = 0
	}
	if group == nil {
		group = w.carry(e, o.Pool)
	}
	switch e := e.(type) {
	case machinepool.ReadPool:
		o.Pool, o.Fresh = w.pool(), true
		w.match(o)
	case machinepool.GetGroup:
		if fault == nil {
			group = w.observed()
			if s.lie != nil {
				s.lie(group)
			}
		}
		s.memory.See(o.Pool, group)
		o.Group, o.Looked, s.group = group, true, group
	case *machinepool.DrainNodes:
		o.Drain = w.drain(e.Leaving, o.Nodes)
	case *machinepool.KeepNodes:
		o.Kept = s.keep(e.ProviderIDs, outcome)
	case machinepool.DeleteGroup:
		o.GroupDeleted = group
	case machinepool.RemoveBootstrap:
		w.config = w.config && fault != nil
		o.BootstrapDeleted = &outcome
	case machinepool.Renew:
		if fault == nil {
			boot := *w.boot
			boot.TokenExpires = e.Until
			w.boot, o.Bootstrap = &boot, &boot
		}
		o.Renewed = &outcome
	default:
		s.changed(o, e, group)
	}
}

func (s *shell) keep(ids []string, outcome machine.Outcome) *machine.Outcome {
	if outcome.Code == codes.OK {
		for _, id := range ids {
			delete(s.w.drains, id)
		}
		s.w.kept = append(s.w.kept, ids...)
	}
	return &outcome
}

// changed records the answer to a changing effect, and drops what was known of the group.
func (s *shell) changed(o *machinepool.Observation, e machinepool.Effect, answer *machinepool.Group) {
	o.Group, s.group = nil, nil
	switch e.(type) {
	case machinepool.CreateGroup:
		o.Created = answer
	case machinepool.UpdateGroup:
		o.Updated = answer
	case machinepool.ScaleGroup:
		o.Scaled = answer
	case *machinepool.RemoveInstances:
		o.Deleted = answer
	case machinepool.ReplaceOne:
		o.Replaced = answer
	case *machinepool.ReportDrained:
		o.Reported = answer
	}
}

// until makes passes at the times that plans ask for, while the world goes on between them, until
// the pool is settled or the time is up.
func (s *shell) until(limit time.Duration, between func()) error {
	end := s.w.now.Add(limit)
	for !s.w.gone && s.w.now.Before(end) {
		how, err := s.pass()
		if err != nil {
			return err
		}
		between()
		if how == died {
			s.restart()
		}
		next := s.w.now.Add(time.Second)
		if how == waits && s.wait.At.After(next) {
			next = s.wait.At
		}
		s.w.now = next
	}
	return nil
}

// settled reports whether the pool is as wanted.
func (w *world) settled() bool {
	p := w.pool()
	return p.Status.Phase == machinepool.PhaseRunning && w.group != nil && w.group.target == p.Spec.Wanted() &&
		len(w.group.instances) == int(w.group.target) && len(p.Status.Leaving) == 0 && slices.Equal(w.ids(), p.Spec.ProviderIDs) &&
		w.group.made.Equal(&machinepool.Applied{Template: p.Spec.Template, RollingUpdate: p.Spec.RollingUpdate})
}
