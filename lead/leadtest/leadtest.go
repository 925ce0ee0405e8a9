package leadtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/lead"
)

// Suite says how to make the lease under test.
type Suite struct {
	// New makes a lease that nobody holds, and returns a function that returns another process's view of it at
	// each call. The suite calls New once for each check. It closes what it opens through t.Cleanup.
	New func(t *testing.T) func() lead.Lease
	// Advance lets that much time pass for all leases of New. Nil: they have the real time, so that the suite waits
	// until they expire, runs its checks in parallel, and leaves out what happens when nobody takes an expired lease.
	Advance func(time.Duration)
	// TTL is that of leases which the suite lets expire. Zero: lead.MinTTL, or an hour with Advance.
	TTL time.Duration
	// Patience is how long the suite waits for a call before it fails. Zero: 30 seconds, beside the TTL.
	Patience time.Duration
}

// Run checks every rule of lead.Lease, each in a subtest.
func Run(t *testing.T, s Suite) {
	t.Helper()
	if s.Patience == 0 {
		s.Patience = 30 * time.Second
	}
	switch {
	case s.TTL == 0 && s.Advance != nil:
		s.TTL = time.Hour
	case s.TTL == 0:
		s.TTL = lead.MinTTL
	}
	for _, group := range []struct {
		name  string
		rules []rule
	}{
		{"Take", takeRules},
		{"Renew", renewRules},
		{"Release", releaseRules},
		{"Wait", waitRules},
		{"Context", contextRules},
	} {
		t.Run(group.name, func(t *testing.T) {
			s.inParallel(t)
			for _, r := range group.rules {
				t.Run(r.name, func(t *testing.T) {
					if r.advances && s.Advance == nil {
						t.Skip("the lease has the real time")
					}
					s.inParallel(t)
					ctx, done := context.WithTimeout(t.Context(), s.Patience+4*s.TTL)
					defer done()
					r.check(&trial{T: t, suite: s, ctx: ctx, process: s.New(t)})
				})
			}
		})
	}
}

// inParallel runs a check beside others, if it may take time.
func (s *Suite) inParallel(t *testing.T) {
	if s.Advance == nil {
		t.Parallel()
	}
}

// rule is one thing that lead.Lease promises.
type rule struct {
	name     string
	advances bool // it needs Suite.Advance
	check    func(*trial)
}

// trial is one lease under test.
type trial struct {
	*testing.T
	suite   Suite
	ctx     context.Context //nolint:containedctx // as long as the test, like testing.T's own
	process func() lead.Lease
}

// long is a TTL within which no check ends.
func (r *trial) long() time.Duration { return 10*r.suite.Patience + 10*r.suite.TTL }

// take takes a lease that must be free.
func (r *trial) take(l lead.Lease, id string, ttl time.Duration) lead.Token {
	r.Helper()
	t, err := l.Take(r.ctx, id, ttl)
	require.NoError(r, err, "%s takes a lease that is free", id)
	require.NotZero(r, t, "the token")
	return t
}

// held checks that a lease can't be taken because of the holder.
func (r *trial) held(l lead.Lease, holder string) {
	r.Helper()
	t, err := l.Take(r.ctx, "another", r.long())
	var by *lead.HeldError
	require.ErrorAs(r, err, &by, "a lease that %s holds is taken", holder)
	require.ErrorIs(r, err, lead.ErrHeld)
	require.Equal(r, holder, by.By, "the holder that the error names")
	require.Zero(r, t)
}

// takeOver takes a lease for long once it has expired.
func (r *trial) takeOver(l lead.Lease, id string) lead.Token {
	r.Helper()
	if r.suite.Advance != nil {
		r.suite.Advance(r.suite.TTL)
	}
	for {
		t, err := l.Take(r.ctx, id, r.long())
		if !errors.Is(err, lead.ErrHeld) {
			require.NoError(r, err, "%s takes a lease that has expired", id)
			return t
		}
		require.NoError(r, l.Wait(r.ctx), "%s waits for a lease to expire", id)
	}
}

// await waits for a lease and takes it. It returns zero if that does not succeed.
func (r *trial) await(l lead.Lease) lead.Token {
	for {
		t, err := l.Take(r.ctx, "b", r.long())
		if errors.Is(err, lead.ErrHeld) {
			err = l.Wait(r.ctx)
			if err == nil {
				continue
			}
		}
		if err != nil {
			r.Error(err)
		}
		return t
	}
}

func (r *trial) release(l lead.Lease, t lead.Token) {
	r.Helper()
	require.NoError(r, l.Release(r.ctx, t))
}

