package lead_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/lead/leadtest"
)

const ttl = 12 * time.Second

// process is a process that leads from time to time. All of its methods are for one test in a bubble of synctest.
type process struct {
	t     *testing.T
	lease *leadtest.Faulty
	clock *clock
	stop  context.CancelCauseFunc
	ended chan error // the result of Run

	mu     sync.Mutex
	events []string
	told   chan struct{} // not empty while Notify runs
	terms  []*lead.Held  // that do was called with
}

// run starts an election. do gets each term; nil: it returns when the term ends, with nil.
func run(t *testing.T, m *leadtest.Memory, id string, do func(*lead.Held) error) *process {
	p := &process{t: t, lease: &leadtest.Faulty{Lease: m}, clock: newClock(), ended: make(chan error, 1), told: make(chan struct{}, 1)}
	if do == nil {
		do = func(term *lead.Held) error {
			<-term.Context().Done()
			return nil
		}
	}
	ctx, stop := context.WithCancelCause(t.Context())
	p.stop = stop
	o := lead.Options{ID: id, TTL: ttl, Notify: p.notify, Now: p.clock.now}
	go func() {
		p.ended <- lead.Run(ctx, p.lease, o, func(term *lead.Held) error {
			p.mu.Lock()
			p.terms = append(p.terms, term)
			p.mu.Unlock()
			return do(term)
		})
	}()
	synctest.Wait()
	return p
}

// notify notes an event. No two come at a time.
func (p *process) notify(e lead.Event) {
	select {
	case p.told <- struct{}{}:
		defer func() { <-p.told }()
	default:
		p.t.Error("two events at a time")
	}
	said := string(e.Kind)
	if e.Token != 0 {
		said += fmt.Sprint(" ", e.Token)
	}
	if e.Err != nil {
		said += ": " + e.Err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.events = append(p.events, said)
}

// said returns all events since it was called last.
func (p *process) said() []string {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	events := p.events
	p.events = nil
	return events
}

// term returns the present or last term, and nil if there was none.
func (p *process) term() *lead.Held {
	synctest.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.terms) == 0 {
		return nil
	}
	return p.terms[len(p.terms)-1]
}

// leads reports whether the process is in a term.
func (p *process) leads() bool {
	term := p.term()
	return term != nil && term.Err() == nil
}

// result ends the process and returns the result of Run.
func (p *process) result() error {
	p.stop(nil)
	return <-p.ended
}

// pass lets time pass.
func pass(d time.Duration) {
	<-time.After(d) // of the bubble
	synctest.Wait()
}

func TestElection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		a := run(t, m, "a", nil)
		b := run(t, m, "b", nil)
		require.True(t, a.leads())
		require.False(t, b.leads())
		pass(10 * ttl) // a renews its lease
		require.True(t, a.leads())
		require.Equal(t, []string{"Elected 1"}, a.said())
		require.Equal(t, []string{"Standby: another process leads: a"}, b.said(), "once for each leader")

		require.NoError(t, a.result())
		require.True(t, b.leads(), "the lease was given back, so nobody waits for it to expire")
		require.Equal(t, lead.Token(2), b.term().Token())
		require.Equal(t, []string{"Released 1"}, a.said())
		require.Equal(t, []string{"Elected 2"}, b.said())
		require.ErrorIs(t, a.term().Err(), context.Canceled)

		a = run(t, m, "a", nil)
		require.Equal(t, []string{"Standby: another process leads: b"}, a.said())
		require.NoError(t, a.result())
		require.NoError(t, b.result())
		require.Empty(t, a.said(), "nothing more happens to a process that never led")
	})
}

// TestLeaderGone: the next leader begins after at most the TTL and a fourth of it.
func TestLeaderGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		a := run(t, m, "a", nil)
		for _, call := range []leadtest.Call{leadtest.Take, leadtest.Renew, leadtest.Release} {
			a.lease.Set(call, leadtest.Hangs)
		}
		b := run(t, m, "b", nil)
		pass(ttl * 5 / 4)
		require.True(t, b.leads())
		require.NoError(t, a.result())
		require.NoError(t, b.result())
	})
}

