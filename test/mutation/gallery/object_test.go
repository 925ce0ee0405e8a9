package gallery_test

// ofObject are mistakes in package object.
var ofObject = []mutant{
	{
		name:   "an empty selector matches everything",
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
		name:   "a missing label matches the value in a selector",
		breaks: "P10",
		file:   "object/selector.go",
		from:   `if got, ok := labels[k]; !ok || got != v || k == "" {`,
		to:     `if got, ok := labels[k]; ok && got != v || k == "" {`,
		by:     "TestSelectorMatches|TestSelectorMatchesAsTheOracle",
	},
	{
		name:   "an object without an owner belongs to an owner without a UID",
		breaks: "P10",
		file:   "object/meta.go",
		from:   `return uid != "" && m.Owner != nil && m.Owner.UID == uid`,
		to:     `return m.Owner == nil && uid == "" || m.Owner != nil && m.Owner.UID == uid`,
		by:     "TestOwnedBy",
	},
	{
		name:   "a condition that does not change gets a new time",
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
		name:   "the removal of a finalizer changes the list of the original",
		breaks: "P27",
		file:   "object/meta.go",
		from:   "slices.DeleteFunc(slices.Clone(m.Finalizers), func",
		to:     "slices.DeleteFunc(m.Finalizers, func",
		by:     "TestFinalizersAreReplaced",
	},
}