var takeRules = []rule{
	{name: "is exclusive, and names the holder", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "a", r.long())
		r.held(b, "a")
		r.held(a, "a")
	}},
	{name: "is exclusive among processes with one ID", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "another", r.long())
		r.held(b, "another")
	}},
	{name: "has one winner of many", check: func(r *trial) {
		const processes, rounds = 6, 5
		var all []lead.Lease
		for range processes {
			all = append(all, r.process())
		}
		for range rounds {
			tokens, errs := make([]lead.Token, processes), make([]error, processes)
			var running sync.WaitGroup
			for i, l := range all {
				running.Go(func() { tokens[i], errs[i] = l.Take(r.ctx, fmt.Sprintf("process %d", i), r.long()) })
			}
			running.Wait()
			winner := -1
			for i, err := range errs {
				switch {
				case err == nil:
					require.Equal(r, -1, winner, "two have taken the lease: %d and %d", winner, i)
					winner = i
				default:
					require.ErrorIs(r, err, lead.ErrHeld)
				}
			}
			require.NotEqual(r, -1, winner, "nobody has taken a lease that was free")
			r.release(all[winner], tokens[winner])
		}
	}},
	{name: "gives tokens that rise", check: func(r *trial) {
		a, b := r.process(), r.process()
		last := lead.Token(0)
		for i, l := range []lead.Lease{a, b, b, a} {
			t := r.take(l, fmt.Sprint(i), r.long())
			require.Greater(r, t, last)
			last = t
			r.release(l, t)
		}
		r.take(a, "a", r.suite.TTL)
		require.Greater(r, r.takeOver(b, "b"), last+1, "after a lease that has expired")
	}},
	{name: "takes a lease that has expired", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "a", r.suite.TTL)
		r.takeOver(b, "b")
		r.held(a, "b")
	}},
	{name: "does not take a lease before it has expired", advances: true, check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "a", r.suite.TTL)
		r.suite.Advance(r.suite.TTL * 9 / 10)
		r.held(b, "a")
	}},
}

var renewRules = []rule{
	{name: "prolongs the lease", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.suite.TTL)
		require.NoError(r, a.Renew(r.ctx, t, r.suite.TTL))
		r.held(b, "a")
		r.takeOver(b, "b") // it has expired for all that
	}},
	{name: "keeps the lease for as long as it is renewed", check: func(r *trial) {
		a, b := r.process(), r.process()
		if r.suite.Advance != nil {
			t := r.take(a, "a", r.suite.TTL)
			for range 5 {
				r.suite.Advance(r.suite.TTL * 9 / 10)
				r.held(b, "a")
				require.NoError(r, a.Renew(r.ctx, t, r.suite.TTL))
			}
			return
		}
		r.keeps(a, b)
	}},
	{name: "is refused once another process has taken the lease", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.suite.TTL)
		r.takeOver(b, "b")
		require.ErrorIs(r, a.Renew(r.ctx, t, r.long()), lead.ErrLost)
		r.held(a, "b")
	}},
	{name: "is refused once another process has had the lease", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.suite.TTL)
		r.release(b, r.takeOver(b, "b"))
		require.ErrorIs(r, a.Renew(r.ctx, t, r.long()), lead.ErrLost)
		r.take(b, "b", r.long())
	}},
	{name: "is refused under the token of an earlier term of the process", check: func(r *trial) {
		a := r.process()
		t := r.take(a, "a", r.long())
		r.release(a, t)
		next := r.take(a, "a", r.long())
		require.ErrorIs(r, a.Renew(r.ctx, t, r.long()), lead.ErrLost)
		require.NoError(r, a.Renew(r.ctx, next, r.long()))
	}},
	{name: "is refused once the lease was given back", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.long())
		r.release(a, t)
		require.ErrorIs(r, a.Renew(r.ctx, t, r.long()), lead.ErrLost)
		r.take(b, "b", r.long())
	}},
	{name: "is refused once the lease has expired", advances: true, check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.suite.TTL)
		r.suite.Advance(r.suite.TTL)
		require.ErrorIs(r, a.Renew(r.ctx, t, r.long()), lead.ErrLost)
		r.take(b, "b", r.long())
	}},
	{name: "is refused under a token that there never was", check: func(r *trial) {
		a, b := r.process(), r.process()
		require.ErrorIs(r, a.Renew(r.ctx, 1<<40, r.long()), lead.ErrLost)
		t := r.take(b, "b", r.long())
		require.ErrorIs(r, a.Renew(r.ctx, t+1, r.long()), lead.ErrLost)
		r.held(a, "b")
	}},
}

