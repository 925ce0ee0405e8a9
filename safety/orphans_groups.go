package safety

// The reasons of decisions about groups whose pool is gone.
const (
	ReasonListGroups        Reason = "ListGroups"
	ReasonReadPools         Reason = "ReadPools"
	ReasonOrphanGroup       Reason = "OrphanGroup"
	ReasonGroupSecondLook   Reason = "SecondLookAtGroups"
	ReasonGroupDeleteFailed Reason = "OrphanGroupDeleteFailed"
	ReasonListGroupsFailed  Reason = "ListGroupsFailed"
	ReasonGroupNoID         Reason = "GroupWithoutID"
	ReasonGroupNoName       Reason = "GroupWithoutName"
	ReasonGroupOfOthers     Reason = "GroupOfOthers"
	ReasonNoOrphanGroups    Reason = "NoOrphanGroups"
	ReasonGroupsBraked      Reason = "TooManyOrphanGroups"
	ReasonNoPoolInStore     Reason = "StoreIsEmptyForGroups"
)

// ofGroups are the reasons that stand for others where groups are looked for.
var ofGroups = map[Reason]Reason{
	ReasonList: ReasonListGroups, ReasonReadMachines: ReasonReadPools, ReasonSecondLook: ReasonGroupSecondLook,
	ReasonDeleteFailed: ReasonGroupDeleteFailed, ReasonListFailed: ReasonListGroupsFailed, ReasonNoID: ReasonGroupNoID,
	ReasonNoName: ReasonGroupNoName, ReasonOtherPrefix: ReasonGroupOfOthers, ReasonNoOrphans: ReasonNoOrphanGroups,
	ReasonBraked: ReasonGroupsBraked, ReasonEmptyStore: ReasonNoPoolInStore,
}

func (w *Why) aboutGroup() {
	if r, other := ofGroups[w.Reason]; other {
		w.Reason = r
	}
}

// aboutGroups has a plan speak of groups.
func (p *OrphanPlan) aboutGroups() {
	p.Why.aboutGroup()
	for i := range p.List {
		p.List[i].Why.aboutGroup()
	}
	for i := range p.Warn {
		p.Warn[i].aboutGroup()
	}
}
