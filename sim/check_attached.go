package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// p51: no VM is deleted with a volume attached that no drain waited for, unless by force (P51).
type p51 struct{ *p22Volumes }

func (w *p51) see(e event) {
	if e, ok := e.(vmGone); ok && w.acting && !w.isSecondVM(e) && !w.belated && w.faults[ClockJump] == 0 {
		w.checkAttached(e.node)
	}
}

// checkAttached checks each volume that is attached to a deleted VM: a pod uses it, or a drain has waited
// for its detachment for the whole timeout.
func (w *p51) checkAttached(node string) {
	n, err := w.nodes.Get(context.Background(), object.Key{Name: node})
	if err != nil || n.Drain == nil {
		return
	}
	for _, m := range w.machines.all() {
		if m.Name != node || w.drainEnds(m) {
			continue
		}
		for _, a := range w.apps.Attachments(node, nil) {
			took := time.Duration(0)
			if !a.DeletedAt.IsZero() {
				took = w.Now().Sub(a.DeletedAt)
			}
			if !w.inUse(a.Volume, node) && took < w.drainPolicy().DetachTimeout-turnSlack && !w.turnTimedOut(&n.Drain.Turn, a.Volume) {
				w.violate("P51", "the VM of machine %s went with volume %s attached, which nothing had used for %s", node, a.Volume, took)
			}
		}
	}
}

// turnTimedOut reports whether a volume belongs to a recorded turn that has reached its timeout. The timeout
// begins at the end of the pod's grace period, even if the pod ended later.
func (w *p51) turnTimedOut(t *machine.DrainTurn, volume string) bool {
	limit := t.Since.Add(max(t.Grace, 0)).Add(w.drainPolicy().DetachTimeout)
	return slices.Contains(t.Volumes, volume) && !w.managerNow().Before(limit)
}

// inUse reports whether a pod of the node uses a volume, or a pod that no drain evicts may have used it
// until a moment ago.
func (w *p51) inUse(volume, node string) bool {
	here := w.apps.On(node)
	return slices.ContainsFunc(w.apps.UsersOf(volume), func(p *drain.Pod) bool {
		return p.ToleratesCordon || !p.Finished && slices.Contains(here, p)
	})
}
