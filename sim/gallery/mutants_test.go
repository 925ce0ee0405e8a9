package gallery_test

import "slices"

// mutants are the mistakes. Those of the second list were chosen by somebody
// who had not seen the checks.
var mutants = slices.Concat(ours, theirs, wished, pooled)

var ours = []mutant{
	{
		"a create is issued without its announcement", "P12, P14", "machine/create.go",
		"if !d.announced() {", "if !d.announced() && d.m.Status.Phase != PhaseNew {",
	},
	{
		"the record is let go though DeleteMachine was refused", "P14, P16", "machine/remove.go",
		"if answer.Code != codes.OK && answer.Code != codes.NotFound {\n\t\treturn d.stageFailed(StageInitiateVMDeletion, answer.Outcome)",
		"if answer.Code == codes.Internal {\n\t\treturn d.stageFailed(StageInitiateVMDeletion, answer.Outcome)",
	},
	{
		"a machine without a recorded VM counts as never created", "P14, P16", "machine/create.go",
		"return d.m.Spec.ProviderID == \"\" && (s.NeverCreated || fresh)", "return d.m.Spec.ProviderID == \"\" || s.NeverCreated && fresh",
	},
	{
		"a set believes its cache", "P5, P12", "machineset/decide.go",
		"func (d *decision) live() bool { return !d.o.Live.IsZero() }", "func (d *decision) live() bool { return true }",
	},
	{
		"a set forgets which names it has given out", "P12", "machineset/reservation.go",
		"if !d.inFlight() {", "if d.inFlight() || !d.inFlight() {",
	},
	{
		"the ceiling is one too high", "P7", "deployment/rollout/step.go",
		"d.ceiling = d.replicas + surge", "d.ceiling = d.replicas + surge + 1",
	},
	{
		"new machines that are not available are not taken off the budget", "P6", "deployment/rollout/step.go",
		"budget := ordered - d.floor - d.current.lacking()", "budget := ordered - d.floor",
	},
	{
		"a deployment sizes its sets by its cache", "P5, P7", "deployment/decide.go",
		"if d.o.Live && (d.recent() || !bound) {", "if d.o.Live || d.p != nil {",
	},
	{
		"a machine without a recorded VM owns none", "P15", "safety/orphans_owned.go",
		"case m.Spec.ProviderID == \"\":\n\t\treturn inFlight // also where it is being deleted: its VMs are its own until it is gone\n\tcase m.Status.Phase == machine.PhaseNew, m.Status.Phase == machine.PhaseCrashLoopBackOff:\n\t\treturn inFlight\n",
		"case m.Status.Phase == machine.PhaseNew:\n\t\treturn inFlight\n",
	},
	{
		"an outage restarts no clock", "P25", "safety/reach.go",
		"runsSince(m, from) && !isPaused", "false && runsSince(m, from) && !isPaused",
	},
	{
		"a rollout frees the place of a machine that is still there", "P7", "deployment/rollout/step.go",
		"return max(m.spec, m.actual+m.counted) }", "return m.spec }",
	},
	{
		"an eviction that was refused is tried again at once", "P22", "drain/attempt.go",
		"next := last.At.Add(max(Slot, last.RetryAfter))\n\tif start := d.slotStart(d.slotOf(last.At) + 1); next.Before(start) {\n\t\treturn start\n\t}\n\treturn next",
		"return last.At.Add(time.Second)",
	},
	{
		"nobody asks for the budget of replacements", "P24", "machine/grant.go",
		"if !d.o.Budgeted {", "if d.o.Budgeted {",
	},
	{
		"machines are named after their set's name alone", "P17", "machineset/names.go",
		"s.Name + \"-\" + uidHash(s.UID) + \"-\"", "s.Name + \"-\" + uidHash(\"\") + \"-\"",
	},
	{
		"a set is given names with its size while creates under others are on their way", "P12", "deployment/names.go",
		"return f.announced == 0 && r.Settled >= 0", "return r.Settled >= 0",
	},
	{
		"a refused pod is deleted", "P22", "drain/attempt.go",
		"case d.past:\n\t\treturn act{true, ReasonTimeUp, again}", "case d.past, a.Result == Refused:\n\t\treturn act{true, ReasonTimeUp, again}",
	},
}
