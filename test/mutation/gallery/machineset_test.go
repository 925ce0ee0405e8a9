package gallery_test

// ofMachineset are mistakes in package machineset.
var ofMachineset = []mutant{
	{
		name:   "a set decides by a stale cache",
		breaks: "P5, P12",
		file:   "machineset/decide.go",
		from:   "if d.o.Read.Covers(since) {",
		to:     "if d.o.Read.Covers(since) || since.IsZero() {",
	},
	{
		name:   "a set forgets which names it has reserved",
		breaks: "P12",
		file:   "machineset/reservation.go",
		from:   "if !d.inFlight() {",
		to:     "if d.inFlight() || !d.inFlight() {",
	},
	{
		name:   "the names of machines don't depend on the set's UID",
		breaks: "P17",
		file:   "machineset/reservation.go",
		from:   `s.Name + "-" + uidHash(s.UID) + "-"`,
		to:     `s.Name + "-" + uidHash("") + "-"`,
	},
	{
		name:   "a deleted set removes its finalizer while it still has machines",
		breaks: "a deleted set outlives its machines",
		file:   "machineset/decide.go",
		from:   "\tif d.summary.owned > 0 {",
		to:     "\tif d.summary.active > 0 {",
	},
	{
		name:   "a set reserves names by a stale cache",
		breaks: "stale reads never create a machine twice",
		file:   "machineset/reservation.go",
		from: `	if plan, found := d.readLive("creating machines"); found {
		return plan, true
	}
	n := int64(`,
		to: "\tn := int64(",
		by: "TestNeverTwice",
	},
	{
		name:   "a set adopts machines that its selector does not match",
		breaks: "a set adopts only machines that its selector matches",
		file:   "machineset/claim.go",
		from: `m.Namespace == d.s.Namespace &&
			d.s.Spec.Selector.Matches(m.Labels) {`,
		to: "m.Namespace == d.s.Namespace {",
	},
	{
		name:   "a set deletes failed machines that are preserved",
		breaks: "P19",
		file:   "machineset/preserve.go",
		from:   "return m.Preserved(d.now) || m.ToBePreserved(d.p.Keys.Preserve)",
		to:     "return m.ToBePreserved(d.p.Keys.Preserve)",
	},
	{
		name:   "a set replaces failed machines before it is sure that they are being deleted",
		breaks: "P7",
		file:   "machineset/scale.go",
		from:   "short-d.summary.arriving-d.staying()",
		to:     "short-d.summary.arriving",
		by:     "TestP7NoReplacementWhileDeletionRefused",
	},
	{
		name:   "machines are replaced for age an hour too early",
		breaks: "machines are not replaced for age before their maximum age",
		file:   "machineset/replace.go",
		from:   "case d.now.Before(at):",
		to:     "case d.now.Before(at.Add(-time.Hour)):",
		by:     "TestNextExpiryIsWaitedFor|TestExpiryWithinBounds",
	},
	{
		name:   "no machine is replaced for age",
		breaks: "P21",
		file:   "machineset/replace.go",
		from:   "e.oldest.limit = int(d.p.ExpireAtOnce)",
		to:     "e.oldest.limit = 0",
	},
	{
		name:   "the deletion priority of machines is ignored",
		breaks: "P19",
		file:   "machineset/deletionorder.go",
		from:   "uint64(priority-math.MinInt32)<<priorityShift",
		to:     "uint64(0*priority)<<priorityShift",
	},
	{
		name:   "an available machine with a replace request is deleted before an unavailable one",
		breaks: "P7",
		file:   "machineset/deletionorder.go",
		from:   "case !available && Requested(",
		to:     "case Requested(",
		by:     "TestReplaceRequestsInDeletionOrder",
	},
	{
		name:   "failed machines that never ran are replaced without a backoff",
		breaks: "P3",
		file:   "machineset/crashloop.go",
		from:   "\tif rounds <= 1 || p.CrashLoopBase <= 0 {",
		to:     "\tif rounds >= 1 || p.CrashLoopBase <= 0 {",
		by:     "TestCrashLoopDelays|TestAdoptAndRelease",
	},
	{
		name:   "reserved names are released while creates may be in flight",
		breaks: "P12",
		file:   "machineset/reservation.go",
		from:   "return at.Add(2*d.p.RequestTimeout + time.Second)",
		to:     "return at.Add(d.p.RequestTimeout / 2)",
		by:     "TestCrashes|TestNoCreateAfterUntil",
	},
	{
		name:   "machines are created with names whose reservation has expired",
		breaks: "P12",
		file:   "machineset/reservation.go",
		from:   "if short > 0 && d.now.Before(d.createUntil()) && d.mayCreate() {",
		to:     "if short > 0 && d.mayCreate() {",
		by:     "TestNoCreateAfterUntil|TestCrashes",
	},
	{
		name:   "one more name is reserved than machines are missing",
		breaks: "P12",
		file:   "machineset/reservation.go",
		from:   "n := int64(min(short, d.burst()))",
		to:     "n := int64(min(short+1, d.burst()))",
		by:     "TestRequestedAndExpiredCountsOnce|TestExpiry",
	},
	{
		name:   "terminating machines count as active",
		breaks: "P8",
		file:   "machineset/summary.go",
		from: `		case m.Deleted():
			c.terminating++
		case`,
		to: `		case m.Deleted() && m.Status.Phase == machine.PhaseTerminating:
			c.terminating++
		case`,
		by: "TestDeletionUnderFaults|TestP7NoReplacementWhileDeletionRefused",
	},
	{
		name:   "a machine counts as available before it was ready for long enough",
		breaks: "P6",
		file:   "machineset/summary.go",
		from: `	if !v.d.now.Before(at) {
		c.available++`,
		to: `	if v.d.now.Before(at) {
		c.available++`,
		by: "TestNoExpiry|TestChosenBeforeAvailable",
	},
	{
		name:   "a deleted set counts machines that its selector does not match",
		breaks: "P10",
		file:   "machineset/summary.go",
		from:   "if !v.d.s.Deleted() && !v.matches(m, full) {",
		to:     "if v.d.s.Deleted() && !v.matches(m, full) {",
		by:     "TestAdoptAndRelease|TestLeavingIsLeftAlone",
	},
}
