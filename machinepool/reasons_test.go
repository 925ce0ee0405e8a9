package machinepool

// Reasons that tests of this package name.
var (
	ReasonRetryAt        = reasonRetryAt
	ReasonWaitForChange  = reasonWaitForChange
	ReasonAnnounce       = reasonAnnounce
	ReasonTakesEffect    = reasonTakesEffect
	ReasonLeaving        = reasonLeaving
	ReasonUncordonFailed = reasonUncordonFailed
	ReasonRunning        = reasonRunning
	ReasonWaiting        = reasonWaiting
	ReasonClassGone      = reasonClassGone
	ReasonNodesSpelled   = reasonNodesSpelled
)
