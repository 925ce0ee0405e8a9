package machine_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// settleFor runs passes for some time, to where the machine waits for something
// later.
func (s *shell) settleFor(d time.Duration) {
	w := s.w
	until := w.now.Add(d)
	for range 60 {
		w.tick()
		plan, gone, err := s.reconcile()
		if errors.Is(err, errConflict) {
			continue
		}
		require.NoError(w.t, err)
		at := earlier(plan.At, w.next())
		if gone || at.IsZero() || at.After(until) {
			w.now = until
			return
		}
		if at.After(w.now) {
			w.now = at
		}
	}
	require.Fail(w.t, "not settled")
}

// preserveChaos is a world in which a machine is kept for inspection while
// anything may go wrong.
type preserveChaos struct {
	*chaos
	cordoned, tainted, kept bool // by a user, before
}

func (c *preserveChaos) taint() object.Taint {
	return object.Taint{Key: c.policy.Keys.PreservedTaint, Effect: object.NoSchedule}
}

func newPreserveChaos(t *rapid.T) *preserveChaos {
	w := newWorld(t)
	c := &preserveChaos{chaos: &chaos{world: w, draw: t}}
	w.policy.PreserveTimeout = rapid.SampledFrom([]time.Duration{time.Second, time.Hour, 96 * time.Hour}).Draw(t, "timeout")
	w.createRunning()
	if rapid.Bool().Draw(t, "drains") {
		w.addDrain(rapid.IntRange(0, 2).Draw(t, "pods"), time.Minute, rapid.IntRange(0, 1).Draw(t, "stuck"))
	}
	c.cordoned, c.tainted, c.kept = rapid.Bool().Draw(t, "cordoned"), rapid.Bool().Draw(t, "tainted"), rapid.Bool().Draw(t, "kept")
	w.cluster.change(node, func(n *machine.Node) {
		n.Unschedulable = c.cordoned
		if c.tainted {
			n.Taints = append(n.Taints, c.taint())
		}
		if c.kept {
			n.Annotations = annotated(n.Annotations, w.policy.Keys.KeepNode, "true")
		}
	})
	w.cluster.faults = func(string) codes.Code {
		if !c.stormy {
			return codes.OK
		}
		return rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.OK, codes.Unavailable, codes.PermissionDenied}).Draw(t, "cluster fault")
	}
	c.stormy = true
	c.restart()
	return c
}

var anyWish = rapid.SampledFrom([]string{
	"", machine.PreserveNow, machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveWhenFailed,
	machine.PreserveAutomatically, machine.PreserveNever, "perhaps",
})

func (c *preserveChaos) event() {
	switch rapid.IntRange(0, 9).Draw(c.draw, "event") {
	case 0, 1:
		c.preserve(anyWish.Draw(c.draw, "machine's"))
	case 2:
		c.preserveByNode(anyWish.Draw(c.draw, "node's"))
	case 3:
		c.killAt, c.after = c.calls+rapid.IntRange(1, 6).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 4, 5:
		c.cluster.setReady(node, rapid.SampledFrom([]object.ConditionStatus{object.True, object.False, object.False}).Draw(c.draw, "ready"))
	case 6:
		c.frozen = !c.frozen
	default:
		c.advance(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 15 * time.Minute, 30 * time.Hour}).Draw(c.draw, "time"))
	}
}

// restart has each decision of the new process held to what is live.
func (c *preserveChaos) restart() {
	c.chaos.restart()
	before := c.store.live().Status.Preservation
	c.shell.onDecision = func(o *machine.Observation, plan machine.Plan, answer string) {
		require.NotContains(c.draw, plan.Warn.String(), "something else changes it too", "nothing else does during a pass")
		if drain, ok := plan.Effect.(*machine.DrainNode); ok {
			require.True(c.draw, o.Machine.Status.Preservation.Active(c.now) && o.Machine.Status.Phase == machine.PhaseFailed, "drained without reason")
			require.True(c.draw, drain.Node.Unschedulable, "drained in service")
		}
		m := c.store.live()
		after := m.Status.Preservation
		if !after.Equal(&before) {
			c.checkRecordChange(m, before, after)
			before = after
		}
	}
}

