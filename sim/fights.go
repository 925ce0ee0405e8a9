package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// dispute is an entry of nodes that another program wants otherwise than the manager.
type dispute struct {
	lost func(*World, *machine.Node) bool // reports whether the manager has it its way
	undo func(*World, *machine.Node)
}

// disputes are those that a step chooses from.
var disputes = [...]dispute{
	{ // a label removed
		func(_ *World, n *machine.Node) bool { return n.Labels["team"] != "" },
		func(_ *World, n *machine.Node) { delete(n.Labels, "team") },
	},
	{ // a label changed
		func(_ *World, n *machine.Node) bool { return n.Labels["tier"] == "web" },
		func(_ *World, n *machine.Node) { n.Labels["tier"] = "db" },
	},
	{ // a taint removed, as by an agent that is ready
		func(_ *World, n *machine.Node) bool { return slices.ContainsFunc(n.Taints, dedicated) },
		func(_ *World, n *machine.Node) { n.Taints = slices.DeleteFunc(n.Taints, dedicated) },
	},
	{ // the finalizer removed
		func(_ *World, n *machine.Node) bool { return !n.Deleted() && n.HasFinalizer(machine.NodeFinalizer) },
		func(_ *World, n *machine.Node) { n.RemoveFinalizer(machine.NodeFinalizer) },
	},
	{ // the startup taint put back, once its machine runs
		func(w *World, n *machine.Node) bool { return !w.hasStartupTaint(n) && w.serves(n) },
		func(w *World, n *machine.Node) {
			n.Taints = append(n.Taints, object.Taint{Key: w.machinePolicy().Keys.NotReadyTaint, Effect: object.NoSchedule})
		},
	},
}

func dedicated(t object.Taint) bool { return t.Key == "dedicated" }

func (w *World) hasStartupTaint(n *machine.Node) bool {
	return slices.ContainsFunc(n.Taints, func(t object.Taint) bool { return t.Key == w.machinePolicy().Keys.NotReadyTaint })
}

// serves reports whether a node is that of a machine that is ready.
func (w *World) serves(n *machine.Node) bool {
	return slices.ContainsFunc(w.machines.all(), func(m *machine.Machine) bool { return m.Spec.NodeName == n.Name && m.Ready() })
}

// reaction is within what time a program undoes what it sees.
const reaction = 2 * time.Second

// fight has another program undo on sight an entry of all nodes.
func (w *World) fight(s *Step) {
	d, until := disputes[max(s.N, 0)%len(disputes)], w.Now().Add(s.For)
	over := func() bool { return w.faultsStopped || !w.Now().Before(until) }
	look := func(n *machine.Node) {
		if over() || !d.lost(w, n) {
			return
		}
		w.After(w.upTo(reaction), func() {
			now, err := w.nodes.Get(context.Background(), n.Key)
			if err != nil || over() || now.UID != n.UID || !d.lost(w, now) {
				return
			}
			now = now.Clone()
			d.undo(w, now)
			_, _ = w.nodes.Update(context.Background(), now) // read in the same instant: no conflict
			w.check()
		})
	}
	for _, n := range w.nodes.all() {
		look(n)
	}
	w.subscribe(func(e event) {
		if e, ok := e.(stored[*machine.Node]); ok && e.now != nil {
			look(e.now)
		}
	})
}
