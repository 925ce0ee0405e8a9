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

// settleFor runs passes for some time, until the next one is due only after that.
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

// preserveChaos is a chaos in which a machine is preserved for inspection.
type preserveChaos struct {
	*chaos
	cordoned, tainted, kept bool // by a user, before the preservation
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

var anyPreserveRequest = rapid.SampledFrom([]string{
	"", machine.PreserveNow, machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveWhenFailed,
	machine.PreserveAutomatically, machine.PreserveNever, "perhaps",
})

func (c *preserveChaos) event() {
	switch rapid.IntRange(0, 9).Draw(c.draw, "event") {
	case 0, 1:
		c.preserve(anyPreserveRequest.Draw(c.draw, "machine's"))
	case 2:
		c.preserveByNode(anyPreserveRequest.Draw(c.draw, "node's"))
	case 3:
		c.killAt, c.killAfter = c.calls+rapid.IntRange(1, 6).Draw(c.draw, "kill"), rapid.Bool().Draw(c.draw, "after")
	case 4, 5:
		c.cluster.setReady(node, rapid.SampledFrom([]object.ConditionStatus{object.True, object.False, object.False}).Draw(c.draw, "ready"))
	case 6:
		c.frozen = !c.frozen
	default:
		c.advance(rapid.SampledFrom([]time.Duration{0, time.Second, time.Minute, 15 * time.Minute, 30 * time.Hour}).Draw(c.draw, "time"))
	}
}

// restart starts a new process. Each of its decisions is checked against the live state.
func (c *preserveChaos) restart() {
	c.chaos.restart()
	before := c.store.live().Status.Preservation
	c.shell.onDecision = func(o *machine.Observation, plan machine.Plan, answer string) {
		if drain, ok := plan.Effect.(*machine.DrainNode); ok {
			require.True(c.draw, o.Machine.Status.Preservation.Active(c.now) && o.Machine.Status.Phase == machine.PhaseFailed, "drained although the machine is not preserved and Failed")
			require.True(c.draw, drain.Node.Unschedulable, "drained without a cordon")
		}
		m := c.store.live()
		after := m.Status.Preservation
		if !after.Equal(&before) {
			c.checkRecordChange(m, before, after)
			before = after
		}
	}
}

// requested returns what machine and node request together; known says whether that can be read.
func (c *preserveChaos) requested(m *machine.Machine, before, after machine.Preservation) (value string, known bool) {
	key := c.policy.Keys.Preserve
	value = c.cluster.live(node).Annotations[key]
	if !before.NodeAsked && (value == "perhaps" || value == machine.PreserveAutomatically) {
		value = "" // it never had a valid value
	}
	switch value {
	case machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveNever:
		require.True(c.draw, after.NodeAsked, "NodeAsked is not set")
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

// checkRecordChange checks that a change of the record follows from what machine and node request now.
func (c *preserveChaos) checkRecordChange(m *machine.Machine, before, after machine.Preservation) {
	request, known := c.requested(m, before, after)
	failed := m.Status.Phase == machine.PhaseFailed
	applies := request == machine.PreserveNow || failed && (request == machine.PreserveWhenFailed || request == machine.PreserveAutomatically)
	require.False(c.draw, c.frozen, "P25: the record changed while the fleet is frozen")
	switch {
	case before.Since.IsZero() && !after.Since.IsZero():
		require.True(c.draw, known && applies, "preserved for %q", request)
		left := after.Until.Sub(c.now)
		require.True(c.draw, left >= c.policy.PreserveTimeout && left < c.policy.PreserveTimeout+time.Second)
	case !before.Since.IsZero() && after.Since.IsZero():
		recovered := !failed && before.Request != machine.PreserveNow
		require.True(c.draw, !before.Until.After(c.now) || known && !applies || recovered, "no longer preserved, for %q", request)
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

// requireMarked checks the node of a preserved machine: it is cordoned and tainted while the machine is Failed,
// and as it was before otherwise. A user's cordon does not replace the taint.
func (c *preserveChaos) requireMarked() {
	m, n := c.store.live(), c.cluster.live(node)
	if m.Preserved(c.now) {
		failed := m.Status.Phase == machine.PhaseFailed
		require.Equal(c.draw, failed || c.cordoned, n.Unschedulable, "cordoned, while %s", m.Status.Phase)
		require.Equal(c.draw, failed || c.tainted, slices.Contains(n.Taints, c.taint()), "tainted, while %s", m.Status.Phase)
	}
}

// During a storm of requests, failures, faults, kills and stale reads, preservation begins and ends only as
// requested at that moment, and no node in service is drained. After the storm the node has the marks for its
// machine's phase. When nothing is requested any more, the machine is not preserved. If it is Running, no mark
// of ours is left on the node, and all marks of others are (P23, P26, P28).
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
		require.Equal(t, c.kept, n.Annotations[c.policy.Keys.KeepNode] == "true", "P23: the annotation that keeps autoscalers away")
		if condition := object.FindCondition(n.Conditions, machine.NodePreserved); condition != nil {
			require.Equal(t, object.False, condition.Status)
		}
		if m.Status.Phase == machine.PhaseRunning {
			require.Equal(t, machine.PreservedMarks{}, n.Applied.Preserved)
			require.Equal(t, c.cordoned, n.Unschedulable, "P23: our cordon is left, or a user's was removed")
			require.Equal(t, c.tainted, slices.Contains(n.Taints, c.taint()), "P23: our taint is left, or a user's was removed")
		}
		requireIdle(c.world)
	})
}

// A settled machine that is preserved is not written, and no calls are made for it, until the end of its
// preservation. Then one pass ends it.
// Invariants: P28
func TestP28PreservedIsQuietUntilItsEnd(t *testing.T) {
	for _, request := range []string{machine.PreserveNow, machine.PreserveWhenFailed, machine.PreserveAutomatically} {
		w := newWorld(t)
		w.addDrain(1, time.Minute, 0)
		w.createRunning()
		w.preserve(request)
		w.cluster.setReady(node, object.False)
		s := &shell{w: w}
		s.settleFor(time.Hour)
		until := w.store.live().Status.Preservation.Until
		require.True(t, w.store.live().Status.Preservation.Drained, request)
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
		require.Equal(t, machine.Preservation{Request: request, Ended: until, NodeAsked: false}, p)
		require.False(t, w.cluster.live(node).Applied.Preserved.Kept)
	}
}

// TestEachNewEndIsOnTheNodeAtOnce: a user who changes the end of a preservation again and again sees each end in the
// node's condition without delay, and no warning that somebody undoes it.
func TestEachNewEndIsOnTheNodeAtOnce(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.preserve(machine.PreserveNow)
	s := &shell{w: w}
	s.settleFor(time.Minute)
	for range 5 {
		m := w.store.live().Clone()
		m.Status.Preservation.Until = m.Status.Preservation.Until.Add(time.Hour)
		w.store.force(m)
		plan, _, err := s.reconcile()
		require.NoError(t, err)
		require.Zero(t, plan.Warn)
		c := object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved)
		require.Contains(t, c.Message, m.Status.Preservation.Until.UTC().Format(time.RFC3339))
	}
}

// The drain of a machine that was preserved before it failed counts from its failure, because an earlier record
// of a drain is older.
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
		require.Equal(t, m.Status.Since, d.orders[len(d.orders)-1].Since)
		require.Equal(t, m.Status.Preservation.Until, d.orders[len(d.orders)-1].Until)
		w.cluster.setReady(node, object.True)
	}
	require.Len(t, d.orders, 2)
}