// TestRenewalsFail: a term ends two thirds of the TTL after the last renewal that succeeded was sent, however they fail.
func TestRenewalsFail(t *testing.T) {
	for _, fault := range []leadtest.Fault{leadtest.Refused, leadtest.Hangs, leadtest.Lost, leadtest.HangsAfter} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := leadtest.NewMemory()
				a := run(t, m, "a", nil)
				a.lease.Set(leadtest.Renew, fault)
				a.lease.Set(leadtest.Release, leadtest.Refused)
				term := a.term()
				pass(ttl*2/3 - time.Millisecond)
				require.NoError(t, term.Err())
				require.NoError(t, term.Context().Err())
				pass(time.Millisecond)
				require.ErrorIs(t, context.Cause(term.Context()), lead.ErrLost, "nobody has to ask")
				require.ErrorIs(t, term.Err(), lead.ErrLost)
				require.ErrorContains(t, term.Err(), "it was not renewed for 8s")
				require.True(t, m.Holds(term.Token()), "nobody else may act yet")
				events := a.said()
				require.Equal(t, "Lost 1: the lease is lost: it was not renewed for 8s", events[len(events)-2], events)
				require.Equal(t, "Standby: another process leads: a", events[len(events)-1], "it is a candidate again")

				a.lease.Set(leadtest.Renew, leadtest.Works)
				pass(ttl)
				require.True(t, a.leads())
				require.Greater(t, a.term().Token(), term.Token(), "as another term")
				require.ErrorIs(t, term.Err(), lead.ErrLost, "a term does not come back")
				require.NoError(t, a.result())
			})
		})
	}
}

// TestRenewalsFailForAWhile: a renewal that succeeds in time keeps the term, and failures before are told.
func TestRenewalsFailForAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := run(t, leadtest.NewMemory(), "a", nil)
		for range 10 {
			a.lease.Set(leadtest.Renew, leadtest.Refused)
			pass(ttl / 2)
			a.lease.Set(leadtest.Renew, leadtest.Works)
			pass(ttl / 6)
		}
		require.True(t, a.leads())
		require.Contains(t, a.said(), "Failed 1: "+leadtest.ErrFault.Error())
		require.NoError(t, a.result())
	})
}

// TestLeaseDropped: the term ends with the first renewal after somebody has removed the lease.
func TestLeaseDropped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		a := run(t, m, "a", nil)
		term := a.term()
		m.Drop()
		pass(ttl / 6)
		require.ErrorIs(t, term.Err(), lead.ErrLost)
		require.Equal(t, []string{"Elected 1", "Lost 1: the lease is lost", "Elected 2"}, a.said())
		require.NoError(t, a.result())
	})
}

// TestSuspended: a process whose clock has jumped, by whichever of its parts, knows at once that its term is over.
// Invariants: P68
func TestSuspended(t *testing.T) {
	for _, c := range []struct {
		name            string
		wall, monotonic time.Duration
	}{
		{"the wall clock alone", ttl, 0},
		{"the monotonic clock alone", 0, ttl},
		{"a wall clock that was set back meanwhile", -time.Hour, ttl},
		{"both", ttl, ttl},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := run(t, leadtest.NewMemory(), "a", nil)
				pass(ttl) // it was renewed
				term := a.term()
				a.clock.jump(c.wall, c.monotonic)
				require.ErrorIs(t, term.Err(), lead.ErrLost)
				require.ErrorIs(t, context.Cause(term.Context()), lead.ErrLost)
				require.NoError(t, a.result())
			})
		})
	}
}

// TestSuspendedUnnoticed: if nobody asks after a jump of the clock, the next renewal tells whether the term goes on.
func TestSuspendedUnnoticed(t *testing.T) {
	for _, expired := range []bool{false, true} {
		t.Run(fmt.Sprintf("expired %t", expired), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := leadtest.NewMemory()
				a := run(t, m, "a", nil)
				term := a.term()
				a.clock.jump(ttl, 0)
				if expired {
					m.Advance(ttl)
				}
				pass(ttl / 6)
				if expired {
					require.ErrorIs(t, context.Cause(term.Context()), lead.ErrLost)
				} else {
					require.NoError(t, term.Err(), "the clock was set, and the lease was not lost")
				}
				require.NoError(t, a.result())
			})
		})
	}
}

