package ownerless

// Reasons that tests of this package name.
var (
	ReasonAllOwned = reasonAllOwned
)
