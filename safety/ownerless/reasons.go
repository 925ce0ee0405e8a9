package ownerless

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about machines and sets whose owner is gone.
var (
	reasonFrozen         = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonReadAll        = decision.NewReason("ReadAll", "{have} machines or sets seem to have lost their owner: reading all live")
	reasonSetGone        = decision.NewReason("SetGone", "machine {name} belongs to set {detail}, which is gone")
	reasonDeploymentGone = decision.NewReason("DeploymentGone", "set {name} belongs to deployment {detail}, which is gone")
	reasonOwnerSecond    = decision.NewReason("SecondLookForOwner", "{have} machines or sets have lost their owner: looking again in {for} before any is deleted")
	reasonOwnersBraked   = decision.NewReason("TooManyOwnerless", "{have} more machines or sets whose owner is gone are held back, since only {want} may go in {for}: if they are in "+
		"use, stop this manager and see whether it reads all sets and deployments; if not, they go little by little")
	reasonAllOwned = decision.NewReason("AllOwned", "every machine and every set has its owner, or needs none")
)
