package machine_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// takenOver is a machine that another manager keeps because it failed, as that one leaves it: no
// record of ours, neither in the status nor on the node.
func takenOver(t *testing.T, marks func(*world, *machine.Node)) (*world, *shell) {
	w := newWorld(t)
	w.drains(0, 0, 0)
	w.running()
	w.cluster.ready(node, object.False)
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
func TestP23PreservationOfAnotherManagerEnds(t *testing.T) {
	for name, c := range leftOnNode {
		for _, already := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, recovered already %t", name, already), func(t *testing.T) {
				w, s := takenOver(t, c.marks)
				if !already {
					s.settleFor(time.Hour)
					require.True(t, w.store.live().Preserved(w.now))
				}
				w.cluster.ready(node, object.True)
				s.settleFor(time.Hour)
				require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
				require.Equal(t, c.runs, w.marksLeft())
				require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
				require.False(t, w.store.live().Status.Preservation.TakenOver, "what a user puts there from now on is his")
				quiet(w)
			})
		}
	}
}

// From the node of a machine that stays failed, workload is kept away until it is replaced; autoscalers
// are not, also if its time was over before it was taken over.
func TestP23PreservationOfAnotherManagerIsOver(t *testing.T) {
	for name, c := range leftOnNode {
		t.Run(name, func(t *testing.T) {
			w, s := takenOver(t, c.marks)
			w.now = w.now.Add(97 * time.Hour)
			s.settleFor(time.Hour)
			require.Equal(t, machine.PhaseFailed, w.store.live().Status.Phase)
			require.Equal(t, c.stays, w.marksLeft())
			require.Equal(t, object.False, object.FindCondition(w.cluster.live(node).Conditions, machine.NodePreserved).Status)
			quiet(w)
		})
	}
}

// A machine that is kept says on its node whose the annotation for autoscalers is, so that another
// manager takes it off; one that an earlier release of this library wrote without gets it.
func TestPreservedNodesSayWhoseTheAnnotationIs(t *testing.T) {
	w := newWorld(t)
	w.running()
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
