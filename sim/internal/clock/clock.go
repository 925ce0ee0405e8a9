package clock

import (
	"container/heap"
	"iter"
	"time"
)

// Clock is virtual time, with the scheduled timers and the tasks that are under way. Timers at the same
// instant run in a random order. New makes it. It is not safe for concurrent use.
type Clock struct {
	// SkipEmptyPauses makes tasks continue at once after a pause of no time. Otherwise timers that are
	// due at the same instant may run during such a pause.
	SkipEmptyPauses bool

	now     time.Time
	timers  timetable
	seq     uint64
	chance  func(n int) int // returns a number below n
	current *task           // the task that is running, or nil
	tasks   []*task
	idle    []*task // tasks that have ended, to be reused
	closed  bool
}

// New makes a clock that shows now. chance(n) returns a number from 0 to n-1: it orders the timers
// of an instant.
func New(now time.Time, chance func(n int) int) *Clock { return &Clock{now: now, chance: chance} }

// Now returns the time that the clock shows.
func (c *Clock) Now() time.Time { return c.now }

// Set makes the clock show another time. It runs no timers. The next Step runs one that is overdue.
func (c *Clock) Set(now time.Time) { c.now = now }

// timer calls do at an instant.
type timer struct {
	at    time.Time
	order int    // random, orders the timers of the same instant
	seq   uint64 // orders timers with the same order
	do    func()
}

// After makes Step call do once d has passed.
func (c *Clock) After(d time.Duration, do func()) {
	c.seq++
	heap.Push(&c.timers, timer{c.now.Add(max(d, 0)), c.chance(1 << 20), c.seq, do})
}

// Step runs the next timer, at the time at which it is due. It returns false if that is after until, or
// there is none.
func (c *Clock) Step(until time.Time) bool {
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

// task is a coroutine: nothing else runs until it pauses. Tasks are reused, because their stacks have
// grown already.
type task struct {
	yield func(time.Duration) bool
	next  func() (time.Duration, bool)
	stop  func()
	do    func() // nil: the task is idle
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

// Begin starts a task, and runs it up to its first pause.
func (c *Clock) Begin(do func()) {
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
func (c *Clock) resume(t *task) {
	before := c.current
	c.current = t
	d, _ := t.next()
	c.current = before
	if t.do == nil {
		c.idle = append(c.idle, t)
		return
	}
	if d >= 0 {
		c.After(d, func() { c.resume(t) })
	}
}

// parked is what a task yields if no timer is to resume it.
const parked = time.Duration(-1)

// Await calls do in a task of its own, and returns true when do has returned. If d passes before that,
// it returns false while do continues. Outside a task, and once the clock is closed, it just calls do.
func (c *Clock) Await(d time.Duration, do func()) bool {
	me := c.current
	if me == nil || c.closed {
		do()
		return true
	}
	returned, waits := false, false
	wake := func() {
		if waits {
			waits = false
			c.resume(me)
		}
	}
	c.Begin(func() {
		do()
		returned = true
		if waits {
			c.After(0, wake)
		}
	})
	if returned {
		return true
	}
	waits = true
	c.After(d, wake)
	me.yield(parked)
	waits = false
	return returned
}

// Close runs all tasks to their ends without letting time pass. No timer runs after that.
func (c *Clock) Close() {
	c.closed = true
	for _, t := range c.tasks {
		c.current = t
		for more := true; t.do != nil && more; {
			_, more = t.next()
		}
		t.stop()
	}
	c.current, c.tasks, c.idle, c.timers = nil, nil, nil, nil
}

// Pause suspends the current task for d. Outside a task it does nothing.
func (c *Clock) Pause(d time.Duration) {
	if c.current != nil && (d > 0 || !c.SkipEmptyPauses) {
		c.current.yield(d)
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
	case a.order != b.order:
		return a.order < b.order
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
