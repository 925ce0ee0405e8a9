package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machineset"
)

// TestSizesRestOnAFreshLiveRead: from machineset.DeleteWithin after its end on, a live read allows no
// resize, and neither does one that ended in the future.
func TestSizesRestOnAFreshLiveRead(t *testing.T) {
	o := settledObservation(t, 3)
	o.Deployment.Spec.Replicas, o.LiveEnded = 4, begin
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
	o.LiveEnded = time.Time{}
	require.Len(t, decide(t, o, begin.Add(time.Hour)).Scale, 1, "it is not known when it ended")
}
