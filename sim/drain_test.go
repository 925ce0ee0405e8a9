package sim_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

// TestRolloutKeepsTheBudget rolls a fleet with a workload on it. The disruption budget is kept at any time,
// and no VM is deleted before its pods are gone, even if the manager is killed (P22, P26).
// Invariants: P22
func TestRolloutKeepsTheBudget(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 6
	}
	for name, strategy := range map[string]deployment.Strategy{
		"rolling":  {MaxSurge: rollout.IntOrPercent{Value: 1}},
		"in place": {Kind: deployment.InPlaceUpdate, MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for seed := range seeds {
				rollKeepingTheBudget(t, seed, strategy)
			}
		})
	}
}

func rollKeepingTheBudget(t *testing.T, seed uint64, strategy deployment.Strategy) {
	faults := busy()
	faults.Kills, faults.KillWithin, faults.Restart = int(seed%4), 100, time.Minute
	r := &run{t: t}
	r.start(seed, faults, fleet(3, strategy), manager.Hooks{})
	r.awaitComplete()
	r.w.AddApp(sim.App{Name: "shop", Replicas: 6, MinAvailable: 5, Grace: 30 * time.Second, Boot: 20 * time.Second})
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 6 }, time.Hour))
	least, moved := 6, false
	r.w.Watch(func() {
		least = min(least, r.w.Healthy("shop"))
		moved = moved || r.w.Healthy("shop") < 6
	})
	r.roll("large")
	r.awaitComplete()
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 6 }, time.Hour))
	require.GreaterOrEqual(t, least, 5, "seed %d", seed)
	require.True(t, moved, "pods have to leave their nodes")
	r.w.Close()
}

// TestMisconfiguredBudgetIsNamedOnce: a disruption budget that allows no eviction delays the deletion of
// the machine until force is due. The machine's status and one event name the pod and the budget.
func TestMisconfiguredBudgetIsNamedOnce(t *testing.T) {
	var warnings []string
	r := &run{t: t}
	policy := machine.DefaultPolicy()
	policy.DrainTimeout = 30 * time.Minute
	r.open(sim.Options{Manager: manager.Options{
		Policies: manager.Policies{Machine: policy},
		Hooks: manager.Hooks{Event: func(kind manager.Kind, _ object.Key, typ manager.EventType, _, why string) {
			if kind == manager.KindMachine && typ == manager.Warning {
				warnings = append(warnings, why)
			}
		}},
	}}, fleet(1, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 1}}))
	r.awaitComplete()
	r.w.AddApp(sim.App{Name: "shop", Replicas: 1, MinAvailable: 1, Grace: 30 * time.Second})
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 1 }, time.Hour))
	r.roll("large")
	r.wait(15 * time.Minute)
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(t, err)
	deleted := slices.IndexFunc(machines, func(m *machine.Machine) bool { return m.Deleted() })
	require.Contains(t, machines[deleted].Status.LastOperation.Message, "budget apps/shop is misconfigured")
	require.Contains(t, machines[deleted].Status.LastOperation.Message, "apps/shop-1")
	r.awaitComplete()
	count := 0
	for _, why := range warnings {
		if strings.Contains(why, "misconfigured") {
			count++
		}
	}
	require.Equal(t, 1, count, "warnings about the budget: %v", warnings)
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 1 }, time.Hour), "its pod runs on the new machine")
	r.w.Close()
}

// TestDrainLimit: Options.DrainLimit bounds how many nodes are drained at a time.
func TestDrainLimit(t *testing.T) {
	for seed := range uint64(10) {
		r := &run{t: t}
		r.open(sim.Options{Seed: seed, Faults: busy(), DrainLimit: drains.Limit{Max: 2}},
			fleet(8, deployment.Strategy{MaxUnavailable: rollout.IntOrPercent{Value: 8}}))
		r.awaitComplete()
		r.w.AddApp(sim.App{Name: "shop", Replicas: 16, Grace: 5 * time.Minute, Boot: 20 * time.Second})
		require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 16 }, time.Hour))
		most := 0
		r.w.Watch(func() { most = max(most, drainingNodes(r.w)) })
		r.scale(2)
		r.awaitComplete()
		require.Equal(t, 2, most, "seed %d", seed)
		r.w.Close()
	}
}

