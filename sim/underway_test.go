package sim

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// TestOrdersOfBefore has a machine become available while an order is under way, and its set take it
// later (P7). The order is excused if it is no newer than that, and no process has worked for long
// enough since then to take it back. at is when something happens, counted from the moment in which
// the machine becomes available; the last is when its set takes it.
// Invariants: P7
func TestOrdersOfBefore(t *testing.T) {
	type event struct {
		at time.Duration
		do func(*World)
	}
	kill := func(w *World) { w.process.kill() }
	start := func(w *World) { w.emit(processStarted{&process{base: w.base, began: w.Now()}}) }
	stop := func(d time.Duration) func(*World) { return func(w *World) { w.StopControl(d) } }
	order := func(w *World) { w.recordSet(sized(2)) }
	late := func(w *World) {
		w.belated = true
		w.recordSet(sized(2))
		w.belated = false
	}
	take := func(*World) {}
	for name, c := range map[string]struct {
		events  []event
		excused bool
	}{
		"at once":                              {[]event{{20, take}}, true},
		"after a while":                        {[]event{{31, take}}, false},
		"after a kill":                         {[]event{{8, kill}, {100, start}, {108, take}}, true},
		"after two kills":                      {[]event{{8, kill}, {50, start}, {60, kill}, {200, start}, {208, take}}, true},
		"a while after a kill":                 {[]event{{8, kill}, {100, start}, {131, take}}, false},
		"by a call of the dead":                {[]event{{8, kill}, {100, take}}, true},
		"by the next one, the last one knew":   {[]event{{35, kill}, {40, start}, {45, take}}, false},
		"by the third, the first one knew":     {[]event{{35, kill}, {40, start}, {45, kill}, {50, start}, {55, take}}, false},
		"by a call of the dead, which knew":    {[]event{{35, kill}, {40, take}}, false},
		"in an outage's wake":                  {[]event{{8, stop(100 * time.Second)}, {118, take}}, true},
		"in an outage's wake, and it is known": {[]event{{35, stop(100 * time.Second)}, {145, take}}, false},
		"ordered since":                        {[]event{{8, kill}, {100, start}, {104, order}, {108, take}}, false},
		"ordered since by the dead":            {[]event{{8, kill}, {60, late}, {100, start}, {108, take}}, true},
		"ordered a moment later":               {[]event{{3, order}, {20, take}}, true},
	} {
		w, err := New(Options{})
		require.NoError(t, err)
		ready := w.Now().Add(time.Hour)
		w.recordSet(sized(3))
		for _, e := range c.events {
			w.clock.Set(ready.Add(e.at * time.Second))
			e.do(w)
		}
		m := &machine.Machine{Meta: object.Meta{Owner: &object.Owner{Kind: machineset.OwnerKind, UID: "set"}}}
		require.Equal(t, c.excused, w.lateOrder(m, ready), name)
		w.Close()
	}
}

// sized is a set of so many machines.
func sized(n int32) *machineset.Set {
	return &machineset.Set{Meta: object.Meta{UID: "set"}, Spec: machineset.Spec{Replicas: n}}
}

// TestTurnRecordedByTheDead has a process tell a pod with volumes to go, and die. Its call that
// records the turn comes later. The next process may have read the node before that, and may then
// have ordered the eviction of the next pod. The order is excused for as long as it may be under way
// (P22). at is counted from when the call came.
// Invariants: P22
func TestTurnRecordedByTheDead(t *testing.T) {
	for name, c := range map[string]struct {
		dead    bool
		at      time.Duration
		excused bool
	}{
		"at once":                          {true, time.Second, true},
		"after a while":                    {true, 31 * time.Second, false},
		"at once, and the caller lives on": {false, time.Second, false},
	} {
		w, err := New(Options{})
		require.NoError(t, err)
		ctx, start := context.Background(), w.Now().Truncate(time.Second)
		n, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: "node"}}})
		require.NoError(t, err)
		told, next := evicted("a"), evicted("b")
		w.emit(told)
		w.clock.Set(start.Add(20 * time.Second))
		n = n.Clone()
		n.Drain = &machine.DrainRecord{Since: start, Turn: machine.DrainTurn{Pod: told.Pod.Key, UID: told.Pod.UID, Since: start}}
		w.belated = c.dead
		_, err = w.nodes.Update(ctx, n)
		require.NoError(t, err)
		w.belated = false
		w.clock.Set(w.Now().Add(c.at))
		w.emit(next)
		require.Equal(t, c.excused, len(w.Violations()) == 0, name)
		w.Close()
	}
}

// evicted is the eviction of a pod from the node "node". Its volume has been attached there for long.
func evicted(name string) cluster.PodEvicted {
	p := cluster.Pod{Node: "node", Pod: &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: name}, UID: name, Grace: 30 * time.Second, Claims: []string{name},
	}}
	at := &drain.Attachment{Name: name, Volume: "pv-" + name, Node: p.Node, Attached: true}
	return cluster.PodEvicted{Pod: p, Volumes: []cluster.Volume{{Name: at.Volume, At: at}}}
}
