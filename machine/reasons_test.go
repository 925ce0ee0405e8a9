package machine

// Reasons that tests of this package name.
var (
	ReasonPaused        = reasonPaused
	ReasonWaitForChange = reasonWaitForChange
	ReasonResumed       = reasonResumed
	ReasonClassBackoff  = reasonClassBackoff
	ReasonCreateFailed  = reasonCreateFailed
	ReasonGrace         = reasonGrace
	ReasonHealthy       = reasonHealthy
	ReasonNotOurs       = reasonNotOurs
	ReasonTerminating   = reasonTerminating
	ReasonDrainNoted    = reasonDrainNoted
	ReasonSpecFixed     = reasonSpecFixed
)
