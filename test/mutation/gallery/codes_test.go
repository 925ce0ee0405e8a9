package gallery_test

// ofCodes are mistakes in package codes.
var ofCodes = []mutant{
	{
		name:   "a call is retried at once after RESOURCE_EXHAUSTED",
		breaks: "a refused creation waits as long as its code says",
		file:   "codes/recovery.go",
		from: `ResourceExhausted:  {false, Quota, 0, RaiseQuota},
		PreconditionFailed: {false, Medium, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		OutOfRange:         {false, Medium, 0, FixArgument},
		Unimplemented:      {false, Medium, 0, ImplementOrAlternate},`,
		to: `ResourceExhausted:  {true, Short, 0, RetryLater},
		PreconditionFailed: {false, Medium, 0, ManualIntervention},
		Aborted:            {true, Short, 0, WaitForPendingOperation},
		OutOfRange:         {false, Medium, 0, FixArgument},
		Unimplemented:      {false, Medium, 0, ImplementOrAlternate},`,
		by: "TestTableHasTheSpecifiedRows",
	},
	{
		name:   "a backoff doubles once too often",
		breaks: "a wait grows as documented, up to its limit",
		file:   "codes/retry.go",
		from:   "return doubled(wait, failures-1, mediumPeriod)",
		to:     "return doubled(wait, failures, mediumPeriod)",
		by:     "TestBackoffSteps",
	},
	{
		name:   "a doubling backoff has no limit",
		breaks: "waits are bounded",
		file:   "codes/retry.go",
		from: `	return min(wait, limit)
`,
		to: `	return wait
`,
		by: "TestBackoffSteps|TestPropertyBackoffGrowsWithinItsClass",
	},
	{
		name:   "an error with code OK counts as success",
		breaks: "a failure is never OK",
		file:   "codes/of.go",
		from:   "return code.ofFailure()",
		to:     "return code",
		by:     "TestOf",
	},
	{
		name:   "a panic in a method of another package's error is not caught",
		breaks: "P11",
		file:   "codes/of.go",
		from: `	if recover() != nil {
		*ok = false
	}`,
		to: `	if *ok && recover() != nil {
		*ok = false
	}`,
		by: "TestOf",
	},
	{
		name:   "only the first of several wrapped errors is searched for a code",
		breaks: "the code of an error is found wherever it is",
		file:   "codes/of.go",
		from:   "\tfor _, e := range many {",
		to:     "\tfor _, e := range many[:min(1, len(many))] {",
		by:     "TestCodesOfAllSmallTrees|TestPropertyWrappingKeepsTheCode",
	},
	{
		name:   "a deadline and a cancellation are confused",
		breaks: "the code of an error is the one that it has",
		file:   "codes/of.go",
		from: `case w.deadline:
		return DeadlineExceeded
	case w.canceled:`,
		to: `case w.canceled:
		return Canceled
	case w.deadline:
		return DeadlineExceeded
	case w.canceled:`,
		by: "TestCodesOfAllSmallTrees|TestOf",
	},
}
