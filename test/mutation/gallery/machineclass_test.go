package gallery_test

// ofMachineclass are mistakes in package machineclass.
var ofMachineclass = []mutant{
	{
		name:   "a class is let go while it is used",
		breaks: "a class stays as long as it is referred to",
		file:   "machineclass/observation.go",
		from:   "return u.Deployments > 0 || u.Sets > 0 || u.Machines > 0",
		to:     "return u.Deployments > 0 || u.Sets > 0",
		by:     "TestKeptWhileUsed",
	},
	{
		name:   "a class is let go by what a cache says",
		breaks: "a class stays as long as it is referred to",
		file:   "machineclass/keep.go",
		from: `case !live:
		return stepAsk
`,
		to: "",
		by: "TestSecretStory|TestKeptWhileUsed",
	},
	{
		name:   "a class that is being deleted is given a finalizer",
		breaks: "P28",
		file:   "machineclass/keep.go",
		from: `	case used && m.Deleted():
		return stepTooLate
`,
		to: "",
		by: "TestP11P27AnythingHasOnePlan|TestSecretStory",
	},
	{
		name:   "references move to a class that a driver has left empty",
		breaks: "P4",
		file:   "machineclass/migrate.go",
		from:   `if problem := d.unusable(filled.Class); problem != "" {`,
		to:     `if problem := d.unusable(filled.Class); problem == "-" {`,
		by:     "TestFilledBadly",
	},
	{
		name:   "references of two kinds move to one class",
		breaks: "P4",
		file:   "machineclass/migrate.go",
		from: `if d.o.References[i].Class != ref {
			return ref, false`,
		to: `if d.o.References[i].Class == ref && i < 0 {
			return ref, false`,
		by: "TestStories",
	},
	{
		name:   "a failed migration is tried again at once",
		breaks: "a failed migration waits as its code says",
		file:   "machineclass/migrate.go",
		from:   "return at, d.now.Before(at)",
		to:     "return at, at.Before(d.now)",
		by:     "TestRetries",
	},
	{
		name:   "a secret is let go while classes refer to it",
		breaks: "a secret stays as long as a class refers to it",
		file:   "machineclass/keep.go",
		from:   "machine.SecretFinalizer, o.Classes > 0, o.Read.Live())",
		to:     "machine.SecretFinalizer, o.Classes > 1, o.Read.Live())",
		by:     "TestSecretStory",
	},
	{
		name:   "the older class is marked before the new one is stored",
		breaks: "P26",
		file:   "machineclass/migrate.go",
		from:   "case old.Found && (!old.Migrated || d.o.Class == nil || d.o.Filled != nil):",
		to:     "case old.Found && old.Migrated && (d.o.Class == nil || d.o.Filled != nil):",
		by:     "TestOwnersChangesStay|TestP26MigrationKilledAnywhere",
	},
}
