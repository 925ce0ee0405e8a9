package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// Guard says why a move may not be made, by what its plan was decided from; the zero Why says that it
// may. A guard is an interlock: a decision has checked the same before it plans the move, and never
// asks a guard. What stores a move asks it, so that a mistake in a decision costs no VM.
type Guard func(o *Observation, p *Policy) decision.Why

// GuardOf returns what guards an edge of the tables of machines. Nil: nothing does.
//
//   - No VM is created while the fleet is frozen, or for a machine that has one or is being deleted.
//   - A machine fails for its health only if that is granted, and not while the fleet is frozen.
//   - The VM's deletion is over once DeleteMachine has answered OK or NOT_FOUND, or if it is recorded
//     that no create was ever issued.
//   - The finalizer goes once the node is gone, or is not the machine's.
func GuardOf(table string, e Edge) Guard {
	switch {
	case table == phases.Name && e.On == eventCreate:
		return guardCreate
	case table == phases.Name && (e.On == eventHealthTimeout || e.On == eventLost):
		return guardFailure
	case table == deletions.Name && e.From == string(StageInitiateVMDeletion) && e.To == string(StageInitiateNodeDeletion):
		return guardVMDeleted
	case table == deletions.Name && e.From == string(StageInitiateFinalizerRemoval) && e.To == string(StageGone):
		return guardRelease
	}
	return nil
}

func guardCreate(o *Observation, _ *Policy) (why decision.Why) {
	switch {
	case o.Frozen:
		why.Reason = reasonGuardFrozen
	case o.Machine.Deleted():
		why.Reason = reasonGuardDeleted
	case o.Machine.Spec.ProviderID != "":
		why = decision.Why{Reason: reasonGuardHasVM, Name: o.Machine.Spec.ProviderID}
	}
	return why
}

func guardFailure(o *Observation, _ *Policy) (why decision.Why) {
	switch {
	case o.Frozen:
		why.Reason = reasonGuardFrozen
	case o.Budgeted && (o.Grant == nil || !o.Grant.Allowed):
		why.Reason = reasonGuardNotGranted
	}
	return why
}

func guardVMDeleted(o *Observation, _ *Policy) (why decision.Why) {
	deleted := o.VMDeleted != nil && (o.VMDeleted.Code == codes.OK || o.VMDeleted.Code == codes.NotFound)
	if never := o.Machine.Status.NeverCreated && o.Machine.Spec.ProviderID == ""; !deleted && !never {
		why.Reason = reasonGuardVM
	}
	return why
}

func guardRelease(o *Observation, p *Policy) (why decision.Why) {
	s := situationOf(o, p.WithDefaults(), time.Time{})
	deleted := o.NodeDeleted != nil && (o.NodeDeleted.Code == codes.OK || o.NodeDeleted.Code == codes.NotFound)
	switch {
	case o.NoCluster || deleted:
	case o.Node == nil || o.Node.cached() || o.Node.Failure != "":
		why.Reason = reasonGuardNodeUnknown
	case o.Node.Node != nil && s.ours(o.Node.Node):
		why = decision.Why{Reason: reasonGuardNode, Name: o.Node.Node.Name}
	}
	return why
}
