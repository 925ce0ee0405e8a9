package sim_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/sim/scenario"
	"github.com/millwright-go/millwright/store"
)

// TestStorm plays scenarios in which anything fails. No invariant is violated. When the faults have
// stopped, everything converges to what was wanted last, and its deletion leaves nothing behind
// (P3, P7, P12 to P17, P22, P24 to P26, P28). Every kind of fault occurs, and the provider refuses
// each call with each code.
// Invariants: P3 P4 P7 P10 P12 P13 P14 P15 P16 P17 P19 P20 P21 P22 P23 P24 P25 P26 P28 P44 P45 P46 P47 P49 P50 P51 P52 P53 P61 P62 P63 P65 P66
func TestStorm(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 60
	}
	all := make([]sim.Stats, 10)
	t.Run("seeds", func(t *testing.T) {
		for part := range all {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(part); seed < seeds; seed += uint64(len(all)) {
					r := play(t, scenario.Random(seed))
					require.NoError(t, errorOf(r.Violation))
					require.True(t, r.Left.None(), "%s", r.Left)
					all[part].Add(&r.Stats)
				}
			})
		}
	})
	sum := sim.Stats{}
	for i := range all {
		sum.Add(&all[i])
	}
	for f := range sim.AllFaults() {
		if slices.Contains(openFaults, f) {
			continue
		}
		require.Positive(t, sum.Faults[f], "%s", f)
	}
	for _, action := range []sim.Action{
		sim.PauseMachine, sim.PauseSet, sim.Preserve, sim.PreserveNode, sim.Prioritize, sim.Replace, sim.ScaleDown, sim.Tag, sim.Retag,
	} {
		require.Positive(t, sum.Actions[action], "%s", action)
	}
	require.Positive(t, sum.Calls[codes.UpdateMachine])
	if !testing.Short() {
		for _, code := range sim.AllCodes() {
			require.Positive(t, sum.Refusals[sim.Refusal{Call: codes.CreateMachine, Code: code}], "%s", code)
		}
	}
	require.Zero(t, sum.Refusals[sim.Refusal{Call: codes.DeleteMachine, Code: codes.NotFound}], "the provider wrongly answered that a VM was gone")
	t.Logf("%d steps, %d passes, %d kills", sum.Steps, sum.Passes, sum.Kills())
}

func errorOf(v *sim.Violation) error {
	if v == nil {
		return nil
	}
	return v
}

// TestAnyScenario is like TestStorm with scenarios that rapid draws, and makes smaller if one fails.
func TestAnyScenario(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "n") }
		s := scenario.Draw(draw, rapid.Uint64Range(0, 1000).Draw(t, "seed"))
		r, err := sim.Play(s)
		require.NoError(t, err)
		if r.Violation != nil {
			text, _ := json.Marshal(s)
			t.Fatalf("%v in the scenario\n%s", r.Violation, text)
		}
	})
}

// addOrphanVM creates a VM without a machine, with a name of its own or with that of a machine with a VM.
func (r *run) addOrphanVM(i int) {
	if i%2 == 0 {
		r.w.AddOrphanVM(fmt.Sprint("web-stray-", i))
		return
	}
	machines, err := r.w.Machines().List(ctx, store.Query{})
	require.NoError(r.t, err)
	for _, m := range machines {
		if m.Status.Phase == machine.PhaseRunning {
			r.w.AddOrphanVM(m.Name)
			return
		}
	}
}

// empty reports whether nothing is left.
func (r *run) empty() bool { return r.left() == "" }

// left says what is left, or "".

func (r *run) left() string {
	if left := r.w.Left(); !left.None() {
		return left.String()
	}
	return ""
}

