package gallery_test

// wished are mistakes in what users ask of single machines, sets and VMs, and in
// what becomes of volumes.
var wished = []mutant{
	{
		"a machine that is paused is looked after once it is unhealthy", "P25", "machine/pause.go",
		"!paused || d.notOurs() {\n\t\treturn Plan{}, false", "!paused || d.notOurs() || d.m.Status.Phase == PhaseUnknown {\n\t\treturn Plan{}, false",
	},
	{
		"a set replaces failed machines that are kept for inspection", "P19", "machineset/preserve.go",
		"return m.Preserved(d.now) || m.ToBePreserved(d.p.Keys.Preserve)", "return m.ToBePreserved(d.p.Keys.Preserve)",
	},
	{
		"a set makes machines in the place of failed ones that it may have kept", "P7", "machineset/scale.go",
		"short-d.census.arriving-d.staying()", "short-d.census.arriving",
	},
	{
		"all VMs of a fleet are updated at a time", "P7", "manager/updateturns.go",
		"if len(taken) >= limit {", "if len(taken) >= 100*limit {",
	},
	{
		"a class is rolled out though all VMs could be brought to it", "P4", "deployment/hotupdate.go",
		"if f == nil || f == d.current || !d.updatable(f) {", "if f == nil || f == d.current || !d.updatable(f) || len(f.machines) > 1 {",
	},
	{
		"an update of a VM that was not answered in time counts as done", "P26", "machine/hotupdate.go",
		"if answer.Code == codes.OK {", "if answer.Code == codes.OK || answer.Code == codes.DeadlineExceeded {",
	},
	{
		"machines are replaced for their age an hour early", "reason", "machineset/expiry.go",
		"case v.now.Before(at):", "case v.now.Before(at.Add(-time.Hour)):",
	},
	{
		"no machine is replaced for its age", "P21", "machineset/expiry.go",
		"e.oldest.limit = int(v.p.ExpireAtOnce)", "e.oldest.limit = 0",
	},
	{
		"the deletion priority of a machine does not count", "P19", "machineset/victims.go",
		"uint64(priority-math.MinInt32)<<priorityShift", "uint64(0*priority)<<priorityShift",
	},
	{
		"a drain ends, and lets the next pod go, on the word of a cache", "P22", "drain/turn.go",
		"return d.taken || plan.Why.Reason == ReasonUnclaimed || plan.Done && d.holdsVolumes()", "return false",
	},
	{
		"a machine that works and is to be replaced goes before one that does not", "P7", "machineset/chosen.go",
		"case !available && Requested(", "case Requested(",
	},
}
