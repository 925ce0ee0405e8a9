package gallery_test

// ofStore are mistakes in package store.
var ofStore = []mutant{
	{
		name:   "the status is written for any version that the writer has read",
		breaks: "a writer that has read an old state fails, and begins again",
		file:   "store/rules.go",
		from:   "case !matches(stored.ObjectMeta(), w.object.ObjectMeta()):",
		to:     "case w.verb != verbUpdateStatus && !matches(stored.ObjectMeta(), w.object.ObjectMeta()):",
	},
	{
		name:   "an object is deleted for any UID that was asked for",
		breaks: "a deletion meant for one object never takes another of its name",
		file:   "store/rules.go",
		from:   `case w.uid != "" && w.uid != meta.UID:`,
		to:     `case w.uid == "" && w.uid != meta.UID:`,
		by:     "TestBatchDropped|TestBatchIsSeenWhenPublished",
	},
	{
		name:   "an object goes although it has finalizers",
		breaks: "P14",
		file:   "store/rules.go",
		from:   "return m.Deleted() && len(m.Finalizers) == 0",
		to:     "return m.Deleted() || len(m.Finalizers) == 0",
		by:     "TestBatchDropped|TestBatchIsSeenWhenPublished",
	},
	{
		name:   "a second deletion moves the time of the first",
		breaks: "timeouts of a deletion count from the first request",
		file:   "store/rules.go",
		from: `	case meta.Deleted():
		return outcome[T]{object: stored}, nil
	}`,
		to: "\t}",
		by: "TestBatchSkipsRepeatedDeletion|TestMemory",
	},
	{
		name:   "an update changes the status too",
		breaks: "a writer of the spec never undoes what the status says",
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
		name:   "an update of another object of the same name is let through",
		breaks: "P17",
		file:   "store/rules.go",
		from:   `return o.Version == stored.Version && (o.UID == "" || o.UID == stored.UID)`,
		to:     "return o.Version == stored.Version",
		by:     "TestMirrorServesAStore|TestMemory",
	},
	{
		name:   "the generation stays when the spec changes",
		breaks: "what was decided for an old spec is never taken for the new one",
		file:   "store/rules.go",
		from:   "if !next.SpecEqual(stored) {",
		to:     "if next.SpecEqual(stored) {",
		by:     "TestBatchIsSeenWhenPublished|TestMemory",
	},
	{
		name:   "an index keeps objects that have left it",
		breaks: "reads by index list what is there",
		file:   "store/memory.go",
		from: `		x.leave(e, i)
		for _, value`,
		to: "\t\tfor _, value",
		by: "TestMemoryForgetsIndexValues|TestMemory",
	},
	{
		name:   "a watch is not told that an object is gone",
		breaks: "watches deliver every deletion",
		file:   "store/changelog.go",
		from:   "if e.position.addedAt <= w.cursor && w.cursor < e.position.seq {",
		to:     "if e.position.addedAt < w.cursor && w.cursor < e.position.addedAt {",
		by:     "TestBatchIsSeenWhenPublished",
	},
	{
		name:   "a cache replaces an object by another of its name unseen",
		breaks: "P17",
		file:   "store/mirror.go",
		from:   "if was.UID != meta.UID {",
		to:     "if was.UID == meta.UID {",
		by:     "TestMirrorTellsUIDsApart|TestMirrorServesAStore",
	},
	{
		name:   "a refused write is made visible",
		breaks: "what a journal refuses is not stored",
		file:   "store/batch.go",
		from: `if next, err = b.journal.Put(out.object); err != nil {
			return none, w.wrap(err)
		}`,
		to: `if next, err = b.journal.Put(out.object); err != nil {
			next = out.object
		}`,
		by: "TestJournalRefusesOrReplaces",
	},
	{
		name:   "versions begin at one after a restart",
		breaks: "a writer that has read an old state fails",
		file:   "store/batch.go",
		from: `	m.versions = versions
`,
		to: "",
		by: "TestLoad",
	},
}
