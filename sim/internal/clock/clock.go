package clock

import (
	"container/heap"
	"iter"
	"time"
)

// Clock is virtual time, with the timers that are due and the tasks that are under way. Timers at
// the same instant run in a random order. New makes it. It is not safe for concurrent use.
type Clock struct {
	// Brisk makes tasks continue at once if a pause takes no time. Otherwise a pause lets others
	// run that are due at the same instant.
	Brisk bool

	now    time.Time
	timers timetable
	seq    uint64
	chance func(n int) int // returns a number below n
	within *task           // the one that is running, or nil
	tasks  []*task
	idle   []*task
	closed bool
}

// New makes a clock that shows now. chance(n) returns a number from 0 to n-1: it orders the timers
// of an instant.
func New(now time.Time, chance func(n int) int) *Clock { return &Clock{now: now, chance: chance} }

// Now is the time that the clock shows.
func (c *Clock) Now() time.Time { return c.now }

// Set makes the clock show another time. It runs no timer: one that is overdue then runs next.
func (c *Clock) Set(now time.Time) { c.now = now }

// timer is something to do at an instant.
type timer struct {
	at   time.Time
	luck int
	seq  uint64
	do   func()
}

// After schedules do to run once d has passed.
func (c *Clock) After(d time.Duration, do func()) {
	c.seq++
	heap.Push(&c.timers, timer{c.now.Add(max(d, 0)), c.chance(1 << 20), c.seq, do})
}

// Step runs the next timer, at the time at which it is due. It returns false if none is due up to
// until.
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

// Begin starts a task. The task runs up to its first pause at once.
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
	before := c.within
	c.within = t
	d, _ := t.next()
	c.within = before
	if t.do == nil {
		c.idle = append(c.idle, t)
		return
	}
	if d >= 0 {
		c.After(d, func() { c.resume(t) })
	}
}

// parked is what a task yields that is not resumed by time.
const parked = time.Duration(-1)

// Await calls do in a task of its own, and returns true when do has returned. It returns false if d
// passes before that, and do continues. Outside a task, and once the clock is closed, it just calls do.
func (c *Clock) Await(d time.Duration, do func()) bool {
	me := c.within
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

// Close runs all tasks to their ends without letting time pass. Nothing happens after that.
func (c *Clock) Close() {
	c.closed = true
	for _, t := range c.tasks {
		c.within = t
		for more := true; t.do != nil && more; {
			_, more = t.next()
		}
		t.stop()
	}
	c.within, c.tasks, c.idle, c.timers = nil, nil, nil, nil
}

// Pause gives other tasks time d to run. Outside a task it does nothing.
func (c *Clock) Pause(d time.Duration) {
	if c.within != nil && (d > 0 || !c.Brisk) {
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
