package gallery_test

// ofMachinepool are mistakes in package machinepool.
var ofMachinepool = []mutant{
	{
		name:   "an instance whose node has another spelling of its ID has no node",
		breaks: "P34",
		file:   "machinepool/nodes.go",
		from:   "\tvar instances object.Spellings\n",
		to:     "\tvar instances object.Spellings\n\tif len(ids) >= 0 {\n\t\treturn nil\n\t}\n",
		by:     openStorms,
	},
	{
		name:   "a group is created with one instance too many",
		breaks: "P30",
		file:   "machinepool/act.go",
		from: `n := d.wanted()
	why`,
		to: `n := d.wanted() + 1
	why`,
		by: poolStorms,
	},
	{
		name:   "a pool scales a group whose size the provider sets",
		breaks: "P31",
		file:   "machinepool/decide.go",
		from:   "if d.autoscaled() && d.found() {",
		to:     "if d.p.Autoscaled && d.found() {",
		by:     poolStorms,
	},
	{
		name:   "surplus instances are removed without a drain",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "if d.o.NoDrain || d.nodeless(l.ProviderID) || drained ||",
		to:     "if d.o.NoDrain || d.nodeless(l.ProviderID) || drained || exit == ExitScaleDown ||",
		by:     poolStorms,
	},
	{
		name:   "a group that is being deleted counts as gone",
		breaks: "P35",
		file:   "machinepool/leave.go",
		from:   "(answer.Code == codes.OK || answer.Code == codes.NotFound) {",
		to:     "(answer.Code == codes.OK || answer.Code == codes.NotFound || answer.Code == codes.Aborted) {",
		by:     poolStorms,
	},
	{
		name:   "the group of a deleted pool is deleted although another pool has it now",
		breaks: "P35",
		file:   "machinepool/leave.go",
		from:   "if !d.o.Fresh { // the pool may be gone",
		to:     "if !d.o.Fresh && d.o.Class == nil { // the pool may be gone",
		by:     "TestRemoval",
	},
	{
		name:   "new bounds of updates are not passed to the group",
		breaks: "the provider gets the bounds of a pool's updates",
		file:   "machinepool/report.go",
		from:   "samePointer(a.RollingUpdate, b.RollingUpdate) && a.Template",
		to:     "a.Template",
		by:     "TestRollingUpdate",
	},
	{
		name:   "a bootstrap token is created for a pool that may be gone",
		breaks: "no bootstrap token is left",
		file:   "machinepool/act.go",
		from:   "if b.OwnToken && !d.o.Fresh {",
		to:     "if b.OwnToken && !d.o.Fresh && d.o.Class == nil {",
		by:     "TestOwnToken",
	},
	{
		name:   "the bootstrap token for later instances is not renewed",
		breaks: "P36",
		file:   "machinepool/act.go",
		from:   "return d.o.Nodes != nil && d.wanted() >= d.o.Group.Target && (d.joined < d.wanted() || d.unjoined())",
		to:     "return d.o.Nodes != nil && d.wanted() >= d.o.Group.Target && d.joined < d.wanted() && d.s.Status.Phase == PhaseProvisioning",
		by:     poolStorms,
	},
	{
		name:   "an update counts as never sent if the process was killed",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "s.Applied = s.Applied.uncertain()",
		to:     "s.Applied = s.Applied.Clone()",
		by:     "TestKilledAnywhere",
	},
	{
		name:   "a failed call for a pool is retried at once",
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
		name:   "a call for a pool is made without an announcement",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "if !d.o.Announced || op.Call != call ||",
		to:     "if op.Call != call ||",
		by:     "TestAnnouncements|TestDeletionEnds",
	},
	{
		name:   "a call is made with the announcement of an earlier pass",
		breaks: "P36",
		file:   "machinepool/decide.go",
		from:   "if !d.o.Announced ||",
		to:     "if !d.o.Fresh ||",
		by:     "TestEachOrderIsAnnounced",
	},
	{
		name:   "ScalePool makes a group smaller that still has its instances",
		breaks: "P30",
		file:   "machinepool/act.go",
		from:   "to = max(wanted, d.notGoing())",
		to:     "to = min(target, wanted)",
		by:     "TestRemovalAfterDrain|TestInstancesWithoutNodesNeedNoDrain",
	},
	{
		name:   "an instance whose node is not known counts as drained",
		breaks: "P48",
		file:   "machinepool/nodes.go",
		from:   " && len(d.o.Unmatched) == 0",
		to:     "",
		by:     "TestP48NoneIsRemovedUndrained|TestP48NodesThatComeLate",
	},
	{
		name:   "an instance counts as gone after one answer without it",
		breaks: "P60",
		file:   "machinepool/decide.go",
		from:   "return missed && d.o.Group.At.Sub(since) >= d.p.Poll",
		to:     "return missed && d.o.Group.At.Sub(since) >= 0",
		by:     "TestP60OneAnswerIsNotBelieved",
	},
	{
		name:   "a group counts as gone after one answer without it",
		breaks: "P60",
		file:   "machinepool/decide.go",
		from:   "d.o.Group.At.Sub(m.Gone) < d.p.Period",
		to:     "d.o.Group.At.Sub(m.Gone) < 0",
		by:     "TestP60OneAnswerIsNotBelieved|TestGoneAfterSecondAnswer",
	},
	{
		name:   "ready instances are removed before others",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "return v.class - w.class",
		to:     "return w.class - v.class",
		by:     "TestRemovalOrder|TestSizes",
	},
	{
		name:   "an instance is replaced while others are being replaced",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   `if id := d.toReplace(); id != "" && len(want) == 0 {`,
		to:     `if id := d.toReplace(); id != "" && !contains(want, id) {`,
		by:     "TestReplacement",
	},
	{
		name:   "the drain of an instance has no timeout",
		breaks: "P34",
		file:   "machinepool/leave.go",
		from:   "drained || !d.now.Before(d.overdueAt(l)) {",
		to:     "drained {",
		by:     "TestRemovalAfterDrain|TestSizes",
	},
}
