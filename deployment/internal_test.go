package deployment

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// TestOutdatedCandidatesAreRemoved: if a set has outdated deletion candidates, the next write has none, so that it is
// not written again and again. A negative size, which is invalid, counts as the number of the set's machines.
func TestOutdatedCandidatesAreRemoved(t *testing.T) {
	for _, size := range []int32{-1, 0, 1, 2} {
		set := &machineset.Set{Meta: object.Meta{Key: object.Key{Name: "web-a"}, UID: "a"}}
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "one"}, Owner: &object.Owner{Kind: machineset.OwnerKind, UID: "a"}}}
		set.Spec.Replicas = size
		set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: m.Name}}
		f := &setState{set: set, machines: []*machine.Machine{m}, actual: 1}
		require.Equal(t, size != 0, f.outdatedDeletionCandidates(), "size %d", size)
		require.Equal(t, size == 0, len(f.deletionCandidates(size, nil)) == 1, "size %d", size)
	}
}

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
