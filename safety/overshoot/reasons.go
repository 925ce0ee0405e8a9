package overshoot

import "github.com/millwright-go/millwright/decision"

// The reasons of decisions about overshoot.
var (
	ReasonFreeze       = decision.NewReason("Overshoot", "{name} has {have} machines, and {want} or more freeze it")
	reasonFollowFreeze = decision.NewReason("FrozenWithDeployment", "{name} freezes with its deployment")
	ReasonThaw         = decision.NewReason("OvershootOver", "no set has more than {want} machines any more: thawed")
	reasonFollowThaw   = decision.NewReason("ThawedWithDeployment", "{name} thaws with its deployment")
	ReasonUnfreeze     = decision.NewReason("UnfrozenByUser", "{name} has {have} machines, and {want} or more freeze it, but an annotation forbids that")
	ReasonUnfreezeDone = decision.NewReason("UnfreezeDone", "the overshoot of {name} is over: the annotation that kept it from freezing goes")
	reasonCondition    = decision.NewReason("FrozenCondition", "telling in the status of {name} whether it is frozen")
	reasonInBounds     = decision.NewReason("InBounds", "the largest set has {have} machines; {want} would freeze it")
	reasonScalingDown  = decision.NewReason("ScalingDown", "the largest set has {have} machines, ordered before its size went down; {want} would freeze it if one was new")
	reasonStayFrozen   = decision.NewReason("StaysFrozen", "frozen: the largest set has {have} machines; at {want} or less it thaws")
	reasonNotWatched   = decision.NewReason("NotWatched", "being deleted, or overshoot is not watched: nothing to freeze")
)
