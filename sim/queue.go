package sim

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// runner runs the reconcilers of one process. Its caches and queue are lost when the process ends.
type runner struct {
	*process
	skewedClock *managerClock
	wakes       map[manager.Kind][]manager.Wake
	reconcilers map[manager.Kind]manager.Reconciler
	queue       map[queueKey]*item
	last        map[manager.Kind]time.Time // when the last change of each kind is delivered
	resync      time.Duration
}

// queueKey is an object by kind and key.
type queueKey struct {
	kind manager.Kind
	key  object.Key
}

// item is an object that waits for a pass, or is in one.
type item struct {
	due      time.Time // when its next pass is due; zero: none is planned
	ticket   int       // number of the timer that counts; earlier timers are void
	running  bool
	failures int
	hold     time.Time // after a failed pass, the earliest time of the next one
}

// openPort returns a process's view of the objects of a kind, with a cache of its own.
func openPort[T object.Object[T]](p *runner, s *trackedStore[T]) *port[T] {
	out := &port[T]{p: p.process, trackedStore: s, cache: newCache(s.indexes, s.all())}
	s.notify = func(k object.Key, o T) {
		out.undelivered++
		first := true
		p.deliver(s.kind, func() {
			var none T
			if first {
				first, out.undelivered = false, out.undelivered-1
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

// planAll plans a pass over each object of a kind.
func planAll[T object.Object[T]](p *runner, kind manager.Kind, s *trackedStore[T]) {
	for _, o := range s.all() {
		p.planPass(queueKey{kind, o.ObjectMeta().Key}, p.Now())
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
		at = p.last[kind].Add(time.Microsecond) // events of the same instant happen in random order
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

// wake plans passes over the objects that a change concerns.
func (p *runner) wake(kind manager.Kind, old, new any) {
	for _, wake := range p.wakes[kind] {
		for _, key := range wake.Keys(context.Background(), old, new) {
			p.planPass(queueKey{wake.To, key}, p.Now().Add(wake.Settle))
		}
	}
}

// planPass plans a pass over an object, unless one is planned for an earlier time.
func (p *runner) planPass(at queueKey, due time.Time) {
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
	p.setTimer(at, i)
}

// setTimer starts the timer for the next pass over an object. Earlier timers become void.
func (p *runner) setTimer(at queueKey, i *item) {
	if i.running || i.due.IsZero() {
		return // pass calls setTimer when it ends
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
		p.planPass(at, now.Add(pause))
		p.setTimer(at, i)
		return
	}
	i.failures = 0
	next := now.Add(p.resync)
	if !result.At.IsZero() {
		next = result.At.Add(-p.skewedClock.skew)
	}
	if next.Before(now) {
		next = now
	}
	p.planPass(at, next)
	p.setTimer(at, i)
}

// reconcile makes a pass. A pass that panics is a violation, and ends its process.
func (p *runner) reconcile(at queueKey) (manager.Result, error) {
	result, err := p.reconcilers[at.kind].Reconcile(context.Background(), at.key)
	if errors.Is(err, manager.ErrPanicked) {
		p.dead = true
		p.violate(RulePanicked, "%v", err)
	}
	if errors.Is(err, engine.ErrUnexplained) {
		p.violate("P44", "%v", err)
	}
	return result, err
}

// each calls do for a batch of n orders, one after another, in a random order.
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
