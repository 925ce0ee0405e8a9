package codes

import "strconv"

// Remedy says what helps against a failed call, and so who acts next: the library, or a person who
// reads the status. The zero value is NoRemedy.
type Remedy uint8

// These are the remedies, from the table of recoveries (testdata/recovery.csv).
const (
	// NoRemedy: nothing needs to be done.
	NoRemedy Remedy = iota
	// CleanUpAndReturn: the driver removes what it began; the caller is gone.
	CleanUpAndReturn
	// RetryLater: waiting and trying again.
	RetryLater
	// FixArgument: the owner corrects the class or the machine.
	FixArgument
	// UseAnotherName: a machine of another name replaces this one.
	UseAnotherName
	// GrantPermission: a person gives the credentials the missing permission.
	GrantPermission
	// RaiseQuota: a person raises the account's limits, or capacity returns.
	RaiseQuota
	// ManualIntervention: a person checks the VM or the provider.
	ManualIntervention
	// WaitForPendingOperation: the pending operation ends.
	WaitForPendingOperation
	// ImplementOrAlternate: the driver's author implements the call, or another driver is used.
	ImplementOrAlternate
	// FixCredentials: a person corrects the secret.
	FixCredentials
	// Continue: the answer is as good as success; the next step follows.
	Continue
	// Reinitialize: InitializeMachine is called, or called again.
	Reinitialize
	// CollectOrphans: the surplus VMs are deleted.
	CollectOrphans
	// RequeueMachine: the machine is reconciled again at once, now with the new class.
	RequeueMachine
	// ReplaceInstead: the machine is replaced, since it can't be updated.
	ReplaceInstead

	remedyCount = int(ReplaceInstead) + 1
)

var remedyNames = [remedyCount]string{
	NoRemedy:                "none",
	CleanUpAndReturn:        "clean-up-and-return",
	RetryLater:              "retry-later",
	FixArgument:             "fix-argument",
	UseAnotherName:          "use-another-name",
	GrantPermission:         "grant-permission",
	RaiseQuota:              "raise-quota",
	ManualIntervention:      "manual-intervention",
	WaitForPendingOperation: "wait-for-pending-operation",
	ImplementOrAlternate:    "implement-or-alternate",
	FixCredentials:          "fix-credentials",
	Continue:                "continue",
	Reinitialize:            "reinitialize",
	CollectOrphans:          "collect-orphans",
	RequeueMachine:          "requeue-machine",
	ReplaceInstead:          "replace-instead",
}

// String returns the remedy as the table of recoveries spells it: "raise-quota". A number that is
// no remedy reads as "Remedy(42)".
func (r Remedy) String() string {
	if int(r) >= remedyCount {
		return "Remedy(" + strconv.Itoa(int(r)) + ")"
	}
	return remedyNames[r]
}
