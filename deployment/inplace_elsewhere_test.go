package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
)

// TestUpdatesBegunElsewhereAreMarked: a machine of an old set that is being updated
// though nothing is requested of it was selected by another program. It becomes a
// candidate, and is updated to the new set. One that has been updated is where it
// belongs, unless something is requested of it.
func TestUpdatesBegunElsewhereAreMarked(t *testing.T) {
	d := stored(3)
	d.Spec.Strategy = inPlace(3, 0, 1).Spec.Strategy
	old := another(d, "large", 1, 3)
	old.Set.Handover.Closed = true
	for i, phase := range []machine.Phase{machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful} {
		old.Machines[i].Status.Phase = phase
	}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	marked := map[string]machine.InPlaceRequest{}
	for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
		marked[order.Machine.Name] = order.Machine.Spec.InPlace
	}
	want := map[string]machine.InPlaceRequest{old.Machines[0].Name: machine.InPlaceCandidate, old.Machines[1].Name: machine.InPlaceCandidate}
	require.Equal(t, want, marked)

	old.Machines[0].Spec.InPlace, old.Machines[1].Spec.InPlace = machine.InPlaceCandidate, machine.InPlaceCandidate
	mark := decide(t, o, begin.Add(100*time.Hour)).Mark
	require.Len(t, mark, 1)
	require.Equal(t, "web-a", mark[0].Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
}
