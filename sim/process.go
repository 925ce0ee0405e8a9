package sim

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/store"
)

// process is one life of a manager. What it knows is lost when it ends.
type process struct {
	w       *World
	manager *manager.Manager
	wakes   map[manager.Kind][]manager.Wake
	began   time.Time
	works   map[manager.Kind]manager.Reconciler
	queue   map[place]*item
	calls   int // to the outside
	killAt  int // the call at which it dies, or 0
	end     outcome
	dead    bool
	last    map[manager.Kind]time.Time // when the last change so far is delivered
}

// started: another process begins.
type started struct{ process *process }

type outcome int

const (
	spared outcome = iota
	killedBefore
	killedAfter
	killedLate // before the call, which is carried out nevertheless when time has passed
)

// place is an object by kind and key.
type place struct {
	kind manager.Kind
	key  object.Key
}

// item is an object that waits for a pass, or is in one.
type item struct {
	due      time.Time // zero: not
	ticket   int       // which of the planned passes counts
	running  bool
	failures int
	hold     time.Time // not before, after a pass that could not be finished
}

// start begins a process. The process sees what is stored at this moment, and looks at everything.
func (w *World) start() error {
	p := &process{
		w: w, began: w.clock.now, queue: map[place]*item{}, last: map[manager.Kind]time.Time{},
		wakes: map[manager.Kind][]manager.Wake{}, works: map[manager.Kind]manager.Reconciler{},
	}
	o := w.o.Manager
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler) // Options.Tell is this world's
	}
	if o.SafetyPolicy == nil { // see New
		o.SafetyPolicy = safety.Off()
	}
	o.Machines, o.Sets, o.Deployments = open(p, w.machines), open(p, w.sets), open(p, w.deployments)
	o.Classes, o.Secrets = open(p, w.classes), open(p, w.secrets)
	o.Driver = driver.Intercept(collected{w.o.Driver(w), w}, p.step)
	p.keepPools(&o)
	o.Now, o.Each, o.Hooks = w.managerNow, p.each, p.hooks()
	if err := p.join(&o); err != nil {
		return err
	}
	o.Jitter = func(d time.Duration) time.Duration { return d + w.upTo(d/10) }
	m, err := manager.New(o)
	if err != nil {
		return err
	}
	p.manager = m
	w.emit(started{p})
	for _, wake := range m.Wakes() {
		p.wakes[wake.From] = append(p.wakes[wake.From], wake)
	}
	for _, r := range m.Reconcilers() {
		p.works[r.Kind()] = r
	}
	if w.kills < w.o.Faults.Kills && !w.faultsStopped {
		w.kills++
		p.killAt = 1 + w.chance(max(w.o.Faults.KillWithin, 1))
		p.end = killedBefore + outcome(w.chance(2))
		if w.happens(w.o.Faults.Late) {
			p.end = killedLate
		}
	}
	for _, r := range m.Reconcilers() {
		if r.Kind().Fleet() {
			p.look(place{r.Kind(), manager.Fleet}, w.clock.now)
		}
	}
	if p.works[manager.KindClass] != nil {
		lookAll(p, manager.KindClass, w.classes)
		lookAll(p, manager.KindSecret, w.secrets)
	}
	lookAll(p, manager.KindDeployment, w.deployments)
	lookAll(p, manager.KindSet, w.sets)
	lookAll(p, manager.KindMachine, w.machines)
	lookAll(p, manager.KindPool, w.pools)
	return nil
}

// join gives a process its view of the cluster.
func (p *process) join(o *manager.Options) (err error) {
	if p.w.o.NoCluster {
		return nil
	}
	nodes := open(p, p.w.nodes)
	o.Cluster = cluster{nodes}
	o.Drainer, err = p.drainer(nodes, o.Now)
	return err
}

type cluster struct {
	nodes store.Collection[*machine.Node]
}

// Nodes implements manager.Cluster.
func (c cluster) Nodes() store.Collection[*machine.Node] { return c.nodes }

// open gives a process its view of a kind.
func open[T object.Object[T]](p *process, s *trackedStore[T]) *port[T] {
	out := &port[T]{p: p, trackedStore: s, cache: newCache(s.indexes, s.all())}
	s.notify = func(k object.Key, o T) {
		out.ahead++
		first := true
		p.deliver(s.kind, func() {
			var none T
			if first {
				first, out.ahead = false, out.ahead-1
			}
			before := out.cache.put(k, o)
			var old, new any
			if before != none {
				old = before
			}
			if o != none {
				new = o
			}
			if old != nil || new != nil {
				p.wake(s.kind, old, new)
			}
		})
	}
	return out
}

