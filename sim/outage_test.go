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

// settled returns a converged fleet of three, with the loops of package safety.
func settled(t *testing.T, o sim.Options) *run {
	r := &run{t: t}
	o.Manager.Policies.Safety = safety.DefaultPolicy()
	r.open(o, fleet(3, deployment.Strategy{}))
	r.awaitComplete()
	return r
}

// TestOutagesFreeze: while either API does not answer, no machine is created. After that, all are.
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
			require.Greater(t, r.w.Stats().Faults[sim.StaleRead], stale, "no read was stale, so the caches have seen the change")
		}
		require.Equal(t, made, r.w.Made(), "%s", name)
		require.Equal(t, 1, r.w.Stats().Faults[name])
		r.awaitComplete()
		require.Equal(t, 6, r.w.Made(), "machines were replaced because of the outage")
		r.w.Close()
	}
}

// TestNodesNotReadyAfterTargetOutage: when the target cluster answers again after a long outage, all nodes
// are NotReady for a moment, because they could not report. After a short outage they are not.
func TestNodesNotReadyAfterTargetOutage(t *testing.T) {
	silent := func(outage time.Duration) (seen int) {
		r := settled(t, sim.Options{})
		defer r.w.Close()
		r.w.Watch(func() { seen = max(seen, r.countNodes(object.Unknown)) })
		r.w.StopTarget(outage)
		r.wait(outage + time.Minute)
		require.Equal(t, 3, r.countNodes(object.True))
		return seen
	}
	require.Equal(t, 3, silent(5*time.Minute))
	require.Zero(t, silent(20*time.Second))
}

// countNodes counts the nodes whose readiness is as given.
func (r *run) countNodes(status object.ConditionStatus) (n int) {
	nodes, err := r.w.Nodes().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, node := range nodes {
		if c := object.FindCondition(node.Conditions, machine.NodeReady); c != nil && c.Status == status {
			n++
		}
	}
	return n
}

// TestZones: during the outage of a zone its nodes are NotReady, and no VM can be created in it.
func TestZones(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	r.w.StopZone(0, 8*time.Minute)
	r.wait(time.Minute)
	require.Equal(t, 3, r.countNodes(object.Unknown), "the first zone is that of class small")
	r.scale(5)
	r.wait(6 * time.Minute)
	require.Equal(t, 3, r.w.Provider().Count())
	require.Positive(t, r.w.Stats().Faults[sim.CapacityOut])
	r.awaitComplete()
	require.Equal(t, 5, r.countNodes(object.True))

	r.w.StopZone(1, 8*time.Minute)
	r.wait(time.Minute)
	require.Equal(t, 5, r.countNodes(object.True), "the outage of another zone affects them")
}

// TestNoManagerStartsInAnOutage: a killed manager is started again only when the APIs answer, because it
// has to fill its caches.
func TestNoManagerStartsInAnOutage(t *testing.T) {
	var passes int
	r := &run{t: t}
	r.open(sim.Options{Faults: sim.Faults{Kills: 1, KillWithin: 1}, Manager: manager.Options{
		Policies: manager.Policies{Safety: safety.DefaultPolicy()},
		Hooks:    manager.Hooks{Pass: func(manager.Kind, object.Key, int, manager.Result, error) { passes++ }},
	}}, fleet(1, deployment.Strategy{}))
	defer r.w.Close()
	r.w.StopTarget(time.Hour)
	r.wait(59 * time.Minute)
	before := passes
	r.wait(2 * time.Minute)
	require.Positive(t, passes-before, "passes after the outage")
	require.Less(t, before, 10, "passes of the first process, which dies at its first call")
}

// TestOnlyTheManagersClockJumps: JumpClock changes the manager's clock and not the virtual time. The waits
// of the manager still end.
func TestOnlyTheManagersClockJumps(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	now := r.w.Now()
	r.w.JumpClock(5 * time.Minute)
	require.Equal(t, now, r.w.Now())
	r.roll("large")
	r.awaitComplete()
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(t, err)
	for _, m := range machines {
		require.WithinRange(t, m.Status.Since, m.CreatedAt.Add(5*time.Minute), m.CreatedAt.Add(8*time.Minute))
	}
	r.w.JumpClock(-5 * time.Minute)
	r.roll("small")
	r.awaitComplete()
}

// TestNewVMsAreNotListedAtOnce: a new VM is missing in the provider's answers for as long as
// Faults.Eventually says.
func TestNewVMsAreNotListedAtOnce(t *testing.T) {
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
	r.awaitComplete()
	require.Greater(t, r.w.Made(), lost)
}

// TestNoTargetOutageWithoutACluster: without a target cluster its API has no outages, so the fleet is not
// frozen (P25).
func TestNoTargetOutageWithoutACluster(t *testing.T) {
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

// TestHealthTimeoutWithSkewedClock: if a process has seen a machine become unhealthy, only the health
// timeout counts, and not Grace, even if by the manager's clock this was before the process started (P25).
// Invariants: P25
func TestHealthTimeoutWithSkewedClock(t *testing.T) {
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
