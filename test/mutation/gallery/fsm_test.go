package gallery_test

// ofFsm are mistakes in what fires moves.
var ofFsm = []mutant{
	{
		name:   "a change that no move explains is stored",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "if is := r.Get(after); is != want {",
		to:     "if is := r.Get(after); is != want && moved[i] {",
		by:     "TestP44MovesExplainTheChange",
	},
	{
		name:   "a move need not begin where the object stands",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "case move.From != from:",
		to:     "case move.From != from && !r.Table.Knows(move.From):",
		by:     "TestFireSaysWhatIsWrong",
	},
	{
		name:   "a guard that has nothing to look at lets its move pass",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "if at.refused = (decision.Why{Reason: reasonUnseen}); at.seen != nil {",
		to:     "if at.seen != nil {",
		by:     "TestGuards",
	},
}
