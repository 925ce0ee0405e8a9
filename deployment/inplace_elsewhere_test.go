package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// TestUpdatesBegunElsewhereAreMarked: if a machine of an old set is being updated without a
// request, another program selected it. It becomes a candidate, and is updated to the new set. A
// machine that has been updated is where it belongs, unless something is requested of it.
func TestUpdatesBegunElsewhereAreMarked(t *testing.T) {
	d := stored(3)
	rollsInPlace(d, 3, 0, 1)
	old := another(d, "large", 1, 3)
	old.Set.Instructions.Handover.Closed = true
	for i, phase := range []machine.Phase{machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed, machine.PhaseInPlaceUpdateSuccessful} {
		old.Machines[i].Status.Phase = phase
	}
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
	marked := map[string]machine.InPlaceRequest{}
	for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
		marked[order.Machine.Name] = order.Machine.Spec.InPlace
	}
	want := map[string]machine.InPlaceRequest{old.Machines[0].Name: machine.InPlaceWaiting, old.Machines[1].Name: machine.InPlaceWaiting}
	require.Equal(t, want, marked)

	old.Machines[0].Spec.InPlace, old.Machines[1].Spec.InPlace = machine.InPlaceWaiting, machine.InPlaceWaiting
	mark := decide(t, o, begin.Add(100*time.Hour)).Mark
	require.Len(t, mark, 1)
	require.Equal(t, "web-a", mark[0].Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
}

// TestUpdatesBegunElsewhereCount: while the node of a candidate says that its update has begun, no
// other machine is selected, although the machine itself still runs. It is updated to the new set.
func TestUpdatesBegunElsewhereCount(t *testing.T) {
	for reason, counts := range map[string]bool{
		machine.ReasonSelectedForUpdate: true, machine.ReasonDrainSuccessful: true, machine.ReasonReadyForUpdate: true,
		machine.ReasonCandidateForUpdate: false, machine.ReasonUpdateSuccessful: false,
	} {
		d := stored(3)
		rollsInPlace(d, 3, 0, 1)
		d.Status.RolloutFailures.Revision = 4
		old := another(d, "large", 3, 3)
		old.Set.Instructions.Handover.Closed = true
		for _, m := range old.Machines {
			m.Spec.InPlace = machine.InPlaceWaiting
		}
		begun := old.Machines[2]
		begun.Status.Conditions = object.SetCondition(begun.Status.Conditions, object.Condition{
			Type: machine.NodeInPlaceUpdate, Status: object.True, Reason: reason,
		})
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, ownSet(d, "web-a", 0)}}
		marked := map[string]machine.InPlaceRequest{}
		for _, order := range decide(t, o, begin.Add(100*time.Hour)).Mark {
			marked[order.Machine.Name] = order.Machine.Spec.InPlace
			require.Equal(t, "web-a", order.Machine.Annotations[deployment.DefaultPolicy().Keys.InPlaceTarget])
		}
		want := map[string]machine.InPlaceRequest{old.Machines[0].Name: machine.InPlaceSelected}
		if counts {
			want = map[string]machine.InPlaceRequest{begun.Name: machine.InPlaceWaiting}
		}
		require.Equal(t, want, marked, reason)
	}
}