// said is what machine and node ask for together.
func (c *preserveChaos) requested(m *machine.Machine, before, after machine.Preservation) (value string, known bool) {
	key := c.policy.Keys.Preserve
	value = c.cluster.live(node).Annotations[key]
	if !before.NodeAsked && (value == "perhaps" || value == machine.PreserveAutomatically) {
		value = "" // it has never said anything else
	}
	switch value {
	case machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveNever:
		require.True(c.draw, after.NodeAsked, "the node's word was forgotten")
		return value, true
	case "":
		if !before.NodeAsked {
			value = m.Annotations[key]
			return value, value != "perhaps"
		}
		return "", true
	}
	return value, false
}

// hold holds a change of the record to what machine and node say at that
// moment, in words of its own.
func (c *preserveChaos) checkRecordChange(m *machine.Machine, before, after machine.Preservation) {
	said, known := c.requested(m, before, after)
	failed := m.Status.Phase == machine.PhaseFailed
	keep := said == machine.PreserveNow || failed && (said == machine.PreserveWhenFailed || said == machine.PreserveAutomatically)
	require.False(c.draw, c.frozen, "P25: decided while frozen")
	switch {
	case before.Since.IsZero() && !after.Since.IsZero():
		require.True(c.draw, known && keep, "kept for %q", said)
		left := after.Until.Sub(c.now)
		require.True(c.draw, left >= c.policy.PreserveTimeout && left < c.policy.PreserveTimeout+time.Second)
	case !before.Since.IsZero() && after.Since.IsZero():
		recovered := !failed && before.Request != machine.PreserveNow
		require.True(c.draw, !before.Until.After(c.now) || known && !keep || recovered, "let go for %q", said)
	}
}

func (c *preserveChaos) storm() {
	for range rapid.IntRange(0, 40).Draw(c.draw, "steps") {
		c.event()
		c.tick()
		_, _, err := c.shell.reconcile()
		if errors.Is(err, errKilled) {
			c.restart()
		} else if !errors.Is(err, errConflict) {
			require.NoError(c.draw, err)
		}
	}
	c.stormy, c.frozen, c.killAt = false, false, 0
}

// requireMarked fails unless the node of a kept machine is cordoned and tainted while the machine
// is Failed, and is as it was before while it is not. A user's cordon does not stand for the taint.
func (c *preserveChaos) requireMarked() {
	m, n := c.store.live(), c.cluster.live(node)
	if m.Preserved(c.now) {
		failed := m.Status.Phase == machine.PhaseFailed
		require.Equal(c.draw, failed || c.cordoned, n.Unschedulable, "cordoned, while %s", m.Status.Phase)
		require.Equal(c.draw, failed || c.tainted, slices.Contains(n.Taints, c.taint()), "tainted, while %s", m.Status.Phase)
	}
}

// A storm of requests, verdicts, faults, kills and stale reads: no machine is kept
// or let go but for what is so at that moment, no node is drained that is in
// service. When it is over, the node carries the marks of its machine's phase. When nothing is
// asked for any more, the machine is not kept; if it runs, nothing of it is left on the node, and
// what was there before still is (P23, P26, P28).
// Invariants: P23 P26
func TestP23P26P28PreservedThroughAStorm(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newPreserveChaos(t)
		c.storm()
		c.shell.settleFor(time.Minute)
		c.requireMarked()
		c.preserve("")
		c.preserveByNode("")
		if rapid.Bool().Draw(t, "recovers at last") {
			c.cluster.setReady(node, object.True)
		}
		c.shell.settle(60)
		m, n := c.store.live(), c.cluster.live(node)
		require.False(t, m.Status.Preservation.Active(c.now))
		require.Empty(t, m.Status.Preservation.Request)
		require.False(t, n.Applied.Preserved.Kept)
		require.Equal(t, c.kept, n.Annotations[c.policy.Keys.KeepNode] == "true", "P23: what keeps autoscalers off")
		if told := object.FindCondition(n.Conditions, machine.NodePreserved); told != nil {
			require.Equal(t, object.False, told.Status)
		}
		if m.Status.Phase == machine.PhaseRunning {
			require.Equal(t, machine.PreservedMarks{}, n.Applied.Preserved)
			require.Equal(t, c.cordoned, n.Unschedulable, "P23: somebody else's cordon, or ours was left")
			require.Equal(t, c.tainted, slices.Contains(n.Taints, c.taint()), "P23: somebody else's taint, or ours was left")
		}
		requireIdle(c.world)
	})
}

