package machineclass

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about a class that is kept.
var (
	reasonNoClass   = decision.NewReason("NoClass", "there is no class {name}")
	reasonNotKept   = decision.NewReason("NotKept", "finalizers of classes are left as they are")
	reasonKept      = decision.NewReason("ClassKept", "class {name} is used by {cause}")
	reasonUnused    = decision.NewReason("ClassUnused", "nobody uses class {name}")
	reasonFinalizer = decision.NewReason("ClassFinalizerAdded", "class {name} is used by {cause}: finalizer added, so that it outlives them")
	reasonReadUsers = decision.NewReason("ReadUsers", "nobody seems to use class {name} any more: making sure of it")
	reasonReleased  = decision.NewReason("ClassReleased", "nobody uses class {name} any more: finalizer removed")
	reasonHeld      = decision.NewReason("ClassDeletionHeld", "class {name} is to be deleted and stays as long as it is used by {cause}")
	reasonTooLate   = decision.NewReason("ClassDeletedInUse", "class {name} is being deleted although it is used by {cause}: too late to hold it")
)

// The reasons of decisions about a secret.
var (
	reasonNoSecret        = decision.NewReason("NoSecret", "there is no such secret")
	reasonSecretNotKept   = decision.NewReason("SecretNotKept", "finalizers of secrets are left as they are")
	reasonSecretKept      = decision.NewReason("SecretKept", "secret {name} is used by {count|class|classes}")
	reasonSecretUnused    = decision.NewReason("SecretUnused", "no class uses secret {name}")
	reasonSecretFinalizer = decision.NewReason("SecretFinalizerAdded", "secret {name} is used by {count|class|classes}: finalizer added, so that it outlives them")
	reasonReadClasses     = decision.NewReason("ReadClasses", "no class seems to use secret {name} any more: making sure of it")
	reasonSecretReleased  = decision.NewReason("SecretReleased", "no class uses secret {name} any more: finalizer removed")
	reasonSecretHeld      = decision.NewReason("SecretDeletionHeld", "secret {name} is to be deleted and stays as long as it is used by {count|class|classes}")
	reasonSecretTooLate   = decision.NewReason("SecretDeletedInUse", "secret {name} is being deleted although it is used by {count|class|classes}: too late to hold it")
)

// The reasons of decisions about a migration.
var (
	reasonSeveralKinds = decision.NewReason("ClassOfSeveralKinds", "classes of several kinds are called {name}, among them one of kind {cause}: they can't all become the class of that name")
	reasonReadOld      = decision.NewReason("ReadOldClass", "class {name} is of kind {cause}: looking at it")
	reasonOldMissing   = decision.NewReason("OldClassMissing", "there is no class {name} of kind {cause}, though it is referred to")
	reasonFill         = decision.NewReason("FillClass", "having the driver migrate class {name} of kind {cause}")
	reasonFillFailed   = decision.NewReason("MigrationFailed", "class {name} of kind {cause} could not be migrated: {code}: {detail}")
	reasonUnsupported  = decision.NewReason("MigrationUnsupported", "the driver does not migrate classes of kind {cause}: class {name} is left as it is: {detail}")
	reasonFilledBadly  = decision.NewReason("MigratedClassInvalid", "what the driver made of class {name} of kind {cause} can't be used: {detail}")
	reasonCreate       = decision.NewReason("ClassMigrated", "class {name} is made from the one of kind {cause}")
	reasonComplete     = decision.NewReason("ClassCompleted", "class {name} is completed from the one of kind {cause}")
	reasonMark         = decision.NewReason("MarkOldClass", "marking class {name} of kind {cause} as migrated")
	reasonMove         = decision.NewReason("MoveReferences", "class {name} of kind {cause} is migrated: moving the references to it, of {count|object|objects}")
)
