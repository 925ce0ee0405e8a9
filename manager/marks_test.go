package manager_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// tainted counts nodes with the taint that asks schedulers to avoid them.
func (w *world) tainted() (n int) {
	key := machine.DefaultPolicy().Keys.AvoidTaint
	for _, each := range keysOf(w.nodes) {
		node, err := w.nodes.Get(ctx, each)
		require.NoError(w.t, err)
		for _, taint := range node.Taints {
			if taint.Key == key && taint.Effect == object.PreferNoSchedule {
				n++
			}
		}
	}
	return n
}

// TestMarksReachTheNodes: during a rollout the nodes of the old set carry the
// taint, those of the new one do not, and when it is reverted none does, but
// for one that somebody else has tainted.
func TestMarksReachTheNodes(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	require.Zero(t, w.tainted())
	taint := object.Taint{Key: machine.DefaultPolicy().Keys.AvoidTaint, Value: "True", Effect: object.PreferNoSchedule}
	node, err := w.nodes.Get(ctx, keysOf(w.nodes)[0])
	require.NoError(t, err)
	theirs := node.Clone()
	theirs.Taints = append(theirs.Taints, taint)
	_, err = w.nodes.Update(ctx, theirs)
	require.NoError(t, err)

	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	p = w.until(p, func() bool {
		machines, err := w.machines.List(ctx, store.Query{})
		require.NoError(t, err)
		return len(machines) == 4 && w.tainted() == 3
	}, unexpected(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = nil })
	w.until(p, func() bool { return w.settled(3)() && w.tainted() == 1 }, unexpected(t))
	node, err = w.nodes.Get(ctx, theirs.Key)
	require.NoError(t, err)
	require.Contains(t, node.Taints, taint, "P23: somebody else's taint")
}