// TestClockSetBack: a wall clock that was set back neither ends a term nor prolongs it.
func TestClockSetBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := run(t, leadtest.NewMemory(), "a", nil)
		a.clock.jump(-time.Hour, 0)
		require.True(t, a.leads())
		a.lease.Set(leadtest.Renew, leadtest.Refused)
		term := a.term()
		pass(ttl * 2 / 3)
		require.ErrorIs(t, term.Err(), lead.ErrLost)
		require.NoError(t, a.result())
	})
}

// TestAnswersAreSlow: a term counts from when its Take, and then its last renewal, were sent.
func TestAnswersAreSlow(t *testing.T) {
	for call, want := range map[leadtest.Call]time.Duration{leadtest.Take: ttl * 2 / 3, leadtest.Renew: ttl/6 + ttl*2/3} {
		t.Run(string(call), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				slow := &slowAnswers{Lease: leadtest.NewMemory(), of: call}
				ctx, stop := context.WithCancel(t.Context())
				began := time.Now()
				require.NoError(t, lead.Run(ctx, slow, lead.Options{ID: "a", TTL: ttl}, func(term *lead.Held) error {
					<-term.Context().Done()
					stop()
					return nil
				}))
				require.Equal(t, want, time.Since(began))
			})
		})
	}
}

// slowAnswers is a lease of which one call has its effect at once, and answers late. Later renewals fail.
type slowAnswers struct {
	lead.Lease
	of   leadtest.Call
	made bool // the slow call was made
}

func (l *slowAnswers) Take(ctx context.Context, id string, ttl time.Duration) (lead.Token, error) {
	t, err := l.Lease.Take(ctx, id, ttl)
	if l.of == leadtest.Take {
		pass(ttl / 4)
		l.made = true
	}
	return t, err
}

func (l *slowAnswers) Renew(ctx context.Context, t lead.Token, ttl time.Duration) error {
	if l.made {
		return leadtest.ErrFault
	}
	l.made = true
	err := l.Lease.Renew(ctx, t, ttl)
	pass(ttl / 4)
	return err
}

// TestWaitReturnsEarly: that is no harm, and the same leader is not told again.
func TestWaitReturnsEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		first, err := m.Take(t.Context(), "b", time.Hour)
		require.NoError(t, err)
		a := &process{t: t, told: make(chan struct{}, 1), ended: make(chan error, 1)}
		var ctx context.Context
		ctx, a.stop = context.WithCancelCause(t.Context())
		led := make(chan struct{})
		go func() {
			a.ended <- lead.Run(ctx, earlyWaits{m}, lead.Options{ID: "a", TTL: ttl, Notify: a.notify}, func(term *lead.Held) error {
				close(led)
				<-term.Context().Done()
				return nil
			})
		}()
		pass(time.Minute)
		require.Equal(t, []string{"Standby: another process leads: b"}, a.said())
		require.NoError(t, m.Release(t.Context(), first))
		<-led
		require.NoError(t, a.result())
	})
}

// earlyWaits is a lease whose Wait returns after a second.
type earlyWaits struct{ lead.Lease }

func (l earlyWaits) Wait(ctx context.Context) error {
	within, done := context.WithTimeout(ctx, time.Second)
	defer done()
	_ = l.Lease.Wait(within)
	return ctx.Err()
}

