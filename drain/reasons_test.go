package drain

// Reasons that tests of this package name.
var (
	ReasonEvict       = reasonEvict
	ReasonOverdue     = reasonOverdue
	ReasonLook        = reasonLook
	ReasonLookPods    = reasonLookPods
	ReasonTurn        = reasonTurn
	ReasonDetaching   = reasonDetaching
	ReasonDetachLate  = reasonDetachLate
	ReasonAttached    = reasonAttached
	ReasonCameBack    = reasonCameBack
	ReasonDrained     = reasonDrained
	ReasonDetachEnded = reasonDetachEnded
)