// TestStormsThatOnceFailed plays storms that once failed because of a mistake in the library, or of a check
// that was too strict. The texts say what happens in them.
func TestStormsThatOnceFailed(t *testing.T) {
	// These storms are from the time before there were pools.
	ofPools := func(s sim.Step) bool { return slices.Contains(poolActions, s.Do) }
	for seed, why := range map[uint64]string{
		144:  "a cache shows that a pod is gone, but not yet that the drain waits for its volumes",
		404:  "the answer to the write that keeps a failed machine is lost",
		566:  "the replacement of a working machine is requested while another machine does not work",
		1512: "the annotation of a node that asks to keep its machine has an invalid value",
		3515: "a scaler chooses machines of a set that is paused",
		858:  "an order that a pause delayed is carried out after it",
	} {
		s := scenario.Random(seed)
		s.Pools, s.Options.Pools, s.Steps = nil, nil, slices.DeleteFunc(s.Steps, ofPools)
		require.NoError(t, errorOf(play(t, s).Violation), why)
	}
}

// TestSpellsRecur: faults of type Spells occur again and again, until the faults stop.
func TestSpellsRecur(t *testing.T) {
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

// TestLateKills: with Faults.Late, the call at which a manager dies takes effect after its death.
func TestLateKills(t *testing.T) {
	r := settled(t, sim.Options{Faults: sim.Faults{Kills: 9, KillWithin: 5, Late: 1, LateBy: time.Minute}})
	defer r.w.Close()
	s := r.w.Stats()
	require.Equal(t, 9, s.Faults[sim.KilledBefore])
	require.Zero(t, s.Faults[sim.KilledAfter])
	require.GreaterOrEqual(t, s.Faults[sim.CallLate], 8)
}

// TestNodesStayNotReadyInAZoneOutage: nodes do not become ready when their cluster answers again, if their
// zone is still out.
func TestNodesStayNotReadyInAZoneOutage(t *testing.T) {
	r := settled(t, sim.Options{})
	defer r.w.Close()
	r.w.StopTarget(time.Minute)
	r.wait(25 * time.Second)
	r.w.StopZone(0, 5*time.Minute)
	r.wait(75 * time.Second)
	require.Equal(t, 3, r.countNodes(object.Unknown))
}

// TestWritesToAConvergedFleetAreFound: a write to a converged fleet is a violation (P28).
func TestWritesToAConvergedFleetAreFound(t *testing.T) {
	s := &sim.Scenario{Options: quiet, Deployments: []*deployment.Deployment{sim.Fleet("web", 1, deployment.Strategy{})}}
	require.NoError(t, errorOf(play(t, s).Violation))
	s.Options.Driver = func(w *sim.World) driver.Driver {
		w.After(20*time.Minute, func() { flicker(w) })
		return w.Provider()
	}
	found := play(t, s).Violation
	require.NotNil(t, found)
	require.Equal(t, "P28", found.Rule)
}

// flicker changes a condition of all nodes again and again, so that the manager writes it to the machines.
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

// openFaults are the faults that occur in scenarios of scenario.Open only.
var openFaults = []sim.Fault{sim.CallThrottled, sim.NodeSpelled, sim.ClockSkewed, sim.UpdateLate, sim.UpdateRebooted, sim.UpdateMended}

// TestOpenStorm is like TestStorm, with steps of other programs and people in addition. All kinds of these
// steps occur, and no invariant is violated.
// Invariants: P48 P50 P53 P61 P62 P63 P64 P65 P66
func TestOpenStorm(t *testing.T) {
	seeds := uint64(300)
	if testing.Short() {
		seeds = 40
	}
	all := make([]sim.Stats, 10)
	t.Run("seeds", func(t *testing.T) {
		for part := range all {
			t.Run(fmt.Sprint(part), func(t *testing.T) {
				t.Parallel()
				for seed := uint64(part); seed < seeds; seed += uint64(len(all)) {
					r := play(t, scenario.Open(seed))
					require.NoError(t, errorOf(r.Violation))
					require.True(t, r.Left.None(), "%s", r.Left)
					all[part].Add(&r.Stats)
				}
			})
		}
	})
	sum := sim.Stats{}
	for i := range all {
		sum.Add(&all[i])
	}
	for _, f := range openFaults {
		require.Positive(t, sum.Faults[f], "%s", f)
	}
	for _, action := range scenario.Others() {
		require.Positive(t, sum.Actions[action], "%s", action)
	}
}

// TestInvalidStatusIsRepaired: somebody writes any phase and any operation into the status of one of three
// running machines. A day later three machines run, without help by a user. Meanwhile no machine had two
// VMs, and none was lost (P13, P14).
func TestInvalidStatusIsRepaired(t *testing.T) {
	phases := []machine.Phase{
		"Broken", "running", machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed,
		machine.PhaseCrashLoopBackOff, machine.PhaseTerminating, machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful,
		machine.PhaseInPlaceUpdateFailed,
	}
	operations := []machine.Operation{
		{}, {Stage: "Nowhere"}, {Kind: "Nonsense", Stage: "Nowhere"},
		{Kind: machine.OperationCreate, Stage: "Nowhere"}, {Kind: machine.OperationCreate, Stage: machine.StageCreateVM},
		{Kind: machine.OperationDelete, Stage: "Nowhere"}, {Kind: machine.OperationDelete, Stage: machine.StageInitiateVMDeletion},
		{Kind: machine.OperationInPlaceUpdate, Stage: "Nowhere"}, {Kind: machine.OperationInPlaceUpdate, Stage: machine.StageReady},
	}
	states := []machine.OperationState{"", machine.StateProcessing, machine.StateFailed, "Odd"}
	if testing.Short() {
		states = states[:1]
	}
	for _, phase := range phases {
		for _, op := range operations {
			for _, op.State = range states {
				t.Run(fmt.Sprintf("%s %s %s %s", phase, op.Kind, op.Stage, op.State), func(t *testing.T) {
					r := &run{t: t}
					r.open(sim.Options{}, fleet(3, deployment.Strategy{}))
					r.awaitComplete()
					m := r.machines()[1].Clone()
					m.Status.Phase, m.Status.LastOperation = phase, op
					_, err := r.w.Machines().UpdateStatus(ctx, m)
					require.NoError(t, err)
					r.wait(24 * time.Hour)
					require.Equal(t, 3, r.running())
					require.True(t, r.w.Complete(web.Name))
					require.Equal(t, 3, r.w.Left().VMs)
					r.w.Close()
				})
			}
		}
	}
}

// TestDryRunInAStorm: managers in dry run change nothing for a day, and of the provider's calls make only
// ListMachines. Caches lag, answers are lost, and there are outages and kills.
// Invariants: P40
func TestDryRunInAStorm(t *testing.T) {
	for seed := range uint64(10) {
		reports := 0
		hooks := manager.Hooks{DryRun: func(manager.Kind, object.Key, string, string, string) { reports++ }}
		faults := scenario.Random(seed).Options.Faults
		faults.Kills, faults.LostVM = 5, 0
		r := &run{t: t}
		r.open(sim.Options{Seed: seed, Faults: faults, Manager: manager.Options{
			DryRun: true, Classes: manager.ClassOptions{Keep: true},
			Policies: manager.Policies{Safety: sim.SafetyPolicy()}, Hooks: hooks,
		}}, fleet(3, deployment.Strategy{}))
		lone := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: web.Namespace, Name: "lone"}}}
		lone.Spec.Class.Name = "large"
		_, err := r.w.Machines().Create(ctx, lone)
		require.NoError(t, err)
		r.w.AddOrphanVM("web-lost")
		before := [][]string{versions(t, r.w.Deployments()), versions(t, r.w.Machines()), versions(t, r.w.Classes())}
		require.NoError(t, r.w.Run(24*time.Hour))
		require.Equal(t, before, [][]string{versions(t, r.w.Deployments()), versions(t, r.w.Machines()), versions(t, r.w.Classes())})
		require.Empty(t, versions(t, r.w.Sets()))
		require.Equal(t, 1, r.w.OrphanVMs())
		for call, n := range r.w.Stats().Calls {
			require.True(t, call == codes.ListMachines || n == 0, "%s", call)
		}
		require.Greater(t, reports, 3)
		require.Empty(t, r.w.Violations())
		r.w.Close()
	}
}

// versions returns the keys and versions of all objects. Each write changes a version.
func versions[T object.Object[T]](t *testing.T, c store.Collection[T]) []string {
	all, err := c.List(context.Background(), store.Query{})
	require.NoError(t, err)
	out := make([]string, len(all))
	for i, o := range all {
		out[i] = o.ObjectMeta().Key.String() + " " + o.ObjectMeta().Version
	}
	return out
}
