package orphan

import "github.com/millwright-go/millwright/decision"

// ofGroups maps reasons about VMs to those about groups.
var ofGroups = map[decision.Reason]decision.Reason{
	reasonList: reasonListGroups, reasonReadMachines: reasonReadPools, reasonSecondLook: reasonGroupSecondLook,
	ReasonDeleteFailed: ReasonGroupDeleteFailed, reasonListFailed: reasonListGroupsFailed, reasonNoID: reasonGroupNoID,
	reasonNoName: reasonGroupNoName, reasonOtherPrefix: reasonGroupOfOthers, reasonNoOrphans: reasonNoOrphanGroups,
	reasonBraked: reasonGroupsBraked, reasonEmptyStore: reasonNoPoolInStore,
	reasonSpelled: reasonGroupsSpelled, reasonStrangersOnly: reasonOtherGroupsOnly,
}

func aboutGroup(w *decision.Why) {
	if r, other := ofGroups[w.Reason]; other {
		w.Reason = r
	}
}

// aboutGroups changes a plan's reasons to those about groups.
func (p *Plan) aboutGroups() {
	aboutGroup(&p.Why)
	for i := range p.List {
		aboutGroup(&p.List[i].Why)
	}
	for i := range p.Warn {
		aboutGroup(&p.Warn[i])
	}
}
