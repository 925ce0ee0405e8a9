package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
)

// clock is a time that only the test moves.
type clock struct{ at atomic.Int64 }

func (c *clock) now() time.Time          { return time.Unix(0, c.at.Load()).UTC() }
func (c *clock) forward(d time.Duration) { c.at.Add(int64(d)) }
func newClock() *clock                   { c := &clock{}; c.at.Store(1_800_000_000e9); return c }
func key(n int) object.Key               { return object.Key{Name: fmt.Sprint("m", n)} }

// popped takes the next key that is due, without waiting for one.
func popped(q *Queue) (object.Key, bool) {
	q.fire()
	q.mu.Lock()
	defer q.mu.Unlock()
	if it := q.pop(); it != nil {
		return it.key, true
	}
	return object.Key{}, false
}

// queueModel is a queue that is simple enough to be obviously correct.
type queueModel struct {
	*clock
	q       *Queue
	due     map[object.Key]time.Time // waiting or due; running keys too, if due again
	running map[object.Key]bool
	hold    map[object.Key]time.Time // the end of a pause after a failure
	urgent  map[object.Key]bool
}

func (m *queueModel) wants(k object.Key, at time.Time) {
	if held := m.hold[k]; held.After(at) && !m.running[k] {
		at = held
	}
	if old, ok := m.due[k]; !ok || at.Before(old) {
		m.due[k] = at
	}
}

func (m *queueModel) add(t *rapid.T) {
	k, at := key(rapid.IntRange(0, 4).Draw(t, "key")), m.now()
	m.q.Add(k)
	m.wants(k, at)
}

func (m *queueModel) addUrgent(t *rapid.T) {
	k, at := key(rapid.IntRange(0, 4).Draw(t, "key")), m.now()
	m.q.AddUrgent(k)
	m.wants(k, at)
	m.urgent[k] = true
}

func (m *queueModel) addAt(t *rapid.T) {
	k := key(rapid.IntRange(0, 4).Draw(t, "key"))
	at := m.now().Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "in")) * time.Second)
	m.q.AddAt(k, at)
	m.wants(k, at)
}

func (m *queueModel) take(t *rapid.T) {
	k, ok := popped(m.q)
	if !ok {
		for k, at := range m.due {
			if !m.running[k] && !at.After(m.now()) {
				t.Fatalf("%v is due and was not handed out", k)
			}
		}
		return
	}
	if at, wanted := m.due[k]; !wanted || at.After(m.now()) || m.running[k] {
		t.Fatalf("%v handed out: due %v, running %v", k, at, m.running[k])
	}
	for other := range m.urgent {
		if at, wanted := m.due[other]; wanted && !at.After(m.now()) && !m.running[other] && !m.urgent[k] {
			t.Fatalf("%v handed out before %v, which is urgent", k, other)
		}
	}
	delete(m.due, k)
	delete(m.hold, k)
	delete(m.urgent, k)
	m.running[k] = true
}

// working returns a key that a worker has.
func (m *queueModel) working() (object.Key, bool) {
	for n := range 5 {
		if m.running[key(n)] {
			return key(n), true
		}
	}
	return object.Key{}, false
}

func (m *queueModel) done(t *rapid.T) {
	k, ok := m.working()
	if !ok {
		return
	}
	var at time.Time
	if rapid.Bool().Draw(t, "later") {
		at = m.now().Add(time.Duration(rapid.IntRange(1, 10).Draw(t, "in")) * time.Second)
		m.wants(k, at)
	}
	m.q.Done(k, at)
	delete(m.running, k)
}

func (m *queueModel) fail(t *rapid.T) {
	k, ok := m.working()
	if !ok {
		return
	}
	wait := time.Duration(rapid.IntRange(1, 20).Draw(t, "pause")) * time.Second
	m.q.Fail(k, m.now().Add(wait))
	held := m.now().Add(min(wait, longestHold)) // a change waits for that long
	m.hold[k] = held
	if old, ok := m.due[k]; ok && old.Before(held) {
		m.due[k] = held
	}
	m.wants(k, m.now().Add(wait))
	delete(m.running, k)
}

