package machine_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// disputed is an entry of a node that the library and another program set differently.
type disputed struct {
	what   string                   // its name in the warning
	ours   func(*machine.Node) bool // reports whether the node has our value
	theirs func(*machine.Node)      // sets the other program's value
}

var disputes = map[string]disputed{
	"label removed": {
		"label team", func(n *machine.Node) bool { return n.Labels["team"] == "a" }, func(n *machine.Node) { delete(n.Labels, "team") },
	},
	"label changed": {
		"label team", func(n *machine.Node) bool { return n.Labels["team"] == "a" }, func(n *machine.Node) { n.Labels["team"] = "b" },
	},
	"annotation removed": {
		"annotation note", func(n *machine.Node) bool { return n.Annotations["note"] == "a" }, func(n *machine.Node) { delete(n.Annotations, "note") },
	},
	"taint removed": {
		"taint agent-not-ready:NoSchedule", func(n *machine.Node) bool { return taintOf(n, "agent-not-ready") },
		func(n *machine.Node) {
			n.Taints = slices.DeleteFunc(n.Taints, func(t object.Taint) bool { return t.Key == "agent-not-ready" })
		},
	},
	"taint changed": {
		"taint agent-not-ready:NoSchedule",
		func(n *machine.Node) bool {
			return slices.Contains(n.Taints, object.Taint{Key: "agent-not-ready", Effect: object.NoSchedule})
		},
		func(n *machine.Node) {
			n.Taints = slices.DeleteFunc(n.Taints, func(t object.Taint) bool { return t.Key == "agent-not-ready" })
			n.Taints = append(n.Taints, object.Taint{Key: "agent-not-ready", Value: "b", Effect: object.NoSchedule})
		},
	},
	"startup taint put back": {
		"taint " + notReady + ":NoSchedule", func(n *machine.Node) bool { return !taintOf(n, notReady) },
		func(n *machine.Node) {
			n.Taints = append(n.Taints, object.Taint{Key: notReady, Effect: object.NoSchedule})
		},
	},
	"finalizer removed": {
		"finalizer " + machine.NodeFinalizer, func(n *machine.Node) bool { return n.HasFinalizer(machine.NodeFinalizer) },
		func(n *machine.Node) { n.RemoveFinalizer(machine.NodeFinalizer) },
	},
	"machine's name removed": {
		"label " + machine.DefaultPolicy().Keys.NodeMachine, func(n *machine.Node) bool { return n.Labels[machine.DefaultPolicy().Keys.NodeMachine] != "" },
		func(n *machine.Node) { delete(n.Labels, machine.DefaultPolicy().Keys.NodeMachine) },
	},
}

var notReady = machine.DefaultPolicy().Keys.NotReadyTaint

func taintOf(n *machine.Node, key string) bool {
	return slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Key == key })
}

// mostWrites is how often an entry is written within ten minutes at most, however often it is undone.
const mostWrites = 8

