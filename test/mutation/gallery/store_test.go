package gallery_test

// ofStore are mistakes in package store.
var ofStore = []mutant{
	{
		name:   "a status write ignores the version",
		breaks: "a write based on an old version fails",
		file:   "store/rules.go",
		from:   "case !matches(stored.ObjectMeta(), w.Object.ObjectMeta()):",
		to:     "case w.Verb != VerbUpdateStatus && !matches(stored.ObjectMeta(), w.Object.ObjectMeta()):",
	},
	{
		name:   "a deletion ignores the UID",
		breaks: "a deletion of one object never deletes another with its name",
		file:   "store/rules.go",
		from:   `case w.UID != "" && w.UID != meta.UID:`,
		to:     `case w.UID == "" && w.UID != meta.UID:`,
		by:     "TestBatchDropped|TestBatchIsSeenWhenPublished",
	},
	{
		name:   "an object with finalizers is removed",
		breaks: "P14",
		file:   "store/rules.go",
		from:   "return m.Deleted() && len(m.Finalizers) == 0",
		to:     "return m.Deleted() || len(m.Finalizers) == 0",
		by:     "TestBatchDropped|TestBatchIsSeenWhenPublished",
	},
	{
		name:   "a second deletion changes the deletion time",
		breaks: "timeouts of a deletion count from the first request",
		file:   "store/rules.go",
		from: `	case meta.Deleted():
		return Outcome[T]{Object: stored}, nil
	}`,
		to: "\t}",
		by: "TestBatchSkipsRepeatedDeletion|TestMemory",
	},
	{
		name:   "an update also changes the status",
		breaks: "a write of the spec never changes the status",
		file:   "store/rules.go",
		from: `	next := o.Clone()
	next.CopyStatus(stored)
`,
		to: `	next := o.Clone()
`,
		by: "TestMemory|TestMirrorServesAStore",
	},
	{
		name:   "a finalizer can be added to an object that is being deleted",
		breaks: "a deletion ends",
		file:   "store/rules.go",
		from:   "if was.Deleted() && addsFinalizer(",
		to:     "if !was.Deleted() && addsFinalizer(",
		by:     "TestMemory|TestMirrorServesAStore",
	},
	{
		name:   "an update of another object with the same name succeeds",
		breaks: "P17",
		file:   "store/rules.go",
		from:   `return o.Version == stored.Version && (o.UID == "" || o.UID == stored.UID)`,
		to:     "return o.Version == stored.Version",
		by:     "TestMirrorServesAStore|TestMemory",
	},
	{
		name:   "a change of the spec does not change the generation",
		breaks: "a result for an old spec is never taken for a result of the new one",
		file:   "store/rules.go",
		from:   "if !next.SpecEqual(stored) {",
		to:     "if next.SpecEqual(stored) {",
		by:     "TestBatchIsSeenWhenPublished|TestMemory",
	},
	{
		name:   "an index keeps objects that no longer belong to it",
		breaks: "reads by index are complete and up to date",
		file:   "store/memory.go",
		from: `		x.leave(e, i)
		for _, value`,
		to: "\t\tfor _, value",
		by: "TestMemoryForgetsIndexValues|TestMemory",
	},
	{
		name:   "a watch does not yield removals",
		breaks: "watches deliver every deletion",
		file:   "store/changelog.go",
		from:   "if e.position.addedAt <= w.cursor && w.cursor < e.position.seq {",
		to:     "if e.position.addedAt < w.cursor && w.cursor < e.position.addedAt {",
		by:     "TestBatchIsSeenWhenPublished",
	},
	{
		name:   "a cache replaces an object by another one with its name without a removal",
		breaks: "P17",
		file:   "store/mirror.go",
		from:   "if was.UID != meta.UID {",
		to:     "if was.UID == meta.UID {",
		by:     "TestMirrorTellsUIDsApart|TestMirrorServesAStore",
	},
	{
		name:   "a write that the journal refuses becomes visible",
		breaks: "a write that the journal refuses has no effect",
		file:   "store/batch.go",
		from: `if next, err = b.journal.Put(out.Object); err != nil {
			return none, w.Refuse(err)
		}`,
		to: `if next, err = b.journal.Put(out.Object); err != nil {
			next = out.Object
		}`,
		by: "TestJournalRefusesOrReplaces",
	},
	{
		name:   "versions begin at one again after a restart",
		breaks: "a write based on an old version fails",
		file:   "store/batch.go",
		from: `	m.versions = versions
`,
		to: "",
		by: "TestLoad",
	},
}
