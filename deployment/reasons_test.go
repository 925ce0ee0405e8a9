package deployment

// Reasons that tests of this package name.
var (
	ReasonReadLive          = reasonReadLive
	ReasonSeen              = reasonSeen
	ReasonNameTaken         = reasonNameTaken
	ReasonNameFree          = reasonNameFree
	ReasonSurgeAllowed      = reasonSurgeAllowed
	ReasonSurgeRevoked      = reasonSurgeRevoked
	ReasonCandidatesDropped = reasonCandidatesDropped
	ReasonPauseCopied       = reasonPauseCopied
	ReasonCandidatesPruned  = reasonCandidatesPruned
	ReasonCount             = reasonCount
	ReasonThrottled         = reasonThrottled
	ReasonBatched           = reasonBatched
	ReasonRollout           = reasonRollout
	ReasonOrderRefused      = reasonOrderRefused
	ReasonNoFinalizer       = reasonNoFinalizer
	ReasonOrphaning         = reasonOrphaning
	ReasonFrozen            = reasonFrozen
	ReasonRevision          = reasonRevision
	ReasonRecord            = reasonRecord
	ReasonOpen              = reasonOpen
	ReasonMoveOff           = reasonMoveOff
	ReasonMoveDone          = reasonMoveDone
)
