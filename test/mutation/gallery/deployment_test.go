package gallery_test

// ofDeployment are mistakes in package deployment.
var ofDeployment = []mutant{
	{
		name:   "machines are selected for an update in place to a class that does not exist",
		breaks: "an update in place waits for its class",
		file:   "deployment/scale.go",
		from:   `NoSelect: d.o.Frozen || d.unusableClass() != "" ||`,
		to:     `NoSelect: d.o.Frozen ||`,
		by:     openStorms,
	},
	{
		name:   "an old set keeps a node template that the API server refuses",
		breaks: "every rollout ends",
		file:   "deployment/newset.go",
		from:   "case f.set.Deleted() || have.InvalidEntry() == nil",
		to:     "case f.set != nil || have.InvalidEntry() == nil",
		by:     "TestInvalidEntriesAreTakenBackFromAllSets",
	},
	{
		name:   "an update in place never stops for failures",
		breaks: "P46",
		file:   "deployment/failures.go",
		from:   "limit = int64(bounds.Surge) + int64(bounds.Unavailable)",
		to:     "return 0",
		by:     "TestScenarios",
	},
	{
		name:   "a deployment sets the sizes of its sets by a stale cache",
		breaks: "P5, P7",
		file:   "deployment/decide.go",
		from:   "if d.o.Read.Live() && (!bound || d.o.Read.Within(machineset.DeleteWithin, d.now)) {",
		to:     "if d.o.Read.Live() || d.p != nil {",
	},
	{
		name:   "machines are replaced on request during an update in place to an outdated template",
		breaks: "P5",
		file:   "deployment/setwrite.go",
		from:   "f.paused || f.underWay > 0 ||",
		to:     "f.paused ||",
		by:     "TestRequestsWaitForAnUpdateInPlace",
	},
	{
		name:   "a set is given names with its size while it may still create machines with others",
		breaks: "P12",
		file:   "deployment/count.go",
		from:   "return f.announced == 0 && r.Settled >= 0",
		to:     "return r.Settled >= 0",
		by:     "TestNamesComeWithTheSize",
	},
	{
		name:   "a set is scaled down without the names of the machines that an autoscaler has chosen",
		breaks: "machines that an autoscaler has chosen are deleted first",
		file:   "deployment/scale.go",
		from:   "d.resized(f, step.To, f.choicesFor(step.To))",
		to:     "d.resized(f, step.To, nil)",
	},
	{
		name:   "creates of an old set that are not visible yet are not counted",
		breaks: "writes that are not visible yet count: never more than replicas + surge machines",
		file:   "deployment/count.go",
		from:   "most := f.present()",
		to:     "most := int64(f.actual)",
		by:     "TestAnnouncedMachinesCount|TestPausedLeavesRoomForWhatIsAnnounced",
	},
	{
		name:   "machines that are selected for an update count as available",
		breaks: "an update in place keeps replicas - unavailable machines available",
		file:   "deployment/count.go",
		from:   "f.available-f.leaving-f.choicesAvailable",
		to:     "f.available-f.choicesAvailable",
	},
	{
		name:   "a class is rolled out though all VMs can be updated to it",
		breaks: "P4",
		file:   "deployment/hotupdate.go",
		from:   "if f == nil || f == d.current || !d.exchangeable(f) {",
		to:     "if f == nil || f == d.current || !d.exchangeable(f) || len(f.machines) > 1 {",
	},
	{
		name:   "a choice of machines to delete is used though the size has changed since",
		breaks: "P20",
		file:   "deployment/choices.go",
		from:   "(c.At.After(until) || c.At.Before(since)):",
		to:     "(c.At.After(until) || false && c.At.Before(since)):",
		by:     "TestP20ScalersClock",
	},
	{
		name:   "the deletion of a chosen machine goes below the least number of available ones",
		breaks: "P7",
		file:   "deployment/choices.go",
		from:   "case c.set.actual < c.set.size() || c.available && spare <= 0:",
		to:     "case c.set.actual < c.set.size():",
		by:     "TestScenarios",
	},
	{
		name:   "old sets that still have machines are deleted",
		breaks: "P10",
		file:   "deployment/count.go",
		from:   "return s.Spec.Replicas == 0 && f.actual == 0 && f.terminating == 0 && f.announced <= 0 &&",
		to:     "return s.Spec.Replicas == 0 && f.actual == 0 && f.announced <= 0 &&",
		by:     "TestPruneConditions",
	},
	{
		name:   "one revision too many is kept",
		breaks: "history keeps as many revisions as it is told to",
		file:   "deployment/rollback.go",
		from:   "for _, f := range old[:max(0, len(old)-int(limit))] {",
		to:     "for _, f := range old[:max(0, len(old)-int(limit)-1)] {",
		by:     "TestPruneWaitsForUpdates|TestRevisions",
	},
	{
		name:   "a rollback uses the current template",
		breaks: "a rollback goes to the revision that is asked for",
		file:   "deployment/rollback.go",
		from: `		case d.wanted(f.set):
		case found`,
		to: "\t\tcase found",
		by: "TestRollbackAnswers",
	},
	{
		name:   "a rollout without progress never exceeds its deadline",
		breaks: "P21",
		file:   "deployment/status.go",
		from: `if due.After(d.now) {
		d.wakeBy(due)
		return false
	}
	return true`,
		to: `if due.After(d.now) {
		d.wakeBy(due)
	}
	return false`,
		by: "TestDeadlineToTheNanosecond",
	},
	{
		name:   "a rollback to an invalid template is made",
		breaks: "P4",
		file:   "deployment/rollback.go",
		from:   "if bad := restored.invalidField(d.p.Keys); bad != nil {",
		to:     "if bad := restored.invalidField(d.p.Keys); bad != nil && false {",
		by:     "TestRollbackToAnInvalidTemplate",
	},
	{
		name:   "a set of negative size is scaled to zero when a machine has moved to another set",
		breaks: "P7, P10",
		file:   "deployment/setwrite.go",
		from:   "size := max(0, f.size()+int32(delta))",
		to:     "size := max(0, f.set.Spec.Replicas+int32(delta))",
		by:     "TestP10NegativeSizeDuringAMove",
	},
}
