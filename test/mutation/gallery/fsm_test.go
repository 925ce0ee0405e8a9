package gallery_test

// ofFsm are mistakes in what fires moves.
var ofFsm = []mutant{
	{
		name:   "a change without a move is stored",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "if is := r.Get(after); is != want {",
		to:     "if is := r.Get(after); is != want && moved[i] {",
		by:     "TestP44MovesExplainTheChange",
	},
	{
		name:   "a move may begin in another state than the object's",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "case move.From != from:",
		to:     "case move.From != from && !r.Table.Knows(move.From):",
		by:     "TestFireSaysWhatIsWrong",
	},
	{
		name:   "a guard without an observation allows its move",
		breaks: "P44",
		file:   "machine/fsm/states.go",
		from:   "if at.refused = (decision.Why{Reason: reasonUnseen}); at.seen != nil {",
		to:     "if at.seen != nil {",
		by:     "TestGuards",
	},
}
