package machinepool

// Reasons that tests of this package name.
var (
	ReasonRetryAt       = reasonRetryAt
	ReasonWaitForChange = reasonWaitForChange
	ReasonFence         = reasonAnnounce
	ReasonTakesEffect   = reasonTakesEffect
	ReasonLeaving       = reasonLeaving
	ReasonKeepFailed    = reasonUncordonFailed
	ReasonRunning       = reasonRunning
	ReasonWaiting       = reasonWaiting
	ReasonClassGone     = reasonClassGone
	ReasonNodesSpelled  = reasonNodesSpelled
)
