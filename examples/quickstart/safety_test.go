package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// observed is a store of machines that checks all machines after each write.
type observed struct {
	store.Collection[*machine.Machine]

	mu      sync.Mutex
	missing int             // the most machines that did not serve at a time
	lost    map[string]bool // machines that were marked failed or deleted; nil before begin
}

// observe puts an observed store between the manager and its machines.
func (q *quickstart) observe() *observed {
	o := &observed{Collection: q.Store.Machines}
	q.Store.Machines = o
	return o
}

// begin forgets what was seen so far.
func (o *observed) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.missing, o.lost = 0, make(map[string]bool)
}

// look counts the machines that serve (Running) or may serve again (Unknown), and records those that
// are lost.
func (o *observed) look() {
	o.mu.Lock()
	defer o.mu.Unlock()
	all, _ := o.List(context.Background(), store.Query{})
	serving := 0
	for _, m := range all {
		switch {
		case m.Deleted() || m.Status.Phase == machine.PhaseFailed:
			if o.lost != nil {
				o.lost[m.Name] = true
			}
		case m.Status.Phase == machine.PhaseRunning || m.Status.Phase == machine.PhaseUnknown:
			serving++
		}
	}
	o.missing = max(o.missing, replicas-serving)
}

// seen returns how many machines were missing at a time, at most, and how many were lost, since begin.
func (o *observed) seen() (missing, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.missing, len(o.lost)
}

func (o *observed) Create(ctx context.Context, m *machine.Machine) (*machine.Machine, error) {
	defer o.look()
	return o.Collection.Create(ctx, m)
}

func (o *observed) Update(ctx context.Context, m *machine.Machine) (*machine.Machine, error) {
	defer o.look()
	return o.Collection.Update(ctx, m)
}

func (o *observed) UpdateStatus(ctx context.Context, m *machine.Machine) (*machine.Machine, error) {
	defer o.look()
	return o.Collection.UpdateStatus(ctx, m)
}

func (o *observed) Delete(ctx context.Context, k object.Key, uid string) error {
	defer o.look()
	return o.Collection.Delete(ctx, k, uid)
}

// stopHalf suspends the processes of half of the machines (SIGSTOP): they send no heartbeats.
func (q *quickstart) stopHalf(t *testing.T) []roster.Entry {
	t.Helper()
	alive, err := q.running("v1")
	require.NoError(t, err)
	require.Len(t, alive, replicas)
	half := alive[:replicas/2]
	for _, e := range half {
		require.NoError(t, e.Signal(syscall.SIGSTOP))
	}
	return half
}

// TestHalfOfTheFleetBreaks: no more machines are replaced at a time than the policy allows, counted
// in the store and by the processes. In the end all machines are healthy again.
// Invariants: P24
func TestHalfOfTheFleetBreaks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	for _, budget := range []int{1, 2} {
		t.Run(fmt.Sprint("at most ", budget), func(t *testing.T) {
			t.Parallel()
			var o *observed
			q := startFleetWith(t, surge, func(q *quickstart) {
				q.health = machinePolicy()
				q.safety.Replacements.Value = int32(budget)
				o = q.observe()
			})
			before := q.made(t)
			o.begin()
			q.beginCounts()
			broken := q.stopHalf(t)
			require.NoError(t, q.Await(t.Context(), func() string {
				if !slices.ContainsFunc(broken, runs) {
					return ""
				}
				q.nudge(broken)
				return "the end of the suspended processes"
			}))
			require.NoError(t, q.settled(t.Context(), replicas, "v1"))
			missing, lost := o.seen()
			assert.LessOrEqual(t, missing, budget, "replaced at a time") // fewer if the computer is busy
			assert.Positive(t, missing)
			assert.Equal(t, len(broken), lost, "lost in all")
			assert.Equal(t, len(broken), q.made(t)-before)
			counts, err := q.CheckCounts(t.Context(), q.machineCount, replicas-budget)
			assert.NoError(t, err)
			assert.LessOrEqual(t, counts.MaxActive, replicas)
		})
	}
}

// nudge writes an annotation to the machines of these processes, so that the manager reconciles them
// at once. Otherwise it would ask only twice a minute whether a machine may be replaced.
func (q *quickstart) nudge(processes []roster.Entry) {
	for _, e := range processes {
		m, err := q.machine(e.Name)
		if err != nil || m.Deleted() {
			continue
		}
		changed := m.Clone()
		changed.Annotations = map[string]string{"nudged": time.Now().String()}
		_, _ = q.Store.Machines.Update(context.Background(), changed) // a conflict: the manager was faster
	}
}

