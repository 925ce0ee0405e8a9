package machineclass

// Reasons that tests of this package name.
var (
	ReasonFilledBadly = reasonFilledBadly
)
