package sim

import (
	"container/heap"
	"iter"
	"time"
)

// clock is virtual time and the timers that are due. Timers at the same instant happen in a random
// order.
type clock struct {
	now    time.Time
	timers timetable
	seq    uint64
	chance func(n int) int // returns a number below n
	within *task           // the one that is running, or nil
	brisk  bool            // tasks continue at once if a pause takes no time
	tasks  []*task
	idle   []*task
}

// timer is something to do at an instant.
type timer struct {
	at   time.Time
	luck int
	seq  uint64
	do   func()
}

// after schedules do to run once d has passed.
func (c *clock) after(d time.Duration, do func()) {
	c.seq++
	heap.Push(&c.timers, timer{c.now.Add(max(d, 0)), c.chance(1 << 20), c.seq, do})
}

// step runs the next timer. It returns false if none is due up to a time.
func (c *clock) step(until time.Time) bool {
	if len(c.timers) == 0 || c.timers[0].at.After(until) {
		return false
	}
	e := heap.Pop(&c.timers).(timer)
	if e.at.After(c.now) {
		c.now = e.at
	}
	e.do()
	return true
}

// task is a pass that is under way. It runs alone until it pauses. Tasks are reused, because their
// stacks have grown already.
type task struct {
	yield func(time.Duration) bool
	next  func() (time.Duration, bool)
	stop  func()
	do    func() // nil: it is idle
}

func newTask() *task {
	t := &task{}
	t.next, t.stop = iter.Pull(func(yield func(time.Duration) bool) {
		t.yield = yield
		for more := true; more; more = yield(0) {
			t.do()
			t.do = nil
		}
	})
	return t
}

// begin starts a task. The task runs up to its first pause at once.
func (c *clock) begin(do func()) {
	var t *task
	if last := len(c.idle) - 1; last >= 0 {
		t, c.idle = c.idle[last], c.idle[:last]
	} else {
		t = newTask()
		c.tasks = append(c.tasks, t)
	}
	t.do = do
	c.resume(t)
}

// resume runs a task up to its next pause or its end.
func (c *clock) resume(t *task) {
	before := c.within
	c.within = t
	d, _ := t.next()
	c.within = before
	if t.do == nil {
		c.idle = append(c.idle, t)
		return
	}
	c.after(d, func() { c.resume(t) })
}

// end runs all tasks to their ends without letting time pass. Nothing happens after that.
func (c *clock) end() {
	for _, t := range c.tasks {
		c.within = t
		for more := true; t.do != nil && more; {
			_, more = t.next()
		}
		t.stop()
	}
	c.within, c.tasks, c.idle, c.timers = nil, nil, nil, nil
}

// pause gives other tasks time d to run. Outside a task it does nothing.
func (c *clock) pause(d time.Duration) {
	if c.within != nil && (d > 0 || !c.brisk) {
		c.within.yield(d)
	}
}

// timetable is a heap of timers, the next one first.
type timetable []timer

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
func (t *timetable) Push(x any) { *t = append(*t, x.(timer)) }

// Pop implements heap.Interface.
func (t *timetable) Pop() any {
	last := len(*t) - 1
	e := (*t)[last]
	(*t)[last] = timer{}
	*t = (*t)[:last]
	return e
}

// since keeps the time since when something is so.
func since(t *time.Time, now time.Time, is bool) {
	switch {
	case !is:
		*t = time.Time{}
	case t.IsZero():
		*t = now
	}
}
