package gallery_test

// ofMachine are mistakes in package machine.
var ofMachine = []mutant{
	{
		name:   "a create is issued without its announcement",
		breaks: "P12, P14",
		file:   "machine/create.go",
		from:   "if !c.announced() {",
		to:     "if !c.announced() && c.m.Status.Phase != PhaseNew {",
	},
	{
		name:   "the record is let go though DeleteMachine was refused",
		breaks: "P14, P16",
		file:   "machine/delete.go",
		from: `if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.stageFailed(answer.Outcome)`,
		to: `if answer.Code == codes.Internal {
		return d.stageFailed(answer.Outcome)`,
	},
	{
		name:   "a machine without a recorded VM counts as never created",
		breaks: "P14, P16",
		file:   "machine/state.go",
		from:   `return m.Spec.ProviderID == "" && (s.NeverCreated || fresh)`,
		to:     `return m.Spec.ProviderID == "" || s.NeverCreated && fresh`,
	},
	{
		name:   "nobody asks for the budget of replacements",
		breaks: "P24",
		file:   "machine/health_grant.go",
		from:   "if !h.o.Budgeted {",
		to:     "if h.o.Budgeted {",
	},
	{
		name:   "a node that is healthy again for a moment does not end its machine's health clock",
		breaks: "P61",
		file:   "machine/health.go",
		from:   "if h.m.Status.Phase == PhaseUnknown {\n\t\treturn h.move(EventRecovered,",
		to:     "if h.m.Status.Phase == PhaseUnknown && h.now.Unix() > h.m.Status.Since.Unix()+120 {\n\t\treturn h.move(EventRecovered,",
		by:     openStorms,
	},
	{
		name:   "a label by hand begins an update in place that the rollout has not selected",
		breaks: "P7",
		file:   "machine/inplace_watch.go",
		from:   "nodeUpdate(u).selected() && !nodeUpdate(u).waits() &&",
		to:     "nodeUpdate(u).selected() &&",
		by:     openStorms,
	},
	{
		name:   "labels that others take off a node stay off as long as the template is the same",
		breaks: "P62",
		file:   "machine/node_sync.go",
		from:   "if is, ok := have[k]; (!ok || is != v) && (own",
		to:     "if is, ok := have[k]; !vouched && (!ok || is != v) && (own",
		by:     openStorms,
	},
	{
		name:   "what another program undoes is put back at once, each time",
		breaks: "P64",
		file:   "machine/node_undone.go",
		from:   "if w.again == 0 {",
		to:     "if w.again >= 0 {",
		by:     openStorms,
	},
	{
		name:   "labels that others put on a node go with the next write",
		breaks: "P62",
		file:   "machine/node_sync.go",
		from:   "s.n.Labels = s.mergeForeign(s.n.Labels, s.n.Applied.Labels, t.Labels, ownLabel)",
		to:     "s.n.Labels = s.mergeForeign(nil, s.n.Applied.Labels, t.Labels, ownLabel)",
		by:     openStorms,
	},
	{
		name:   "any second answer of an agent mends a failed update",
		breaks: "P65",
		file:   "machine/inplace_watch.go",
		from:   "answered := selected && !outdated && u.n.result(&u.p.Keys) == UpdateSuccessful",
		to:     `answered := selected && !outdated && u.n.result(&u.p.Keys) != ""`,
		by:     openStorms,
	},
	{
		name:   "the answer of an agent to an earlier update stays on the node",
		breaks: "P3",
		file:   "machine/inplace_marks.go",
		from:   "if w.noAnswer {",
		to:     "if w.noAnswer && u.n == nil {",
		by:     openStorms,
	},
	{
		name:   "a node that restarts amid its update in place has failed",
		breaks: "P65",
		file:   "machine/inplace.go",
		from:   "known := result == UpdateSuccessful || result == UpdateFailed",
		to:     "known := result == UpdateSuccessful || result == UpdateFailed\n\tif bad := u.n.judge(u.p.nodeConditions(u.m)); !bad.healthy() {\n\t\tlate = true\n\t}",
		by:     openStorms,
	},
	{
		name:   "a machine asks for no grant when others delete its node",
		breaks: "P45",
		file:   "machine/node_leaving.go",
		from:   "if plan, wait := d.awaitLeave(n); wait {",
		to:     "if plan, wait := d.awaitLeave(n); wait && n == nil {",
	},
	{
		name:   "a node that joins after the drain is not drained",
		breaks: "P53",
		file:   "machine/delete_drain.go",
		from:   "case d.hasNode() && d.node().UID != status.DrainedNode:",
		to:     `case d.hasNode() && d.node().UID == "":`,
		by:     "TestP53NodesThatJoinLateAreDrained",
	},
	{
		name:   "a create that may have made a VM is forgotten when the name is taken",
		breaks: "P16",
		file:   "machine/create_failure.go",
		from:   "s.OnlyRefused = s.OnlyRefused && madeNothing(code)",
		to:     "s.OnlyRefused = madeNothing(code)",
		by:     "TestP16NoDeleteCallForTheNameOfAnotherVM",
	},
	{
		name:   "a failed look at the VM forgets that a create before it was never answered",
		breaks: "P14",
		file:   "machine/create_failure.go",
		from:   "s.OnlyRefused = s.OnlyRefused && !unanswered",
		to:     "_ = unanswered",
		by:     "TestP14FailedLooksForgetNoCreate",
	},
	{
		name:   "that no create was ever issued stays noted when one is announced",
		breaks: "no VM is left behind: DeleteMachine is called before the finalizer goes",
		file:   "machine/create.go",
		from: `				s.OnlyRefused, s.NeverCreated = c.onlyRefused(), false
				c.begin(s)`,
		to: "\t\t\t\tc.begin(s)",
		by: "TestP13P14P16P17AfterAStorm|TestP13OneVMIsRecordedByAnyProvider",
	},
	{
		name:   "a VM is initialized only if the driver says that it is not, so one just made is not",
		breaks: "a VM that needs it is initialized before its machine goes on",
		file:   "machine/create.go",
		from:   "if c.o.NoInitialize || !uninitialized && !c.began() {",
		to:     "if c.o.NoInitialize || !uninitialized {",
	},
	{
		name:   "the health clock starts over whenever a condition of the node changes",
		breaks: "a machine that is unhealthy for longer than the health timeout is given up",
		file:   "machine/node_look.go",
		from:   "func(status *Status) { takeOver(status, n) })",
		to: `func(status *Status) {
		takeOver(status, n)
		status.Since = s.stamp()
	})`,
	},
	{
		name:   "force goes on though the VM could not be deleted",
		breaks: "no finalizer goes before DeleteMachine has answered OK or NOT_FOUND, not even by force",
		file:   "machine/delete.go",
		from: `	if answer.Code != codes.OK && answer.Code != codes.NotFound {
		return d.stageFailed(answer.Outcome)`,
		to: `	if answer.Code != codes.OK && answer.Code != codes.NotFound && !d.forced() {
		return d.stageFailed(answer.Outcome)`,
	},
	{
		name:   "a new machine's VM is created in a frozen fleet",
		breaks: "P25, P44",
		file:   "machine/decide.go",
		from: `	if d.o.Frozen {
		return Plan{Why: decision.Why{Reason: reasonFrozen}}`,
		to: `	if d.o.Frozen && d.m.Status.Phase != PhaseNew {
		return Plan{Why: decision.Why{Reason: reasonFrozen}}`,
		by: "TestP44DecisionsPassTheirGuards",
	},
	{
		name:   "a verdict that the budget refuses is passed all the same",
		breaks: "P24, P44",
		file:   "machine/health_grant.go",
		from:   "case grant.Allowed && (grant.Until.IsZero() || h.now.Before(grant.Until)):",
		to:     "case grant.Until.IsZero() || h.now.Before(grant.Until):",
		by:     "TestP44DecisionsPassTheirGuards",
	},
	{
		name:   "a VM counts as deleted though DeleteMachine may not be called",
		breaks: "P16, P44",
		file:   "machine/delete.go",
		from:   "if answer.Code != codes.OK && answer.Code != codes.NotFound {",
		to:     "if answer.Code != codes.OK && answer.Code != codes.NotFound && answer.Code != codes.PermissionDenied {",
		by:     "TestP14TheRecordOutlivesTheVM",
	},
	{
		name:   "a record goes though its node has registered again",
		breaks: "P44",
		file:   "machine/delete.go",
		from:   "case d.hasNode():",
		to:     "case d.hasNode() && d.m.Spec.ProviderID == \"\":",
		by:     "TestP44DecisionsPassTheirGuards",
	},
	{
		name:   "the node is deleted before it is stored that the VM is",
		breaks: "P44",
		file:   "machine/delete.go",
		from:   "return d.stage(eventVMDeleted, decision.Why{Reason: reasonVMDeleted, Name: vmName(d.m)})",
		to:     "return d.deleteNode()",
		by:     "TestP44StagesAreStoredInOrderThroughKills",
	},
	{
		name:   "a stage that has nothing to do is left without its move",
		breaks: "P44",
		file:   "machine/delete_stage.go",
		from:   "moves[i] = deletionMove(at, on, Stage(to))",
		to:     "moves[0] = deletionMove(at, on, Stage(to))",
		by:     "TestP44StagesAreStoredInOrderThroughKills",
	},
	{
		name:   "the drain's time counts from the deletion, so hooks use it up",
		breaks: "P21",
		file:   "machine/delete_force.go",
		from:   "return d.after(d.begun(), d.p.drainTimeout(d.m))",
		to:     "return d.after(d.m.DeletedAt, d.p.drainTimeout(d.m))",
		by:     "TestP21HookLeavesTheDrainItsTime",
	},
	{
		name:   "the time of a hook counts from the deletion, so the drain uses it up",
		breaks: "P21",
		file:   "machine/delete_hook.go",
		from:   "until = d.after(since, timeout)",
		to:     "until = d.after(d.m.DeletedAt, timeout)",
		by:     "TestP21ForcedDrainLeavesTheHookItsTime",
	},
	{
		name:   "a failed stage of a deletion is tried again at once, whenever anything wakes the machine",
		breaks: "failures are tried again by the recovery table, ever more rarely",
		file:   "machine/delete.go",
		from: `	if plan, wait := d.removeGate(); wait {
		return plan
	}
	switch stage {`,
		to: "\tswitch stage {",
		by: "TestGatesStayShutOtherwise",
	},
	{
		name:   "a node that a user had cordoned is uncordoned after an update in place",
		breaks: "what others have done to a node is not undone",
		file:   "machine/inplace_marks.go",
		from:   "if !u.n.Drain.Cordoned.IsZero() && !w.Cordoned {",
		to:     "if !w.Cordoned {",
	},
	{
		name:   "nothing reconciles a machine whose update has failed",
		breaks: "a failed update is tried again, withdrawn, or given up after the health timeout",
		file:   "machine/decide.go",
		from: `	case PhaseRunning, PhaseUnknown, PhaseInPlaceUpdateFailed:
		return health(d).watch()`,
		to: `	case PhaseRunning, PhaseUnknown:
		return health(d).watch()`,
	},
	{
		name:   "a machine that is paused is reconciled once it is unhealthy",
		breaks: "P25",
		file:   "machine/pause.go",
		from:   "return paused && !p.notOurs()",
		to:     "return paused && !p.notOurs() && p.m.Status.Phase != PhaseUnknown",
	},
	{
		name:   "an update of a VM that was not answered in time counts as done",
		breaks: "P26",
		file:   "machine/hotupdate.go",
		from:   "if answer.Code == codes.OK {",
		to:     "if answer.Code == codes.OK || answer.Code == codes.DeadlineExceeded {",
		by:     "TestLastAppliedHoldsAllThatMayBeThere|TestGatesFollowTheRecoveryTable",
	},
	{
		name:   "a machine is unhealthy for a second and fails",
		breaks: "P24",
		file:   "machine/health.go",
		from: `	if h.now.Before(at) {
		return Plan{At: at, Why: wait}
	}`,
		to: `	if h.now.Before(h.m.Status.Since.Add(1e9)) {
		return Plan{At: at, Why: wait}
	}`,
		by: "TestLongestTimeoutsAreNotOver|TestP25ClocksRestartOnThaw",
	},
	{
		name:   "a verdict rests on a cache",
		breaks: "P24",
		file:   "machine/health.go",
		from: `	if h.o.Node.cached() {
		return h.look(false)
	}
	name := h.m.Spec.NodeName
`,
		to: `	name := h.m.Spec.NodeName
`,
		by: "TestP23P26P28PreservedThroughAStorm",
	},
	{
		name:   "a drain deletes what is left once its node would have been silent for long",
		breaks: "P22",
		file:   "machine/delete_drain.go",
		from:   "Until: d.forceAnyway()}",
		to:     "Until: d.forceAt()}",
		by:     "TestP22SilenceLastsUntilTheNodeWasRead",
	},
	{
		name:   "a node that was read stays silent for as long as a pass takes",
		breaks: "P22",
		file:   "machine/delete_force.go",
		from:   "if d.o.Node.Read.Live() && !d.o.Node.Read.Covers(due) && !d.now.Before(due) {",
		to:     "if d.o.Node.Read.Live() && !d.now.Before(at) {",
		by:     "TestP22SilenceLastsUntilTheNodeWasRead",
	},
	{
		name:   "the node of another machine counts as one's own",
		breaks: "P17",
		file:   "machine/node_look.go",
		from:   `return s.owner != "" && s.owner != s.m.Name || s.o.Node != nil`,
		to:     `return s.owner != "" && s.owner == s.m.Namespace || s.o.Node != nil`,
		by:     "TestEveryWayOfAnUpdateIsTold|TestP17NodesOfOthersAreLeftAlone",
	},
	{
		name:   "a node counts as one's own though its provider ID is recorded for another machine",
		breaks: "P17",
		file:   "machine/node_look.go",
		from:   `return s.o.Node.Of != "" || s.p.ProviderIDsMatch`,
		to:     `return s.p.ProviderIDsMatch`,
		by:     "TestP17NodesOfOthersAreLeftAlone",
	},
	{
		name:   "a grant that has lapsed is used",
		breaks: "P24",
		file:   "machine/health_grant.go",
		from:   "case grant.Allowed && (grant.Until.IsZero() || h.now.Before(grant.Until)):",
		to:     "case grant.Allowed:",
		by:     "TestP24NoVerdictWithoutAGrant",
	},
	{
		name:   "labels that were ours stay on the node",
		breaks: "P23",
		file:   "machine/node_merge.go",
		from: `	for k, v := range last {
		if out[k] == v {`,
		to: `	for k, v := range last {
		if out[k] != v {`,
		by: "TestARecordThatIsMissingIsNotEmpty|TestP23MarksOfOthersStay",
	},
	{
		name:   "a taint of somebody else goes with ours",
		breaks: "P23",
		file:   "machine/node_merge.go",
		from:   "return slices.Contains(last, t) || slices.ContainsFunc(want, t.Same)",
		to:     "return len(last) > 0 || slices.ContainsFunc(want, t.Same)",
		by:     "TestP23MarksOfOthersStay|TestTemplatesAreAppliedThreeWay",
	},
	{
		name:   "a bootstrap token outlives the join",
		breaks: "P14",
		file:   "machine/create_token.go",
		from:   "if t.o.Token != TokenNeeded || t.o.TokenRemoved != nil {",
		to:     "if t.o.Token != TokenNeeded || t.o.TokenRemoved == nil {",
		by:     "TestTokensAfterAStorm|TestTokensCostThreeCalls",
	},
	{
		name:   "a token ends after the machine's time",
		breaks: "P21",
		file:   "machine/create_token.go",
		from:   "return t.creationDeadline().Truncate(time.Second)",
		to:     "return t.creationDeadline().Add(time.Hour).Truncate(time.Second)",
		by:     "TestTokensLastUntilTheDeadline",
	},
	{
		name:   "a lost VM's machine fails by the list alone",
		breaks: "P41",
		file:   "machine/health_lost.go",
		from: `	if vm == nil {
		return ask, true
	}
	return h.move`,
		to: "\treturn h.move",
		by: "TestNoVMIsLostForAList|TestStories",
	},
	{
		name:   "a machine that is kept for inspection fails for its VM",
		breaks: "P41",
		file:   "machine/health_lost.go",
		from:   "h.o.Class != nil && !h.preserved()",
		to:     "h.o.Class != nil",
		by:     "TestNoVMIsLostForAList",
	},
	{
		name:   "a machine with an unhealthy VM fails without its health timeout",
		breaks: "P54",
		file:   "machine/health_lost.go",
		from:   "h.verdictAt(h.m.Status.Since, timeout)",
		to:     "h.verdictAt(h.m.Status.Since, 0)",
		by:     "TestP54NoVMIsGivenUpByOneAnswer",
	},
	{
		name:   "an unhealthy VM is healthy while the provider is out",
		breaks: "P54",
		file:   "machine/health_lost.go",
		from:   "case vm.Code != codes.OK: // an outage",
		to:     "case vm.Code == codes.NotFound: // an outage",
		by:     "TestP54NoVMIsGivenUpByOneAnswer",
	},
	{
		name:   "a machine is kept one period more when its time is up",
		breaks: "P21",
		file:   "machine/preserve_record.go",
		from:   "return !p.Since.IsZero() && now.Before(p.Until)",
		to:     "return !p.Since.IsZero() && !now.After(p.Until)",
		by:     "TestP28PreservedIsQuietUntilItsEnd|TestToBePreserved",
	},
	{
		name:   "preservation is asked for again endlessly",
		breaks: "P28",
		file:   "machine/preserve.go",
		from:   "p.Since, p.Until, p.Ended, p.Drained = time.Time{}, time.Time{}, k.stamp(), false",
		to:     "p.Since, p.Until, p.Drained = time.Time{}, time.Time{}, false",
		by:     "TestP28PreservedIsQuietUntilItsEnd",
	},
}
