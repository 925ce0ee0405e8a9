package manager_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// shortTerm is a term that is over after some changes.
type shortTerm struct {
	left  int // changes that it still allows; negative: any number
	asked int
}

func (s *shortTerm) Context() context.Context { return ctx }

func (s *shortTerm) Err() error {
	s.asked++
	if s.left == 0 {
		return lead.ErrLost
	}
	s.left--
	return nil
}

// lead starts a process in a term.
func (w *world) lead(term lead.Term) *process {
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) { o.Term = term }
	return w.start(&testkit.Fuse{}, false)
}

// TestTermLostAnywhere ends the term of a manager before each of its changes, also in the middle of a creation. From
// then on it changes nothing. A new manager in the next term finishes: the fleet ends as without the loss, no machine
// is made twice, none counts as failed, and nothing is reported that would be an answer of the provider.
// Invariants: P7 P12 P13 P14 P26 P67
func TestTermLostAnywhere(t *testing.T) {
	all := &shortTerm{left: -1}
	undisturbed := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
	undisturbed.life(undisturbed.lead(all), neverDies(t))
	require.Greater(t, all.asked, 50)
	calls := undisturbed.calls
	for n := range testkit.EveryCall(all.asked, 3) {
		t.Run(fmt.Sprint("change ", n), func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
			old := w.lead(&shortTerm{left: n - 1})
			handovers := 0
			w.life(old, func() *process {
				handovers++
				w.staysQuiet(old)
				return w.lead(&shortTerm{left: -1})
			})
			require.Equal(t, 1, handovers)
			require.Len(t, w.made, 6, "machines made")
			require.Zero(t, w.lost)
			require.Empty(t, w.warnings)
			for _, call := range []codes.Call{codes.CreateMachine, codes.InitializeMachine, codes.DeleteMachine} {
				require.LessOrEqual(t, w.calls[call], calls[call]+1, "%s: one is repeated whose answer was not stored", call)
			}
		})
	}
}

// staysQuiet makes all passes of a process whose term is over, and checks that nothing is changed, and that no pass takes
// that for an answer.
func (w *world) staysQuiet(p *process) {
	before := [3]string{fmt.Sprint(w.provider.VMs()), fmt.Sprint(w.written), fmt.Sprint(len(w.warnings))}
	kinds := map[manager.Kind][]object.Key{
		manager.KindDeployment: keysOf(w.deployments), manager.KindSet: keysOf(w.sets), manager.KindMachine: keysOf(w.machines),
	}
	for _, r := range p.Reconcilers() {
		for _, key := range kinds[r.Kind()] {
			_, err := r.Reconcile(ctx, key)
			if err != nil {
				require.ErrorIs(w.t, err, store.ErrFenced)
			}
		}
	}
	require.Equal(w.t, before, [3]string{fmt.Sprint(w.provider.VMs()), fmt.Sprint(w.written), fmt.Sprint(len(w.warnings))})
}

// TestFencedInTheMiddleOfACreation: a manager that does not know yet that its term is over makes a VM, and the store
// refuses to record it. The next manager finds that VM, and makes no other.
// Invariants: P12 P13 P67
func TestFencedInTheMiddleOfACreation(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	fenced := false
	w.setOptions = func(o *manager.Options, _ *testkit.Fuse) {
		o.Store.Machines = store.Gate(o.Store.Machines, func() error {
			if fenced {
				return store.ErrFenced
			}
			return nil
		})
	}
	w.refuse = func(c driver.CallInfo) error {
		fenced = fenced || c.Method == codes.CreateMachine // another process takes over
		return nil
	}
	w.fleet()
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 1 })
	handovers := 0
	w.until(w.start(&testkit.Fuse{}, false), w.settled(1), func() *process {
		handovers++
		require.Equal(t, 1, w.provider.Count(), "the call of the old manager was carried out")
		m, err := w.machines.Get(ctx, keysOf(w.machines)[0])
		require.NoError(t, err)
		require.Empty(t, m.Spec.ProviderID, "and nobody has recorded it")
		fenced, w.refuse = false, nil
		return w.lead(&shortTerm{left: -1})
	})
	require.Equal(t, 1, handovers)
	require.Equal(t, 1, w.provider.Count())
	require.Len(t, w.made, 1)
	require.Zero(t, w.lost)
	require.Empty(t, w.warnings)
}

