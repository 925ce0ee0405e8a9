package sim

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// runner runs the reconcilers of one process. What it knows is lost when the process ends.
type runner struct {
	*process
	shown  *managerClock
	wakes  map[manager.Kind][]manager.Wake
	works  map[manager.Kind]manager.Reconciler
	queue  map[queueKey]*item
	last   map[manager.Kind]time.Time // when the last change so far is delivered
	resync time.Duration
}

// queueKey is an object by kind and key.
type queueKey struct {
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

// openPort gives a process its view of a kind.
func openPort[T object.Object[T]](p *runner, s *trackedStore[T]) *port[T] {
	out := &port[T]{p: p.process, trackedStore: s, cache: newCache(s.indexes, s.all())}
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

func lookAll[T object.Object[T]](p *runner, kind manager.Kind, s *trackedStore[T]) {
	for _, o := range s.all() {
		p.look(queueKey{kind, o.ObjectMeta().Key}, p.Now())
	}
}

// deliver brings a change to the caches after a while. Changes of a kind stay in order.
func (p *runner) deliver(kind manager.Kind, show func()) {
	at := p.Now().Add(p.upTo(p.hazards.CacheLag))
	if ends := p.outages[apiOf(kind)].ends; at.Before(ends) {
		at = ends
	}
	if at.After(p.Now()) {
		p.count(ChangeDelayed)
	}
	if !at.After(p.last[kind]) {
		at = p.last[kind].Add(time.Microsecond) // at the same instant, chance would order them
	}
	p.last[kind] = at
	times := 1
	if p.happens(p.hazards.Repeat) {
		times = 2
		p.count(ChangeRepeated)
	}
	for range times {
		p.After(at.Sub(p.Now()), func() {
			if !p.dead {
				p.steps++
				show()
			}
		})
	}
}

func (p *runner) wake(kind manager.Kind, old, new any) {
	for _, wake := range p.wakes[kind] {
		for _, key := range wake.Keys(context.Background(), old, new) {
			p.look(queueKey{wake.To, key}, p.Now().Add(wake.Settle))
		}
	}
}

// look plans a pass over an object, unless one is planned for an earlier time.
func (p *runner) look(at queueKey, due time.Time) {
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

func (p *runner) plan(at queueKey, i *item) {
	if i.running || i.due.IsZero() {
		return // it is planned again when the pass ends
	}
	i.ticket++
	ticket := i.ticket
	p.After(i.due.Sub(p.Now()), func() {
		if !p.dead && i.ticket == ticket && !i.running {
			p.clock.Begin(func() { p.pass(at, i) })
		}
	})
}

// pass runs one pass of an object's reconciler.
func (p *runner) pass(at queueKey, i *item) {
	i.running, i.due, i.hold = true, time.Time{}, time.Time{}
	result, err := p.reconcile(at)
	i.running = false
	if p.dead {
		return
	}
	p.passes++
	now := p.Now()
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
	next := now.Add(p.resync)
	if !result.At.IsZero() {
		next = result.At.Add(-p.shown.skew)
	}
	if next.Before(now) {
		next = now
	}
	p.look(at, next)
	p.plan(at, i)
}

// reconcile makes a pass. A pass that panics is a violation, and ends its process.
func (p *runner) reconcile(at queueKey) (manager.Result, error) {
	result, err := p.works[at.kind].Reconcile(context.Background(), at.key)
	if errors.Is(err, manager.ErrPanicked) {
		p.dead = true
		p.violate(RulePanicked, "%v", err)
	}
	if errors.Is(err, engine.ErrUnexplained) {
		p.violate("P44", "%v", err)
	}
	return result, err
}

// each carries out a batch of orders in a random order.
func (p *runner) each(_ context.Context, n int, do func(int)) {
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		i := p.chance(len(left))
		do(left[i])
		left = append(left[:i], left[i+1:]...)
	}
}