// drainingNodes counts the nodes that are being drained and not empty yet.
func drainingNodes(w *sim.World) (n int) {
	nodes, _ := w.Nodes().List(ctx, store.Query{})
	for _, node := range nodes {
		if node.Drain != nil && w.PodsOn(node.Name) > 0 {
			n++
		}
	}
	return n
}

// TestP53NodesThatJoinLate scales fleets down while machines are being created, with a provider that
// refuses most calls: no VM is deleted with pods on its node, even if the node joined after the drain (P53).
// Invariants: P53
func TestP53NodesThatJoinLate(t *testing.T) {
	seeds, late := uint64(40), 0
	if testing.Short() {
		seeds = 8
	}
	for seed := range seeds {
		r := &run{t: t}
		faults := busy()
		faults.NoStartupTaint = true
		faults.SlowBoot, faults.Call, faults.Codes = 10*time.Minute, 0.6, []codes.Code{codes.Unavailable, codes.Internal}
		r.start(seed, faults, fleet(2, deployment.Strategy{}), manager.Hooks{
			Event: func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
				if reason == "NodeJoinedLate" {
					late++
				}
			},
		})
		r.awaitComplete()
		r.w.AddApp(sim.App{Name: "jobs", Replicas: 8, Grace: 2 * time.Minute, Boot: 20 * time.Second, Work: 5 * time.Minute})
		for range 3 {
			r.scale(8)
			r.wait(6 * time.Minute)
			r.scale(2)
			r.wait(40 * time.Minute)
		}
		r.awaitComplete()
		r.w.Close()
	}
	require.Positive(t, late, "nodes that joined late")
}

// oneByOne replaces one machine at a time.
var oneByOne = deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 1}}

// rollWithApp returns a scenario that rolls a fleet of three with a workload on it.
func rollWithApp(seed uint64, faults sim.Faults, app sim.App) *sim.Scenario {
	return &sim.Scenario{
		Options:          sim.Options{Seed: seed, Faults: faults, Manager: quiet.Manager},
		Classes:          []string{"large"},
		Deployments:      []*deployment.Deployment{sim.Fleet("web", 3, oneByOne)},
		Apps:             []sim.App{app},
		Steps:            []sim.Step{{After: time.Hour, Do: sim.Roll, Name: "web", Class: "large"}},
		FaultsAfterSteps: 3 * time.Hour,
	}
}

// TestLastPodWithAVolumeFinishes: the object of every node's only pod with a volume stays for a while after
// the pod has finished, with the volume attached or not. The drains still end.
// Invariants: P21
func TestLastPodWithAVolumeFinishes(t *testing.T) {
	for seed := range uint64(5) {
		faults := busy()
		faults.PodEnd = 20 * time.Second
		r := play(t, rollWithApp(seed, faults, sim.App{Name: "db", Replicas: 3, Grace: 30 * time.Second, Volumes: 1}))
		require.NoError(t, errorOf(r.Violation))
		require.GreaterOrEqual(t, r.Stats.Faults[sim.PodFinished], 3, "finished pods of the three drains")
	}
}

// TestStormsWithFinishedPods plays storms in which drains of a node's last pod with a volume once panicked.
// Invariants: P21
func TestStormsWithFinishedPods(t *testing.T) {
	for _, seed := range []uint64{3, 4, 7, 9, 12} {
		r := play(t, scenario.Random(seed))
		require.NoError(t, errorOf(r.Violation))
		require.Positive(t, r.Stats.Faults[sim.PodFinished], "seed %d", seed)
	}
}

// fleetWithApp returns a converged fleet of one machine with a workload on it.
func fleetWithApp(t *testing.T, o sim.Options, app sim.App) *run {
	r := &run{t: t}
	o.Manager.Hooks = manager.Hooks{}
	r.open(o, fleet(1, oneByOne))
	r.awaitComplete()
	r.w.AddApp(app)
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy(app.Name) == app.Replicas }, time.Hour))
	return r
}

