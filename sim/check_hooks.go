package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/cluster"
)

// p66: a hook that is on a machine when its deletion begins delays the drain, or the deletion of the VM,
// until it is removed or its timeout is over. After that, the drain has its own whole timeout, in which
// pods are only evicted. This does not hold if the deletion is forced or the node is not ready.
type p66 struct {
	*World
	held map[string]*holding // by UID of the machine
}

// holding is what is known of the hooks on a machine that is being deleted.
type holding struct {
	began    time.Time // when the deletion began
	drain    bool      // a hook delayed the drain when the deletion began
	off      time.Time // when that hook was removed; zero: it is still on
	vm       bool      // a hook has delayed the deletion of the VM since the deletion began
	excepted bool      // the deletion was forced, or the node was not ready, at some time
}

func newP66(w *World) *p66 { return &p66{w, map[string]*holding{}} }

func (w *p66) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		if e.now != nil {
			w.record(e.now)
		}
	case readinessChanging:
		if m := w.machine(e.node); m != nil && w.held[m.last.UID] != nil {
			w.held[m.last.UID].excepted = true
		}
	case cluster.EvictionTried:
		if !e.Pod.Finished {
			w.checkPod(e.Pod.Node, false)
		}
	case cluster.PodDeleted:
		if !e.Pod.Finished {
			w.checkPod(e.Pod.Node, true)
		}
	case vmGone:
		if w.acting {
			w.checkVM(e.node)
		}
	}
}

// record records which hooks are on a machine that is being deleted.
func (w *p66) record(m *machine.Machine) {
	if !m.Deleted() {
		return
	}
	keys := w.machinePolicy().Keys
	drain, vm := m.Annotations[keys.PreDrainHook+hookName] != "", m.Annotations[keys.PreTerminateHook+hookName] != ""
	h := w.held[m.UID]
	if h == nil {
		n, err := w.nodes.Get(context.Background(), object.Key{Name: m.Spec.NodeName})
		h = &holding{began: w.Now(), drain: drain, vm: vm, excepted: err != nil || !w.isReady(n)}
		w.held[m.UID] = h
	}
	h.excepted = h.excepted || w.forcedByHand(&m.Meta)
	h.vm = h.vm && vm
	if h.drain && h.off.IsZero() && !drain {
		h.off = w.Now()
	}
}

func (w *p66) isReady(n *machine.Node) bool {
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status == object.True
}

// holds returns the holding of the machine of a node. It returns nil if the invariant does not apply.
func (w *p66) holds(node string) *holding {
	m := w.machine(node)
	if m == nil || w.held[m.last.UID] == nil || w.held[m.last.UID].excepted || w.belated || w.faults[ClockJump] > 0 {
		return nil
	}
	return w.held[m.last.UID]
}

// checkPod checks the eviction or deletion of a pod.
func (w *p66) checkPod(node string, deleted bool) {
	h := w.holds(node)
	if h == nil || !h.drain {
		return
	}
	p, held := w.machinePolicy(), w.Now().Sub(h.began)
	if h.off.IsZero() {
		if inFlight < held && held < p.HookTimeout-inFlight {
			w.violate("P66", "node %s is drained after %s, and a hook holds that back", node, held)
		}
		return
	}
	ends := h.off.Add(p.DrainTimeout - inFlight)
	if h.off.Sub(h.began) > p.HookTimeout { // its timeout was over before it was removed
		ends = h.began.Add(p.HookTimeout + p.DrainTimeout - inFlight)
	}
	if deleted && w.Now().Before(ends) {
		w.violate("P66", "a pod of node %s was deleted %s after the hook was off that had held its drain back, and not evicted", node, w.Now().Sub(h.off))
	}
}

// checkVM checks the deletion of a VM.
func (w *p66) checkVM(node string) {
	h := w.holds(node)
	if h == nil || !h.vm {
		return
	}
	if held := w.Now().Sub(h.began); held < w.machinePolicy().HookTimeout-inFlight {
		w.violate("P66", "the VM of machine %s went after %s, and a hook held it", node, held)
	}
}
