package replacement

// Reasons that tests of this package name.
var (
	ReasonBudgetSpent = reasonBudgetSpent
	ReasonNotAsking   = reasonNotAsking
)
