package gallery_test

// theirs are mistakes that were chosen from the library's code and from what it
// is to do, by somebody who had read none of its checks.
var theirs = []mutant{
	// Creation.
	{
		"that no create was ever issued stays noted when one is announced",
		"no VM is left behind: DeleteMachine is called before the finalizer goes",
		"machine/create.go",
		`				s.NeverCreated = false
				d.announceSpec(s)`,
		`				d.announceSpec(s)`,
	},
	{
		"a VM is initialized only if the driver says that it is not, so one just made is not",
		"a VM that needs it is initialized before its machine goes on",
		"machine/create.go",
		`if d.o.NoInitialize || !uninitialized && !d.began() {`,
		`if d.o.NoInitialize || !uninitialized {`,
	},
	// Health.
	{
		"the health clock starts over whenever a condition of the node changes",
		"a machine that is unhealthy for longer than the health timeout is given up",
		"machine/health.go",
		`func(s *Status) { takeOver(s, n) })`,
		`func(s *Status) {
		takeOver(s, n)
		s.Since = d.stamp()
	})`,
	},
	// Deletion.
	{
		"force goes on though the VM could not be deleted",
		"no finalizer goes before DeleteMachine has answered OK or NOT_FOUND, not even by force",
		"machine/remove.go",
		`	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.stageFailed(StageInitiateVMDeletion, answer.Outcome)`,
		`	if answer.Code != codes.OK && answer.Code != codes.NotFound && !d.forced() {
		return d.stageFailed(StageInitiateVMDeletion, answer.Outcome)`,
	},
	{
		"a failed stage of a deletion is tried again at once, whatever wakes the machine",
		"failures are tried again by the recovery table, ever more rarely",
		"machine/remove.go",
		`	if plan, wait := d.removeGate(); wait {
		return plan
	}
	switch op.Stage {`,
		`	switch op.Stage {`,
	},
	{
		"a deleted set lets go of its finalizer while its machines are still on their way out",
		"a set that is being deleted goes after its machines",
		"machineset/deletion.go",
		`	if d.census.owned > 0 {`,
		`	if d.census.active > 0 {`,
	},
	// Drain.
	{
		"the next pod with volumes is told to go before those of the last one have left",
		"pods with volumes leave one at a time",
		"drain/attempt.go",
		`if free && (next < 0 || goesBefore(p, d.o.Pods[next])) {`,
		`if next < 0 || goesBefore(p, d.o.Pods[next]) {`,
	},
	{
		"nobody looks again when an eviction that was refused may be tried the next time",
		"an eviction that a budget refuses is tried again after 20 s",
		"drain/attempt.go",
		`	d.lookAgain(t)
	if d.p.MaxEvictRetries > 0 {`,
		`	if d.p.MaxEvictRetries > 0 {`,
	},
	// Scaling.
	{
		"a set gives out names for missing machines by what its cache shows",
		"stale reads never create a machine twice",
		"machineset/reservation.go",
		`	if plan, busy := d.readLive("creating machines"); busy {
		return plan, true
	}
	n := int64(`,
		`	n := int64(`,
	},
	{
		"a set is lowered without being told which machines a scaler has chosen",
		"machines that a scaler has marked go first",
		"deployment/scale.go",
		`	d.handOver(steps)
	var plan Plan`,
		`	var plan Plan`,
	},
	// Claiming.
	{
		"a set adopts machines without an owner that its selector does not pick",
		"a set adopts what matches, and leaves the rest alone",
		"machineset/claim.go",
		`m.Namespace == d.s.Namespace &&
			d.s.Spec.Selector.Matches(m.Labels) {`,
		`m.Namespace == d.s.Namespace {`,
	},
	// Rollout.
	{
		"creations of an old set that are still on their way are not counted",
		"orders that are not visible yet count as done: never more than R + S machines",
		"deployment/count.go",
		`most := f.has()`,
		`most := int64(f.actual)`,
	},
	{
		"with Recreate, new machines are made while old ones are still terminating",
		"Recreate waits until the old sets' machines are gone",
		"deployment/rollout/recreate.go",
		`d.extend(true)`,
		`d.extend(false)`,
	},
	// Updates in place.
	{
		"machines that are selected for an update, and about to stop, count as available",
		"an update in place keeps R - U machines available",
		"deployment/count.go",
		`f.available-f.leaving-f.given`,
		`f.available-f.given`,
	},
	{
		"a node that a user had cordoned is uncordoned after an update in place",
		"what others have done to a node is not undone",
		"machine/update_marks.go",
		`if !n.Drain.Cordoned.IsZero() && !w.Cordoned {`,
		`if !w.Cordoned {`,
	},
	{
		"nobody looks after a machine whose update has failed",
		"a failed update is tried again, withdrawn, or given up after the health timeout",
		"machine/decide.go",
		`	case PhaseRunning, PhaseUnknown, PhaseInPlaceUpdateFailed:
		return d.watch()`,
		`	case PhaseRunning, PhaseUnknown:
		return d.watch()`,
	},
	// Safety.
	{
		"a replacement is granted without its slot being written first",
		"no more machines are in replacement than the budget says, also if several ask at a time",
		"safety/grant.go",
		`return d.take(), nil`,
		`return GrantPlan{Grant: &machine.Grant{Allowed: true}, Why: why}, nil`,
	},
	{
		"clocks are not restarted after an outage",
		"nobody is judged by the time in which nothing could be seen",
		"safety/reach.go",
		`		d.r.From = stamp(d.now)
		return d.restart()`,
		`		return d.restart()`,
	},
	{
		"VMs that no machine owns are deleted by name instead of by ID",
		"of several VMs of one name, the one that a machine has recorded stays",
		"manager/orphanvms.go",
		`m.Spec.ProviderID, m.Spec.Class.Name = order.ProviderID, order.Class.Name`,
		`m.Spec.Class.Name = order.Class.Name`,
	},
	// Classes.
	{
		"a class is let go while machines of it are being deleted",
		"a class stays as long as a machine refers to it: without it no VM can be deleted",
		"manager/classes.go",
		`func(*machine.Machine) bool { return true })`,
		`func(m *machine.Machine) bool { return !m.Deleted() })`,
	},
	// The store.
	{
		"the status is written whatever version the writer has read",
		"a writer that has read an old state fails, and begins anew",
		"store/write.go",
		`case !matches(stored.ObjectMeta(), w.object.ObjectMeta()):`,
		`case w.verb != reporting && !matches(stored.ObjectMeta(), w.object.ObjectMeta()):`,
	},
}