// TestQueueAgainstModel: a key is with one worker at a time, and is handed out once, no matter how often it was
// added; urgent keys first; never before it is due, and not during the pause after a failure. It is never forgotten.
func TestQueueAgainstModel(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newClock()
		m := &queueModel{
			clock: c, q: NewQueue(c.now), due: map[object.Key]time.Time{},
			running: map[object.Key]bool{}, hold: map[object.Key]time.Time{}, urgent: map[object.Key]bool{},
		}
		defer m.q.Close()
		t.Repeat(map[string]func(*rapid.T){
			"add": m.add, "addUrgent": m.addUrgent, "addAt": m.addAt, "take": m.take, "done": m.done, "fail": m.fail,
			"time passes": func(t *rapid.T) {
				c.forward(time.Duration(rapid.IntRange(1, 5).Draw(t, "s")) * time.Second)
			},
		})
	})
}

// TestQueueIsFair: the key that was added first is handed out first, however often others are added.
func TestQueueIsFair(t *testing.T) {
	q := NewQueue(newClock().now)
	defer q.Close()
	for n := range 3 {
		q.Add(key(n))
	}
	for round := range 30 {
		k, ok := popped(q)
		require.True(t, ok)
		require.Equal(t, key(round%3), k)
		q.Add(k) // while a worker has it
		q.Done(k, time.Time{})
	}
}

// TestUrgentKeysAreNext: an urgent key is the next one among 1,000 others, even if it was one of them.
func TestUrgentKeysAreNext(t *testing.T) {
	q := NewQueue(newClock().now)
	defer q.Close()
	for n := range 1000 {
		q.Add(key(n))
	}
	for _, n := range []int{2000, 999, 0} {
		q.AddUrgent(key(n))
		require.Equal(t, key(n), must(q.Next()))
	}
	require.Equal(t, 998, q.Depth())
	for n := 1; n < 999; n++ {
		require.Equal(t, key(n), must(q.Next()))
	}
	require.Zero(t, q.Depth())
}

func must(k object.Key, ok bool) object.Key {
	if !ok {
		panic("the queue is closed")
	}
	return k
}

// TestQueueManyWorkers: with real workers, no key is with two at a time, and each is handed out after it was last
// added.
func TestQueueManyWorkers(t *testing.T) {
	const keys, rounds = 20, 200
	q := NewQueue(time.Now)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	defer context.AfterFunc(ctx, q.Close)()
	var busy, added, seen [keys]atomic.Int64
	var workers, missing sync.WaitGroup
	missing.Add(keys)
	for range 8 {
		workers.Go(func() {
			for {
				k, ok := q.Next()
				if !ok {
					return
				}
				var n int
				_, _ = fmt.Sscanf(k.Name, "m%d", &n)
				if busy[n].Add(1) != 1 {
					t.Errorf("%v is worked on twice", k)
				}
				if was := seen[n].Swap(added[n].Load()); was != rounds && seen[n].Load() == rounds {
					missing.Done()
				}
				busy[n].Add(-1)
				q.Done(k, time.Time{})
			}
		})
	}
	for range rounds {
		for n := range keys {
			added[n].Add(1)
			if n%2 == 0 {
				q.AddAt(key(n), time.Now().Add(time.Microsecond))
				continue
			}
			q.Add(key(n))
		}
	}
	missing.Wait()
	q.Close()
	workers.Wait()
	require.NoError(t, ctx.Err(), "a key was never worked on after it was last added")
}

func TestBackoffDoublesUpToItsBound(t *testing.T) {
	require.Equal(t, firstPause, Backoff(0))
	require.Equal(t, firstPause, Backoff(1))
	require.Equal(t, 2*firstPause, Backoff(2))
	require.Equal(t, lastPause, Backoff(1000))
}
