package gallery_test

// ofDrain are mistakes in package drain.
var ofDrain = []mutant{
	{
		name:   "a refused eviction is retried at once",
		breaks: "P22",
		file:   "drain/evict.go",
		from: `next := last.At.Add(max(Slot, last.RetryAfter))
	if start := d.slotStart(d.slotOf(last.At) + 1); next.Before(start) {
		return start
	}
	return next`,
		to: "return last.At.Add(time.Second)",
	},
	{
		name:   "a pod whose eviction was refused is deleted",
		breaks: "P22",
		file:   "drain/evict.go",
		from: `case d.pastDeadline:
		return action{true, reasonTimeUp, again}`,
		to: `case d.pastDeadline, a.Result == Refused:
		return action{true, reasonTimeUp, again}`,
	},
	{
		name:   "the next pod with volumes is evicted before the volumes of the last one are detached",
		breaks: "pods with volumes are evicted one at a time",
		file:   "drain/evict.go",
		from:   "if free && (next < 0 || goesBefore(p, d.o.Pods[next])) {",
		to:     "if next < 0 || goesBefore(p, d.o.Pods[next]) {",
	},
	{
		name:   "a drain does not wake up when a refused eviction may be retried",
		breaks: "a refused eviction is retried after 20 s",
		file:   "drain/evict.go",
		from: `	d.lookAgain(t)
	if most := d.mostSlots(); most > 0 {`,
		to: "\tif most := d.mostSlots(); most > 0 {",
	},
	{
		name:   "a drain ends, or evicts the next pod, by a stale cache",
		breaks: "P22",
		file:   "drain/volumes.go",
		from:   "return d.assumesNoTurn || plan.Done && d.holdsVolumes()",
		to:     "return false",
		by:     "TestTurnsNeedALiveRead",
	},
	{
		name:   "a volume that was attached before its pod finished is not waited for",
		breaks: "P22",
		file:   "drain/volumes.go",
		from:   "		if !turnOf(t, p) {",
		to:     "		if !turnOf(t, p) || p.Finished {",
		by:     "TestVolumesThatComeBeforeTheEndIsSeen",
	},
	{
		name:   "a drain has no timeout",
		breaks: "P21",
		file:   "drain/decide.go",
		from:   "d.pastDeadline = !d.deadline.IsZero() && !d.now.Before(d.deadline)",
		to:     "d.pastDeadline = !d.deadline.IsZero() && d.now.Equal(d.deadline)",
		by:     "TestP21EveryDrainEnds|TestStories",
	},
	{
		name:   "a new request for a drain continues the old drain",
		breaks: "P21",
		file:   "drain/decide.go",
		from:   "case !d.o.Asked.After(d.now) && old.Since.Before(d.o.Asked.Truncate(time.Second)):",
		to:     "case !d.o.Asked.After(d.now) && d.o.Asked.Before(old.Since):",
		by:     "TestAttemptsKeepToSlots",
	},
	{
		name:   "a node that a user had cordoned is uncordoned",
		breaks: "P23",
		file:   "drain/decide.go",
		from:   "if !n.Drain.Cordoned.IsZero() {",
		to:     "if n.Drain.Cordoned.IsZero() {",
		by:     "TestP23UndoReversesOnlyTheDrain",
	},
	{
		name:   "a forced drain waits endlessly for a pod that does not end",
		breaks: "P22",
		file:   "drain/evict.go",
		from: `case !d.now.Before(bound):
		return Plan{Done: true`,
		to: `case !d.now.After(bound.Add(time.Hour)):
		d.lookAgain(bound.Add(time.Hour))
		return Plan{At: d.at, Why: decision.Why{Reason: reasonIncomplete}}
	case !d.now.Before(bound):
		return Plan{Done: true`,
		by: "TestP22ForceEndsWithinItsBound",
	},
	{
		name:   "a drain waits for volumes without a timeout",
		breaks: "P21",
		file:   "drain/volumes.go",
		from: `case late:
		return Plan{Done: true, Why: decision.Why{Reason: reasonDetachEnded, Have: left, For: d.p.DetachTimeout}}`,
		to: `case late && d.o.Forced:
		return Plan{Done: true, Why: decision.Why{Reason: reasonDetachEnded, Have: left, For: d.p.DetachTimeout}}`,
		by: "TestDetachEnds",
	},
	{
		name:   "a drain waits for volumes of another node",
		breaks: "P21",
		file:   "drain/volumes.go",
		from:   `if a == nil || a.Node != d.o.Node.Name || a.Name == "" {`,
		to:     `if a == nil || a.Name == "" {`,
		by:     "TestDetachOnlyThisNode",
	},
	{
		name:   "a forced drain deletes an attachment again and again",
		breaks: "P28",
		file:   "drain/volumes.go",
		from:   "if !a.DeletedAt.IsZero() || answer.Result == Accepted {",
		to:     "if !a.DeletedAt.IsZero() && answer.Result == Accepted {",
		by:     "TestDetachOnlyThisNode",
	},
	{
		name:   "a stale budget counts as misconfigured",
		breaks: "P22",
		file:   "drain/observation.go",
		from:   "return b.ObservedGeneration < b.Generation",
		to:     "return b.ObservedGeneration > b.Generation",
		by:     "TestMisconfigured",
	},
	{
		name:   "a forced drain deletes pods of daemon sets, and others that a drain leaves alone",
		breaks: "P22",
		file:   "drain/evict.go",
		from:   `if p == nil || p.UID == "" || d.exemptFromForce(p) {`,
		to:     `if p == nil || p.UID == "" {`,
		by:     "TestStories",
	},
	{
		name:   "a node gets the out-of-service taint without force",
		breaks: "P22",
		file:   "drain/decide.go",
		from:   "if !d.o.Forced || d.o.Stays || !d.p.OutOfService {",
		to:     "if !d.p.OutOfService {",
		by:     "TestStories",
	},
	{
		name:   "pods that are created again are evicted without a limit",
		breaks: "P49",
		file:   "drain/evict.go",
		from:   "return r.Rounds >= limit || r.Rounds == 0 && len(d.rec.Returns) >= mostReturning",
		to:     "return false && limit > 0",
		by:     "TestP49PodsThatComeBack",
	},
	{
		name:   "eviction rounds are counted from the state of an earlier process",
		breaks: "P49",
		file:   "drain/evict.go",
		from:   "		rec.Returns = append(rec.Returns, d.nextRound(r))",
		to:     "		r = d.nextRound(r)\n\t\tr.Rounds = 1\n\t\trec.Returns = append(rec.Returns, r)",
		by:     "TestP49PodsThatComeBack",
	},
	{
		name:   "the end of a pod's grace is judged by the clock of the cluster",
		breaks: "P50",
		file:   "drain/podstatus.go",
		from:   "if own := since.Add(p.grace()); !since.IsZero() && own.After(p.GraceEnds) {",
		to:     "if own := since.Add(p.grace()); false && own.After(p.GraceEnds) {",
		by:     openStorms,
	},
	{
		name:   "a drain ends while a volume is attached that no turn has waited for",
		breaks: "P51",
		file:   "drain/volumes.go",
		from:   "if d.pastDeadline || d.o.Stays {",
		to:     "if d.pastDeadline || !d.o.Stays {",
	},
}
