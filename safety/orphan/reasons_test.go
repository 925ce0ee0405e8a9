package orphan

// Reasons that tests of this package name.
var (
	ReasonSpelled, ReasonUnknownOnly = reasonSpelled, reasonUnknownOnly
	ReasonNoneListed                 = reasonNoneListed
	ReasonNotListed                  = reasonNotListed
	ReasonEmptyStore                 = reasonEmptyStore
	ReasonListGroups                 = reasonListGroups
	ReasonReadPools                  = reasonReadPools
	ReasonOrphanGroup                = reasonOrphanGroup
	ReasonGroupSecondLook            = reasonGroupSecondLook
	ReasonListGroupsFailed           = reasonListGroupsFailed
	ReasonGroupNoID                  = reasonGroupNoID
	ReasonGroupNoName                = reasonGroupNoName
	ReasonGroupOfOthers              = reasonGroupOfOthers
	ReasonNoOrphanGroups             = reasonNoOrphanGroups
	ReasonGroupsBraked               = reasonGroupsBraked
	ReasonNoPoolInStore              = reasonNoPoolInStore
)
