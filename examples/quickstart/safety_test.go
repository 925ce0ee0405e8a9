package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
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
func (p *play) stopHalf(t *testing.T) []ledger.Life {
	t.Helper()
	alive, err := p.processes("v1")
	require.NoError(t, err)
	require.Len(t, alive, replicas)
	half := alive[:replicas/2]
	for _, life := range half {
		require.NoError(t, life.ID.Signal(syscall.SIGSTOP))
	}
	return half
}

// TestHalfOfTheFleetBreaks: by the store and by the processes, no more machines are in replacement
// at any time than the policy allows. In the end all are healthy again.
func TestHalfOfTheFleetBreaks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	for _, budget := range []int{1, 2} {
		t.Run(fmt.Sprint("at most ", budget), func(t *testing.T) {
			t.Parallel()
			var o *observed
			p := startFleetWith(t, twoMore, func(p *play) {
				p.health = machinePolicy()
				p.safety.Replacements.Value = int32(budget)
				p.grace = 100 * time.Millisecond // a stopped process gets no signals
				o = p.observe()
			})
			before := p.created(t)
			o.begin()
			p.beginCounts()
			broken := p.stopHalf(t)
			require.NoError(t, p.Await(t.Context(), func() string {
				if !slices.ContainsFunc(broken, func(l ledger.Life) bool { return l.ID.Alive() }) {
					return ""
				}
				p.nudge(broken)
				return "the end of the processes that were stopped"
			}))
			require.NoError(t, p.settled(t.Context(), replicas, "v1"))
			_, missing, lost := o.seen()
			assert.Equal(t, budget, missing, "in replacement at a time")
			assert.Equal(t, len(broken), lost, "given up in all")
			assert.Equal(t, len(broken), p.created(t)-before)
			assert.NoError(t, p.checkCensus(replicas-budget, replicas))
		})
	}
}

// nudge changes something irrelevant about machines, so that they are looked at again and again. A
// machine that may not be replaced yet would ask only twice a minute.
func (p *play) nudge(of []ledger.Life) {
	for _, life := range of {
		m := p.machine(life.Machine)
		if m == nil || m.Deleted() {
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
func TestOutageStopsClocks(t *testing.T) {
	if testing.Short() {
		t.Skip("takes a quarter of a minute")
	}
	t.Parallel()
	const timeout = 7 * time.Second // longer than a freeze takes
	var o *observed
	p := startFleetWith(t, twoMore, func(p *play) {
		p.health.HealthTimeout = timeout
		o = p.observe()
	})
	before := p.created(t)
	o.begin()
	silent := p.stopHalf(t)
	require.NoError(t, p.Await(t.Context(), func() string { return p.notIn(machine.PhaseUnknown, silent) }))
	p.stopCluster()
	require.NoError(t, p.Await(t.Context(), func() string {
		if p.narrator.times(reachability.ReasonUnreachable) == 0 {
			return "the freeze"
		}
		return ""
	}))
	require.Empty(t, p.notIn(machine.PhaseUnknown, silent), "frozen in time")
	require.NoError(t, p.asked(t.Context(), int(timeout/time.Second)+1))
	require.Empty(t, p.notIn(machine.PhaseUnknown, silent), "nobody judges")

	p.startCluster()
	require.NoError(t, p.Await(t.Context(), func() string {
		if p.narrator.times(reachability.ReasonReachable) == 0 {
			return "the thaw"
		}
		return ""
	}))
	restarted := p.narrator.times(reachability.ReasonRestart)
	for _, life := range silent {
		require.NoError(t, life.ID.Signal(syscall.SIGCONT))
	}
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	require.Equal(t, len(silent), restarted, "clocks that had run before the outage")
	_, missing, lost := o.seen()
	require.Zero(t, missing)
	require.Zero(t, lost)
	require.Equal(t, before, p.created(t))
	for _, life := range silent {
		require.True(t, life.ID.Alive())
	}
}

// notIn names a machine of processes that is in another phase.
func (p *play) notIn(phase machine.Phase, of []ledger.Life) string {
	for _, life := range of {
		if m := p.machine(life.Machine); m == nil || m.Deleted() || m.Status.Phase != phase {
			return fmt.Sprintf("machine %s in phase %s", life.Machine, phase)
		}
	}
	return ""
}

// TestStrayIsCollected: a process with the fleet's tag that no machine owns is ended. One with
// another tag and those of machines are not.
func TestStrayIsCollected(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds")
	}
	t.Parallel()
	p := startFleet(t, twoMore)
	alive, err := p.processes("v1")
	require.NoError(t, err)
	s, err := p.bringStrangers(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.close()) })
	require.True(t, s.stray.ID.Alive())
	require.NoError(t, p.Store.Machines.Delete(t.Context(), object.Key{Namespace: namespace, Name: alive[0].Machine}, ""))
	require.NoError(t, p.checkStrangers(t.Context(), s))
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	require.NoError(t, p.asked(t.Context(), 2)) // time enough to collect another one
	require.True(t, s.others.ID.Alive())
	require.Equal(t, 1, p.Calls.Of("DeleteOrphan"))
	for _, life := range alive[1:] {
		require.True(t, life.ID.Alive(), "process of machine %s", life.Machine)
	}
}
