package manager_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// quiet: tests say themselves what they want to see.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

func textLog(level slog.Level) (*bytes.Buffer, *slog.Logger) {
	var out bytes.Buffer
	return &out, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
}

// TestLogHooks: a machine's life, as the ready-made hooks log it.
func TestLogHooks(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.classed = func(o *manager.Options, _ *testkit.Fuse) { o.Hooks = manager.LogHooks(log) }
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	require.Equal(t, 3, strings.Count(out.String(), `msg="Pending -> Running (joined)" table=phase object=fleet/web-`), out)
	require.NotContains(t, out.String(), "took=", "calls that succeed are for Debug")

	out.Reset()
	hooks := manager.LogHooks(log)
	hooks.Effect(manager.KindMachine, fleetKey, "CreateVM", time.Second, errors.New("no quota"))
	hooks.Frozen("target", true)
	hooks.Frozen("target", false)
	hooks.Slowed(object.Key{Name: "small"}, time.Minute)
	hooks.Slowed(object.Key{Name: "small"}, 0)
	var told []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		told = append(told, line)
	}
	require.Equal(t, []string{
		`level=WARN msg=CreateVM kind=machine object=fleet/web took=1s error="no quota"`,
		`level=WARN msg="everything is frozen: an API server does not answer" server=target`,
		`level=INFO msg="the API server answers" server=target`,
		`level=WARN msg="the provider refuses machines of a class" class=small next=1m0s`,
	}, told)
}

// TestLogHasFigures: the numbers of an event stand beside its sentence.
func TestLogHasFigures(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.classed = func(o *manager.Options, _ *testkit.Fuse) { o.Log, o.Hooks = log, manager.LogHooks(log) }
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	line := func(said string) string {
		for line := range strings.Lines(out.String()) {
			if strings.Contains(line, said) {
				return line
			}
		}
		return ""
	}
	require.Contains(t, line("reason=ScaleSet"), " have=0 want=3 count=3 total=0 ceiling=4\n", out)
	require.Contains(t, line("reason=Create "), " have=0 want=3 count=3\n", out)
}

// TestLogOfADeletionWithoutACluster: it begins and ends, and of nodes there is nothing to say.
func TestLogOfADeletionWithoutACluster(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.classed = func(o *manager.Options, _ *testkit.Fuse) { o.Cluster, o.Log = nil, log }
	w.fleet()
	m := w.start(&testkit.Fuse{}, false)
	w.until(m, w.settled(3), unexpected(t))
	out.Reset()
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(m, func() bool {
		_, err := w.deployments.Get(ctx, fleetKey)
		return errors.Is(err, store.ErrNotFound)
	}, unexpected(t))
	var reasons []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, " kind=machine ") {
			_, reason, _ := strings.Cut(strings.TrimSpace(line), " reason=")
			reasons = append(reasons, reason)
		}
	}
	require.Equal(t, strings.Fields(strings.Repeat("Terminating VMDeleted Deleted ", 3)), reasons, out)
}

// TestLogByDefault: without a log, events go to slog's default.
func TestLogByDefault(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	before := slog.Default()
	slog.SetDefault(log)
	defer slog.SetDefault(before)
	o := manager.InMemory(nil)
	o.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	m := reconciler(t, o, manager.KindMachine)
	made, err := o.Store.Machines.Create(ctx, &machine.Machine{
		Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "none"}},
	})
	require.NoError(t, err)
	_, err = m.Reconcile(context.Background(), made.Key)
	require.NoError(t, err)
	require.Contains(t, out.String(), "object=fleet/web")
}