// A machine that is kept and settled is not written, and its node is asked for
// nothing, until its time is up; then it is let go within that very pass.
// Invariants: P28
func TestP28PreservedIsQuietUntilItsEnd(t *testing.T) {
	for _, wish := range []string{machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveAutomatically} {
		w := newWorld(t)
		w.addDrain(1, time.Minute, 0)
		w.createRunning()
		w.preserve(wish)
		w.cluster.setReady(node, object.False)
		s := &shell{w: w}
		s.settleFor(time.Hour)
		until := w.store.live().Status.Preservation.Until
		require.True(t, w.store.live().Status.Preservation.Drained, wish)
		writes, calls := w.store.writes, w.calls
		for range 3 {
			plan, _, err := s.reconcile()
			require.NoError(t, err)
			require.Equal(t, until, plan.At)
			w.advance(20 * time.Hour)
		}
		require.Equal(t, []int{writes, calls}, []int{w.store.writes, w.calls})
		w.now = until
		_, _, err := s.reconcile()
		require.NoError(t, err)
		p := w.store.live().Status.Preservation
		require.Equal(t, machine.Preservation{Request: wish, Ended: until, NodeAsked: false}, p)
		require.False(t, w.cluster.live(node).Applied.Preserved.Kept)
	}
}

// The drain of a machine that is kept counts from its failure, where it was
// kept before: what an earlier drain has recorded is older.
func TestPreservedIsDrainedSinceItFailed(t *testing.T) {
	w := newWorld(t)
	d := w.addDrain(0, 0, 0)
	w.createRunning()
	w.preserve(machine.PreserveNow)
	s := &shell{w: w}
	for range 2 {
		s.settleFor(time.Hour)
		w.cluster.setReady(node, object.False)
		s.settleFor(time.Hour)
		m := w.store.live()
		require.Equal(t, m.Status.Since, d.asked[len(d.asked)-1].Since)
		require.Equal(t, m.Status.Preservation.Until, d.asked[len(d.asked)-1].Until)
		w.cluster.setReady(node, object.True)
	}
	require.Len(t, d.asked, 2)
}

// What a set asks of its machines is read from their own annotation, and only
// until the status has it.
func TestToBePreserved(t *testing.T) {
	key := machine.DefaultPolicy().Keys.Preserve
	m := &machine.Machine{}
	m.Status.Phase = machine.PhaseFailed
	for value, want := range map[string]bool{
		machine.PreserveNow: true, machine.PreserveWhenFailed: true, machine.PreserveAutomatically: true,
		machine.PreserveNever: false, "": false, "perhaps": false,
	} {
		m.Annotations = map[string]string{key: value}
		require.Equal(t, want, m.ToBePreserved(key), value)
	}
	require.False(t, m.ToBePreserved(""), "the feature is off")
	m.Annotations[key] = machine.PreserveNow
	for name, change := range map[string]func(*machine.Machine){
		"well":         func(m *machine.Machine) { m.Status.Phase = machine.PhaseRunning },
		"going":        func(m *machine.Machine) { m.DeletedAt = epoch },
		"node asked":   func(m *machine.Machine) { m.Status.Preservation.NodeAsked = true },
		"answered":     func(m *machine.Machine) { m.Status.Preservation.Request = machine.PreserveNow },
		"kept already": func(m *machine.Machine) { m.Status.Preservation.Since = epoch },
	} {
		c := m.Clone()
		require.True(t, c.ToBePreserved(key))
		change(c)
		require.False(t, c.ToBePreserved(key), name)
	}
	m.Status.Preservation = machine.Preservation{Since: epoch, Until: epoch.Add(time.Hour)}
	require.True(t, m.Preserved(epoch))
	require.False(t, m.Preserved(epoch.Add(time.Hour)))
	m.DeletedAt = epoch
	require.False(t, m.Preserved(epoch), "a machine that is deleted is not preserved")
}

