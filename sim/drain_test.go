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
	"github.com/millwright-go/millwright/store"
)

// TestRolloutKeepsTheBudget rolls a fleet with workload on it. The budget is kept at any time, and
// no VM is deleted before its pods are gone, even if the manager is killed (P22, P26).
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
				keepsTheBudget(t, seed, strategy)
			}
		})
	}
}

func keepsTheBudget(t *testing.T, seed uint64, strategy deployment.Strategy) {
	faults := busy()
	faults.Kills, faults.KillWithin, faults.Restart = int(seed%4), 100, time.Minute
	r := &run{t: t}
	r.start(seed, faults, fleet(3, strategy), manager.Hooks{})
	r.complete()
	r.w.AddApp(sim.App{Name: "shop", Replicas: 6, MinAvailable: 5, Grace: 30 * time.Second, Boot: 20 * time.Second})
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 6 }, time.Hour))
	least, moved := 6, false
	r.w.Watch(func() {
		least = min(least, r.w.Healthy("shop"))
		moved = moved || r.w.Healthy("shop") < 6
	})
	r.roll("large")
	r.complete()
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 6 }, time.Hour))
	require.GreaterOrEqual(t, least, 5, "seed %d", seed)
	require.True(t, moved, "pods have to leave their nodes")
	r.w.Close()
}

// TestMisconfiguredBudgetIsNamedOnce: a budget that can never be met holds its machine until force
// is due. The machine and its events name the pod and the budget, each once.
func TestMisconfiguredBudgetIsNamedOnce(t *testing.T) {
	var told []string
	r := &run{t: t}
	policy := machine.DefaultPolicy()
	policy.DrainTimeout = 30 * time.Minute
	r.open(sim.Options{Manager: manager.Options{
		Policies: manager.Policies{Machine: policy},
		Hooks: manager.Hooks{Event: func(kind manager.Kind, _ object.Key, typ manager.EventType, _, why string) {
			if kind == manager.KindMachine && typ == manager.Warning {
				told = append(told, why)
			}
		}},
	}}, fleet(1, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 1}}))
	r.complete()
	r.w.AddApp(sim.App{Name: "shop", Replicas: 1, MinAvailable: 1, Grace: 30 * time.Second})
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 1 }, time.Hour))
	r.roll("large")
	r.wait(15 * time.Minute)
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(t, err)
	going := slices.IndexFunc(machines, func(m *machine.Machine) bool { return m.Deleted() })
	require.Contains(t, machines[going].Status.LastOperation.Message, "budget apps/shop is misconfigured")
	require.Contains(t, machines[going].Status.LastOperation.Message, "apps/shop-1")
	r.complete()
	naming := 0
	for _, why := range told {
		if strings.Contains(why, "misconfigured") {
			naming++
		}
	}
	require.Equal(t, 1, naming, "%v", told)
	require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 1 }, time.Hour), "its pod runs on the new machine")
	r.w.Close()
}

// TestDrainsAtATime: the limit bounds how many nodes are drained at a time.
func TestDrainsAtATime(t *testing.T) {
	for seed := range uint64(10) {
		r := &run{t: t}
		r.open(sim.Options{Seed: seed, Faults: busy(), DrainLimit: drains.Limit{Max: 2}},
			fleet(8, deployment.Strategy{MaxUnavailable: rollout.IntOrPercent{Value: 8}}))
		r.complete()
		r.w.AddApp(sim.App{Name: "shop", Replicas: 16, Grace: 5 * time.Minute, Boot: 20 * time.Second})
		require.NoError(t, r.w.Until(func() bool { return r.w.Healthy("shop") == 16 }, time.Hour))
		most := 0
		r.w.Watch(func() { most = max(most, drained(r.w)) })
		r.scale(2)
		r.complete()
		require.Equal(t, 2, most, "seed %d", seed)
		r.w.Close()
	}
}

// drained counts the nodes that are being drained and not empty yet.
func drained(w *sim.World) (n int) {
	nodes, _ := w.Nodes().List(ctx, store.Query{})
	for _, node := range nodes {
		if node.Drain != nil && w.PodsOn(node.Name) > 0 {
			n++
		}
	}
	return n
}

// TestP53NodesThatJoinLate plays fleets that shrink while machines come up, with a provider that refuses
// most calls: no VM goes with pods on its node, though the node joined after the drain (P53).
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
		r.complete()
		r.w.AddApp(sim.App{Name: "jobs", Replicas: 8, Grace: 2 * time.Minute, Boot: 20 * time.Second, Work: 5 * time.Minute})
		for range 3 {
			r.scale(8)
			r.wait(6 * time.Minute)
			r.scale(2)
			r.wait(40 * time.Minute)
		}
		r.complete()
		r.w.Close()
	}
	require.Positive(t, late)
}
