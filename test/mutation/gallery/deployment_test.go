package gallery_test

// ofDeployment are mistakes in package deployment.
var ofDeployment = []mutant{
	{
		name:   "machines are selected for an update in place to a class that is not there",
		breaks: "class first",
		file:   "deployment/scale.go",
		from:   `NoSelect: d.o.Frozen || d.unusableClass() != "" ||`,
		to:     `NoSelect: d.o.Frozen ||`,
		by:     openStorms,
	},
	{
		name:   "an old set keeps a node template that no API server accepts",
		breaks: "rollouts end",
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
		name:   "a deployment sizes its sets by its cache",
		breaks: "P5, P7",
		file:   "deployment/decide.go",
		from:   "if d.o.Read.Live() && (!bound || d.o.Read.Within(machineset.DeleteWithin, d.now)) {",
		to:     "if d.o.Read.Live() || d.p != nil {",
	},
	{
		name:   "machines are replaced on request amid an update in place to what was wanted before",
		breaks: "P5",
		file:   "deployment/setwrite.go",
		from:   "f.paused || f.underWay > 0 ||",
		to:     "f.paused ||",
		by:     "TestRequestsWaitForAnUpdateInPlace",
	},
	{
		name:   "a set is given names with its size while creates under others are on their way",
		breaks: "P12",
		file:   "deployment/count.go",
		from:   "return f.announced == 0 && r.Settled >= 0",
		to:     "return r.Settled >= 0",
		by:     "TestNamesComeWithTheSize",
	},
	{
		name:   "a set is lowered without being told which machines a scaler has chosen",
		breaks: "machines that a scaler has marked go first",
		file:   "deployment/scale.go",
		from:   "d.resized(f, step.To, f.choicesFor(step.To))",
		to:     "d.resized(f, step.To, nil)",
	},
	{
		name:   "creations of an old set that are still on their way are not counted",
		breaks: "orders that are not visible yet count as done: never more than R + S machines",
		file:   "deployment/count.go",
		from:   "most := f.present()",
		to:     "most := int64(f.actual)",
		by:     "TestAnnouncedMachinesCount|TestPausedLeavesRoomForWhatIsAnnounced",
	},
	{
		name:   "machines that are selected for an update, and about to stop, count as available",
		breaks: "an update in place keeps R - U machines available",
		file:   "deployment/count.go",
		from:   "f.available-f.leaving-f.choicesAvailable",
		to:     "f.available-f.choicesAvailable",
	},
	{
		name:   "a class is rolled out though all VMs could be brought to it",
		breaks: "P4",
		file:   "deployment/hotupdate.go",
		from:   "if f == nil || f == d.current || !d.exchangeable(f) {",
		to:     "if f == nil || f == d.current || !d.exchangeable(f) || len(f.machines) > 1 {",
	},
	{
		name:   "a choice is honoured though it is older than the size",
		breaks: "P20",
		file:   "deployment/choices.go",
		from:   "(c.At.After(until) || c.At.Before(since)):",
		to:     "(c.At.After(until) || false && c.At.Before(since)):",
		by:     "TestP20ScalersClock",
	},
	{
		name:   "a choice of an available machine goes below the floor",
		breaks: "P7",
		file:   "deployment/choices.go",
		from:   "case c.set.actual < c.set.size() || c.available && spare <= 0:",
		to:     "case c.set.actual < c.set.size():",
		by:     "TestScenarios",
	},
	{
		name:   "old sets that are in use are pruned",
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
		name:   "to roll back takes the current template",
		breaks: "a rollback goes to the revision that is asked for",
		file:   "deployment/rollback.go",
		from: `		case d.wanted(f.set):
		case found`,
		to: "\t\tcase found",
		by: "TestRollbackAnswers",
	},
	{
		name:   "a rollout that stands still is never overdue",
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
		name:   "a rollback to a template that can't be used is made",
		breaks: "P4",
		file:   "deployment/rollback.go",
		from:   "if bad := restored.invalidField(d.p.Keys); bad != nil {",
		to:     "if bad := restored.invalidField(d.p.Keys); bad != nil && false {",
		by:     "TestRollbackToAnInvalidTemplate",
	},
	{
		name:   "a set of negative size is emptied when a machine has moved",
		breaks: "P7, P10",
		file:   "deployment/setwrite.go",
		from:   "size := max(0, f.size()+int32(delta))",
		to:     "size := max(0, f.set.Spec.Replicas+int32(delta))",
		by:     "TestP10NegativeSizeDuringAMove",
	},
}