// rollAndTimeDeletion asks for another class, and returns how long the deletion of the old machine takes.
func (r *run) rollAndTimeDeletion() time.Duration {
	r.t.Helper()
	old := r.onlyMachine()
	r.roll("large")
	var deletedAt time.Time
	gone := func() bool {
		m, err := r.w.Machines().Get(ctx, old)
		if err == nil && m.Deleted() && deletedAt.IsZero() {
			deletedAt = r.w.Now()
		}
		return err != nil
	}
	require.NoError(r.t, r.w.Until(gone, 5*time.Hour))
	return r.w.Now().Sub(deletedAt)
}

// onlyMachine returns the key of the only machine.
func (r *run) onlyMachine() object.Key {
	r.t.Helper()
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	require.Len(r.t, machines, 1)
	return machines[0].Key
}

// TestFinalizersDelayNoDrain: a finalizer keeps the object of a finished pod for up to an hour. That delays
// no drain. The next pod of that name is created when the object is gone.
// Invariants: P21
func TestFinalizersDelayNoDrain(t *testing.T) {
	r := fleetWithApp(t, sim.Options{Faults: sim.Faults{KeptPod: 1, KeptPodFor: time.Hour, PodEnd: 10 * time.Second}, Seed: 3},
		sim.App{Name: "db", Replicas: 1, Grace: 30 * time.Second, Volumes: 1})
	defer r.w.Close()
	require.Less(t, r.rollAndTimeDeletion(), 5*time.Minute)
	require.Equal(t, 1, r.w.Stats().Faults[sim.PodKept])
	require.Zero(t, r.w.Healthy("db"), "a pod was created while the object of its predecessor existed")
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("db") == 1 }, 2*time.Hour))
}

// TestJobCompletesAmidADrain: a disruption budget refuses the eviction of a pod of a Job. The drain ends
// without force when the pod completes.
// Invariants: P21
func TestJobCompletesAmidADrain(t *testing.T) {
	for name, volumes := range map[string]int{"without volumes": 0, "with a volume": 1} {
		t.Run(name, func(t *testing.T) {
			r := fleetWithApp(t, sim.Options{Faults: sim.Faults{PodEnd: 10 * time.Second}, Seed: 1},
				sim.App{Name: "job", Replicas: 1, MinAvailable: 1, Grace: 30 * time.Second, Work: time.Hour, Volumes: volumes})
			defer r.w.Close()
			took := r.rollAndTimeDeletion()
			require.Greater(t, took, 2*time.Minute, "the budget did not delay the drain")
			require.Less(t, took, 65*time.Minute, "the drain did not end when the pod completed")
			require.Positive(t, r.w.Stats().Faults[sim.PodCompleted])
			require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("job") == 1 }, time.Hour), "another has taken its place")
		})
	}
}

// TestFailedPods: a pod that has failed by itself counts as healthy for neither its controller nor its
// budget. Its volume is detached, and a drain deletes it without an eviction.
// Invariants: P22
func TestFailedPods(t *testing.T) {
	for name, volumes := range map[string]int{"without volumes": 0, "with a volume": 1} {
		t.Run(name, func(t *testing.T) {
			r := fleetWithApp(t, sim.Options{Faults: sim.Faults{FailedPod: 1}, Seed: 1},
				sim.App{Name: "shop", Replicas: 2, MinAvailable: 1, Grace: 30 * time.Second, Volumes: volumes})
			defer r.w.Close()
			failed := func() bool { return r.w.Stats().Faults[sim.PodFailed] > 0 }
			require.NoError(t, r.w.Until(failed, 2*time.Hour))
			require.Equal(t, 1, r.w.Healthy("shop"))
			require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 2 }, 10*time.Minute), "its controller replaces it")
			require.Less(t, r.rollAndTimeDeletion(), 15*time.Minute)
		})
	}
}