// P64: another program immediately undoes our writes of some entries of a node. Each of them is written a
// bounded number of times, with warnings that name it, and the machine continues to run. Within ten minutes
// after the other program has stopped, the node is as it should be.
// Invariants: P64
func TestP64WriteFightsAreBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(t)
		w.createMachine(func(m *machine.Machine) {
			m.Spec.NodeTemplate = machine.NodeTemplate{
				Labels: map[string]string{"team": "a", "tier": "a"}, Annotations: map[string]string{"note": "a"},
				Taints: []object.Taint{{Key: "agent-not-ready", Effect: object.NoSchedule}},
			}
		})
		s := &shell{w: w}
		s.settle(bound)
		require.True(t, w.store.live().Ready())
		names := rapid.SliceOfNDistinct(rapid.SampledFrom(slices.Sorted(maps.Keys(disputes))), 1, 3, func(n string) string { return disputes[n].what }).Draw(t, "disputes")
		writes, warned := map[string][]time.Time{}, map[string]bool{}
		s.onDecision = func(_ *machine.Observation, plan machine.Plan, _ string) {
			if plan.Warn.Reason == machine.ReasonSyncUndone {
				warned[plan.Warn.Detail] = true
			}
		}
		slowness := rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute}).Draw(t, "slowness")
		undo := func() {
			for _, name := range names {
				d := disputes[name]
				if n := w.cluster.live(node).Clone(); d.ours(n) {
					writes[name] = append(writes[name], w.now)
					w.cluster.change(node, d.theirs)
				}
			}
		}
		for end := w.now.Add(40 * time.Minute); w.now.Before(end); {
			undo()
			plan, gone, err := s.reconcile() // the node has changed
			require.NoError(t, err)
			require.False(t, gone)
			step := time.Second + time.Duration(rapid.Int64Range(0, int64(slowness)).Draw(t, "later"))
			if plan.At.IsZero() {
				plan.At = end
			}
			if rapid.IntRange(0, 3).Draw(t, "no event") == 0 {
				step = min(plan.At.Sub(w.now), 5*time.Minute) // until it looks again by itself
			}
			w.advance(max(step, time.Second))
		}
		for _, name := range names {
			at := writes[name]
			require.Greater(t, len(at), 2, "%s: it was not written again", name)
			for i := mostWrites; i < len(at); i++ {
				require.GreaterOrEqual(t, at[i].Sub(at[i-mostWrites]), 10*time.Minute, "P64: %s was written %d times within ten minutes", name, mostWrites+1)
			}
			if len(at) < 5 || at[3].Sub(at[0]) > 4*time.Minute {
				continue // too rare for a delay
			}
			require.True(t, slices.ContainsFunc(slices.Collect(maps.Keys(warned)), func(text string) bool { return strings.Contains(text, disputes[name].what) }), "%s: %v", name, warned)
		}
		require.True(t, w.store.live().Ready())
		w.advance(10 * time.Minute)
		s.settle(bound)
		for _, name := range names {
			require.True(t, disputes[name].ours(w.cluster.live(node)), name)
		}
	})
}

// TestFirstUndoIsRevertedAtOnce: an entry that is undone for the first time is written again at once. Other
// entries of the template do not wait for a disputed one.
func TestFirstUndoIsRevertedAtOnce(t *testing.T) {
	w := newWorld(t)
	w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"team": "a"} })
	s := &shell{w: w}
	s.settle(bound)
	undo := func() { w.cluster.change(node, func(n *machine.Node) { delete(n.Labels, "team") }) }
	pass := func() {
		_, gone, err := s.reconcile()
		require.NoError(t, err)
		require.False(t, gone)
	}
	undo()
	pass()
	require.Equal(t, "a", w.cluster.live(node).Labels["team"])
	undo()
	pass()
	undo()
	pass()
	require.NotContains(t, w.cluster.live(node).Labels, "team", "the write is not delayed")
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"team": "a", "tier": "web"} })
	pass()
	require.Equal(t, "web", w.cluster.live(node).Labels["tier"])
	require.NotContains(t, w.cluster.live(node).Labels, "team", "the write is not delayed")
	w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"team": "b", "tier": "web"} })
	pass()
	require.Equal(t, "b", w.cluster.live(node).Labels["team"], "a new value is written at once")
}

