package engine

import (
	"container/heap"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Queue hands out keys to workers: each key to one worker at a time, urgent keys first, and otherwise in the
// order in which they became due, however often they were added meanwhile. A
// key that is added while it is worked on is handed out once more afterwards. [Engine.Work] is a worker.
type Queue struct {
	now func() time.Time

	mu      sync.Mutex
	some    sync.Cond // a key is due, or the queue is closed
	closed  bool
	items   map[object.Key]*item
	urgent  fifo // due, and handed out before those of ready
	ready   fifo // due
	later   timeline
	timer   *time.Timer        // fires when the first of later is due
	failing map[object.Key]int // passes in a row that could not be finished

	due atomic.Int64 // how many keys are due
}

// item is a key that is due, waiting or being worked on.
type item struct {
	key     object.Key
	due     time.Time // while waiting
	at      int       // its place in the timeline, -1: not there
	ready   bool
	urgent  bool // when it is ready, it is among the urgent ones
	running bool
	again   bool // became due while running
	// notBefore is the end of the pause after a pass that could not be
	// finished: what the pass itself wrote must not make it due at once.
	notBefore time.Time
}

// longestHold bounds how long a change waits for the pause after a pass that
// could not be finished.
const longestHold = 5 * time.Second

// NewQueue returns an empty queue. now is its clock.
func NewQueue(now func() time.Time) *Queue {
	q := &Queue{now: now, items: make(map[object.Key]*item), failing: make(map[object.Key]int)}
	q.some.L = &q.mu
	return q
}

// Add makes a key due now.
func (q *Queue) Add(key object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.release(q.item(key))
}

// AddUrgent makes a key due now, before all others that are not urgent.
func (q *Queue) AddUrgent(key object.Key) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.item(key)
	if it.ready && !it.urgent {
		q.urgent.push(it) // pop ignores its place among the others
	}
	it.urgent = true
	q.release(it)
}

// AddAt makes a key due at a time, unless it is due earlier already.
func (q *Queue) AddAt(key object.Key, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	it := q.item(key)
	if it.ready || it.again || it.at >= 0 && !due.Before(it.due) {
		return
	}
	q.postpone(it, due)
}

// Next waits for a key that is due, and returns it. It returns false once the queue is closed.
func (q *Queue) Next() (object.Key, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for !q.closed {
		if it := q.pop(); it != nil {
			return it.key, true
		}
		q.some.Wait()
	}
	return object.Key{}, false
}

// pop takes the first key that is due. It returns nil if no key is due.
func (q *Queue) pop() *item {
	it := q.urgent.pop(func(it *item) bool { return it.ready })
	if it == nil {
		it = q.ready.pop(func(it *item) bool { return it.ready && !it.urgent })
	}
	if it == nil {
		return nil
	}
	it.ready, it.urgent, it.running = false, false, true
	q.due.Add(-1)
	return it
}

// fifo hands out items first in first out.
type fifo struct {
	items []*item // from head on
	head  int
}

func (f *fifo) push(it *item) {
	if f.head > 0 && len(f.items) == cap(f.items) {
		n := copy(f.items, f.items[f.head:])
		f.items, f.head = f.items[:n], 0
	}
	f.items = append(f.items, it)
}

// pop removes the first item that is wanted, and those before it. It returns nil if there is none.
func (f *fifo) pop(wanted func(*item) bool) *item {
	for f.head < len(f.items) {
		it := f.items[f.head]
		f.items[f.head] = nil
		f.head++
		if wanted(it) {
			return it
		}
	}
	f.items, f.head = f.items[:0], 0
	return nil
}

// fire makes due what has become due, and sets the timer for the next.
func (q *Queue) fire() {
	q.mu.Lock()
	defer q.mu.Unlock()
	now := q.now()
	for len(q.later) > 0 && !q.later[0].due.After(now) {
		q.release(q.later[0])
	}
	q.setTimer()
}

func (q *Queue) setTimer() {
	if q.closed || len(q.later) == 0 {
		return
	}
	wait := max(q.later[0].due.Sub(q.now()), time.Millisecond)
	if q.timer == nil {
		q.timer = time.AfterFunc(wait, q.fire)
		return
	}
	q.timer.Reset(wait)
}

// Close ends every worker when it is done with its key: Next returns false.
func (q *Queue) Close() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.closed = true
	if q.timer != nil {
		q.timer.Stop()
	}
	q.some.Broadcast()
}

// Done ends the work on a key. due says when it is to be looked at again;
// zero: only when it is added.
func (q *Queue) Done(key object.Key, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	delete(q.failing, key)
	q.end(key, due, time.Time{})
}

// Fail ends the work on a key that is to be tried again when due; zero: it is not. If the key is added
// before, it waits until then all the same, but no longer than longestHold.
func (q *Queue) Fail(key object.Key, due time.Time) {
	q.mu.Lock()
	defer q.mu.Unlock()
	pause := due
	if limit := q.now().Add(longestHold); due.After(limit) {
		pause = limit
	}
	q.end(key, due, pause)
}

func (q *Queue) end(key object.Key, due, notBefore time.Time) {
	it := q.items[key]
	if it == nil {
		return
	}
	it.running, it.notBefore = false, notBefore
	switch {
	case it.again:
		it.again = false
		q.release(it)
	case !due.IsZero() && (it.at < 0 || due.Before(it.due)):
		q.postpone(it, due)
	case it.at < 0:
		delete(q.items, key)
	}
}

func (q *Queue) item(key object.Key) *item {
	it := q.items[key]
	if it == nil {
		it = &item{key: key, at: -1}
		q.items[key] = it
	}
	return it
}

// release makes an item due, or remembers it for when its worker is done or
// its pause is over.
func (q *Queue) release(it *item) {
	if it.at >= 0 && (it.running || !q.now().Before(it.notBefore)) {
		heap.Remove(&q.later, it.at)
	}
	switch {
	case it.running:
		it.again = true
	case q.now().Before(it.notBefore):
		q.postpone(it, it.notBefore)
	case !it.ready:
		it.ready = true
		if it.urgent {
			q.urgent.push(it)
		} else {
			q.ready.push(it)
		}
		q.due.Add(1)
		q.some.Signal()
	}
}

func (q *Queue) postpone(it *item, due time.Time) {
	it.due = due
	if it.at >= 0 {
		heap.Fix(&q.later, it.at)
	} else {
		heap.Push(&q.later, it)
	}
	if q.later[0] == it {
		q.setTimer()
	}
}

// Failed counts a pass that could not be finished and returns how many there
// were in a row.
func (q *Queue) Failed(key object.Key) int {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.failing[key]++
	return q.failing[key]
}

// Depth returns how many keys are due.
func (q *Queue) Depth() int { return int(q.due.Load()) }

// timeline is a heap of items by due time.
type timeline []*item

func (t timeline) Len() int           { return len(t) }
func (t timeline) Less(i, j int) bool { return t[i].due.Before(t[j].due) }
func (t timeline) Swap(i, j int) {
	t[i], t[j] = t[j], t[i]
	t[i].at, t[j].at = i, j
}
func (t *timeline) Push(x any) {
	it := x.(*item)
	it.at = len(*t)
	*t = append(*t, it)
}
func (t *timeline) Pop() any {
	old := *t
	it := old[len(old)-1]
	old[len(old)-1] = nil
	*t = old[:len(old)-1]
	it.at = -1
	return it
}
