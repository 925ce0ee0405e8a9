package machines_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/machines"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// writes is a collection that counts its writes.
type writes struct {
	store.Collection[*machine.Machine]
	n int
}

func (w *writes) Update(ctx context.Context, m *machine.Machine) (*machine.Machine, error) {
	w.n++
	return w.Collection.Update(ctx, m)
}

func (w *writes) UpdateStatus(ctx context.Context, m *machine.Machine) (*machine.Machine, error) {
	w.n++
	return w.Collection.UpdateStatus(ctx, m)
}

// TestIllegalMove: a plan with a move that the tables do not have fails the pass before it is stored, and no VM is
// made, even in a dry run. With the real tables, the same machine goes on.
// Invariants: P44
func TestIllegalMove(t *testing.T) {
	ctx, key := t.Context(), object.Key{Namespace: "fleet", Name: "a"}
	without := fsm.Machines(nil)
	without[0].Table = machine.NewTable(machine.PhaseTable().Name, string(machine.PhaseNew), nil, nil)
	for _, c := range []struct {
		states []fsm.State[machine.Machine]
		legal  bool
	}{
		{fsm.Machines(nil), true}, {without, false}, {fsm.Machines(nil)[1:], false},
	} {
		for _, dry := range []bool{false, true} {
			o := manager.InMemory(nil)
			_, err := o.Store.Classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}, Provider: "memory"})
			require.NoError(t, err)
			m := &machine.Machine{Meta: object.Meta{Key: key, Finalizers: []string{machine.Finalizer}}}
			m.Spec.Class.Name = "small"
			_, err = o.Store.Machines.Create(ctx, m)
			require.NoError(t, err)
			states, err := fsm.New(c.states...)
			require.NoError(t, err)
			stored, provider := &writes{Collection: o.Store.Machines}, drivertest.NewMemory(drivertest.MemoryOptions{})
			var moved []machine.Move
			e := engine.New(engine.Options{DryRun: dry, Hooks: engine.Hooks{
				Transition: func(kind string, _ object.Key, move machine.Move, _ decision.Why) {
					require.Equal(t, "machine", kind)
					moved = append(moved, move)
				},
			}})
			r := machines.New(e, machines.Config{
				Machines: engine.NewObjects(e, "machine", stored, states), Classes: engine.NewObjects(e, "class", o.Store.Classes, nil),
				Driver: provider, Policy: machine.DefaultPolicy(),
				Backoff: machines.NewBackoff(time.Now, nil), Frozen: func() bool { return false },
				WatchedSince: func(now time.Time) time.Time { return now },
				Split:        func(*machine.Class) *machine.VMSpec { return nil },
				Missing:      func(*machine.Machine) *machine.MissingVM { return nil },
				Unhealthy:    func(*machine.Machine) bool { return false },
				Asked:        func(object.Key, codes.Code) {}, Hint: func(orphan.Hint) {},
			})
			_, err = r.Reconcile(ctx, key)
			if c.legal {
				require.NoError(t, err)
				require.Equal(t, !dry, stored.n > 0)
				require.Equal(t, !dry, len(moved) > 0)
				continue
			}
			require.ErrorIs(t, err, engine.ErrUnexplained)
			require.ErrorIs(t, err, fsm.ErrIllegal)
			require.Zero(t, stored.n)
			require.Zero(t, provider.Count())
			require.Empty(t, moved)
		}
	}
}