// TestStartupTaintsAreAddedOnce: a startup taint of the template that another program has removed is not added
// again, and the machine becomes Running without it. Any other taint is added again. On a node that registers
// again, all taints are added.
func TestStartupTaintsAreAddedOnce(t *testing.T) {
	for key, once := range map[string]bool{
		machine.DefaultPolicy().Keys.CriticalComponents:              true,
		"startup-taint.cluster-autoscaler.kubernetes.io/agent-ready": true,
		"agent-not-ready": true,
		"dedicated":       false,
	} {
		w := newWorld(t)
		w.policy.StartupTaints = []string{"agent-not-ready"}
		w.createMachine(func(m *machine.Machine) {
			m.Spec.NodeTemplate.Taints = []object.Taint{{Key: key, Value: "a", Effect: object.NoSchedule}}
		})
		s := &shell{w: w}
		pass := func() {
			w.tick()
			_, gone, err := s.reconcile()
			require.NoError(t, err)
			require.False(t, gone)
		}
		pass()
		w.advance(time.Minute)
		pass()
		require.True(t, taintOf(w.cluster.live(node), key), key)
		w.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		pass()
		require.True(t, w.store.live().Ready(), key)
		require.NotEqual(t, once, taintOf(w.cluster.live(node), key), key)
		w.edit(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"team": "a"} })
		pass()
		require.Equal(t, "a", w.cluster.live(node).Labels["team"])
		require.NotEqual(t, once, taintOf(w.cluster.live(node), key), "%s: after another write", key)
		w.cluster.change(node, func(n *machine.Node) { n.Applied = machine.Applied{} }) // as a node that registers again
		pass()
		require.True(t, taintOf(w.cluster.live(node), key), "%s: registered again", key)
	}
}

// TestFightsAreForgotten: an entry that was undone before is written at once if the node has registered again,
// or if the clock was set back.
func TestFightsAreForgotten(t *testing.T) {
	for name, event := range map[string]func(w *world){
		"registered again": func(w *world) { w.cluster.change(node, func(n *machine.Node) { n.UID = "again" }) },
		"clock set back":   func(w *world) { w.advance(-time.Hour) },
		"nothing":          func(*world) {},
	} {
		w := newWorld(t)
		w.createMachine(func(m *machine.Machine) { m.Spec.NodeTemplate.Labels = map[string]string{"team": "a"} })
		s := &shell{w: w}
		s.settle(bound)
		undo := func() bool {
			w.cluster.change(node, func(n *machine.Node) { delete(n.Labels, "team") })
			_, _, err := s.reconcile()
			require.NoError(t, err)
			return w.cluster.live(node).Labels["team"] == "a"
		}
		for range mostWrites {
			undo()
			w.advance(time.Second)
		}
		require.False(t, undo(), "the write is not delayed")
		event(w)
		require.Equal(t, name != "nothing", undo(), name)
	}
}

// P64 for conditions: another program immediately removes a condition that we set on a node. The drain, or the
// preservation, continues without it.
// Invariants: P64
func TestP64ConditionsAreBounded(t *testing.T) {
	for condition, begin := range map[string]func(*world){
		machine.NodeTerminating: func(w *world) { w.addDrain(0, 0, 1); w.store.remove() },
		machine.NodePreserved:   func(w *world) { w.preserve(machine.PreserveNow) },
	} {
		w := newWorld(t)
		w.createMachine()
		s := &shell{w: w}
		s.settle(bound)
		begin(w)
		var writes []time.Time
		warned, drained := false, 0
		s.onDecision = func(_ *machine.Observation, plan machine.Plan, _ string) {
			warned = warned || plan.Warn.Reason == machine.ReasonSyncUndone && strings.Contains(plan.Warn.Detail, "condition "+condition)
			if _, ok := plan.Effect.(*machine.DrainNode); ok {
				drained++
			}
		}
		there := func(n *machine.Node) bool { return object.FindCondition(n.Conditions, condition) != nil }
		for end := w.now.Add(40 * time.Minute); w.now.Before(end); w.advance(time.Second) {
			_, gone, err := s.reconcile() // the node has changed
			require.NoError(t, err)
			require.False(t, gone, condition)
			if there(w.cluster.live(node)) {
				writes = append(writes, w.now)
				w.cluster.change(node, func(n *machine.Node) {
					n.Conditions = slices.DeleteFunc(slices.Clone(n.Conditions), func(c object.Condition) bool { return c.Type == condition })
				})
			}
		}
		require.Greater(t, len(writes), 2, "%s: it was not set again", condition)
		for i := mostWrites; i < len(writes); i++ {
			require.GreaterOrEqual(t, writes[i].Sub(writes[i-mostWrites]), 10*time.Minute, "P64: %s was written %d times within ten minutes", condition, mostWrites+1)
		}
		require.True(t, warned, condition)
		require.Equal(t, condition == machine.NodeTerminating, drained > 100, "%s: drained %d times", condition, drained)
		w.advance(10 * time.Minute)
		_, _, err := s.reconcile()
		require.NoError(t, err)
		require.True(t, there(w.cluster.live(node)), condition)
	}
}

