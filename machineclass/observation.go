package machineclass

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// MigratedFrom is the annotation of a class that says which older kind it was
// made from, as ClassRef.GroupKind spells it.
const MigratedFrom = "millwright-go/migrated-from"

// Policy says what to do about classes. The zero Policy: nothing.
type Policy struct {
	// Keep puts the finalizer on classes and secrets while an object refers to them. False leaves
	// finalizers as they are.
	Keep bool
	// Migrate moves references to classes of other kinds to ours.
	Migrate bool
}

// Users counts the objects that refer to a class. One kind is enough to keep the class, so the others
// need to be counted only while it is being deleted.
type Users struct {
	Deployments int // those that are not being deleted
	Sets        int // those that are not being deleted and may create machines
	Machines    int // all, because the deletion of a machine needs its class
}

// String returns "1 deployment, 3 machines". It leaves out kinds with the count zero, and returns
// "nobody" if all are.
func (u Users) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		name string
	}{{u.Deployments, "deployment"}, {u.Sets, "set"}, {u.Machines, "machine"}} {
		switch {
		case part.n == 1:
			parts = append(parts, "1 "+part.name)
		case part.n > 1:
			parts = append(parts, strconv.Itoa(part.n)+" "+part.name+"s")
		}
	}
	if len(parts) == 0 {
		return "nobody"
	}
	return strings.Join(parts, ", ")
}

func (u Users) any() bool { return u.Deployments > 0 || u.Sets > 0 || u.Machines > 0 }

// Holder is the kind of an object that refers to a class.
type Holder string

// The holders, in the order in which their references move. A template's reference moves before
// those of the objects made from it.
const (
	HolderDeployment Holder = "deployment"
	HolderSet        Holder = "set"
	HolderMachine    Holder = "machine"
)

// Reference is the reference of an object to a class of another kind than ours.
type Reference struct {
	Holder Holder
	Key    object.Key
	Class  machine.ClassRef
}

// Observation is what a decision about one name of a class is made from. The caller fills in Key,
// Class, Users, References and Failed from its caches and its memory before the first Decide of a
// pass. The rest are the answers to effects carried out in this pass. A nil answer was not asked
// for.
type Observation struct {
	Key   object.Key
	Class *machine.Class // ours; nil: there is none of that name
	Users Users
	// Read says how Class and Users were read, in this order.
	Read decision.Freshness
	// References are the references to classes of other kinds with the same name.
	References []Reference
	// Failed is the last Fill that failed, as far as this process remembers. Without it the wait
	// for the next Fill may be shorter.
	Failed *Failure

	Old    *Old
	Filled *Filled
	Stored bool // the class was written after Filled was answered
	Marked bool
	Moved  bool
}

// Old is the older class.
type Old struct {
	Found    bool
	Migrated bool   // it is marked as migrated
	Version  string // opaque; changes with the class
}

// Filled is a driver's answer to a Fill.
type Filled struct {
	machine.Outcome
	Class *machine.Class // with code OK
}

// Failure is a failed Fill that the process remembers.
type Failure struct {
	machine.Outcome
	At       time.Time
	Failures int    // in a row, from 1
	Version  string // of the older class, at the time of the failure
}

// Write is one change in the store: *Create or *Update.
//
//sumtype:decl
type Write interface{ write() }

// Create stores a new class. If the name is taken, the pass starts again.
type Create struct{ Class *machine.Class }

// Update stores metadata and spec of a class.
type Update struct{ Class *machine.Class }

func (*Create) write() {}
func (*Update) write() {}

// Effect is one external call. Its answer goes into the observation.
//
//sumtype:decl
type Effect interface{ effect() }

// ReadOld reads the older class live (Observation.Old).
type ReadOld struct{ Class machine.ClassRef }

// Fill makes the driver fill a class from the older one (Observation.Filled, and Failed unless it
// answers OK). The class to fill is a copy of Observation.Class, or a blank one of that name.
type Fill struct{ Class machine.ClassRef }

// MarkOld marks the older class as migrated if it still has this version (Observation.Marked).
// Otherwise the pass starts again.
type MarkOld struct {
	Class   machine.ClassRef
	Version string
}

// Move makes each reference name our kind instead, first to last, if it still names Reference.Class
// (Observation.Moved). Nothing else of the objects changes.
type Move struct{ References []Reference }

func (ReadOld) effect() {}
func (Fill) effect()    {}
func (MarkOld) effect() {}
func (*Move) effect()   {}