// TestTakeLosesItsAnswer: this process does not lead under a lease of which it does not know. It leads once that has
// expired.
func TestTakeLosesItsAnswer(t *testing.T) {
	for _, fault := range []leadtest.Fault{leadtest.Lost, leadtest.HangsAfter} {
		t.Run(string(fault), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := leadtest.NewMemory()
				a := &leadtest.Faulty{Lease: m}
				a.Set(leadtest.Take, fault)
				ctx, stop := context.WithTimeout(t.Context(), 3*ttl)
				defer stop()
				var events []string
				o := lead.Options{ID: "a", TTL: ttl, Notify: func(e lead.Event) {
					a.Set(leadtest.Take, leadtest.Works)
					events = append(events, string(e.Kind))
				}}
				began := time.Now()
				require.NoError(t, lead.Run(ctx, a, o, func(term *lead.Held) error {
					require.Equal(t, lead.Token(2), term.Token())
					require.Equal(t, ttl, time.Since(began))
					return nil
				}))
				require.Equal(t, []string{"Failed", "Standby", "Elected", "Released"}, events)
			})
		})
	}
}

// TestStoreAway: a candidate tries until the store of the lease is there, with pauses, and says so each time.
func TestStoreAway(t *testing.T) {
	for _, call := range []leadtest.Call{leadtest.Take, leadtest.Wait} {
		t.Run(string(call), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := leadtest.NewMemory()
				_, err := m.Take(t.Context(), "another", time.Hour)
				require.NoError(t, err)
				a := &process{t: t, lease: &leadtest.Faulty{Lease: m}, told: make(chan struct{}, 1)}
				a.lease.Set(call, leadtest.Refused)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan error)
				go func() { ended <- lead.Run(ctx, a.lease, lead.Options{ID: "a", Notify: a.notify}, nil) }()
				pass(time.Minute - time.Millisecond)
				stop()
				require.NoError(t, <-ended)
				failed := 0
				for _, event := range a.said() {
					if event == "Failed: "+leadtest.ErrFault.Error() {
						failed++
					}
				}
				require.Equal(t, 6+28, failed, "at 0, 0.1, 0.3, 0.7, 1.5, 3.1, and then each 2 s")
			})
		})
	}
}

// TestDoIsSlow: until do has returned, the lease is renewed, nobody else leads, and this process is no candidate.
func TestDoIsSlow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		leave := make(chan struct{})
		a := run(t, m, "a", func(*lead.Held) error {
			<-leave
			return nil
		})
		b := run(t, m, "b", nil)
		term := a.term()
		a.stop(errors.New("the program ends"))
		pass(5 * ttl)
		require.EqualError(t, term.Err(), "the program ends")
		require.False(t, b.leads(), "the process that ends may still have calls under way")
		close(leave)
		require.NoError(t, <-a.ended)
		require.True(t, b.leads())
		require.NoError(t, b.result())
	})
}

// TestDoIsSlowAfterALoss: a process that does not stop in time is overtaken, and knows that it may not act.
func TestDoIsSlowAfterALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		leave := make(chan struct{})
		a := run(t, m, "a", func(term *lead.Held) error {
			<-leave
			return context.Cause(term.Context())
		})
		b := run(t, m, "b", nil)
		term := a.term()
		a.lease.Set(leadtest.Renew, leadtest.Refused)
		pass(ttl)
		require.True(t, b.leads())
		require.ErrorIs(t, term.Err(), lead.ErrLost)
		a.lease.Set(leadtest.Renew, leadtest.Works)
		pass(5 * ttl)
		require.True(t, b.leads(), "the old leader gives nothing back that is not its own")
		require.NotContains(t, a.said(), "Standby: another process leads: b")
		close(leave)
		require.Equal(t, []string{"Lost 1: the lease is lost: it was not renewed for 8s", "Standby: another process leads: b"}, a.said())
		require.True(t, b.leads())
		require.NoError(t, a.result())
		require.NoError(t, b.result())
	})
}

