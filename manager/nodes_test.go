package manager_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
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

// TestMarksReachTheNodes: during a rollout the nodes of the old set have the taint, and those of the new set do
// not. When the rollout is reverted no node has it, except one that somebody else has tainted.
// Invariants: P23
func TestMarksReachTheNodes(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.bounded = true
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
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
	}, neverDies(t))
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = nil })
	w.until(p, func() bool { return w.settled(3)() && w.tainted() == 1 }, neverDies(t))
	node, err = w.nodes.Get(ctx, theirs.Key)
	require.NoError(t, err)
	require.Contains(t, node.Taints, taint, "P23: somebody else's taint")
}

// TestP17NodeOfAnotherVM: a node with the machine's name and label belongs to another VM if its provider ID says
// so: the driver declares that IDs match, or another machine has recorded the ID. That is reported, and the node's
// deletion by others has no effect. When the machine is deleted, the node is neither drained nor deleted. An ID
// that only may be another VM's changes nothing.
// Invariants: P17
func TestP17NodeOfAnotherVM(t *testing.T) {
	for name, of := range map[string]struct {
		id                 string
		declared, recorded bool
		another            bool
	}{
		"IDs match":                {"memory:///other", true, false, true},
		"another machine's":        {"memory:///other", false, true, true},
		"unknown":                  {"memory:///other", false, false, false},
		"in another spelling":      {"", true, false, false},
		"another spelling, shared": {"", false, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			w, s, _ := drained(t)
			var d driver.Driver = w.provider
			if !of.declared {
				d = featureless{d}
			}
			o := w.options()
			o.Drainer, o.Driver = s, d
			r := reconciler(t, o, manager.KindMachine)
			id := of.id
			if id == "" {
				id = "/" + w.machine().Spec.ProviderID + "/"
			}
			if of.recorded {
				_, err := w.machines.Create(ctx, &machine.Machine{
					Meta: object.Meta{Key: object.Key{Namespace: fleetKey.Namespace, Name: "m-2"}},
					Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}, ProviderID: id},
				})
				require.NoError(t, err)
			}
			key := object.Key{Name: w.machine().Spec.NodeName}
			w.spell(key, id)
			w.look(r)
			require.Equal(t, of.another, w.countEvents("Warning machine NodeOfAnotherVM") == 1, "%s", w.events)
			require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
			for range 5 {
				w.at = w.at.Add(time.Minute)
				w.look(r)
			}
			_, err := w.machines.Get(ctx, fleetKey)
			require.ErrorIs(t, err, store.ErrNotFound)
			_, err = w.nodes.Get(ctx, key)
			if of.another {
				require.NoError(t, err, "another VM's node was deleted")
				require.Zero(t, s.drains, "another VM's node was drained")
				return
			}
			require.ErrorIs(t, err, store.ErrNotFound)
			require.NotZero(t, s.drains)
		})
	}
}

// TestP17DeletionOfAnotherVMsNode: if such a node is deleted, the machine stays.
func TestP17DeletionOfAnotherVMsNode(t *testing.T) {
	w, _, r := drained(t)
	key := object.Key{Name: w.machine().Spec.NodeName}
	w.spell(key, "memory:///other")
	require.NoError(t, w.nodes.Delete(ctx, key, ""))
	w.look(r)
	require.False(t, w.machine().Deleted())
	require.Equal(t, 1, w.provider.Count())
}

// spell gives a node another provider ID.
func (w *world) spell(node object.Key, id string) {
	_, err := store.Edit(ctx, w.nodes, node, func(n *machine.Node) error { n.ProviderID = id; return nil })
	require.NoError(w.t, err)
}