// ToBePreserved reads only the machine's annotation, and is false once the status records the request.
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
		"running":    func(m *machine.Machine) { m.Status.Phase = machine.PhaseRunning },
		"deleted":    func(m *machine.Machine) { m.DeletedAt = epoch },
		"node asked": func(m *machine.Machine) { m.Status.Preservation.NodeAsked = true },
		"followed":   func(m *machine.Machine) { m.Status.Preservation.Request = machine.PreserveNow },
		"preserved":  func(m *machine.Machine) { m.Status.Preservation.Since = epoch },
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

// An unknown value on a node that never had a valid one is ignored, because the machine's set waits until the
// machine's annotation takes effect (P21). If the node has had a valid value, that stays in force.
// Invariants: P21
func TestUnknownRequestOnANodeIsIgnored(t *testing.T) {
	for _, request := range []string{machine.PreserveWhenFailed, machine.PreserveAutomatically} {
		w := newWorld(t)
		w.createRunning()
		w.preserveByNode("perhaps")
		w.cluster.setReady(node, object.False)
		s := &shell{w: w}
		s.settleFor(time.Hour)
		require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
		w.preserve(request)
		s.settleFor(time.Minute)
		m := w.store.live()
		require.True(t, m.Status.Preservation.Active(w.now))
		require.Equal(t, request, m.Status.Preservation.Request)
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

// TestPreservationWithoutANodeName: a running machine has no node name, which only an invalid status can cause,
// and a node has its label. The request on the node is ignored. Otherwise each pass would begin a preservation
// and end it, because only some decisions of a pass have read the node.
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

// takenOver returns a world with a Failed machine that another manager has preserved: it has left marks, and no
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

// marksLeft says which marks of a preservation are on a node.
type marksLeft struct{ cordoned, tainted, kept, keptByUs bool }

func (w *world) marksOnNode() (left marksLeft) {
	n := w.cluster.live(node)
	left.cordoned = n.Unschedulable
	for _, taint := range n.Taints {
		left.tainted = left.tainted || taint == preservedTaint(w)
	}
	_, left.kept = n.Annotations[w.policy.Keys.KeepNode]
	_, left.keptByUs = n.Annotations[w.policy.Keys.KeptByUs]
	return left
}

// leftOnNode are marks of another manager or of a user, and the marks that must be left when the machine runs
// again, or stays Failed after the preservation.
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

// When a machine that another manager has preserved runs again, the marks of that manager are removed. The
// marks of users stay (P23).
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
				require.Equal(t, c.runs, w.marksOnNode())
				require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
				require.False(t, w.store.live().Status.Preservation.TakenOver, "marks that are set from now on are a user's")
				requireIdle(w)
			})
		}
	}
}

