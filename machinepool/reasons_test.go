package machinepool

// Reasons that tests of this package name.
var (
	ReasonRetryAt       = reasonRetryAt
	ReasonWaitForChange = reasonWaitForChange
	ReasonFence         = reasonFence
	ReasonTakesEffect   = reasonTakesEffect
	ReasonLeaving       = reasonLeaving
	ReasonKeepFailed    = reasonKeepFailed
	ReasonRunning       = reasonRunning
	ReasonWaiting       = reasonWaiting
	ReasonClassGone     = reasonClassGone
	ReasonNodesSpelled  = reasonNodesSpelled
)
