package replacement

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about the replacement budget.
var (
	reasonReadFleet   = decision.NewReason("ReadFleet", "reading the fleet live before machine {name} is given up")
	ReasonTakeSlot    = decision.NewReason("SlotTaken", "taking a slot for machine {name}: {have} of at most {want} in replacement with it")
	reasonGranted     = decision.NewReason("Granted", "machine {name} may be given up: {have} of at most {want} in replacement with it")
	reasonBudgetSpent = decision.NewReason("BudgetSpent", "machines in replacement: {have} of at most {want}")
	reasonZoneFails   = decision.NewReason("ZoneFails", "{have} of {want} machines in zone {detail} are Unknown: it is the zone that fails")
	reasonAlone       = decision.NewReason("NoSetReplaces", "machine {name} may be given up: no set replaces it, and no budget counts it")
	reasonAloneBraked = decision.NewReason("TooManyLeavingNodes", "no set replaces machine {name}, and at most {want} such machines follow their nodes in {for}")
	reasonNotAsking   = decision.NewReason("NotAsking", "machine {name} is not one to be given up for its health")
	reasonSlotLost    = decision.NewReason("SlotLost", "the slot that was written for machine {name} is not there")
)