// If the preservation has ended and the machine stays Failed, cordon and taint stay until it is replaced, and
// the annotation that keeps autoscalers away is removed, also if the end was before the takeover.
// Invariants: P23
func TestP23PreservationOfAnotherManagerIsOver(t *testing.T) {
	for name, c := range leftOnNode {
		t.Run(name, func(t *testing.T) {
			w, s := takenOver(t, c.marks)
			w.now = w.now.Add(97 * time.Hour)
			s.settleFor(time.Hour)
			require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
			require.Equal(t, c.stays, w.marksOnNode())
			require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
			requireIdle(w)
		})
	}
}

// The node of a preserved machine has annotation KeptByUs, so that another manager removes KeepNode. A node
// that an earlier release wrote without KeptByUs gets it.
// Invariants: P23
func TestPreservedNodesHaveKeptByUs(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.preserve(machine.PreserveNow)
	s := &shell{w: w}
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{kept: true, keptByUs: true}, w.marksOnNode())
	w.cluster.change(node, func(n *machine.Node) { n.Annotations = annotated(n.Annotations, w.policy.Keys.KeptByUs, "") })
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{kept: true, keptByUs: true}, w.marksOnNode())
	w.preserve("")
	s.settleFor(time.Hour)
	require.Equal(t, marksLeft{}, w.marksOnNode())
}
