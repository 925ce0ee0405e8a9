package gallery_test

// ofMachinepool are mistakes in package machinepool.
var ofMachinepool = []mutant{
	{
		name:   "an instance whose node carries its ID otherwise has none",
		breaks: "P34",
		file:   "machinepool/nodes.go",
		from:   "\tvar instances object.Spellings\n",
		to:     "\tvar instances object.Spellings\n\tif len(ids) >= 0 {\n\t\treturn nil\n\t}\n",
		by:     openStorms,
	},
	{
		name:   "a group is made with one instance more than is wanted",
		breaks: "P30",
		file:   "machinepool/act.go",
		from: `n := d.wanted()
	why`,
		to: `n := d.wanted() + 1
	why`,
		by: poolStorms,
	},
	{
		name:   "a size is ordered that is the provider's",
		breaks: "P31",
		file:   "machinepool/decide.go",
		from:   "if d.autoscaled() && d.found() {",
		to:     "if d.p.Autoscaled && d.found() {",
		by:     poolStorms,
	},
	{
		name:   "instances that are too many go as they are",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "if d.o.NoDrain || d.nodeless(l.ProviderID) || drained ||",
		to:     "if d.o.NoDrain || d.nodeless(l.ProviderID) || drained || exit == ExitScaleDown ||",
		by:     poolStorms,
	},
	{
		name:   "a group that is going counts as gone",
		breaks: "P35",
		file:   "machinepool/leave.go",
		from:   "(answer.Code == codes.OK || answer.Code == codes.NotFound) {",
		to:     "(answer.Code == codes.OK || answer.Code == codes.NotFound || answer.Code == codes.Aborted) {",
		by:     poolStorms,
	},
	{
		name:   "the group of a pool that is gone is deleted, even if another pool has it now",
		breaks: "P35",
		file:   "machinepool/leave.go",
		from:   "if !d.o.Fresh { // the pool may be gone",
		to:     "if !d.o.Fresh && d.o.Class == nil { // the pool may be gone",
		by:     "TestRemoval",
	},
	{
		name:   "a group is not told of other bounds of its updates",
		breaks: "that a pool's rolling update is the provider's",
		file:   "machinepool/report.go",
		from:   "samePointer(a.RollingUpdate, b.RollingUpdate) && a.Template",
		to:     "a.Template",
		by:     "TestRollingUpdate",
	},
	{
		name:   "a token is made for a pool that may be gone",
		breaks: "that no token is left",
		file:   "machinepool/act.go",
		from:   "if b.OwnToken && !d.o.Fresh {",
		to:     "if b.OwnToken && !d.o.Fresh && d.o.Class == nil {",
		by:     "TestOwnToken",
	},
	{
		name:   "nobody renews the token for instances that come later",
		breaks: "P36",
		file:   "machinepool/act.go",
		from:   "return d.o.Nodes != nil && d.wanted() >= d.o.Group.Target && (d.joined < d.wanted() || d.unjoined())",
		to:     "return d.o.Nodes != nil && d.wanted() >= d.o.Group.Target && d.joined < d.wanted() && d.s.Status.Phase == PhaseProvisioning",
		by:     poolStorms,
	},
	{
		name:   "an update of a group that was killed counts as never sent",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "s.Applied = s.Applied.uncertain()",
		to:     "s.Applied = s.Applied.Clone()",
		by:     "TestKilledAnywhere",
	},
	{
		name:   "a failed call of a pool is repeated at once",
		breaks: "P21",
		file:   "machinepool/decide.go",
		from: `	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
}`,
		to: `	if d.now.Before(at) {
		return time.Time{}
	}
	return at
}`,
		by: "TestRetryTimes|TestRefusedUpdates",
	},
	{
		name:   "an order is given without its announcement",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "if !d.o.Announced || op.Call != call ||",
		to:     "if op.Call != call ||",
		by:     "TestAnnouncements|TestDeletionEnds",
	},
	{
		name:   "an order goes under what an earlier pass announced, if this pass wrote anything",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "if !d.o.Announced ||",
		to:     "if !d.o.Fresh ||",
		by:     "TestEachOrderIsAnnounced",
	},
	{
		name:   "a group is made smaller by instances that are there",
		breaks: "P30",
		file:   "machinepool/act.go",
		from:   "to = max(wanted, d.staying())",
		to:     "to = min(target, wanted)",
		by:     "TestRemovalAfterDrain|TestInstancesWithoutNodesNeedNoDrain",
	},
	{
		name:   "an instance whose node is not known is empty",
		breaks: "P48",
		file:   "machinepool/nodes.go",
		from:   " && len(d.o.Unmatched) == 0",
		to:     "",
		by:     "TestP48NoneIsRemovedUndrained|TestP48NodesThatComeLate",
	},
	{
		name:   "one answer without an instance is believed",
		breaks: "P60",
		file:   "machinepool/decide.go",
		from:   "return missed && d.o.Group.At.Sub(since) >= d.p.Poll",
		to:     "return missed && d.o.Group.At.Sub(since) >= 0",
		by:     "TestP60OneAnswerIsNotBelieved",
	},
	{
		name:   "one answer without a group is believed",
		breaks: "P60",
		file:   "machinepool/decide.go",
		from:   "d.o.Group.At.Sub(m.Gone) < d.p.Period",
		to:     "d.o.Group.At.Sub(m.Gone) < 0",
		by:     "TestP60OneAnswerIsNotBelieved|TestGoneAfterSecondAnswer",
	},
	{
		name:   "instances that are ready go before others",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "return v.class - w.class",
		to:     "return w.class - v.class",
		by:     "TestRemovalOrder|TestSizes",
	},
	{
		name:   "an instance is replaced while others are",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   `if id := d.toReplace(); id != "" && len(want) == 0 {`,
		to:     `if id := d.toReplace(); id != "" && !contains(want, id) {`,
		by:     "TestReplacement",
	},
	{
		name:   "a drain of an instance has no end",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "drained || !d.now.Before(d.overdueAt(l)) {",
		to:     "drained {",
		by:     "TestRemovalAfterDrain|TestSizes",
	},
}
