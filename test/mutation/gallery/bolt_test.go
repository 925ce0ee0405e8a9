package gallery_test

// ofBolt are mistakes in package bolt.
var ofBolt = []mutant{
	{
		name:   "a write returns before it is committed",
		breaks: "P26",
		file:   "adapters/bolt/commit.go",
		from: `		<-r.done // the commit still uses the caller's object
`,
		to: "",
		by: "TestTooLateToGiveUp",
	},
	{
		name:   "uncommitted writes become visible",
		breaks: "P26",
		file:   "adapters/bolt/collection.go",
		from: `	if committed {
		c.batch.Publish()
	}`,
		to: `	if committed || c.batch != nil {
		c.batch.Publish()
	}`,
		by: "TestFullFile",
	},
	{
		name:   "a failed commit is reported as success",
		breaks: "P43",
		file:   "adapters/bolt/commit.go",
		from: `		if err != nil {
			r.err = err
		}
		close`,
		to: "\t\tclose",
		by: "TestFailedCommit",
	},
	{
		name:   "damaged records are left out without an error",
		breaks: "P43",
		file:   "adapters/bolt/collection.go",
		from:   "if damaged := c.damaged(); len(damaged) > 0 {",
		to:     "if damaged := c.damaged(); len(damaged) > len(objects) {",
		by:     "TestDamagedAmongOthers",
	},
	{
		name:   "a file with old records opens without an error",
		breaks: "P43",
		file:   "adapters/bolt/load.go",
		from:   "if !known || stored.Sum == c.db.file.kinds[c.name()].Sum ||",
		to:     "if !known || stored.Sum != c.db.file.kinds[c.name()].Sum ||",
		by:     "TestBackup",
	},
}