// Plan is what to do next. Carry out ReadLive, Write or Effect, the one that is set, put the answer
// into the observation, and decide again. With none of them, decide again at At.
type Plan struct {
	// ReadLive: read the class live, then the objects that refer to it; set Read.
	ReadLive bool
	Write    Write
	Effect   Effect
	// At is when to decide again even if nothing has changed. Zero: never.
	At  time.Time
	Why decision.Why
	// Warn is a warning for the class's owner. Zero: none.
	Warn decision.Why
}

func (p *Plan) idle() bool { return !p.ReadLive && p.Write == nil && p.Effect == nil }

// The reasons of decisions about the finalizer of a class.
var (
	reasonNoClass   = decision.NewReason("NoClass", "class {name} does not exist")
	reasonNotKept   = decision.NewReason("NotKept", "finalizers of classes are not managed")
	reasonKept      = decision.NewReason("ClassKept", "class {name} is used by {cause}")
	reasonUnused    = decision.NewReason("ClassUnused", "class {name} is not used")
	reasonFinalizer = decision.NewReason("ClassFinalizerAdded", "class {name} is used by {cause}: finalizer added, so that it outlives them")
	reasonReadUsers = decision.NewReason("ReadUsers", "class {name} does not seem to be used any longer: reading its users live")
	reasonReleased  = decision.NewReason("ClassReleased", "class {name} is no longer used: finalizer removed")
	reasonHeld      = decision.NewReason("ClassDeletionHeld", "class {name} is being deleted, and stays while it is used by {cause}")
	reasonTooLate   = decision.NewReason("ClassDeletedInUse", "class {name} is being deleted although it is used by {cause}: too late for a finalizer")
)

// The reasons of decisions about a secret.
var (
	reasonNoSecret        = decision.NewReason("NoSecret", "the secret does not exist")
	reasonSecretNotKept   = decision.NewReason("SecretNotKept", "finalizers of secrets are not managed")
	reasonSecretKept      = decision.NewReason("SecretKept", "secret {name} is used by {count|class|classes}")
	reasonSecretUnused    = decision.NewReason("SecretUnused", "secret {name} is not used by any class")
	reasonSecretFinalizer = decision.NewReason("SecretFinalizerAdded", "secret {name} is used by {count|class|classes}: finalizer added, so that it outlives them")
	reasonReadClasses     = decision.NewReason("ReadClasses", "secret {name} does not seem to be used any longer: reading its classes live")
	reasonSecretReleased  = decision.NewReason("SecretReleased", "secret {name} is no longer used: finalizer removed")
	reasonSecretHeld      = decision.NewReason("SecretDeletionHeld", "secret {name} is being deleted, and stays while it is used by {count|class|classes}")
	reasonSecretTooLate   = decision.NewReason("SecretDeletedInUse", "secret {name} is being deleted although it is used by {count|class|classes}: too late for a finalizer")
)

// The reasons of decisions about a migration.
var (
	reasonSeveralKinds = decision.NewReason("ClassOfSeveralKinds", "classes of several kinds have the name {name}, one of them of kind {cause}: they can't all be migrated to the class of that name")
	reasonReadOld      = decision.NewReason("ReadOldClass", "reading class {name} of kind {cause}")
	reasonOldMissing   = decision.NewReason("OldClassMissing", "class {name} of kind {cause} does not exist, but objects refer to it")
	reasonFill         = decision.NewReason("FillClass", "asking the driver to migrate class {name} of kind {cause}")
	reasonFillFailed   = decision.NewReason("MigrationFailed", "class {name} of kind {cause} could not be migrated: {code}: {detail}")
	reasonUnsupported  = decision.NewReason("MigrationUnsupported", "the driver does not migrate classes of kind {cause}: class {name} is left alone: {detail}")
	reasonFilledBadly  = decision.NewReason("MigratedClassInvalid", "the driver returned an invalid class for {name} of kind {cause}: {detail}")
	reasonCreate       = decision.NewReason("ClassMigrated", "class {name} is created from the one of kind {cause}")
	reasonComplete     = decision.NewReason("ClassCompleted", "class {name} is completed from the one of kind {cause}")
	reasonMark         = decision.NewReason("MarkOldClass", "marking class {name} of kind {cause} as migrated")
	reasonMove         = decision.NewReason("MoveReferences", "class {name} of kind {cause} is migrated: changing the references of {count|object|objects}")
)
