package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// storm is a world in which anything fails.
func storm() sim.Faults {
	f := busy()
	f.LostAnswer, f.Call, f.LostCall, f.Eventually = 0.03, 0.1, 0.05, 20*time.Second
	f.DeadBoot, f.Flap, f.FlapForGood = 0.1, 0.3, 0.3
	f.Kills, f.KillWithin, f.Restart = 6, 150, 2*time.Minute
	f.Late, f.LateBy = 0.5, time.Minute
	return f
}

// TestStorm edits a fleet while anything fails, again and again; when the
// faults have stopped, everything comes to what was wanted last, and deleting
// it leaves nothing behind (P3, P12 to P14, P16, P26).
func TestStorm(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 20
	}
	for part := range uint64(10) {
		t.Run(fmt.Sprint(part), func(t *testing.T) {
			t.Parallel()
			for seed := part; seed < seeds; seed += 10 {
				weather(t, seed)
			}
		})
	}
}

func weather(t *testing.T, seed uint64) {
	r := &run{t: t}
	r.open(sim.Options{Seed: seed, Faults: storm(), Manager: manager.Options{SafetyPolicy: safety.DefaultPolicy()}},
		fleet(4, deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 1}}))
	defer r.w.Close()
	classes := []string{"large", "huge", "small"}
	for i := range 6 {
		n := int32(seed+uint64(i*3)) % 7
		r.wait(time.Duration(5+n*7) * time.Minute)
		r.stray(i)
		switch i % 3 {
		case 0:
			r.roll(classes[n%3])
		case 1:
			r.scale(n)
		default:
			r.edit("a rollback", func(s *deployment.Spec) { s.RollbackTo = &deployment.Rollback{} })
		}
	}
	r.w.Calm()
	require.NoError(t, r.w.Until(func() bool { return r.w.Complete("web") }, patience), "seed %d", seed)
	require.NoError(t, r.w.Deployments().Delete(ctx, web, ""))
	require.NoError(t, r.w.Until(r.empty, patience), "seed %d: %s", seed, r.left())
}

// stray adds a VM that nobody asked for: under a name of its own, or under that
// of a machine that has one.
func (r *run) stray(i int) {
	if i%2 == 0 {
		r.w.AddStray(fmt.Sprint("web-stray-", i))
		return
	}
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseRunning {
			r.w.AddStray(m.Name)
			return
		}
	}
}

// empty tells whether nothing is left.
func (r *run) empty() bool { return r.left() == "" }

func (r *run) left() string {
	machines, _ := r.w.Machines().List(ctx, store.Query{})
	sets, _ := r.w.Sets().List(ctx, store.Query{})
	deployments, _ := r.w.Deployments().List(ctx, store.Query{})
	nodes, _ := r.w.Nodes().List(ctx, store.Query{})
	if len(machines)+len(sets)+len(deployments)+len(nodes)+r.w.Provider().Count() == 0 {
		return ""
	}
	return fmt.Sprintf("%d machines, %d sets, %d deployments, %d nodes, %d VMs are left",
		len(machines), len(sets), len(deployments), len(nodes), r.w.Provider().Count())
}
