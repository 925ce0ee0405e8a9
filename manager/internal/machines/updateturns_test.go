package machines

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestTurnsOutlastTheCache: a turn does not end because a cache shows the machine as it was before.
func TestTurnsOutlastTheCache(t *testing.T) {
	since := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	failed := machine.Operation{Kind: machine.OperationUpdate, State: machine.StateFailed, Code: codes.Unimplemented}
	for name, c := range map[string]struct {
		phase     machine.Phase
		op        machine.Operation
		at        time.Duration // of phase and operation, from the turn on
		soon, end bool          // the turn is still taken right after that, and a minute later
	}{
		"unhealthy before": {phase: machine.PhaseUnknown, at: -time.Minute, soon: true},
		"unhealthy since":  {phase: machine.PhaseUnknown, at: time.Second},
		"refused before":   {phase: machine.PhaseRunning, op: failed, at: -time.Minute, soon: true},
		"refused since":    {phase: machine.PhaseRunning, op: failed, at: time.Second},
		"not begun":        {phase: machine.PhaseRunning, soon: true},
		"gone":             {phase: machine.PhaseTerminating},
	} {
		m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}}}
		now := since.Add(2 * time.Second)
		machines := store.NewMemory[*machine.Machine](func() time.Time { return now }, nil)
		created, err := machines.Create(context.Background(), m)
		require.NoError(t, err)
		m = created.Clone()
		m.Status.Phase, m.Status.Since = c.phase, since.Add(c.at)
		m.Status.LastOperation = c.op
		m.Status.LastOperation.Time = since.Add(c.at)
		_, err = machines.UpdateStatus(context.Background(), m)
		require.NoError(t, err)
		if c.phase == machine.PhaseTerminating {
			require.NoError(t, machines.Delete(context.Background(), m.Key, created.UID))
		}
		r := newReconciler(Config{Machines: engine.NewObjects(engine.New(engine.Options{}), "machine", machines, nil)})
		held := turn{key: m.Key, since: since, want: machine.VMSpec{Fixed: "f"}}
		require.Equal(t, c.soon, r.updating(context.Background(), created.UID, held, now), name)
		now = since.Add(turnGrace)
		require.Equal(t, c.end, r.updating(context.Background(), created.UID, held, now), "%s, later", name)
	}
}