// TestDoReturns: what Run returns, and whether it tries again, by what do returns and why its term has ended.
func TestDoReturns(t *testing.T) {
	broken, shutdown := errors.New("the fleet is broken"), errors.New("the program ends")
	for _, c := range []struct {
		name string
		ends func(*process) // ends the term; nil: do returns before
		err  error          // that do returns; nil: the cause of the end of the term
		none bool           // do returns nil
		want error
		runs bool // Run goes on
		last string
	}{
		{name: "early", none: true, last: "Released 1"},
		{name: "early, with an error", err: broken, want: broken, last: "Released 1"},
		{name: "lost", ends: lose, none: true, runs: true},
		{name: "lost, with the cause", ends: lose, runs: true},
		{name: "lost, with more about it", ends: lose, err: fmt.Errorf("no more: %w", lead.ErrLost), runs: true},
		{name: "lost, with the error of the context", ends: lose, err: context.Canceled, runs: true},
		{name: "lost, with an error of its own", ends: lose, err: broken, want: broken, last: "Lost 1: the lease is lost"},
		{name: "ended", ends: func(p *process) { p.term().End(shutdown) }, runs: true},
		{name: "shutdown", ends: func(p *process) { p.stop(shutdown) }, last: "Released 1"},
		{name: "shutdown, with nil", ends: func(p *process) { p.stop(shutdown) }, none: true, last: "Released 1"},
		{name: "shutdown, with an error of its own", ends: func(p *process) { p.stop(shutdown) }, err: broken, want: broken, last: "Released 1"},
		{name: "lost, and then shutdown", ends: func(p *process) {
			lose(p)
			p.stop(shutdown)
		}, last: "Lost 1: the lease is lost"},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				leave := make(chan struct{})
				p := run(t, leadtest.NewMemory(), "a", func(term *lead.Held) error {
					if term.Token() > 1 {
						<-term.Context().Done()
						return nil
					}
					<-leave
					switch {
					case c.none:
						return nil
					case c.err != nil:
						return c.err
					}
					return context.Cause(term.Context())
				})
				if c.ends != nil {
					c.ends(p)
				}
				close(leave)
				synctest.Wait()
				if c.runs {
					require.True(t, p.leads())
					require.Equal(t, lead.Token(2), p.term().Token())
					require.NoError(t, p.result())
					return
				}
				require.ErrorIs(t, <-p.ended, c.want)
				events := p.said()
				require.Equal(t, c.last, events[len(events)-1])
			})
		})
	}
}

// lose takes the lease away from a process.
func lose(p *process) {
	m, _ := p.lease.Lease.(*leadtest.Memory)
	m.Drop()
	pass(ttl / 6)
}

// TestReleaseFails: it is told, and the lease expires.
func TestReleaseFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := run(t, leadtest.NewMemory(), "a", nil)
		a.lease.Set(leadtest.Release, leadtest.Hangs)
		began := time.Now()
		require.NoError(t, a.result())
		require.Equal(t, ttl/3, time.Since(began), "a shutdown does not wait for ever")
		require.Equal(t, []string{"Elected 1", "Released 1: context deadline exceeded"}, a.said())
	})
}

// TestDoPanics: nobody renews the lease of a term whose do has panicked.
func TestDoPanics(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := leadtest.NewMemory()
		require.Panics(t, func() {
			_ = lead.Run(t.Context(), m, lead.Options{ID: "a", TTL: ttl}, func(*lead.Held) error { panic("no") })
		})
		b := run(t, m, "b", nil)
		pass(ttl)
		require.True(t, b.leads())
		require.NoError(t, b.result())
	})
}

func TestOptions(t *testing.T) {
	err := lead.Run(t.Context(), leadtest.NewMemory(), lead.Options{}, nil)
	require.EqualError(t, err, "lead: no ID")
	err = lead.Run(t.Context(), leadtest.NewMemory(), lead.Options{ID: "a", TTL: time.Millisecond}, nil)
	require.EqualError(t, err, "lead: a TTL of 1ms is below 1s")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.NoError(t, lead.Run(ended, leadtest.NewMemory(), lead.Options{ID: "a"}, nil), "it has never led")
}

func TestOf(t *testing.T) {
	why := errors.New("somebody else leads")
	ctx, cancel := context.WithCancelCause(t.Context())
	term := lead.Of(ctx)
	require.NoError(t, term.Err())
	require.Equal(t, ctx, term.Context())
	cancel(why)
	require.Equal(t, why, term.Err())
}
