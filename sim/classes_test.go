package sim_test

import (
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

// tagged reports whether all VMs have these tags, no update is recorded as begun, and the fleet of six has
// converged.
func (r *run) tagged(tags map[string]string) bool {
	for _, vm := range r.w.Provider().VMs() {
		if !maps.Equal(vm.Tags, tags) {
			return false
		}
	}
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		if m.Status.VMSpec.Begun != "" || m.Status.Phase != machine.PhaseRunning {
			return false
		}
	}
	return len(machines) == 6 && r.w.Complete("web")
}

// TestTagsInAStorm: tags of a class change, and templates name a class with other tags, while calls
// fail, answers get lost, caches lag and the manager is killed. In the end all VMs have the tags that
// were wanted last, and no machine was replaced (P4, P13, P26).
// Invariants: P4
func TestTagsInAStorm(t *testing.T) {
	seeds := uint64(60)
	if testing.Short() {
		seeds = 6
	}
	for seed := range seeds {
		faults := storm()
		faults.DeadBoot, faults.Flap, faults.FlapForGood = 0, 0, 0
		// A late call of a dead process may come after that of its successor. So with late calls, the
		// tags change only once.
		changes := 4
		if seed%2 == 0 {
			changes = 1
		} else {
			faults.Late = 0
		}
		r := &run{t: t}
		r.open(sim.Options{Seed: seed, UpdatableTags: true, Faults: faults, Manager: manager.Options{Policies: manager.Policies{Safety: safety.DefaultPolicy()}}},
			fleet(6, deployment.Strategy{}))
		require.NoError(t, r.w.Until(func() bool { return r.tagged(nil) }, patience), "seed %d", seed)
		made, want, class := r.w.Made(), map[string]string{}, "small"
		for i := range changes {
			want = map[string]string{"round": fmt.Sprint(i), fmt.Sprint("only-", i): "yes"}
			if (seed/2+uint64(i))%2 == 0 {
				require.NoError(t, r.w.TagClass(class, class, want))
			} else {
				require.NoError(t, r.w.TagClass(fmt.Sprint("small-", i), class, want))
				class = fmt.Sprint("small-", i)
				r.roll(class)
			}
			r.wait(time.Duration(seed*7%11) * time.Minute)
		}
		r.w.StopFaults()
		require.NoError(t, r.w.Until(func() bool { return r.tagged(want) }, patience), "seed %d", seed)
		require.Equal(t, made, r.w.Made(), "seed %d: machines were replaced", seed)
		r.w.Close()
	}
}

// withoutDeclarations hides what the driver that it wraps declares.
type withoutDeclarations struct{ driver.Driver }

// TestTagsNeedADriverThatUpdatesThem: the world expects new tags on VMs only if the driver declares that
// it can change them.
func TestTagsNeedADriverThatUpdatesThem(t *testing.T) {
	for _, declares := range []bool{false, true} {
		s := &sim.Scenario{
			Options:     sim.Options{Manager: quiet.Manager, UpdatableTags: true},
			Deployments: []*deployment.Deployment{fleet(2, deployment.Strategy{})},
			Steps:       []sim.Step{{After: time.Hour, Do: sim.Tag, Class: "small", N: 1}},
			Keep:        true,
		}
		var w *sim.World
		s.Options.Driver = func(in *sim.World) driver.Driver {
			if w = in; declares {
				return w.Provider()
			}
			return withoutDeclarations{w.Provider()}
		}
		require.Nil(t, play(t, s).Violation)
		for _, vm := range w.Provider().VMs() {
			require.Equal(t, declares, len(vm.Tags) > 0)
		}
	}
}

// TestUnreadableClass: machines whose class a user has made unreadable are created once the class is
// repaired, even if only a change ends the wait after such an error. Existing machines stay.
func TestUnreadableClass(t *testing.T) {
	for name, policy := range map[string]*machine.Policy{"tried again": nil, "waiting for a change": {WaitForChange: true}} {
		t.Run(name, func(t *testing.T) {
			five := sim.Property{Name: "five", Check: func(w *sim.World) error {
				if w.Made() > 5 {
					return errors.New("a machine was replaced")
				}
				return nil
			}}
			s := &sim.Scenario{
				Options:     sim.Options{Manager: manager.Options{Policies: manager.Policies{Machine: policy}}, Properties: []sim.Property{five}},
				Deployments: []*deployment.Deployment{fleet(3, deployment.Strategy{})},
				Steps: []sim.Step{
					{After: time.Hour, Do: sim.SpoilClass, Class: "small", For: 5 * time.Minute},
					{After: time.Minute, Do: sim.Scale, Name: "web", N: 5},
				},
			}
			r := play(t, s)
			require.NoError(t, errorOf(r.Violation))
			require.True(t, r.Left.None(), "%s", r.Left)
			require.Equal(t, 1, r.Stats.Actions[sim.SpoilClass])
		})
	}
}