// TestFencedIsNoAnswer: a driver's call that was not made because the term is over leaves the machine as it is: no code,
// no failure, no operation.
// Invariants: P67
func TestFencedIsNoAnswer(t *testing.T) {
	for _, call := range []codes.Call{codes.CreateMachine, codes.InitializeMachine, codes.DeleteMachine} {
		t.Run(call.String(), func(t *testing.T) {
			w := newWorld(t, drivertest.MemoryOptions{NeedsInitialization: true})
			var at *machine.Machine
			w.refuse = func(c driver.CallInfo) error {
				if c.Method != call {
					return nil
				}
				var err error
				at, err = w.machines.Get(ctx, c.Object)
				require.NoError(t, err)
				return fmt.Errorf("call %s: %w", call, store.ErrFenced)
			}
			w.fleet()
			if call == codes.DeleteMachine {
				w.until(w.start(&testkit.Fuse{}, false), w.settled(3), neverDies(t))
				require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
			}
			checked := false
			w.until(w.start(&testkit.Fuse{}, false), func() bool { return checked }, func() *process {
				now, err := w.machines.Get(ctx, at.Key)
				require.NoError(t, err)
				require.Equal(t, at, now, "the machine is as it was before the call")
				require.Empty(t, w.warnings)
				w.refuse, checked = nil, true
				return w.start(&testkit.Fuse{}, false)
			})
		})
	}
}

// runs runs a manager in a bubble until it ends.
func (d *hangingProvider) runs(ctx context.Context) chan error {
	m, err := manager.New(d.options)
	require.NoError(d.t, err)
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	synctest.Wait()
	return ended
}

// TestRunEndsWithItsTerm: the error says so, whichever context Run was given. It is nil if the caller's context ends.
// Invariants: P67
func TestRunEndsWithItsTerm(t *testing.T) {
	type contexts struct{ caller, term context.CancelCauseFunc }
	for _, c := range []struct {
		name   string
		inside bool // Run is given the context of the term
		end    func(contexts)
		want   error
	}{
		{name: "lost", end: func(c contexts) { c.term(lead.ErrLost) }, want: lead.ErrLost},
		{name: "lost, inside", inside: true, end: func(c contexts) { c.term(lead.ErrLost) }, want: lead.ErrLost},
		{name: "lost, by another name", end: func(c contexts) { c.term(errElsewhere) }, want: errElsewhere},
		{name: "shutdown", end: func(c contexts) { c.caller(nil) }},
		{name: "shutdown, inside", inside: true, end: func(c contexts) { c.caller(nil) }},
		{name: "lost, and then shutdown", end: func(c contexts) {
			c.term(lead.ErrLost)
			synctest.Wait()
			c.caller(nil)
		}, want: lead.ErrLost},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				caller, endCaller := context.WithCancelCause(t.Context())
				term, endTerm := context.WithCancelCause(caller)
				d := newHangingProvider(t, drivertest.MemoryOptions{})
				d.options.Term = lead.Of(term)
				d.class("web", 2)
				given := caller
				if c.inside {
					given = term
				}
				ended := d.runs(given)
				d.waitFor(time.Hour, func() bool { return d.available("web") == 2 }, "it works until then")
				c.end(contexts{endCaller, endTerm})
				err := <-ended
				if c.want == nil {
					require.NoError(t, err)
					return
				}
				require.ErrorIs(t, err, c.want)
				require.EqualError(t, err, "the manager may not act any more: "+c.want.Error())
				endCaller(nil)
			})
		})
	}
}

