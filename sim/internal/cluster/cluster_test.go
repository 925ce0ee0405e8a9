package cluster_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/clock"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// world has two ready nodes and no randomness: each random time is the longest possible.
type world struct {
	*clock.Clock
	nodes  []*machine.Node
	faults cluster.Faults
	counts map[cluster.Fault]int
	events []any
}

func newWorld() *world {
	w := &world{
		Clock:  clock.New(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), func(int) int { return 0 }),
		counts: map[cluster.Fault]int{},
	}
	for _, name := range []string{"a", "b"} {
		n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}}}
		n.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True}}
		w.nodes = append(w.nodes, n)
	}
	return w
}

func (w *world) UpTo(d time.Duration) time.Duration { return d }
func (w *world) Happens(p float64) bool             { return p > 0 }
func (w *world) Faults() cluster.Faults             { return w.faults }
func (w *world) Stopped() bool                      { return false }
func (w *world) Count(f cluster.Fault)              { w.counts[f]++ }
func (w *world) Emit(event any)                     { w.events = append(w.events, event) }
func (w *world) Nodes() []*machine.Node             { return w.nodes }

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	for until := w.Now().Add(d); w.Step(until); {
	}
}

// last returns the last event of a type.
func last[T any](t *testing.T, w *world) (found T) {
	t.Helper()
	n := 0
	for _, e := range w.events {
		if e, ok := e.(T); ok {
			found, n = e, n+1
		}
	}
	require.Positive(t, n)
	return found
}

func order(p *drain.Pod) drain.Order { return drain.Order{Pod: p.Key, UID: p.UID} }

// TestEvictionTellsWhereTheVolumesAre: the event of an eviction has the states of the pod's volumes, for the
// invariants to follow.
func TestEvictionTellsWhereTheVolumesAre(t *testing.T) {
	w := newWorld()
	c := cluster.New(w)
	c.Start(cluster.App{Name: "db", Replicas: 1, Grace: 30 * time.Second, Volumes: 2})
	w.pass(time.Minute)
	require.Equal(t, 1, c.Healthy("db"))
	pods := c.On("a")
	require.Len(t, pods, 1)

	require.Equal(t, drain.Accepted, c.Evict(order(pods[0])).Result)
	evicted := last[cluster.PodEvicted](t, w)
	require.Equal(t, "a", evicted.Pod.Node)
	require.Len(t, evicted.Volumes, 2)
	for _, v := range evicted.Volumes {
		require.True(t, v.On("a"), v.Name)
		require.True(t, v.At.Attached, v.Name)
	}
	require.False(t, c.On("a")[0].GraceEnds.IsZero())

	w.nodes[0].Unschedulable = true
	w.pass(2 * time.Minute)
	require.Empty(t, c.On("a"))
	require.Empty(t, c.Attachments("a", nil))
	require.Len(t, c.Attachments("b", nil), 2)
	require.Equal(t, 1, c.Healthy("db"))
}

// TestBudgetIsCountedDown: an eviction uses up a disruption that the budget allows, until the controller
// counts again.
func TestBudgetIsCountedDown(t *testing.T) {
	w := newWorld()
	c := cluster.New(w)
	c.Start(cluster.App{Name: "shop", Replicas: 4, MinAvailable: 3, Grace: 30 * time.Second})
	w.pass(time.Minute)
	require.Equal(t, 4, c.Healthy("shop"))
	pods := append(c.On("a"), c.On("b")...)
	require.Len(t, pods, 4)

	require.Equal(t, drain.Accepted, c.Evict(order(pods[0])).Result)
	require.Equal(t, drain.Refused, c.Evict(order(pods[1])).Result)
	require.Equal(t, drain.Accepted, c.Evict(order(pods[0])).Result, "the pod is terminating already")
	require.Equal(t, int32(0), c.Budgets("apps")[0].DisruptionsAllowed)
	require.Empty(t, c.Budgets("elsewhere"))
	w.pass(time.Minute)
	require.Equal(t, drain.Accepted, c.Evict(order(pods[1])).Result, "another pod has replaced the first")
	require.Equal(t, drain.NotFound, c.Delete(order(pods[0])).Result)
}

// TestFinalizerKeepsAFinishedPod: a pod exists as a finished one until its finalizer is removed.
func TestFinalizerKeepsAFinishedPod(t *testing.T) {
	w := newWorld()
	w.faults = cluster.Faults{KeptPod: 1, KeptPodFor: time.Hour}
	c := cluster.New(w)
	c.Start(cluster.App{Name: "shop", Replicas: 1, Grace: 30 * time.Second})
	w.pass(time.Minute)
	pods := c.On("a")
	require.Len(t, pods, 1)
	require.Equal(t, drain.Accepted, c.Delete(order(pods[0])).Result)
	require.Equal(t, pods[0].Name, last[cluster.PodDeleted](t, w).Pod.Name)
	w.pass(time.Minute)
	kept := c.On("a")
	require.Equal(t, pods[0].UID, kept[0].UID)
	require.True(t, kept[0].Finished)
	require.False(t, kept[0].GraceEnds.IsZero())
	require.Equal(t, 1, w.counts[cluster.PodKept])
	w.pass(time.Hour)
	for _, p := range c.On("a") {
		require.NotEqual(t, pods[0].UID, p.UID)
	}
}