// keeps checks, in real time, that b can't take the lease for two TTLs in which a renews it. If a was suspended for
// too long, it begins again.
func (r *trial) keeps(a, b lead.Lease) {
	for {
		t := r.take(a, "a", r.suite.TTL)
		began := time.Now()
		renewed := began
		for time.Since(began) < 2*r.suite.TTL {
			_, taken := b.Take(r.ctx, "b", r.suite.TTL)
			sent := time.Now()
			err := a.Renew(r.ctx, t, r.suite.TTL)
			if time.Since(renewed) > r.suite.TTL/2 {
				break // too late to conclude anything
			}
			require.ErrorIs(r, taken, lead.ErrHeld)
			require.NoError(r, err)
			renewed = sent
		}
		if time.Since(began) >= 2*r.suite.TTL {
			return
		}
		require.NoError(r, r.ctx.Err(), "the process is too slow for this TTL")
		r.release(a, t)
		r.release(b, r.takeOver(b, "b"))
	}
}

var releaseRules = []rule{
	{name: "frees the lease at once", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.release(a, r.take(a, "a", r.long()))
		r.take(b, "b", r.long())
	}},
	{name: "leaves the lease of another process", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.suite.TTL)
		next := r.takeOver(b, "b")
		r.release(a, t)
		r.held(a, "b")
		require.NoError(r, b.Renew(r.ctx, next, r.long()))
	}},
	{name: "leaves a later term of the process", check: func(r *trial) {
		a, b := r.process(), r.process()
		t := r.take(a, "a", r.long())
		r.release(a, t)
		next := r.take(a, "a", r.long())
		r.release(a, t)
		r.held(b, "a")
		require.NoError(r, a.Renew(r.ctx, next, r.long()))
	}},
	{name: "does nothing if the lease is not held", check: func(r *trial) {
		a := r.process()
		r.release(a, 1<<40)
		t := r.take(a, "a", r.long())
		r.release(a, t)
		r.release(a, t)
	}},
}

var waitRules = []rule{
	{name: "returns if nobody holds the lease", check: func(r *trial) {
		require.NoError(r, r.process().Wait(r.ctx))
	}},
	{name: "returns when the lease is given back", check: func(r *trial) {
		a, b := r.process(), r.process()
		for range 10 { // b may come too late to wait
			t := r.take(a, "a", r.long())
			r.held(b, "a")
			taken := make(chan lead.Token, 1)
			go func() { taken <- r.await(b) }()
			for range 3 {
				require.NoError(r, a.Renew(r.ctx, t, r.long()))
			}
			r.release(a, t)
			next := <-taken
			require.NotZero(r, next, "the lease was given back, and a process that waits does not get it")
			r.release(b, next)
		}
	}},
	{name: "returns when the lease expires", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "a", r.suite.TTL)
		r.takeOver(b, "b")
	}},
	{name: "ends with its context", check: func(r *trial) {
		a, b := r.process(), r.process()
		r.take(a, "a", r.long())
		ctx, cancel := context.WithCancel(r.ctx)
		ended := make(chan error, 1)
		go func() {
			var err error
			for err == nil { // too early is no harm
				err = b.Wait(ctx)
			}
			ended <- err
		}()
		cancel()
		require.ErrorIs(r, <-ended, context.Canceled)
	}},
}

var contextRules = []rule{
	{name: "does nothing after a cancellation", check: func(r *trial) {
		ctx, cancel := context.WithCancel(r.ctx)
		cancel()
		r.checkEnded(ctx, context.Canceled)
	}},
	{name: "does nothing after a deadline", check: func(r *trial) {
		ctx, cancel := context.WithDeadline(r.ctx, time.Unix(0, 0))
		defer cancel()
		r.checkEnded(ctx, context.DeadlineExceeded)
	}},
}

// checkEnded checks that all calls fail with want, and have no effect, if their context is ctx, which has ended.
func (r *trial) checkEnded(ctx context.Context, want error) {
	a, b := r.process(), r.process()
	_, err := a.Take(ctx, "a", r.long())
	require.ErrorIs(r, err, want)
	require.ErrorIs(r, a.Wait(ctx), want)
	t := r.take(b, "b", r.suite.TTL)
	_, err = a.Take(ctx, "a", r.long())
	require.ErrorIs(r, err, want)
	require.ErrorIs(r, a.Wait(ctx), want)
	require.ErrorIs(r, b.Release(ctx, t), want)
	r.held(a, "b")
	require.ErrorIs(r, b.Renew(ctx, t, r.long()), want)
	r.takeOver(a, "a") // it was not prolonged
}
