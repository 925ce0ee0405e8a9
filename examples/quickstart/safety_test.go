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

	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/store"
)

// observed is a store of machines that looks at all of them after each write.
type observed struct {
	store.Collection[*machine.Machine]

	mu      sync.Mutex
	looks   int             // since begin
	missing int             // the most machines that did not serve at a time
	lost    map[string]bool // machines that were marked failed or deleted
}

// observe puts an observer between a manager and its machines.
func (p *play) observe() *observed {
	o := &observed{Collection: p.Store.Machines}
	p.Store.Machines = o
	return o
}

// begin forgets what was seen so far.
func (o *observed) begin() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.looks, o.missing, o.lost = 0, 0, make(map[string]bool)
}

// look counts, after a write, the machines that serve or may serve again: those that count as no
// less than Unknown.
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
	o.looks++
	o.missing = max(o.missing, replicas-serving)
}

// seen returns what was seen since begin.
func (o *observed) seen() (looks, missing, lost int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.looks, o.missing, len(o.lost)
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

// stopHalf stops the processes of half of the machines: they exist, and send no heartbeats.
func (p *play) stopHalf(t *testing.T) []roster.Entry {
	t.Helper()
	alive, err := p.running("v1")
	require.NoError(t, err)
	require.Len(t, alive, replicas)
	half := alive[:replicas/2]
	for _, life := range half {
		require.NoError(t, life.Signal(syscall.SIGSTOP))
	}
	return half
}

// TestHalfOfTheFleetBreaks: by the store and by the processes, no more machines are in replacement
// at any time than the policy allows. In the end all are healthy again.
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
			p := startFleetWith(t, surge, func(p *play) {
				p.health = machinePolicy()
				p.safety.Replacements.Value = int32(budget)
				o = p.observe()
			})
			before := p.made(t)
			o.begin()
			p.beginCounts()
			broken := p.stopHalf(t)
			require.NoError(t, p.Await(t.Context(), func() string {
				if !slices.ContainsFunc(broken, func(l roster.Entry) bool { return runs(l) }) {
					return ""
				}
				p.nudge(broken)
				return "the end of the processes that were stopped"
			}))
			require.NoError(t, p.settled(t.Context(), replicas, "v1"))
			_, missing, lost := o.seen()
			assert.LessOrEqual(t, missing, budget, "in replacement at a time") // fewer if the machine is busy
			assert.Positive(t, missing)
			assert.Equal(t, len(broken), lost, "given up in all")
			assert.Equal(t, len(broken), p.made(t)-before)
			counts, err := p.Counts(t.Context(), p.machineCount, replicas-budget)
			assert.NoError(t, err)
			assert.LessOrEqual(t, counts.MostStaying, replicas)
		})
	}
}

// nudge changes something irrelevant about machines, so that they are looked at again and again. A
// machine that may not be replaced yet would ask only twice a minute.
func (p *play) nudge(of []roster.Entry) {
	for _, life := range of {
		m, err := p.machine(life.Name)
		if err != nil || m.Deleted() {
			continue
		}
		changed := m.Clone()
		changed.Annotations = map[string]string{"nudged": time.Now().String()}
		_, _ = p.Store.Machines.Update(context.Background(), changed) // another program may have been faster
	}
}

// TestOutageStopsClocks: half of the machines fall silent, and before they are marked failed the
// cluster stops answering, for longer than their health timeout. No machine is marked failed then,
// or when the cluster is back, because their timeouts begin again.
// Invariants: P25
func TestOutageStopsClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	const timeout = 7 * time.Second // longer than a freeze takes
	var o *observed
	p := startFleetWith(t, surge, func(p *play) {
		p.health.HealthTimeout = timeout
		o = p.observe()
	})
	before := p.made(t)
	o.begin()
	silent := p.stopHalf(t)
	require.NoError(t, p.Await(t.Context(), func() string { return p.notIn(machine.PhaseUnknown, silent) }))
	p.stopCluster()
	require.NoError(t, p.hears(t.Context(), reachability.ReasonUnreachable.String(), 1))
	require.Empty(t, p.notIn(machine.PhaseUnknown, silent), "frozen in time")
	require.NoError(t, p.hears(t.Context(), "CheckTarget", int(timeout/time.Second)+1))
	require.Empty(t, p.notIn(machine.PhaseUnknown, silent), "no machine is judged")

	p.stopCluster = p.Go("the cluster", p.cluster.Run)
	require.NoError(t, p.hears(t.Context(), reachability.ReasonReachable.String(), 1))
	restarted := p.times(reachability.ReasonRestart.String())
	for _, life := range silent {
		require.NoError(t, life.Signal(syscall.SIGCONT))
	}
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	require.GreaterOrEqual(t, restarted, len(silent), "clocks that had run before the outage") // others may have been late
	_, missing, lost := o.seen()
	require.Zero(t, missing)
	require.Zero(t, lost)
	require.Equal(t, before, p.made(t))
	for _, life := range silent {
		require.True(t, runs(life))
	}
}

// notIn names a machine of processes that is in another phase.
func (p *play) notIn(phase machine.Phase, of []roster.Entry) string {
	for _, life := range of {
		if m, err := p.machine(life.Name); err != nil || m.Deleted() || m.Status.Phase != phase {
			return fmt.Sprintf("machine %s in phase %s", life.Name, phase)
		}
	}
	return ""
}

// TestStrayIsCollected: a process with the fleet's tag that no machine owns is ended. Those of
// machines are not.
// Invariants: P15
func TestStrayIsCollected(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p := startFleet(t, surge)
	alive, err := p.running("v1")
	require.NoError(t, err)
	orphan, err := p.bringStray(t.Context())
	require.NoError(t, err)
	require.True(t, runs(orphan))
	require.NoError(t, p.Store.Machines.Delete(t.Context(), object.Key{Namespace: namespace, Name: alive[0].Name}, ""))
	require.NoError(t, p.Await(t.Context(), func() string { return survives(orphan) }))
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	require.NoError(t, p.hears(t.Context(), "CheckTarget", 2)) // time enough to collect another one
	require.Equal(t, 1, p.times("DeleteOrphan"))
	for _, life := range alive[1:] {
		require.True(t, runs(life), "process of machine %s", life.Name)
	}
}

// runs reports whether a process runs now.
func runs(e roster.Entry) bool { return survives(e) != "" }

// times returns how often there was an event of a reason, or a call of a kind.
func (p *play) times(what string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.heard[what]
}

// startFleet returns a play without acts whose fleet runs the first version. When the test ends
// everything is deleted, and no process may be left.
func startFleet(t *testing.T, surge int32) *play {
	t.Helper()
	return startFleetWith(t, surge, func(*play) {})
}

// startFleetWith is startFleet. It calls prepare before anything runs.
func startFleetWith(t *testing.T, surge int32, prepare func(*play)) *play {
	t.Helper()
	p, err := newPlay(t.Context(), io.Discard, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		var failed error
		if !t.Failed() {
			failed = p.remove(ctx)
		}
		require.NoError(t, p.close(ctx, failed))
	})
	p.health.HealthTimeout = stage.Patience // a process that comes late on a busy machine is not lost
	prepare(p)
	require.NoError(t, p.begin())
	require.NoError(t, p.deploy(t.Context(), surge))
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	return p
}

// made returns how many processes there have been.
func (p *play) made(t *testing.T) int {
	t.Helper()
	n, err := p.created()
	require.NoError(t, err)
	return n
}
