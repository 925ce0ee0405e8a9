package deployment

// Reasons that tests of this package name.
var (
	ReasonReadLive         = reasonReadLive
	ReasonSeen             = reasonSeen
	ReasonNameTaken        = reasonNameTaken
	ReasonNameFree         = reasonNameFree
	ReasonSurgeAllowance   = reasonSurgeAllowance
	ReasonNoSurgeAllowance = reasonNoSurgeAllowance
	ReasonForget           = reasonForget
	ReasonPauseCopied      = reasonPauseCopied
	ReasonTidied           = reasonTidied
	ReasonCount            = reasonCount
	ReasonThrottled        = reasonThrottled
	ReasonGathering        = reasonGathering
	ReasonRollout          = reasonRollout
	ReasonOrderRefused     = reasonOrderRefused
	ReasonNotOurs          = reasonNotOurs
	ReasonLeaving          = reasonLeaving
	ReasonFrozen           = reasonFrozen
	ReasonRevision         = reasonRevision
	ReasonRecord           = reasonRecord
	ReasonOpen             = reasonOpen
	ReasonMoveOff          = reasonMoveOff
	ReasonMoveDone         = reasonMoveDone
)
