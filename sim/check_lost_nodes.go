package sim

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// p45: if others delete nodes, no more of a fleet's machines are deleted for that at a time than the
// replacement budget allows.
type p45 struct {
	*World
	gone map[string]int // number of machines deleted with their nodes and not replaced yet, by UID of the deployment
}

func newP45(w *World) p45 { return p45{w, map[string]int{}} }

func (w p45) see(e event) {
	switch e := e.(type) {
	case effect:
		for _, d := range w.deployments.all() {
			if w.gone[d.UID] > 0 {
				w.discountReplaced(d)
			}
		}
	case deletedWithNode:
		if d := w.deploymentOf(e.key); d != nil && !d.Deleted() {
			w.gone[d.UID]++
			w.discountReplaced(d)
			w.checkFollowed(d, e.key.Name)
		}
	}
}

// deploymentOf returns the deployment of a machine, or nil.
func (w p45) deploymentOf(k object.Key) *deployment.Deployment {
	m, err := w.machines.Get(context.Background(), k)
	if err != nil {
		return nil
	}
	s := w.setRecords[ownerUID(m)]
	if s == nil || s.last.Owner == nil {
		return nil
	}
	return w.deployment(s.last.Owner.Name)
}

// discountReplaced lowers the count of a deployment to the number of machines that are still missing.
func (w p45) discountReplaced(d *deployment.Deployment) {
	missing := int(max(d.Spec.Replicas, 0))
	for _, m := range w.fleetOf(d) {
		if w.inService(m) {
			missing--
		}
	}
	w.gone[d.UID] = min(w.gone[d.UID], max(missing, 0))
}

// inService reports whether a machine exists and is not being replaced.
func (w p45) inService(m *machine.Machine) bool {
	if m.Deleted() {
		return false
	}
	switch m.Status.Phase {
	case machine.PhaseRunning, machine.PhaseAvailable, machine.PhaseUnknown,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
		return true
	}
	return w.isPaused(m) || m.Preserved(w.managerNow())
}

func (w p45) checkFollowed(d *deployment.Deployment, name string) {
	p := w.o.Manager.Policies.Safety
	if p == nil || p.Off {
		return
	}
	if limit := max(1, int(p.Replacements.Ceil(max(d.Spec.Replicas, 0)))); w.gone[d.UID] > limit {
		w.violate("P45", "machine %s followed its node, which makes %d of %s at a time; %d may be", name, w.gone[d.UID], d.Name, limit)
	}
}
