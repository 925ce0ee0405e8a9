package gallery_test

// ofObject are mistakes in package object.
var ofObject = []mutant{
	{
		name:   "an empty selector picks everything",
		breaks: "P10",
		file:   "object/selector.go",
		from: `	if s.Empty() {
		return false
	}`,
		to: `	if s.Empty() {
		return true
	}`,
		by: "TestSelectorMatches|TestSelectorMatchesAsTheOracle",
	},
	{
		name:   "a label that is not there has the value that a selector asks for",
		breaks: "P10",
		file:   "object/selector.go",
		from:   `if got, ok := labels[k]; !ok || got != v || k == "" {`,
		to:     `if got, ok := labels[k]; ok && got != v || k == "" {`,
		by:     "TestSelectorMatches|TestSelectorMatchesAsTheOracle",
	},
	{
		name:   "an object without an owner belongs to the owner without a UID",
		breaks: "P10",
		file:   "object/meta.go",
		from:   `return uid != "" && m.Owner != nil && m.Owner.UID == uid`,
		to:     `return m.Owner == nil && uid == "" || m.Owner != nil && m.Owner.UID == uid`,
		by:     "TestOwnedBy",
	},
	{
		name:   "a condition that stays has a new time at each write",
		breaks: "P28",
		file:   "object/condition.go",
		from:   "if old.Status == c.Status {",
		to:     "if old.Status != c.Status {",
		by:     "TestSetConditionKeepsSinceWithTheStatus|TestConditionsAreASet",
	},
	{
		name:   "a copy shares its owner",
		breaks: "P27",
		file:   "object/meta.go",
		from: `	if m.Owner != nil {
		owner := *m.Owner`,
		to: `	if m.Owner == nil {
		owner := Owner{}`,
		by: "TestCloneMetaSharesNothing",
	},
	{
		name:   "to remove a finalizer changes the original's list",
		breaks: "P27",
		file:   "object/meta.go",
		from:   "slices.DeleteFunc(slices.Clone(m.Finalizers), func",
		to:     "slices.DeleteFunc(m.Finalizers, func",
		by:     "TestFinalizersAreReplaced",
	},
}