// TestOutageStopsHealthTimeouts: half of the machines send no heartbeats. Before they are marked
// failed, the cluster stops answering, for longer than the health timeout. No machine is marked failed
// then, nor when the cluster is back, because the timeouts begin again.
// Invariants: P25
func TestOutageStopsHealthTimeouts(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	const timeout = 7 * time.Second // longer than the manager takes to notice that the cluster is down
	var o *observed
	q := startFleetWith(t, surge, func(q *quickstart) {
		q.health.HealthTimeout = timeout
		o = q.observe()
	})
	before := q.made(t)
	o.begin()
	silent := q.stopHalf(t)
	require.NoError(t, q.Await(t.Context(), func() string { return q.notIn(machine.PhaseUnknown, silent) }))
	q.stopCluster()
	require.NoError(t, q.awaitEvents(t.Context(), reachability.ReasonUnreachable.String(), 1))
	require.Empty(t, q.notIn(machine.PhaseUnknown, silent), "the manager froze before the timeout")
	require.NoError(t, q.awaitEvents(t.Context(), "CheckTarget", int(timeout/time.Second)+1))
	require.Empty(t, q.notIn(machine.PhaseUnknown, silent), "no machine is marked failed during the outage")

	q.stopCluster = q.Go("the cluster", q.cluster.Run)
	require.NoError(t, q.awaitEvents(t.Context(), reachability.ReasonReachable.String(), 1))
	restarted := q.eventCount(reachability.ReasonRestart.String())
	for _, e := range silent {
		require.NoError(t, e.Signal(syscall.SIGCONT))
	}
	require.NoError(t, q.settled(t.Context(), replicas, "v1"))
	require.GreaterOrEqual(t, restarted, len(silent), "timeouts that begin again") // more if other machines were late
	missing, lost := o.seen()
	require.Zero(t, missing)
	require.Zero(t, lost)
	require.Equal(t, before, q.made(t))
	for _, e := range silent {
		require.True(t, runs(e))
	}
}

// notIn returns "" if the machines of these processes are in a phase, or what is awaited, for Await.
func (q *quickstart) notIn(phase machine.Phase, processes []roster.Entry) string {
	for _, e := range processes {
		if m, err := q.machine(e.Name); err != nil || m.Deleted() || m.Status.Phase != phase {
			return fmt.Sprintf("machine %s in phase %s", e.Name, phase)
		}
	}
	return ""
}

// TestOrphanIsEnded: the manager ends a process that belongs to no machine, and no other.
// Invariants: P15
func TestOrphanIsEnded(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	q := startFleet(t, surge)
	alive, err := q.running("v1")
	require.NoError(t, err)
	orphan, err := q.startOrphan(t.Context())
	require.NoError(t, err)
	require.True(t, runs(orphan))
	require.NoError(t, q.Store.Machines.Delete(t.Context(), object.Key{Namespace: namespace, Name: alive[0].Name}, ""))
	require.NoError(t, q.Await(t.Context(), func() string { return survives(orphan) }))
	require.NoError(t, q.settled(t.Context(), replicas, "v1"))
	require.NoError(t, q.awaitEvents(t.Context(), "CheckTarget", 2)) // time enough to end another process
	require.Equal(t, 1, q.eventCount("DeleteOrphan"))
	for _, e := range alive[1:] {
		require.True(t, runs(e), "process of machine %s", e.Name)
	}
}

// runs reports whether a process runs now.
func runs(e roster.Entry) bool { return survives(e) != "" }

// startFleet returns a quickstart whose machines run version v1, before any step. When the test ends,
// everything is deleted, and no process may be left.
func startFleet(t *testing.T, surge int32) *quickstart {
	t.Helper()
	return startFleetWith(t, surge, func(*quickstart) {})
}

// startFleetWith is startFleet, and calls prepare before anything runs.
func startFleetWith(t *testing.T, surge int32, prepare func(*quickstart)) *quickstart {
	t.Helper()
	q, err := newQuickstart(t.Context(), io.Discard, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background() // the test's context has ended
		var failed error
		if !t.Failed() {
			failed = q.remove(ctx)
		}
		require.NoError(t, q.close(ctx, failed))
	})
	q.health.HealthTimeout = demo.Patience // a busy computer may delay heartbeats
	prepare(q)
	require.NoError(t, q.start())
	require.NoError(t, q.deploy(t.Context(), surge))
	require.NoError(t, q.settled(t.Context(), replicas, "v1"))
	return q
}

// made returns how many processes have been created.
func (q *quickstart) made(t *testing.T) int {
	t.Helper()
	n, err := q.created()
	require.NoError(t, err)
	return n
}
