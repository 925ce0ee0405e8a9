package manager_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// hookRecorder records what the hooks for figures are called with.
type hookRecorder struct {
	calls  map[string]int
	spans  map[manager.Span][]time.Duration
	others []string
}

func (f *hookRecorder) hooks(h *manager.Hooks) {
	f.calls, f.spans = map[string]int{}, map[manager.Span][]time.Duration{}
	h.Call = func(call string, code codes.Code, _ time.Duration) { f.calls[call+" "+code.Contract()]++ }
	h.Span = func(_ object.Key, span manager.Span, took time.Duration) { f.spans[span] = append(f.spans[span], took) }
	h.Frozen = func(server string, frozen bool) { f.others = append(f.others, fmt.Sprint(server, " ", frozen)) }
	h.Permits = func(kind manager.Kind, key object.Key, used, limit int) {
		f.others = append(f.others, fmt.Sprint(kind, " ", key.Name, " ", used, " of ", limit))
	}
	h.ClassBackoff = func(class object.Key, wait time.Duration) { f.others = append(f.others, fmt.Sprint(class, " ", wait)) }
}

// TestSpansAreReported: each part of a machine's life is reported once, with its length by the times that are stored,
// and each call of the driver with its code.
func TestSpansAreReported(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	o, f, s := w.options(), &hookRecorder{}, &script{w: w, effects: map[string]int{}}
	o.Drainer = s
	f.hooks(&o.Hooks)
	r := reconciler(t, o, manager.KindMachine)
	_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
	later := func(d time.Duration) { w.at = w.at.Add(d); w.look(r) }
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "later"))
	later(3 * time.Second)
	w.provider.FailNext(codes.InitializeMachine, codes.New(codes.Unavailable, "later"))
	later(10 * time.Minute)
	later(5 * time.Minute)
	w.at = w.at.Add(40 * time.Second)
	w.join()
	w.look(r)
	later(time.Hour)
	require.Equal(t, machine.PhaseRunning, w.machine().Status.Phase)
	require.Equal(t, map[manager.Span][]time.Duration{
		manager.SpanCreation: {10*time.Minute + 3*time.Second}, manager.SpanInitialization: {5 * time.Minute}, manager.SpanJoin: {40 * time.Second},
	}, f.spans)

	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	s.drain = func(*machine.DrainNode) (machine.DrainAnswer, error) { return machine.DrainAnswer{Why: "pods"}, nil }
	later(time.Minute)
	s.drain = nil
	w.provider.FailNext(codes.DeleteMachine, codes.New(codes.Unavailable, "later"))
	later(time.Minute)
	later(time.Hour)
	require.Empty(t, keysOf(w.machines))
	require.Equal(t, []time.Duration{time.Minute}, f.spans[manager.SpanDrain], "the span of the drain begins with the first pass")
	require.Equal(t, []time.Duration{time.Hour + 2*time.Minute}, f.spans[manager.SpanDeletion])
	require.Len(t, f.spans, 5)
	for _, call := range []string{"CreateMachine UNAVAILABLE", "CreateMachine OK", "InitializeMachine UNAVAILABLE", "InitializeMachine OK", "DeleteMachine UNAVAILABLE", "DeleteMachine OK"} {
		require.Equal(t, 1, f.calls[call], "%s: %v", call, f.calls)
	}
	require.NotZero(t, f.calls["GetMachineStatus NOT_FOUND"])
}

// TestFrozenIsReported: the server that does not answer is reported, until everything is thawed. That the name of the
// check does not exist is an answer, and no failure of the call.
func TestFrozenIsReported(t *testing.T) {
	w := guardedWorld(t)
	f := &hookRecorder{}
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { f.hooks(&o.Hooks); o.Hooks.Permits = nil }
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Equal(t, []string{"control true", "target true", "control false", "target false"}, f.others)
	require.NotZero(t, w.effects["CheckControl"])
	require.NotZero(t, w.effects["CheckTarget"])
	require.Zero(t, w.failedEffects, "an answer counts as failed")
	f.others = nil
	w.targetDown = true
	p = w.until(p, w.lasts(10*time.Minute), neverDies(t))
	require.Equal(t, []string{"target true"}, f.others)
	w.targetDown = false
	p = w.until(p, func() bool { return len(f.others) == 2 }, neverDies(t))
	require.Equal(t, []string{"target true", "target false"}, f.others)
	w.controlDown = true
	w.until(p, w.lasts(10*time.Minute), neverDies(t))
	require.Equal(t, []string{"target true", "target false", "control true"}, f.others)
}

// TestPermitsAreReported: the permit of a machine that is marked failed is reported until another machine has replaced
// it. After the deployment is gone, none is.
func TestPermitsAreReported(t *testing.T) {
	w := guardedWorld(t)
	f := &hookRecorder{}
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { f.hooks(&o.Hooks) }
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	f.others = nil
	w.sick = map[string]bool{keysOf(w.machines)[0].Name: true}
	p = w.until(p, func() bool { return w.lost == 1 }, neverDies(t))
	w.sick = nil
	p = w.until(p, func() bool { return w.settled(3)() && len(f.others) > 1 }, neverDies(t))
	require.Equal(t, []string{"deployment web 1 of 1", "deployment web 0 of 1"}, f.others)
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, neverDies(t))
	require.Equal(t, "deployment web 0 of 0", f.others[len(f.others)-1], f.others)
}