// SpecEqual notices each change in the record of a drain.
func TestSpecEqualSeesTheDrain(t *testing.T) {
	at := epoch.Truncate(time.Second)
	node := &machine.Node{Drain: &machine.DrainRecord{
		Since: at, Cordoned: at, Forced: at,
		Turn:     machine.DrainTurn{Pod: object.Key{Name: "db"}, UID: "u", Since: at, Grace: time.Minute, Volumes: []string{"v"}, Detached: at},
		Youngest: at, Returns: []machine.DrainReturn{{Controller: "c", Rounds: 1, Youngest: at}}, Emptied: at,
	}}
	require.True(t, node.SpecEqual(node.Clone()))
	assert.False(t, node.SpecEqual(&machine.Node{}))
	assert.False(t, (&machine.Node{}).SpecEqual(node))
	for what, change := range map[string]func(*machine.DrainRecord){
		"since":    func(r *machine.DrainRecord) { r.Since = at.Add(time.Second) },
		"cordoned": func(r *machine.DrainRecord) { r.Cordoned = time.Time{} },
		"forced":   func(r *machine.DrainRecord) { r.Forced = time.Time{} },
		"fenced":   func(r *machine.DrainRecord) { r.Fenced = true },
		"pod":      func(r *machine.DrainRecord) { r.Turn.Pod.Name = "other" },
		"uid":      func(r *machine.DrainRecord) { r.Turn.UID = "other" },
		"permit":   func(r *machine.DrainRecord) { r.Turn.Since = time.Time{} },
		"grace":    func(r *machine.DrainRecord) { r.Turn.Grace = 0 },
		"volumes":  func(r *machine.DrainRecord) { r.Turn.Volumes[0] = "other" },
		"detached": func(r *machine.DrainRecord) { r.Turn.Detached = time.Time{} },
		"youngest": func(r *machine.DrainRecord) { r.Youngest = time.Time{} },
		"returns":  func(r *machine.DrainRecord) { r.Returns[0].Rounds = 2 },
		"round":    func(r *machine.DrainRecord) { r.Returns[0].Youngest = time.Time{} },
		"returner": func(r *machine.DrainRecord) { r.Returns[0].Controller = "other" },
		"emptied":  func(r *machine.DrainRecord) { r.Emptied = time.Time{} },
	} {
		c := node.Clone()
		change(c.Drain)
		assert.False(t, node.SpecEqual(c), what)
		assert.Equal(t, "v", node.Drain.Turn.Volumes[0], "the clone shares the volumes")
	}
	assert.True(t, node.SpecEqual(&machine.Node{Drain: node.Drain.Clone()}), "the same instants")
	local := node.Clone()
	local.Drain.Since = at.In(time.FixedZone("elsewhere", 3600))
	assert.True(t, node.SpecEqual(local))
}

func TestUnresponsiveSince(t *testing.T) {
	at := epoch.Truncate(time.Second)
	n := &machine.Node{Conditions: []object.Condition{{Type: machine.NodeReady, Status: object.True, Since: at}}}
	_, yes := n.UnresponsiveSince()
	assert.False(t, yes)
	n.Conditions[0].Status = object.Unknown
	since, yes := n.UnresponsiveSince()
	assert.True(t, yes)
	assert.Equal(t, at, since)
}
