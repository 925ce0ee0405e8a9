package gallery_test

// ofSafety are mistakes in the packages below safety.
var ofSafety = []mutant{
	{
		name:   "a machine without a recorded VM owns none",
		breaks: "P15",
		file:   "safety/orphan/owner.go",
		from: `case m.Spec.ProviderID == "":
		return inFlight // even while it is being deleted: its VMs are its own until it is gone
	case m.Status.Phase == machine.PhaseNew, m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return inFlight
`,
		to: `case m.Status.Phase == machine.PhaseNew:
		return inFlight
`,
	},
	{
		name:   "an outage restarts no clock",
		breaks: "P25",
		file:   "safety/reachability/decide.go",
		from:   "runsSince(m, from) && !d.p.Paused",
		to:     "false && runsSince(m, from) && !d.p.Paused",
		by:     "TestP25NoClockRunsThroughAnOutage",
	},
	{
		name:   "a slot counts only while its machine is unhealthy, so machines whose nodes go take one each",
		breaks: "P45",
		file:   "safety/replacement/decide.go",
		from:   "return m.Status.Phase == machine.PhaseFailed || !d.expired(slot)",
		to:     "return m.Status.Phase == machine.PhaseFailed || d.awaits(m) && !d.expired(slot)",
		by:     "TestP45NodesDeletedByOthers|TestP24VerdictsStayWithinTheBudget",
	},
	{
		name:   "a replacement is granted without its slot being written first",
		breaks: "no more machines are in replacement than the budget says, also if several ask at a time",
		file:   "safety/replacement/decide.go",
		from:   "return d.take(), nil",
		to:     "return Plan{Grant: &machine.Grant{Allowed: true}, Why: why}, nil",
		by:     "TestP24VerdictsStayWithinTheBudget|TestTwoWithOneBrokenHeal",
	},
	{
		name:   "clocks are not restarted after an outage",
		breaks: "nobody is judged by the time in which nothing could be seen",
		file:   "safety/reachability/decide.go",
		from: `		d.r.From = times.Stamp(d.now)
		return d.restart()`,
		to: "\t\treturn d.restart()",
		by: "TestP25NoClockRunsThroughAnOutage",
	},
	{
		name:   "nodes of pools have no owner",
		breaks: "P39",
		file:   "safety/unmanaged/decide.go",
		from:   `pooled := n.ProviderID != "" && (`,
		to:     `pooled := n.ProviderID == "" && (`,
		by:     poolStorms,
	},
	{
		name:   "an ID in another spelling is another ID",
		breaks: "P48",
		file:   "safety/orphan/spelling.go",
		from:   "if len(s.ids.Alike(v.id)) > 0 {",
		to:     "if len(s.ids.Alike(v.id)) > 9 {",
		by:     "TestP48SpelledOtherwise|TestInstancesSpelledOtherwise",
	},
	{
		name:   "a list of strangers only is believed",
		breaks: "P48",
		file:   "safety/orphan/spelling.go",
		from:   "case len(d.blind) == 0 || seen[c.Key]:",
		to:     "case len(d.blind) < 9 || seen[c.Key]:",
		by:     "TestNoneOfAClassIsListed|TestOrphanGroupsAreGuarded",
	},
	{
		name:   "a VM is missing after one list",
		breaks: "P41",
		file:   "safety/orphan/missing.go",
		from:   "if asked := d.classOf(u.Class).Listing.Asked; !asked.Before(u.Due) {",
		to:     "if asked := d.classOf(u.Class).Listing.Asked; !asked.Before(u.Since) {",
		by:     "TestMissingTwice|TestNoVMOfAClassIsListed",
	},
	{
		name:   "an old list misses a VM that was made since",
		breaks: "P41",
		file:   "safety/orphan/missing.go",
		from:   "case !seen[id] && l.Asked.Before(m.Status.Since.Add(lagOfLists)):",
		to:     "case !seen[id] && l.Asked.Before(m.Status.Since.Add(-lagOfLists)):",
		by:     "TestNotMissed",
	},
	{
		name:   "all of a class's VMs are missed as soon as one",
		breaks: "P41",
		file:   "safety/orphan/missing.go",
		from:   "case missing > 1 && listed == 0:\n\t\treturn max(gap, allMissGap)",
		to:     "case missing > 1 && listed == 0:\n\t\treturn gap",
		by:     "TestNoVMOfAClassIsListed",
	},
	{
		name:   "most of a class's VMs are missed as soon as one",
		breaks: "P41",
		file:   "safety/orphan/missing.go",
		from:   "case missing > 1 && missing > listed, ",
		to:     "case missing > 1 && missing < listed, ",
		by:     "TestMostVMsMissing",
	},
	{
		name:   "classes are listed without a cluster as seldom as with one",
		breaks: "P54",
		file:   "safety/orphan/missing.go",
		from:   "return c.Asked.Add(d.p.VMPeriod)",
		to:     "return c.Asked.Add(d.p.OrphanPeriod)",
		by:     "TestVMsAreListedAtARate",
	},
	{
		name:   "a class whose quota is used up is tried by all machines",
		breaks: "one creation at a time tries a class that refuses",
		file:   "safety/backoff/backoff.go",
		from:   "case len(c.turns) >= 1<<min(c.good, steps):",
		to:     "case len(c.turns) > 1<<min(c.good, steps):",
		by:     "TestStatesAreValues|TestTurnsAreLimited",
	},
	{
		name:   "a class is slow although it has been changed",
		breaks: "a change of the class is tried at once",
		file:   "safety/backoff/backoff.go",
		from:   "return c.failures > 0 && c.against == ofClass(in) &&",
		to:     "return c.failures > 0 &&",
		by:     "TestInDetail",
	},
	{
		name:   "the wait of a class never grows",
		breaks: "a class that refuses is asked ever more rarely",
		file:   "safety/backoff/backoff.go",
		from:   "for n := 1; n < c.failures && wait < most; n++ {",
		to:     "for n := 1; n < c.good && wait < most; n++ {",
		by:     "TestOneClassDoesNotSlowAnother",
	},
	{
		name:   "a set is frozen one machine too early",
		breaks: "P25",
		file:   "safety/overshoot/decide.go",
		from:   "d.over = d.over || n >= d.upper && grown",
		to:     "d.over = d.over || n >= d.upper-1 && grown",
		by:     "TestFreezesAtTheUpperBoundOnly",
	},
	{
		name:   "a scale-down freezes",
		breaks: "P25",
		file:   "safety/overshoot/decide.go",
		from:   "d.over = d.over || n >= d.upper && grown",
		to:     "d.over = d.over || n >= d.upper || grown && d.over",
		by:     "TestLoneSetScaledDown|TestMadeLate",
	},
	{
		name:   "a frozen fleet thaws as soon as it is below the upper bound",
		breaks: "P25",
		file:   "safety/overshoot/decide.go",
		from: `case d.excused || d.largest <= d.lower():
		d.frozen = false`,
		to: `case d.excused || d.largest < d.upper:
		d.frozen = false`,
		by: "TestStories",
	},
	{
		name:   "machines go for want of an owner that was seen missing once",
		breaks: "P29",
		file:   "safety/ownerless/decide.go",
		from:   "case !d.o.Read.Covers(since[s.UID].Add(d.p.OwnerGap)) ||",
		to:     "case !d.o.Read.Covers(since[s.UID]) ||",
		by:     "TestOwnerlessReadsSeldom|TestOwnerlessWithAnotherOwner",
	},
	{
		name:   "an owner of another UID counts as the owner",
		breaks: "P29",
		file:   "safety/ownerless/decide.go",
		from:   "if seen, yes := before[s.UID]; yes && seen.Owner == s.Owner {",
		to:     `if seen, yes := before[s.UID]; yes && seen.Owner != "" {`,
		by:     "TestOwnerlessWithAnotherOwner",
	},
	{
		name:   "the brake lets one more go",
		breaks: "P15",
		file:   "safety/internal/brake/brake.go",
		from: `if len(b.used) >= b.Most {
		return false`,
		to: `if len(b.used) > b.Most {
		return false`,
		by: "TestBrake|TestBrakeLetsRetriesPass",
	},
	{
		name:   "the brake forgets what went in this period",
		breaks: "P15",
		file:   "safety/internal/brake/brake.go",
		from:   "if now.Before(s.At.Add(period)) {",
		to:     "if !now.Before(s.At.Add(period)) {",
		by:     "TestBrakeLetsRetriesPass|TestBrake",
	},
	{
		name:   "a young node is disowned",
		breaks: "P17",
		file:   "safety/unmanaged/decide.go",
		from: `d.now.Before(at) {
		d.at, d.young`,
		to: `d.now.After(at) {
		d.at, d.young`,
		by: "TestNodesFrozenAndUnmarked|TestNodesWithoutMachine",
	},
	{
		name:   "orphans go by a list of machines older than the list of VMs",
		breaks: "P15",
		file:   "safety/orphan/decide.go",
		from:   "if c.Listing != nil && !d.o.Read.Covers(c.Listing.Answered) {",
		to:     "if c.Listing != nil && !d.o.Read.Covers(c.Listing.Asked) {",
		by:     "TestMachinesAreReadAfterTheListing",
	},
}