var errElsewhere = errors.New("somebody else leads")

// TestRunEndsWhenTheStoreFencesIt: with the first write that is refused because another process leads, whether there is a
// term or not.
// Invariants: P67
func TestRunEndsWhenTheStoreFencesIt(t *testing.T) {
	for _, term := range []lead.Term{nil, lead.Of(t.Context())} {
		t.Run(fmt.Sprintf("%T", term), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newHangingProvider(t, drivertest.MemoryOptions{})
				var fenced atomic.Bool
				d.options.Store.Sets = store.Gate(d.options.Store.Sets, func() error {
					if fenced.Load() {
						return store.ErrFenced
					}
					return nil
				})
				if term != nil {
					d.options.Term = lead.Of(t.Context())
				}
				d.class("web", 2)
				ended := d.runs(t.Context())
				d.waitFor(time.Hour, func() bool { return d.available("web") == 2 }, "it works until then")
				fenced.Store(true)
				d.class("more", 2)
				var err error
				select {
				case err = <-ended:
				case <-time.After(time.Hour):
					require.Fail(t, "Run goes on")
				}
				require.ErrorIs(t, err, store.ErrFenced)
				require.ErrorContains(t, err, "the manager may not act any more: ")
				require.Equal(t, 2, d.provider.Count())
			})
		})
	}
}

// TestLeftOfATerm: what did not end with the term is named, because the next term of this process must know.
// Invariants: P52 P67
func TestLeftOfATerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.hangs = creates("stuck")
		d.class("stuck", 1)
		term, lose := context.WithCancelCause(t.Context())
		d.options.Term = lead.Of(term)
		ended := d.runs(t.Context())
		<-time.After(500 * time.Millisecond) // within Tuning.CallTimeout
		lose(lead.ErrLost)
		var left *manager.LeftError
		require.ErrorAs(t, <-ended, &left)
		require.Len(t, left.Calls, 1)
		d.releaseAll()
		synctest.Wait()
	})
}

// TestManagersTakeTurns: two processes with an election, of which the first loses its lease in the middle of a creation.
// The second finishes with one VM for each machine. The first has ended, and is a candidate again.
// Invariants: P12 P13 P67
func TestManagersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newHangingProvider(t, drivertest.MemoryOptions{})
		d.options.Tuning.CallTimeout, d.options.Tuning.CallGrace = time.Hour, time.Second
		d.hangs = creates("web")
		d.class("web", 3)
		lease := leadtest.NewMemory()
		first := &leadtest.Faulty{Lease: lease}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		results := make(chan error, 2)
		process := func(lease lead.Lease, id string) {
			ended <- lead.Run(ctx, lease, lead.Options{ID: id}, func(term *lead.Held) error {
				o := d.options
				o.Term = term
				m, err := manager.New(o)
				if err != nil {
					return err
				}
				err = m.Run(term.Context())
				results <- err
				if left := (*manager.LeftError)(nil); errors.As(err, &left) {
					return nil // a program ends here
				}
				return err
			})
		}
		go process(first, "first")
		d.waitFor(time.Minute, func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return len(d.under) == 3
		}, "the first has three creations under way")
		go process(lease, "second")
		first.Set(leadtest.Renew, leadtest.Hangs)
		first.Set(leadtest.Release, leadtest.Refused)
		var left *manager.LeftError
		require.ErrorAs(t, <-results, &left)
		require.Len(t, left.Calls, 3)
		d.releaseAll() // the calls of the first reach the provider after its term
		d.waitFor(time.Hour, func() bool { return d.available("web") == 3 }, "the fleet is complete")
		require.Equal(t, 3, d.provider.Count())
		stop()
		require.NoError(t, <-results)
		require.NoError(t, <-ended)
		require.NoError(t, <-ended)
	})
}
