package fleet

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// TestIllegalMove: if a restart of clocks contains a move that the table does not have, the pass fails and that
// machine is not stored; in a dry run, none is.
// Invariants: P44
func TestIllegalMove(t *testing.T) {
	ctx := t.Context()
	for _, legal := range []bool{true, false} {
		for _, dry := range []bool{false, true} {
			now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
			clock := func() time.Time { return now }
			machines := store.NewMemory[*machine.Machine](clock, nil)
			for _, phase := range []machine.Phase{machine.PhasePending, machine.PhaseUnknown} {
				m, err := machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: string(phase)}}})
				require.NoError(t, err)
				m = m.Clone()
				m.Status.Phase, m.Status.Since = phase, now
				_, err = machines.UpdateStatus(ctx, m)
				require.NoError(t, err)
			}
			now = now.Add(time.Minute)
			declared := fsm.Machines(nil)
			if !legal {
				declared = declared[1:]
			}
			states, err := fsm.New(declared...)
			require.NoError(t, err)
			reach := NewReach(safety.DefaultPolicy(), clock)
			reach.set(reachability.State{
				Stage: reachability.Restarting, Checked: now, Control: reachability.Side{Up: true}, Target: reachability.Side{Up: true}, From: now,
			}, now)
			var moved []machine.Move
			e := engine.New(engine.Options{Now: clock, DryRun: dry, Hooks: engine.Hooks{
				Transition: func(_ string, _ object.Key, move machine.Move, _ decision.Why) { moved = append(moved, move) },
			}})
			r := NewReachability(e, Config{
				Machines: engine.NewObjects(e, "machine", machines, states),
				Classes:  engine.NewObjects(e, "class", store.NewMemory[*machine.Class](clock, nil), nil),
				Policy:   safety.DefaultPolicy(), Reach: reach, MachineKind: "machine",
			})
			_, err = r.Reconcile(ctx, object.Key{Name: "fleet"})
			require.Equal(t, legal, err == nil, err)
			all, err := machines.List(ctx, store.Query{})
			require.NoError(t, err)
			for _, m := range all { // the other machine's write has no move
				explained := legal || m.Name == string(machine.PhasePending)
				require.Equal(t, explained && !dry, !m.Status.ClockFrom.IsZero(), m.Name)
			}
			require.Equal(t, legal && !dry, len(moved) > 0)
		}
	}
}
