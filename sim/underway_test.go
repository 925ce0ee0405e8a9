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

// TestEarlierOrdersAreExcused: a machine becomes available while an order to delete machines of its set is
// under way, and its set deletes it later (P7). That is excused if the order is from before that moment, and
// no process has worked for long enough since then to withdraw it. The times of events count in seconds from
// the moment at which the machine becomes available. The last event is the deletion.
// Invariants: P7
func TestEarlierOrdersAreExcused(t *testing.T) {
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
	del := func(*World) {} // the test asks below whether the deletion is excused
	for name, c := range map[string]struct {
		events  []event
		excused bool
	}{
		"at once":                                    {[]event{{20, del}}, true},
		"after a while":                              {[]event{{31, del}}, false},
		"after a kill":                               {[]event{{8, kill}, {100, start}, {108, del}}, true},
		"after two kills":                            {[]event{{8, kill}, {50, start}, {60, kill}, {200, start}, {208, del}}, true},
		"a while after a kill":                       {[]event{{8, kill}, {100, start}, {131, del}}, false},
		"by a late call of a dead process":           {[]event{{8, kill}, {100, del}}, true},
		"by the next process, the first one knew":    {[]event{{35, kill}, {40, start}, {45, del}}, false},
		"by the third process, the first one knew":   {[]event{{35, kill}, {40, start}, {45, kill}, {50, start}, {55, del}}, false},
		"by a late call of a dead process that knew": {[]event{{35, kill}, {40, del}}, false},
		"just after an outage":                       {[]event{{8, stop(100 * time.Second)}, {118, del}}, true},
		"just after an outage, known before it":      {[]event{{35, stop(100 * time.Second)}, {145, del}}, false},
		"ordered since":                              {[]event{{8, kill}, {100, start}, {104, order}, {108, del}}, false},
		"ordered since by a late call":               {[]event{{8, kill}, {60, late}, {100, start}, {108, del}}, true},
		"ordered a moment later":                     {[]event{{3, order}, {20, del}}, true},
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

// sized returns a set of so many machines.
func sized(n int32) *machineset.Set {
	return &machineset.Set{Meta: object.Meta{UID: "set"}, Spec: machineset.Spec{Replicas: n}}
}

// TestTurnRecordedByALateCall: a process evicts a pod with volumes, and dies. Its call that records the turn
// is carried out later. The next process may have read the node before that, and may have ordered the
// eviction of the next pod. That order is excused for as long as it may be under way (P22). at is the time
// between the late call and the next eviction.
// Invariants: P22
func TestTurnRecordedByALateCall(t *testing.T) {
	for name, c := range map[string]struct {
		dead    bool
		at      time.Duration
		excused bool
	}{
		"at once":                          {true, time.Second, true},
		"after a while":                    {true, 31 * time.Second, false},
		"at once, and the caller is alive": {false, time.Second, false},
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

// evicted returns the event of the eviction of a pod from the node "node", to which its volume has been
// attached for long.
func evicted(name string) cluster.PodEvicted {
	p := cluster.Pod{Node: "node", Pod: &drain.Pod{
		Key: object.Key{Namespace: "apps", Name: name}, UID: name, Grace: 30 * time.Second, Claims: []string{name},
	}}
	at := &drain.Attachment{Name: name, Volume: "pv-" + name, Node: p.Node, Attached: true}
	return cluster.PodEvicted{Pod: p, Volumes: []cluster.Volume{{Name: at.Volume, At: at}}}
}
