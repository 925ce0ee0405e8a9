package store_test

import (
	"context"
	"fmt"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
	"github.com/millwright-go/millwright/store/storetest"
)

var noContext = context.Background()

type change = store.Change[*storetest.Object]

// consumer reads one change of a watch with each call of step, and checks it against the earlier ones.
type consumer struct {
	t      require.TestingT
	next   func() (change, error, bool)
	stop   func()
	cancel context.CancelFunc
	seen   map[object.Key]*storetest.Object
}

func consume(t require.TestingT, m *memory) *consumer {
	ctx, cancel := context.WithCancel(noContext)
	next, stop := iter.Pull2(m.Watch(ctx))
	return &consumer{
		t: t, next: next, stop: stop, cancel: cancel,
		seen: map[object.Key]*storetest.Object{},
	}
}

func watch(t *testing.T, m *memory) *consumer {
	c := consume(t, m)
	t.Cleanup(c.stop)
	return c
}

// step takes one change, which must come in time.
func (c *consumer) step() change {
	timer := time.AfterFunc(10*time.Second, c.cancel)
	defer timer.Stop()
	got, err, ok := c.next()
	require.True(c.t, ok, "no change comes")
	require.NoError(c.t, err)
	switch {
	case got.New == nil:
		require.NotNil(c.t, got.Old)
		require.Same(c.t, c.seen[got.Old.Key], got.Old)
		delete(c.seen, got.Old.Key)
	default:
		require.True(c.t, c.seen[got.New.Key] == got.Old, "Old is not what came last")
		c.seen[got.New.Key] = got.New
	}
	return got
}

// settle takes changes until the consumer knows exactly these objects.
func (c *consumer) settle(objects []*storetest.Object) {
	for !c.knows(objects) {
		c.step()
	}
}

func (c *consumer) knows(objects []*storetest.Object) bool {
	for _, o := range objects {
		if c.seen[o.Key] != o {
			return false
		}
	}
	return len(c.seen) == len(objects)
}

func all(t require.TestingT, m *memory) []*storetest.Object {
	objects, err := m.List(noContext, store.Query{})
	require.NoError(t, err)
	return objects
}

func TestWatchMergesChangesOfOneObject(t *testing.T) {
	m := newMemory()
	first := create(t, m, machine("a"))
	w := watch(t, m)
	require.Equal(t, change{New: first}, w.step())
	last := first
	for range 100 {
		last = update(t, m, last, func(o *storetest.Object) { o.Spec.Replicas++ })
	}
	b := create(t, m, machine("b"))
	require.Equal(t, change{Old: first, New: last}, w.step())
	require.Equal(t, change{New: b}, w.step())
	require.NoError(t, m.Intact())
}

// There are more objects than fit in one batch, and changes between two batches.
func TestWatchBatches(t *testing.T) {
	const fleet = 1000
	m := newMemory()
	for i := range fleet {
		create(t, m, machine(fmt.Sprint("a", i)))
	}
	w := watch(t, m)
	for i := range 300 {
		w.step()
		if i%10 == 0 {
			o, err := m.Get(noContext, machine(fmt.Sprint("a", (i*37)%fleet)).Key)
			require.NoError(t, err)
			update(t, m, o, func(o *storetest.Object) { o.Spec.Replicas++ })
		}
		require.NoError(t, m.Intact())
	}
	w.settle(all(t, m))
	require.Len(t, w.seen, fleet)
}

// One watch is not read while another is. However many objects are created and removed meanwhile, the
// log keeps no more tombstones than the unread watch has delivered objects.
func TestSlowWatchCostsWhatItHasSeen(t *testing.T) {
	m := newMemory()
	const early = 10
	for i := range early {
		create(t, m, machine(fmt.Sprint("early", i)))
	}
	slow, fast := watch(t, m), watch(t, m)
	slow.settle(all(t, m))
	fast.settle(all(t, m))
	for i := range 2000 {
		o := create(t, m, machine(fmt.Sprint("a", i)))
		if i%2 == 0 {
			fast.settle(all(t, m))
		}
		o = update(t, m, o, func(o *storetest.Object) { o.Spec.Replicas++ })
		require.NoError(t, m.Delete(noContext, o.Key, o.UID))
		if i%3 == 0 {
			fast.settle(all(t, m))
		}
		if i < early {
			require.NoError(t, m.Delete(noContext, machine(fmt.Sprint("early", i)).Key, ""))
		}
		_, gone := m.Tracked()
		require.LessOrEqual(t, gone, early+2)
	}
	fast.settle(nil)
	_, gone := m.Tracked()
	require.Equal(t, early, gone, "tombstones that the slow watch still has to read")
	require.Equal(t, early, m.Seen())
	slow.settle(nil)
	entries, _ := m.Tracked()
	require.Zero(t, entries)
}

// When a watch ends, the tombstones that only it had to read are dropped.
func TestEndedWatchLeavesNothing(t *testing.T) {
	m := newMemory()
	for i := range 10 {
		create(t, m, machine(fmt.Sprint("a", i)))
	}
	one, two := watch(t, m), watch(t, m)
	one.settle(all(t, m))
	two.settle(all(t, m))
	for i := range 10 {
		require.NoError(t, m.Delete(noContext, machine(fmt.Sprint("a", i)).Key, ""))
	}
	one.stop()
	require.NoError(t, m.Intact())
	_, gone := m.Tracked()
	require.Equal(t, 10, gone)
	two.stop()
	require.NoError(t, m.Intact())
	entries, _ := m.Tracked()
	require.Zero(t, entries)
}

// TestChangeLog starts, reads and ends watches in random order between random writes. The changeLog
// stays in order and bounded, and each watch reaches what is stored.
func TestChangeLog(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		m, peak := newMemory(), 0
		var consumers []*consumer
		defer func() {
			for _, c := range consumers {
				c.stop()
			}
		}()
		name := rapid.SampledFrom([]string{"a", "b", "c", "d", "e"})
		pick := func(t *rapid.T) int {
			if len(consumers) == 0 {
				t.Skip("no watch")
			}
			return rapid.IntRange(0, len(consumers)-1).Draw(t, "watch")
		}
		t.Repeat(map[string]func(*rapid.T){
			"write": func(t *rapid.T) {
				k := machine(name.Draw(t, "name")).Key
				if o, err := m.Get(noContext, k); err == nil {
					update(t, m, o, func(o *storetest.Object) { o.Spec.Replicas++ })
				} else {
					create(t, m, machine(k.Name))
				}
			},
			"delete": func(t *rapid.T) { _ = m.Delete(noContext, machine(name.Draw(t, "name")).Key, "") },
			"begin": func(t *rapid.T) {
				if len(consumers) < 4 {
					consumers = append(consumers, consume(t, m))
				}
			},
			"read": func(t *rapid.T) {
				if c := consumers[pick(t)]; !c.knows(all(t, m)) {
					c.step()
				}
			},
			"catch up": func(t *rapid.T) { consumers[pick(t)].settle(all(t, m)) },
			"end": func(t *rapid.T) {
				i := pick(t)
				consumers[i].stop()
				consumers = append(consumers[:i:i], consumers[i+1:]...)
			},
			"": func(t *rapid.T) {
				require.NoError(t, m.Intact())
				entries, gone := m.Tracked()
				peak = max(peak, entries-gone)
				require.LessOrEqual(t, gone, peak*len(consumers))
			},
		})
		for _, c := range consumers {
			c.settle(all(t, m))
			require.NoError(t, m.Intact())
		}
	})
}