// TestBackoffIsReported: for a class that the provider refuses, ever longer waits are reported, and finally the end.
func TestBackoffIsReported(t *testing.T) {
	w := guardedWorld(t)
	f := &hookRecorder{}
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		f.hooks(&o.Hooks)
		o.Hooks.Permits, o.Hooks.Frozen = nil, nil
	}
	full := true
	w.refuse = func(s driver.CallInfo) error {
		if full && s.Method == codes.CreateMachine {
			return codes.New(codes.ResourceExhausted, "full")
		}
		return nil
	}
	w.fleet()
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return len(f.others) >= 3 }, neverDies(t))
	full = false
	w.until(p, w.settled(3), neverDies(t))
	base := safety.DefaultPolicy().ClassBackoffBase
	require.Equal(t, fmt.Sprint(smallKey, " ", base+time.Second), f.others[0])
	require.Contains(t, f.others, fmt.Sprint(smallKey, " ", 2*base+time.Second))
	require.Equal(t, 3, f.calls["CreateMachine OK"])
	require.Contains(t, f.others, fmt.Sprint(smallKey, " ", time.Duration(0)))
}

// plain is a provider without InitializeMachine, which answers NOT_FOUND for a VM that is gone.
type plain struct{ *drivertest.Memory }

func (plain) InitializeMachine(context.Context, *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return nil, codes.New(codes.Unimplemented, "there is nothing to initialize")
}

func (p plain) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if !p.Remove(q.Machine.Spec.ProviderID) {
		return nil, codes.New(codes.NotFound, "there is no such VM")
	}
	return &driver.DeleteMachineResponse{}, nil
}

// TestNormalAnswersAreNoErrors: an answer that the library expects is not logged as an error.
func TestNormalAnswersAreNoErrors(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	var log bytes.Buffer
	o := w.options()
	o.Driver = plain{w.provider}
	o.Log = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	r := reconciler(t, o, manager.KindMachine)
	_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
	w.look(r)
	w.join()
	w.look(r)
	w.provider.Remove(w.machine().Spec.ProviderID)
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	for _, answer := range []string{"GetMachineStatus code=NOT_FOUND", "InitializeMachine code=UNIMPLEMENTED", "DeleteMachine code=NOT_FOUND"} {
		require.Contains(t, log.String(), `msg="driver call answered" call=`+answer)
	}
	require.NotContains(t, log.String(), "with an error")

	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "later"))
	_, err = w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
	require.NoError(t, err)
	w.look(r)
	require.Contains(t, log.String(), `msg="driver call answered with an error" call=CreateMachine code=UNAVAILABLE`)
}

// init silences the default log: each test says what it wants to see.
func init() { slog.SetDefault(slog.New(slog.DiscardHandler)) }

func textLog(level slog.Level) (*bytes.Buffer, *slog.Logger) {
	var out bytes.Buffer
	return &out, slog.New(slog.NewTextHandler(&out, &slog.HandlerOptions{Level: level}))
}

// TestLogHooks shows the log of a machine's life, with the ready-made hooks.
func TestLogHooks(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Hooks = manager.LogHooks(log) }
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
	require.Equal(t, 3, strings.Count(out.String(), `msg="Pending -> Running (joined)" table=phase object=fleet/web-`), out)
	require.NotContains(t, out.String(), "took=", "successful calls are logged at level Debug")

	out.Reset()
	hooks := manager.LogHooks(log)
	hooks.Effect(manager.KindMachine, fleetKey, "CreateVM", time.Second, errors.New("no quota"))
	hooks.Frozen("target", true)
	hooks.Frozen("target", false)
	hooks.ClassBackoff(object.Key{Name: "small"}, time.Minute)
	hooks.ClassBackoff(object.Key{Name: "small"}, 0)
	var reported []string
	for line := range strings.Lines(out.String()) {
		_, line, _ = strings.Cut(strings.TrimSpace(line), " ")
		reported = append(reported, line)
	}
	require.Equal(t, []string{
		`level=WARN msg=CreateVM kind=machine object=fleet/web took=1s error="no quota"`,
		`level=WARN msg="everything is frozen: an API server does not answer" server=target`,
		`level=INFO msg="the API server answers" server=target`,
		`level=WARN msg="the provider refuses machines of a class" class=small next=1m0s`,
	}, reported)
}

// TestLogHasFigures: the log has the numbers of an event beside its sentence.
func TestLogHasFigures(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Log, o.Hooks = log, manager.LogHooks(log) }
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
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

// TestLogOfADeletionWithoutACluster: the log has the begin and the end, and nothing about nodes.
func TestLogOfADeletionWithoutACluster(t *testing.T) {
	out, log := textLog(slog.LevelInfo)
	w := newWorld(t, drivertest.MemoryOptions{})
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Cluster, o.Log = nil, log }
	w.fleet()
	m := w.start(&testkit.Fuse{}, false)
	w.until(m, w.settled(3), neverDies(t))
	out.Reset()
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(m, func() bool {
		_, err := w.deployments.Get(ctx, fleetKey)
		return errors.Is(err, store.ErrNotFound)
	}, neverDies(t))
	var reasons []string
	for line := range strings.Lines(out.String()) {
		if strings.Contains(line, " kind=machine ") {
			_, reason, _ := strings.Cut(strings.TrimSpace(line), " reason=")
			reasons = append(reasons, reason)
		}
	}
	require.Equal(t, strings.Fields(strings.Repeat("Terminating VMDeleted Deleted ", 3)), reasons, out)
}

// TestLogByDefault: without a log in the options, events go to slog's default.
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
