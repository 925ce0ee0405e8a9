package machineset

// Reasons that tests of this package name.
var (
	ReasonSpecInvalid            = reasonSpecInvalid
	ReasonFailedBeforeReady      = reasonFailedBeforeReady
	ReasonFailedBeforeReadyFirst = reasonFailedBeforeReadyFirst
	ReasonReserve                = reasonReserve
	ReasonSurplus                = reasonSurplus
	ReasonDeleteRequested        = reasonDeleteRequested
	ReasonPaused                 = reasonPaused
	ReasonOddPause               = reasonOddPause
	ReasonSpared                 = reasonSpared
	ReasonDeleteExpired          = reasonDeleteExpired
	ReasonClosed                 = reasonClosed
	ReasonPreserving             = reasonPreserving
	ReasonSettled                = reasonSettled
	ReasonNotOurs                = reasonNotOurs
	ReasonSetReleased            = reasonSetReleased
)
