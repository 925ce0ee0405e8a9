package machineclass

import (
	"strconv"
	"strings"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// Reason is the kind of a decision, one word for programs.
type Reason string

// The reasons of decisions about a class that is kept.
const (
	ReasonNoClass   Reason = "NoClass"
	ReasonNotKept   Reason = "NotKept"
	ReasonKept      Reason = "ClassKept"
	ReasonUnused    Reason = "ClassUnused"
	ReasonFinalizer Reason = "ClassFinalizerAdded"
	ReasonReadUsers Reason = "ReadUsers"
	ReasonReleased  Reason = "ClassReleased"
	ReasonHeld      Reason = "ClassDeletionHeld"
	ReasonTooLate   Reason = "ClassDeletedInUse"
)

// The reasons of decisions about a secret.
const (
	ReasonNoSecret        Reason = "NoSecret"
	ReasonSecretNotKept   Reason = "SecretNotKept"
	ReasonSecretKept      Reason = "SecretKept"
	ReasonSecretUnused    Reason = "SecretUnused"
	ReasonSecretFinalizer Reason = "SecretFinalizerAdded"
	ReasonReadClasses     Reason = "ReadClasses"
	ReasonSecretReleased  Reason = "SecretReleased"
	ReasonSecretHeld      Reason = "SecretDeletionHeld"
	ReasonSecretTooLate   Reason = "SecretDeletedInUse"
)

// The reasons of decisions about a migration.
const (
	ReasonSeveralKinds Reason = "ClassOfSeveralKinds"
	ReasonReadOld      Reason = "ReadOldClass"
	ReasonOldMissing   Reason = "OldClassMissing"
	ReasonFill         Reason = "FillClass"
	ReasonFillFailed   Reason = "MigrationFailed"
	ReasonUnsupported  Reason = "MigrationUnsupported"
	ReasonFilledBadly  Reason = "MigratedClassInvalid"
	ReasonCreate       Reason = "ClassMigrated"
	ReasonComplete     Reason = "ClassCompleted"
	ReasonMark         Reason = "MarkOldClass"
	ReasonMove         Reason = "MoveReferences"
)

// Why is the reason of one decision with what it was seen in. Values are
// comparable; making one allocates nothing.
type Why struct {
	Reason     Reason
	Name       string     // of the class, or of the secret
	Kind       string     // of the older class
	Detail     string     // an answer or a problem, quoted
	Code       codes.Code // of a failure
	Users      Users
	Classes    int // that refer to a secret
	References int // to an older class
}

var sentences = map[Reason]string{
	ReasonNoClass:         "there is no class {name}",
	ReasonNotKept:         "finalizers of classes are left as they are",
	ReasonKept:            "class {name} is used by {users}",
	ReasonUnused:          "nobody uses class {name}",
	ReasonFinalizer:       "class {name} is used by {users}: finalizer added, so that it outlives them",
	ReasonReadUsers:       "nobody seems to use class {name} any more: making sure of it",
	ReasonReleased:        "nobody uses class {name} any more: finalizer removed",
	ReasonHeld:            "class {name} is to be deleted and stays as long as it is used by {users}",
	ReasonTooLate:         "class {name} is being deleted although it is used by {users}: too late to hold it",
	ReasonNoSecret:        "there is no such secret",
	ReasonSecretNotKept:   "finalizers of secrets are left as they are",
	ReasonSecretKept:      "secret {name} is used by {classes}",
	ReasonSecretUnused:    "no class uses secret {name}",
	ReasonSecretFinalizer: "secret {name} is used by {classes}: finalizer added, so that it outlives them",
	ReasonReadClasses:     "no class seems to use secret {name} any more: making sure of it",
	ReasonSecretReleased:  "no class uses secret {name} any more: finalizer removed",
	ReasonSecretHeld:      "secret {name} is to be deleted and stays as long as it is used by {classes}",
	ReasonSecretTooLate:   "secret {name} is being deleted although it is used by {classes}: too late to hold it",
	ReasonSeveralKinds:    "classes of several kinds are called {name}, among them one of kind {kind}: they can't all become the class of that name",
	ReasonReadOld:         "class {name} is of kind {kind}: looking at it",
	ReasonOldMissing:      "there is no class {name} of kind {kind}, though it is referred to",
	ReasonFill:            "having the driver migrate class {name} of kind {kind}",
	ReasonFillFailed:      "class {name} of kind {kind} could not be migrated: {code}: {detail}",
	ReasonUnsupported:     "the driver does not migrate classes of kind {kind}: class {name} is left as it is: {detail}",
	ReasonFilledBadly:     "what the driver made of class {name} of kind {kind} can't be used: {detail}",
	ReasonCreate:          "class {name} is made from the one of kind {kind}",
	ReasonComplete:        "class {name} is completed from the one of kind {kind}",
	ReasonMark:            "marking class {name} of kind {kind} as migrated",
	ReasonMove:            "class {name} of kind {kind} is migrated: moving the references to it, of {references}",
}

// String is the sentence a person can act on.
func (w Why) String() string {
	sentence, ok := sentences[w.Reason]
	if !ok {
		return string(w.Reason)
	}
	return object.Sentence(sentence, "name", quoteEmpty(w.Name), "kind", quoteEmpty(w.Kind), "detail", quoteEmpty(w.Detail),
		"code", w.Code.Contract(), "users", w.Users.String(), "classes", several(w.Classes, "class", "classes"),
		"references", several(w.References, "object", "objects"))
}

// String is "1 deployment, 3 machines"; kinds of which there are none, or
// none were counted, are left out.
func (u Users) String() string {
	var parts []string
	for _, part := range []struct {
		n    int
		name string
	}{{u.Deployments, "deployment"}, {u.Sets, "set"}, {u.Machines, "machine"}} {
		if part.n > 0 {
			parts = append(parts, several(part.n, part.name, part.name+"s"))
		}
	}
	if len(parts) == 0 {
		return "nobody"
	}
	return strings.Join(parts, ", ")
}

func several(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return strconv.Itoa(n) + " " + more
}

func quoteEmpty(s string) string {
	if s == "" {
		return `""`
	}
	return s
}
