package sim

import (
	"container/heap"
	"iter"
	"time"
)

// clock is virtual time, and what is to happen when. Events at the same instant
// happen in an order left to chance.
type clock struct {
	now    time.Time
	events timetable
	seq    uint64
	chance func(n int) int // a number below n
	within *task           // the one that is running; nil: none is
}

// event is something that happens at an instant.
type event struct {
	at   time.Time
	luck int
	seq  uint64
	do   func()
}

// after has something happen once d has passed.
func (c *clock) after(d time.Duration, do func()) {
	c.seq++
	heap.Push(&c.events, event{c.now.Add(max(d, 0)), c.chance(1 << 20), c.seq, do})
}

// step lets the next event happen; false: there is none up to a time.
func (c *clock) step(until time.Time) bool {
	if len(c.events) == 0 || c.events[0].at.After(until) {
		return false
	}
	e := heap.Pop(&c.events).(event)
	if e.at.After(c.now) {
		c.now = e.at
	}
	e.do()
	return true
}

// task is a pass that is under way. It runs alone until it pauses.
type task struct{ yield func(time.Duration) bool }

// begin starts a task; it runs up to its first pause at once.
func (c *clock) begin(do func()) {
	t := &task{}
	next, _ := iter.Pull(func(yield func(time.Duration) bool) {
		t.yield = yield
		do()
	})
	var resume func()
	resume = func() {
		before := c.within
		c.within = t
		d, more := next()
		c.within = before
		if more {
			c.after(d, resume)
		}
	}
	resume()
}

// pause lets others go on for as long as d; outside a task it does nothing.
func (c *clock) pause(d time.Duration) {
	if c.within != nil {
		c.within.yield(d)
	}
}

// timetable is a heap of events, the next one first.
type timetable []event

func (t timetable) Len() int { return len(t) }

func (t timetable) Less(i, j int) bool {
	a, b := &t[i], &t[j]
	switch {
	case !a.at.Equal(b.at):
		return a.at.Before(b.at)
	case a.luck != b.luck:
		return a.luck < b.luck
	}
	return a.seq < b.seq
}

func (t timetable) Swap(i, j int) { t[i], t[j] = t[j], t[i] }

// Push implements heap.Interface.
func (t *timetable) Push(x any) { *t = append(*t, x.(event)) }

// Pop implements heap.Interface.
func (t *timetable) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = event{}
	*t = (*t)[:last]
	return e
}
