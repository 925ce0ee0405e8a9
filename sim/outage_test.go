package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// settled returns a converged fleet of three that no fault can hit.
func settled(t *testing.T, o sim.Options) *run {
	r := &run{t: t}
	o.Manager.Policies.Safety = safety.DefaultPolicy()
	r.open(o, fleet(3, deployment.Strategy{}))
	r.complete()
	return r
}

// TestOutagesFreeze: while either API does not answer, nothing is made. Afterwards all is made.
// Invariants: P25
func TestOutagesFreeze(t *testing.T) {
	for name, stop := range map[sim.Fault]func(*sim.World, time.Duration){
		sim.ControlOutage: (*sim.World).StopControl, sim.TargetOutage: (*sim.World).StopTarget,
	} {
		r := settled(t, sim.Options{})
		stop(r.w, 20*time.Minute)
		r.wait(5 * time.Minute)
		r.scale(6)
		made, stale := r.w.Made(), r.w.Stats().Faults[sim.StaleRead]
		r.wait(14 * time.Minute)
		if name == sim.ControlOutage {
			require.Greater(t, r.w.Stats().Faults[sim.StaleRead], stale, "the change has not come through")
		}
		require.Equal(t, made, r.w.Made(), "%s", name)
		require.Equal(t, 1, r.w.Stats().Faults[name])
		r.complete()
		require.Equal(t, 6, r.w.Made(), "nobody is given up for having been silent")
		r.w.Close()
	}
}

// TestTargetComesBackSilent: nodes that could not report are silent at first when their cluster
// answers again. After a short outage they are not.
func TestTargetComesBackSilent(t *testing.T) {
	silent := func(outage time.Duration) (seen int) {
		r := settled(t, sim.Options{})
		defer r.w.Close()
		r.w.Watch(func() { seen = max(seen, r.nodes(object.Unknown)) })
		r.w.StopTarget(outage)
		r.wait(outage + time.Minute)
		require.Equal(t, 3, r.nodes(object.True))
		return seen
	}
	require.Equal(t, 3, silent(5*time.Minute))
	require.Zero(t, silent(20*time.Second))
}

// nodes counts the nodes whose readiness is as given.
func (r *run) nodes(status object.ConditionStatus) (n int) {
	nodes, err := r.w.Nodes().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, node := range nodes {
		if c := object.FindCondition(node.Conditions, machine.NodeReady); c != nil && c.Status == status {
			n++
		}
	}
	return n
}

// TestZones: the nodes of a zone that is out are silent, and no VM is made there until the zone is
// back.
func TestZones(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	r.w.StopZone(0, 8*time.Minute)
	r.wait(time.Minute)
	require.Equal(t, 3, r.nodes(object.Unknown), "the first zone is that of class small")
	r.scale(5)
	r.wait(6 * time.Minute)
	require.Equal(t, 3, r.w.Provider().Count())
	require.Positive(t, r.w.Stats().Faults[sim.CapacityOut])
	r.complete()
	require.Equal(t, 5, r.nodes(object.True))

	r.w.StopZone(1, 8*time.Minute)
	r.wait(time.Minute)
	require.Equal(t, 5, r.nodes(object.True), "another zone is nothing to them")
}

// TestNoManagerBeginsInAnOutage: its caches could not be filled.
func TestNoManagerBeginsInAnOutage(t *testing.T) {
	var lives int
	r := &run{t: t}
	r.open(sim.Options{Faults: sim.Faults{Kills: 1, KillWithin: 1}, Manager: manager.Options{
		Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		Hooks:    manager.Hooks{Pass: func(manager.Kind, object.Key, int, manager.Result, error) { lives++ }},
	}}, fleet(1, deployment.Strategy{}))
	defer r.w.Close()
	r.w.StopTarget(time.Hour)
	r.wait(59 * time.Minute)
	before := lives
	r.wait(2 * time.Minute)
	require.Positive(t, lives-before)
	require.Less(t, before, 10, "the first life ended with its first call")
}

// TestJumpsAreTheManagersOnly: the manager's clock jumps and its waits still end. The world's time
// does not jump.
func TestJumpsAreTheManagersOnly(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	now := r.w.Now()
	r.w.JumpClock(5 * time.Minute)
	require.Equal(t, now, r.w.Now())
	r.roll("large")
	r.complete()
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(t, err)
	for _, m := range machines {
		require.WithinRange(t, m.Status.Since, m.CreatedAt.Add(5*time.Minute), m.CreatedAt.Add(8*time.Minute))
	}
	r.w.JumpClock(-5 * time.Minute)
	r.roll("small")
	r.complete()
}

// TestProviderForgetsWhatItMade: a new VM is in no answer of the provider for as long as Eventually
// says.
func TestProviderForgetsWhatItMade(t *testing.T) {
	r := settled(t, sim.Options{Faults: sim.Faults{Eventually: 10 * time.Minute}})
	defer r.w.Close()
	r.w.AddOrphanVM("stray")
	r.wait(time.Hour)
	require.Zero(t, r.w.OrphanVMs())
	s := r.w.Stats()
	require.Positive(t, s.Faults[sim.ListLagged])
	require.Positive(t, s.Calls[codes.ListMachines])
	require.Equal(t, 1, s.Collected)
}

// TestLostVMs: VMs that vanish are replaced.
func TestLostVMs(t *testing.T) {
	r := settled(t, sim.Options{Faults: sim.Faults{LostVM: 1}})
	defer r.w.Close()
	r.wait(3 * time.Hour)
	lost := r.w.Stats().Faults[sim.VMLost]
	require.Greater(t, lost, 3)
	r.w.StopFaults()
	r.complete()
	require.Greater(t, r.w.Made(), lost)
}

// TestNoOutageOfNoCluster: without a target cluster its API is never out, and nothing has to be frozen
// for it (P25).
func TestNoOutageOfNoCluster(t *testing.T) {
	s := &sim.Scenario{
		Options:     sim.Options{NoCluster: true},
		Deployments: []*deployment.Deployment{sim.Fleet("web", 2, deployment.Strategy{})},
		Steps: []sim.Step{
			{After: time.Hour, Do: sim.StopTarget, For: time.Hour},
			{After: 10 * time.Minute, Do: sim.Scale, Name: "web", N: 4},
			{After: 10 * time.Minute},
		},
	}
	require.Nil(t, play(t, s).Violation)
}

// TestIllnessUnderAnotherClock: a process that has seen a machine become ill gives it up by the health
// timeout alone, also if its clock says that this was before the process began (P25).
// Invariants: P25
func TestIllnessUnderAnotherClock(t *testing.T) {
	for _, skew := range []time.Duration{-50 * time.Minute, 0, 50 * time.Minute} {
		r := &run{t: t}
		policy := machine.DefaultPolicy()
		policy.HealthTimeout, policy.Grace = 2*time.Minute, 5*time.Hour
		r.open(sim.Options{
			Faults:  sim.Faults{Flap: 1, FlapForGood: 1, Skew: skew},
			Manager: manager.Options{Policies: manager.Policies{Machine: policy}},
		}, fleet(3, deployment.Strategy{}))
		require.NoError(t, r.w.Until(func() bool { return r.w.Made() > 3 }, time.Hour), "a machine is replaced with skew %s", skew)
		r.w.Close()
	}
}