// Nonsense on a node that never asked for anything does not silence the machine,
// whose set waits for its word (P21). On one that did, what was decided stands.
// Invariants: P21
func TestUnknownRequestOnANodeIsIgnored(t *testing.T) {
	for _, wish := range []string{machine.PreserveWhenFailed, machine.PreserveAutomatically} {
		w := newWorld(t)
		w.createRunning()
		w.preserveByNode("perhaps")
		w.cluster.setReady(node, object.False)
		s := &shell{w: w}
		s.settleFor(time.Hour)
		require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
		w.preserve(wish)
		s.settleFor(time.Minute)
		m := w.store.live()
		require.True(t, m.Status.Preservation.Active(w.now))
		require.Equal(t, wish, m.Status.Preservation.Request)
		require.False(t, m.ToBePreserved(w.policy.Keys.Preserve))
	}
	w := newWorld(t)
	w.createRunning()
	w.preserveByNode(machine.PreserveNow)
	s := &shell{w: w}
	s.settleFor(time.Minute)
	w.preserveByNode("perhaps")
	w.preserve(machine.PreserveNever)
	s.settleFor(time.Minute)
	require.True(t, w.store.live().Status.Preservation.Active(w.now))
}

// TestPreservationWithoutANodeName: a machine runs and names no node, of which only nonsense
// in its status is the cause; one that carries its name is there. The node has no say: it was found
// in one decision and not in the next, which began a preservation and ended it in each pass.
// Invariants: P28
func TestPreservationWithoutANodeName(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	m := w.store.live().Clone()
	m.Spec.NodeName = ""
	m.Annotations = map[string]string{w.policy.Keys.Preserve: machine.PreserveNow}
	m.Status.Preservation.NodeAsked = true
	w.store.force(m)
	s := &shell{w: w}
	for range 3 {
		_, _, err := s.reconcile()
		require.NoError(t, err)
	}
	writes := w.store.writes
	_, _, err := s.reconcile()
	require.NoError(t, err)
	require.Equal(t, writes, w.store.writes)
	require.Equal(t, machine.PreserveNow, w.store.live().Status.Preservation.Request)
}

// takenOver is a machine that another manager keeps because it failed, as that one leaves it: no
// record of ours, neither in the status nor on the node.
func takenOver(t *testing.T, marks func(*world, *machine.Node)) (*world, *shell) {
	w := newWorld(t)
	w.addDrain(0, 0, 0)
	w.createRunning()
	w.cluster.setReady(node, object.False)
	s := &shell{w: w}
	s.settleFor(time.Hour)
	require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
	w.preserve(machine.PreserveWhenFailed)
	m := w.store.live()
	m.Status.Preservation = machine.Preservation{
		Request: machine.PreserveWhenFailed, Since: w.now.UTC().Truncate(time.Second), Until: w.now.UTC().Truncate(time.Second).Add(96 * time.Hour), TakenOver: true,
	}
	w.store.force(m)
	w.cluster.change(node, func(n *machine.Node) {
		n.Annotations = annotated(annotated(n.Annotations, w.policy.Keys.KeepNode, "true"), w.policy.Keys.KeptByUs, "true")
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.NodePreserved, Status: object.True, Reason: "Preserved by user."})
		marks(w, n)
	})
	return w, s
}

