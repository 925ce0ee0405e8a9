package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
)

// TestSizesRestOnAFreshLiveRead: from machineset.DeleteWithin after its end on, a live read allows
// no resize. Neither does one that ended in the future.
// Invariants: P7
func TestSizesRestOnAFreshLiveRead(t *testing.T) {
	o := settledObservation(t, 3)
	o.Deployment.Spec.Replicas, o.Read.Ended = 4, begin
	for after, fresh := range map[time.Duration]bool{
		0: true, machineset.DeleteWithin - 1: true, machineset.DeleteWithin: false, -time.Second: false,
	} {
		plan := decide(t, o, begin.Add(after))
		require.Equal(t, fresh, len(plan.Scale) == 1, "%s", after)
		require.Equal(t, !fresh, plan.ReadLive, "%s", after)
		if fresh {
			require.Equal(t, begin.Add(machineset.DeleteWithin), plan.Until)
		}
	}
	o.Read.Ended = time.Time{}
	require.Len(t, decide(t, o, begin.Add(time.Hour)).Scale, 1, "it is not known when it ended")
}

// TestMarksRestOnAFreshLiveRead: a machine is selected because enough others were available when
// they were read. So the selection needs a fresh live read, as the deletion of a set does.
// Invariants: P7
func TestMarksRestOnAFreshLiveRead(t *testing.T) {
	mark := func() *deployment.Observation {
		d := stored(3)
		rollsInPlace(d, 3, 0, 1)
		old := another(d, "large", 1, 3)
		old.Set.Instructions.Handover.Closed = true
		return &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	}
	prune := func() *deployment.Observation {
		o := settledObservation(t, 3)
		o.Sets = append(o.Sets, another(o.Deployment, "large", 0, 0))
		o.Deployment.Spec.RevisionHistoryLimit = ptr(0)
		return o
	}
	for name, o := range map[string]*deployment.Observation{"mark": mark(), "delete": prune()} {
		o.Read.Ended = begin.Add(10 * time.Minute)
		for after, fresh := range map[time.Duration]bool{
			0: true, machineset.DeleteWithin - 1: true, machineset.DeleteWithin: false, -time.Second: false,
		} {
			plan := decide(t, o, o.Read.Ended.Add(after))
			require.Equal(t, fresh, len(plan.Mark)+len(plan.Delete) > 0, "%s after %s: %s", name, after, plan.Why)
			require.Equal(t, !fresh, plan.ReadLive, "%s after %s", name, after)
			if fresh {
				require.Equal(t, o.Read.Ended.Add(machineset.DeleteWithin), plan.Until)
			}
		}
	}
}
