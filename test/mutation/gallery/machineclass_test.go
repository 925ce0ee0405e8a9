package gallery_test

// ofMachineclass are mistakes in package machineclass.
var ofMachineclass = []mutant{
	{
		name:   "the finalizer of a class in use is removed",
		breaks: "a class stays as long as it is referred to",
		file:   "machineclass/observation.go",
		from:   "return u.Deployments > 0 || u.Sets > 0 || u.Machines > 0",
		to:     "return u.Deployments > 0 || u.Sets > 0",
		by:     "TestKeptWhileUsed",
	},
	{
		name:   "the finalizer of a class is removed by a stale cache",
		breaks: "a class stays as long as it is referred to",
		file:   "machineclass/keep.go",
		from: `case !live:
		return stepAsk
`,
		to: "",
		by: "TestSecretStory|TestKeptWhileUsed",
	},
	{
		name:   "a class that is being deleted gets a finalizer",
		breaks: "P28",
		file:   "machineclass/keep.go",
		from: `	case used && m.Deleted():
		return stepTooLate
`,
		to: "",
		by: "TestP11P27AnythingHasOnePlan|TestSecretStory",
	},
	{
		name:   "references are moved to a class that the driver has not filled in",
		breaks: "P4",
		file:   "machineclass/migrate.go",
		from:   `if problem := d.unusable(filled.Class); problem != "" {`,
		to:     `if problem := d.unusable(filled.Class); problem == "-" {`,
		by:     "TestFilledBadly",
	},
	{
		name:   "references of two kinds are moved to the same class",
		breaks: "P4",
		file:   "machineclass/migrate.go",
		from: `if d.o.References[i].Class != ref {
			return ref, false`,
		to: `if d.o.References[i].Class == ref && i < 0 {
			return ref, false`,
		by: "TestStories",
	},
	{
		name:   "a failed migration is retried at once",
		breaks: "a failed migration is retried as its code says",
		file:   "machineclass/migrate.go",
		from:   "return at, d.now.Before(at)",
		to:     "return at, at.Before(d.now)",
		by:     "TestRetries",
	},
	{
		name:   "the finalizer of a secret is removed while classes refer to it",
		breaks: "a secret stays as long as a class refers to it",
		file:   "machineclass/keep.go",
		from:   "machine.SecretFinalizer, o.Classes > 0, o.Read.Live())",
		to:     "machine.SecretFinalizer, o.Classes > 1, o.Read.Live())",
		by:     "TestSecretStory",
	},
	{
		name:   "the old class is marked as migrated before the new one is stored",
		breaks: "P26",
		file:   "machineclass/migrate.go",
		from:   "case old.Found && (!old.Migrated || d.o.Class == nil || d.o.Filled != nil):",
		to:     "case old.Found && old.Migrated && (d.o.Class == nil || d.o.Filled != nil):",
		by:     "TestOwnersChangesStay|TestP26MigrationKilledAnywhere",
	},
}