func preservedTaint(w *world) object.Taint {
	return object.Taint{Key: w.policy.Keys.PreservedTaint, Effect: object.NoSchedule}
}

// marksLeft are what a preservation may leave on a node.
type marksLeft struct{ cordoned, tainted, kept, keptByUs bool }

func (w *world) marksLeft() (left marksLeft) {
	n := w.cluster.live(node)
	left.cordoned = n.Unschedulable
	for _, taint := range n.Taints {
		left.tainted = left.tainted || taint == preservedTaint(w)
	}
	_, left.kept = n.Annotations[w.policy.Keys.KeepNode]
	_, left.keptByUs = n.Annotations[w.policy.Keys.KeptByUs]
	return left
}

// left by another manager, or put there by a user, and what must be left of it when the machine runs
// again, and when it stays failed.
var leftOnNode = map[string]struct {
	marks       func(*world, *machine.Node)
	runs, stays marksLeft
}{
	"taint of later releases": {func(w *world, n *machine.Node) {
		n.Taints = append(n.Taints, preservedTaint(w))
	}, marksLeft{}, marksLeft{tainted: true}},
	"cordon of earlier releases": {func(_ *world, n *machine.Node) {
		n.Unschedulable = true
	}, marksLeft{}, marksLeft{cordoned: true}},
	"taint, and a user's cordon": {func(w *world, n *machine.Node) {
		n.Unschedulable, n.Taints = true, append(n.Taints, preservedTaint(w))
	}, marksLeft{cordoned: true}, marksLeft{cordoned: true, tainted: true}},
	"taint, and a user's annotation": {func(w *world, n *machine.Node) {
		n.Taints = append(n.Taints, preservedTaint(w))
		delete(n.Annotations, w.policy.Keys.KeptByUs)
	}, marksLeft{kept: true}, marksLeft{kept: true, tainted: true}},
}

// What another manager put on the node of a machine that it kept is taken off when the machine runs
// again. What a user put there stays (P23).
// Invariants: P23
func TestP23PreservationOfAnotherManagerEnds(t *testing.T) {
	for name, c := range leftOnNode {
		for _, already := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, recovered already %t", name, already), func(t *testing.T) {
				w, s := takenOver(t, c.marks)
				if !already {
					s.settleFor(time.Hour)
					require.True(t, w.store.live().Preserved(w.now))
				}
				w.cluster.setReady(node, object.True)
				s.settleFor(time.Hour)
				require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
				require.Equal(t, c.runs, w.marksLeft())
				require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
				require.False(t, w.store.live().Status.Preservation.TakenOver, "what a user puts there from now on is his")
				requireIdle(w)
			})
		}
	}
}

// From the node of a machine that stays failed, workload is kept away until it is replaced; autoscalers
// are not, also if its time was over before it was taken over.
// Invariants: P23
func TestP23PreservationOfAnotherManagerIsOver(t *testing.T) {
	for name, c := range leftOnNode {
		t.Run(name, func(t *testing.T) {
			w, s := takenOver(t, c.marks)
			w.now = w.now.Add(97 * time.Hour)
			s.settleFor(time.Hour)
			require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
			require.Equal(t, c.stays, w.marksLeft())
			require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
			requireIdle(w)
		})
	}
}

// A machine that is kept says on its node whose the annotation for autoscalers is, so that another
// manager takes it off; one that an earlier release of this library wrote without gets it.
// Invariants: P23
func TestPreservedNodesHaveKeptByUs(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.preserve(machine.PreserveNow)
	s := &shell{w: w}
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{kept: true, keptByUs: true}, w.marksLeft())
	w.cluster.change(node, func(n *machine.Node) { n.Annotations = annotated(n.Annotations, w.policy.Keys.KeptByUs, "") })
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{kept: true, keptByUs: true}, w.marksLeft())
	w.preserve("")
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{}, w.marksLeft())
}
