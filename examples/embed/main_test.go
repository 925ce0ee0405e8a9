package main

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// listener is a log handler that passes each line to onLine.
type listener struct {
	slog.Handler // nil, because WithGroup and WithAttrs are not used
	onLine       func(line map[string]any)
}

func (listener) Enabled(context.Context, slog.Level) bool { return true }

func (l listener) Handle(_ context.Context, r slog.Record) error {
	line := map[string]any{"msg": r.Message}
	r.Attrs(func(a slog.Attr) bool {
		line[a.Key] = a.Value.Any()
		return true
	})
	l.onLine(line)
	return nil
}

// runUntil runs the program, and ends it, as a signal would, once done returns true for a line of its
// log. It returns all lines.
func runUntil(t *testing.T, state string, replicas int32, done func(line map[string]any) bool) (lines []map[string]any) {
	t.Helper()
	ctx, end := context.WithCancel(t.Context())
	defer end()
	var mu sync.Mutex
	log := slog.New(listener{onLine: func(line map[string]any) {
		mu.Lock()
		defer mu.Unlock()
		lines = append(lines, line)
		if done(line) {
			end()
		}
	}})
	require.NoError(t, run(ctx, log, state, replicas))
	mu.Lock()
	defer mu.Unlock()
	return lines
}

// available returns a function that reports whether a line says that the deployment is complete, with
// this many machines.
func available(replicas int64) func(map[string]any) bool {
	return func(line map[string]any) bool {
		return line["msg"] == "rollout complete" && line["available"] == replicas
	}
}

// count returns how many lines have a reason.
func count(lines []map[string]any, reason string) (n int) {
	for _, line := range lines {
		if line["reason"] == reason {
			n++
		}
	}
	return n
}

// vmsOf returns the machine names of the existing VMs, by provider ID. It requires that each VM belongs
// to a machine in the state, and each machine has a VM.
func vmsOf(t *testing.T, state string) map[string]string {
	t.Helper()
	vms, _, err := (&fileDriver{path: state + ".vms"}).load(t.Context(), class("blue", "small"), nil)
	require.NoError(t, err)
	exist := map[string]string{}
	for id, v := range vms {
		exist[id] = v.Machine
	}
	db, err := bolt.Open(state, bolt.Options{}) // fails if run did not close the store
	require.NoError(t, err)
	defer func() { require.NoError(t, db.Close()) }()
	machines, err := db.Machines().List(t.Context(), store.Query{})
	require.NoError(t, err)
	recorded := map[string]string{}
	for _, m := range machines {
		recorded[m.Spec.ProviderID] = m.Name
	}
	require.Equal(t, recorded, exist)
	require.Len(t, exist, len(machines))
	return exist
}

// TestFleetLastsFromRunToRun: one run creates three machines, the next deletes one, and the third
// creates two more. The machines that stay keep their VMs.
// Invariants: P26
func TestFleetLastsFromRunToRun(t *testing.T) {
	state := filepath.Join(t.TempDir(), "fleet.db")
	runUntil(t, state, 3, available(3))
	three := vmsOf(t, state)
	require.Len(t, three, 3)

	var fewer, gone bool // in either order
	runUntil(t, state, 2, func(line map[string]any) bool {
		fewer = fewer || available(2)(line)
		gone = gone || line["reason"] == "Deleted"
		return fewer && gone
	})
	two := vmsOf(t, state)
	require.Len(t, two, 2)
	require.Subset(t, three, two)

	lines := runUntil(t, state, 4, available(4))
	four := vmsOf(t, state)
	require.Len(t, four, 4)
	require.Subset(t, four, two)
	require.Equal(t, 2, count(lines, "CreateAnnounced"), "VMs are created for 2 more machines only")
	require.Zero(t, count(lines, "Deleted"))
}

// TestEndedAgainAndAgain ends the program at the first line of its log, the next run at the second, and
// so on, until all machines are available. No machine is created twice, and none is deleted.
// Invariants: P26
func TestEndedAgainAndAgain(t *testing.T) {
	state := filepath.Join(t.TempDir(), "fleet.db")
	var all []map[string]any
	for at, up := 1, false; !up; at++ {
		n := 0
		all = append(all, runUntil(t, state, 3, func(line map[string]any) bool {
			n++
			up = up || available(3)(line)
			return up || n >= at
		})...)
	}
	require.Len(t, vmsOf(t, state), 3)
	require.Zero(t, count(all, "Deleted"))
}

func class(cluster, size string) *machine.Class {
	return &machine.Class{
		Meta:     object.Meta{Key: object.Key{Namespace: "fleet", Name: cluster + "-" + size}},
		Provider: provider, ProviderSpec: []byte(`{"cluster": "` + cluster + `", "size": "` + size + `"}`),
	}
}

// TestDriver: the driver keeps the contract. Run the same suite on your driver.
func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
		d := &fileDriver{path: filepath.Join(t.TempDir(), "vms")}
		return drivertest.Setup{
			Driver: d, Class: class("blue", "small"), Different: class("blue", "large"),
			OtherCluster: class("green", "small"), Invalid: class("blue", ""), NoNodeNames: true,
			PageSize: 3, // no Again: only one driver may use the file
			Count: func() int {
				vms, _, err := d.load(context.Background(), class("blue", "small"), nil)
				require.NoError(t, err)
				return len(vms)
			},
		}
	}})
}