func lookAll[T object.Object[T]](p *process, kind manager.Kind, s *trackedStore[T]) {
	for _, o := range s.all() {
		p.look(place{kind, o.ObjectMeta().Key}, p.w.clock.now)
	}
}

// deliver brings a change to the caches after a while. Changes of a kind stay in order.
func (p *process) deliver(kind manager.Kind, show func()) {
	w := p.w
	at := w.clock.now.Add(w.upTo(w.o.Faults.CacheLag))
	if ends := w.outages[apiOf(kind)].ends; at.Before(ends) {
		at = ends
	}
	if at.After(w.clock.now) {
		w.count(ChangeDelayed)
	}
	if !at.After(p.last[kind]) {
		at = p.last[kind].Add(time.Microsecond) // at the same instant, chance would order them
	}
	p.last[kind] = at
	times := 1
	if w.happens(w.o.Faults.Repeat) {
		times = 2
		w.count(ChangeRepeated)
	}
	for range times {
		w.clock.after(at.Sub(w.clock.now), func() {
			if !p.dead {
				w.steps++
				show()
			}
		})
	}
}

func (p *process) wake(kind manager.Kind, old, new any) {
	for _, wake := range p.wakes[kind] {
		for _, key := range wake.Keys(context.Background(), old, new) {
			p.look(place{wake.To, key}, p.w.clock.now.Add(wake.Settle))
		}
	}
}

// look plans a pass over an object, unless one is planned for an earlier time.
func (p *process) look(at place, due time.Time) {
	i := p.queue[at]
	if i == nil {
		i = &item{}
		p.queue[at] = i
	}
	if due.Before(i.hold) {
		due = i.hold
	}
	if !i.due.IsZero() && !due.Before(i.due) {
		return
	}
	i.due = due
	p.plan(at, i)
}

func (p *process) plan(at place, i *item) {
	if i.running || i.due.IsZero() {
		return // it is planned again when the pass ends
	}
	i.ticket++
	ticket := i.ticket
	p.w.clock.after(i.due.Sub(p.w.clock.now), func() {
		if !p.dead && i.ticket == ticket && !i.running {
			p.w.clock.begin(func() { p.pass(at, i) })
		}
	})
}

// pass runs one pass of an object's reconciler.
func (p *process) pass(at place, i *item) {
	i.running, i.due, i.hold = true, time.Time{}, time.Time{}
	result, err := p.reconcile(at)
	i.running = false
	if p.dead {
		return
	}
	p.w.passes++
	now := p.w.clock.now
	if err != nil {
		i.failures = min(i.failures+1, 12)
		pause := min(200*time.Millisecond<<i.failures, 3*time.Minute)
		i.hold = now.Add(min(pause, 5*time.Second))
		if i.due.Before(i.hold) {
			i.due = time.Time{}
		}
		p.look(at, now.Add(pause))
		p.plan(at, i)
		return
	}
	i.failures = 0
	next := now.Add(p.w.o.resync())
	if !result.At.IsZero() {
		next = result.At.Add(-p.w.skew)
	}
	if next.Before(now) {
		next = now
	}
	p.look(at, next)
	p.plan(at, i)
}

// reconcile makes a pass. A pass that panics is a violation, and ends its process.
func (p *process) reconcile(at place) (manager.Result, error) {
	result, err := p.works[at.kind].Reconcile(context.Background(), at.key)
	if errors.Is(err, manager.ErrPanicked) {
		p.dead = true
		p.w.violate(RulePanicked, "%v", err)
	}
	return result, err
}

// each carries out a batch of orders in a random order.
func (p *process) each(_ context.Context, n int, do func(int)) {
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		i := p.w.chance(len(left))
		do(left[i])
		left = append(left[:i], left[i+1:]...)
	}
}

func (p *process) outcome() outcome {
	if p.killAt == 0 || p.calls != p.killAt {
		return spared
	}
	return p.end
}

// kill ends the process, and starts another after a while.
func (p *process) kill() {
	w := p.w
	w.emit(interrupted{})
	p.dead = true
	w.Mark(history.Kill, "manager killed")
	if p.end == killedAfter {
		w.count(KilledAfter)
	} else {
		w.count(KilledBefore)
	}
	w.clock.after(w.upTo(w.o.Faults.Restart), w.restart)
}

// restart begins another process, once both APIs can fill its caches.
func (w *World) restart() {
	for a := range apiCount {
		if w.down(a) {
			w.clock.after(w.outages[a].ends.Sub(w.clock.now), w.restart)
			return
		}
	}
	if err := w.start(); err != nil {
		w.violate(RuleStarted, "a manager does not start again: %v", err)
	}
}
