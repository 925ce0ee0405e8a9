package machinepool_test

import (
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// rank is the expected precedence of phases, the lowest first.
var rank = []machinepool.Phase{
	machinepool.PhasePending, machinepool.PhaseProvisioning, machinepool.PhaseProvisioned,
	machinepool.PhaseRunning, machinepool.PhaseFailed, machinepool.PhaseDeleting,
}

var conditions = map[machinepool.Phase]machine.Event{
	machinepool.PhasePending: machinepool.EventAccepted, machinepool.PhaseProvisioning: machinepool.EventBootstrapReady,
	machinepool.PhaseProvisioned: machinepool.EventGroupReady, machinepool.PhaseRunning: machinepool.EventNodesReady,
	machinepool.PhaseFailed: machinepool.EventFailed, machinepool.PhaseDeleting: machinepool.EventDelete,
}

// P18: from every phase there is a transition to every other phase, on the event of that phase only.
// Invariants: P32
func TestPhaseTableIsTotal(t *testing.T) {
	table := machinepool.PhaseTable()
	for _, from := range rank[:5] {
		for _, to := range rank {
			got, ok := table.Next(string(from), conditions[to])
			if from == to {
				assert.False(t, ok, "%s leads to itself", from)
				continue
			}
			assert.True(t, ok, "%s has no way to %s", from, to)
			assert.Equal(t, string(to), got)
		}
	}
	for _, to := range rank[1:5] {
		_, ok := table.Next("", conditions[to])
		assert.False(t, ok, "a new pool is Pending first, not %s", to)
		_, ok = table.Next(string(machinepool.PhaseDeleting), conditions[to])
		assert.False(t, ok, "a deletion leads to %s", to)
	}
	next, ok := table.Next("", machinepool.EventAccepted)
	assert.True(t, ok)
	assert.Equal(t, "Pending", next)
	next, ok = table.Next("", machinepool.EventDelete)
	assert.True(t, ok)
	assert.Equal(t, "Deleting", next)
	next, ok = table.Next("Deleting", machinepool.EventNotDeleted)
	assert.True(t, ok)
	assert.Equal(t, "Pending", next)
}

// Invariants: P32
func TestPhaseTableIsSound(t *testing.T) {
	table := machinepool.PhaseTable()
	type way struct {
		from string
		on   machine.Event
	}
	seen := map[way]bool{}
	for _, e := range table.Transitions() {
		assert.False(t, seen[way{e.From, e.On}], "two ways from %s on %s", e.From, e.On)
		seen[way{e.From, e.On}] = true
		assert.NotEmpty(t, e.Why, "%s to %s", e.From, e.To)
	}
	states := table.States()
	require.Len(t, states, 8)
	for _, p := range rank {
		assert.True(t, slices.Contains(states, string(p)), p)
	}
	assert.Equal(t, 1+5*4+1+6+2, len(table.Edges))
}

// TestVocabulary: the table of Cluster API's names in docs/concepts/pools.md has each field of a pool.
func TestVocabulary(t *testing.T) {
	page, err := os.ReadFile("../docs/concepts/pools.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n## Names in Cluster API\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n## ")
	for _, of := range []any{machinepool.Spec{}, machinepool.Template{}, machinepool.Bootstrap{}, machinepool.Status{}} {
		kind := reflect.TypeOf(of)
		for i := range kind.NumField() {
			require.Contains(t, table, "`"+kind.Name()+"."+kind.Field(i).Name+"`")
		}
	}
}

// An operator must act on a failure if a retry alone does not help.
func TestTerminal(t *testing.T) {
	for _, call := range append(machinepool.Calls(), machinepool.DeleteBootstrap, machinepool.RenewToken) {
		for _, code := range []codes.Code{codes.OK, codes.Canceled, codes.Unknown, codes.Unavailable, codes.Aborted, codes.DeadlineExceeded} {
			assert.False(t, call.Terminal(code), "%s %s", call, code)
		}
		for _, code := range []codes.Code{codes.InvalidArgument, codes.PermissionDenied, codes.Unimplemented, codes.Unauthenticated} {
			assert.True(t, call.Terminal(code), "%s %s", call, code)
		}
		assert.NotEqual(t, codes.None, call.Recovery(codes.Unimplemented).Class, "%s would spin", call)
	}
	assert.True(t, machinepool.ScalePool.Terminal(codes.ResourceExhausted))
	assert.True(t, machinepool.CreatePool.Terminal(codes.AlreadyExists))
	assert.False(t, machinepool.GetPoolStatus.Terminal(codes.NotFound), "a missing group is created")
	assert.False(t, machinepool.ScalePool.Terminal(codes.NotFound), "a missing group is looked for, and created again")
	assert.Len(t, machinepool.Calls(), 9)
	changing := 0
	for _, call := range append(machinepool.Calls(), machinepool.DeleteBootstrap, machinepool.RenewToken, "") {
		if call.Changing() {
			changing++
		}
	}
	assert.Equal(t, 6, changing)
	assert.True(t, machinepool.CreatePool.Changing() && !machinepool.GetPoolStatus.Changing())
}

// TestNoPlanLeavesTheTable: Decide returns an error in place of a plan whose transition is not in the table,
// so that it is not stored.
// Invariants: P44
func TestNoPlanLeavesTheTable(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	p := &machinepool.Pool{}
	p.Name, p.Finalizers, p.DeletedAt = "web", []string{machinepool.Finalizer}, now
	p.Status.Phase = machinepool.PhaseRunning
	o := &machinepool.Observation{Pool: p}
	plan, err := machinepool.Decide(o, nil, now)
	require.NoError(t, err)
	require.Equal(t, string(machinepool.PhaseDeleting), plan.Move.To)
	defer machinepool.WithoutEdges()()
	plan, err = machinepool.Decide(o, nil, now)
	require.ErrorContains(t, err, "the table has no edge")
	require.Zero(t, plan)
}
