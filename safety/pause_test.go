package safety_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

const pausedKey = "millwright-go/paused"

var noon = time.Date(2026, 5, 4, 12, 0, 0, 0, time.UTC)

func member(name string, phase machine.Phase, paused string) *machine.Machine {
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}, UID: name}}
	m.Annotations = map[string]string{pausedKey: paused}
	m.Spec.Class.Name, m.Spec.ProviderID, m.Status.Phase = "small", "p://"+name, phase
	return m
}

// TestP15PausedMachinesKeepTheirVMs: a paused machine owns every VM of its name, also in the last
// check just before a delete.
func TestP15PausedMachinesKeepTheirVMs(t *testing.T) {
	class := object.Key{Namespace: "fleet", Name: "small"}
	for _, paused := range []string{"true", "false"} {
		m := member("m-1", machine.PhaseRunning, paused)
		o := &safety.OrphanObservation{Machines: []*machine.Machine{m}}
		var orders []safety.DeleteOrphan
		for at := noon; at.Before(noon.Add(2 * time.Minute)); at = at.Add(time.Minute) {
			listing := &safety.Listing{Asked: at, Answered: at, VMs: map[string]string{"p://other": "m-1", "p://m-1": "m-1"}}
			o.Classes = []safety.OrphanClass{{Key: class, Asked: at, Listing: listing}}
			o.Read = decision.Freshness{Began: at}
			plan, err := safety.DecideOrphans(o, safety.DefaultPolicy(), at)
			require.NoError(t, err)
			o.Sightings, orders = plan.Sightings, plan.Delete
		}
		if paused == "true" {
			require.Empty(t, orders)
			continue
		}
		require.Len(t, orders, 1)
		require.True(t, orders[0].StillOrphan(m))
		m.Annotations[pausedKey] = "true"
		require.False(t, orders[0].StillOrphan(m), "it was paused since")
	}
}

// TestPausedMachinesAreNotInReplacement: they take no place in the budget in any phase, unless they
// are being deleted.
func TestPausedMachinesAreNotInReplacement(t *testing.T) {
	for _, phase := range []machine.Phase{
		machine.PhaseFailed, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseNew, machine.PhaseUnknown,
	} {
		for _, paused := range []string{"true", "false"} {
			d := &deployment.Deployment{Spec: deployment.Spec{Replicas: 2}}
			d.Annotations = map[string]string{safety.DefaultPolicy().Keys.Slots: "m-2~" + noon.Format(time.RFC3339)}
			o := &safety.GrantObservation{
				Machine: member("m-1", machine.PhaseUnknown, ""), Deployment: d, Set: &machineset.Set{}, Read: decision.Freshness{Began: epoch},
			}
			o.Fleet = []*machine.Machine{o.Machine, member("m-2", phase, paused)}
			plan, err := safety.DecideGrant(o, safety.DefaultPolicy(), noon)
			require.NoError(t, err)
			require.Equal(t, paused == "true", plan.Write != nil, "%s, paused %s: %s", phase, paused, plan.Why)
			o.Fleet[1].DeletedAt = noon
			plan, err = safety.DecideGrant(o, safety.DefaultPolicy(), noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "it is missing")
		}
	}
}

// TestP25PausedClocksAreLeftAlone: clocks of paused machines are left alone after an outage, and
// restart when the pause ends.
func TestP25PausedClocksAreLeftAlone(t *testing.T) {
	fine := &machine.Outcome{}
	o := &safety.ReachObservation{
		Reach: safety.Reach{Stage: safety.ReachLost}, Control: fine, Target: fine,
		Machines: []*machine.Machine{member("m-1", machine.PhaseUnknown, "true"), member("m-2", machine.PhaseUnknown, "no")},
	}
	plan, err := safety.DecideReachability(o, safety.DefaultPolicy(), noon)
	require.NoError(t, err)
	require.Len(t, plan.Restart, 1)
	require.Equal(t, "m-2", plan.Restart[0].Machine.Name)
}
