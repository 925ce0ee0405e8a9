package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// TestSpellsComeAgain: faults that begin and end by themselves occur again as long as there are
// faults.
func TestSpellsComeAgain(t *testing.T) {
	s := sim.Spells{Every: 20 * time.Minute, For: time.Minute}
	r := settled(t, sim.Options{Faults: sim.Faults{ControlOutages: s, TargetOutages: s, ZoneOutages: s, ClockJumps: s}})
	defer r.w.Close()
	before := r.w.Stats()
	r.wait(20 * time.Hour)
	after := r.w.Stats()
	r.w.StopFaults()
	r.wait(20 * time.Hour)
	for _, f := range []sim.Fault{sim.ControlOutage, sim.TargetOutage, sim.ZoneOutage, sim.ClockJump} {
		require.InDelta(t, 60, after.Faults[f]-before.Faults[f], 25, "%s", f)
		require.Equal(t, after.Faults[f], r.w.Stats().Faults[f], "%s", f)
	}
}

// TestLateKills: the call at which a manager dies takes effect when it is dead.
func TestLateKills(t *testing.T) {
	r := settled(t, sim.Options{Faults: sim.Faults{Kills: 9, KillWithin: 5, Late: 1, LateBy: time.Minute}})
	defer r.w.Close()
	s := r.w.Stats()
	require.Equal(t, 9, s.Faults[sim.KilledBefore])
	require.Zero(t, s.Faults[sim.KilledAfter])
	require.GreaterOrEqual(t, s.Faults[sim.CallLate], 8)
}

// TestDarkZonesStaySilent: nodes do not come back with their cluster while their zone is out.
func TestDarkZonesStaySilent(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	r.w.StopTarget(time.Minute)
	r.wait(25 * time.Second)
	r.w.StopZone(0, 5*time.Minute)
	r.wait(75 * time.Second)
	require.Equal(t, 3, r.nodes(object.Unknown))
}

// TestRestlessFleetsAreSeen: a write to a fleet that has converged is a violation (P28).
func TestRestlessFleetsAreSeen(t *testing.T) {
	s := &sim.Scenario{Options: off, Deployments: []*deployment.Deployment{sim.Fleet("web", 1, deployment.Strategy{})}}
	require.NoError(t, errorOf(play(t, s).Violation))
	s.Options.Driver = func(w *sim.World) driver.Driver {
		w.After(20*time.Minute, func() { flicker(w) })
		return w.Provider()
	}
	found := play(t, s).Violation
	require.NotNil(t, found)
	require.Equal(t, "P28", found.Rule)
}

// flicker changes a condition of all nodes again and again, which machines copy.
func flicker(w *sim.World) {
	nodes, _ := w.Nodes().List(ctx, store.Query{})
	for _, n := range nodes {
		n = n.Clone()
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{
			Type: machine.NodeReady, Status: object.True, Reason: w.Now().String(), Since: w.Now().Truncate(time.Second),
		})
		_, _ = w.Nodes().UpdateStatus(ctx, n)
	}
	w.After(20*time.Minute, func() { flicker(w) })
}
