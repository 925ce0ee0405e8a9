// Package lead elects the one process of several that acts for a fleet, by a lease in a store that all of them
// reach.
//
// A lease alone stops nobody: a process that was suspended goes on with what it was doing. So a Term ends by the
// clock of its own process, well before others may take the lease, and every change asks it first. What was
// under way by then is stopped by the store, which refuses writes under an old Token (store.ErrFenced), and by
// the provider, which makes one VM for a name.
package lead

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Term is a time in which this process may act for a fleet, and no other may. It begins once.
type Term interface {
	// Context ends with the term. Its cause says why.
	Context() context.Context
	// Err returns nil while the term is known to last, and then why it has ended. It is asked before each
	// change, so it returns at once.
	Err() error
}

// Of returns the term that lasts as long as ctx, for elections that give a context alone, such as those of
// client-go. Such a term does not notice that its process was suspended.
func Of(ctx context.Context) Term { return contextTerm{ctx} }

type contextTerm struct{ ctx context.Context } //nolint:containedctx // the context is the term

func (t contextTerm) Context() context.Context { return t.ctx }

func (t contextTerm) Err() error { return context.Cause(t.ctx) }

// Token tells a term from all others of its lease. A later term has a higher one. Zero is that of no term.
type Token uint64

// Lease is a lease in a store. At most one process holds it. It is safe for concurrent use. If its context has
// ended before the call, a call returns ctx.Err(), and has no effect. leadtest.Run checks all rules.
type Lease interface {
	// Take takes the lease for ttl if nobody holds it, under a new token. If somebody does, be it this process,
	// the error is a *HeldError. After any other error it may have been taken: it expires then.
	Take(ctx context.Context, id string, ttl time.Duration) (Token, error)
	// Renew prolongs the lease: it expires ttl after the call at the earliest. The error is ErrLost if it has
	// expired, was given back, or is held under another token: a term that has ended does not come back.
	Renew(ctx context.Context, t Token, ttl time.Duration) error
	// Release gives the lease back, so that another process can take it at once. It does nothing if the lease
	// is not held under that token.
	Release(ctx context.Context, t Token) error
	// Wait returns nil when somebody else's lease may have been given back or have expired; too early is
	// no harm.
	Wait(ctx context.Context) error
}

// These are the errors of leases and terms.
var (
	// ErrHeld: another process holds the lease. It comes as a *HeldError.
	ErrHeld = errors.New("another process leads")
	// ErrLost: the term is over, although this process did not end it.
	ErrLost = errors.New("the lease is lost")
)

// HeldError says who holds a lease.
type HeldError struct{ By string }

// Error names the holder.
func (e *HeldError) Error() string { return ErrHeld.Error() + ": " + e.By }

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// DefaultTTL is the TTL of elections that name none.
const DefaultTTL = 10 * time.Second

// MinTTL is the shortest TTL. With less, a slow answer of the store would end terms.
const MinTTL = time.Second

// Options of Run. ID is required.
type Options struct {
	// ID names this process to people, such as host and process number. It needs not be unique.
	ID string
	// TTL is how long a lease lasts that is not renewed: if the leader is gone, the next one takes over after at
	// most TTL and a fourth of it. A leader that can't renew its lease stops acting after two thirds of
	// it. Zero: DefaultTTL. At least MinTTL.
	TTL time.Duration
	// Notify receives what happens in the election. It must return soon. Nil: nothing is reported.
	Notify func(Event)
	// Now is the clock of the process. Nil: time.Now. Clocks of other processes don't matter.
	Now func() time.Time
}

// Event is what happened in an election.
type Event struct {
	Kind  EventKind
	Token Token // of the term; zero for Standby and Failed
	Err   error // of Lost and Failed; of Standby the *HeldError; of Released why the lease has to expire instead
}

// EventKind says what kind of Event it is.
type EventKind string

// The events of an election.
const (
	Standby  EventKind = "Standby"  // another process leads; reported once for each leader
	Elected  EventKind = "Elected"  // a term has begun
	Released EventKind = "Released" // the term has ended, and the lease was given back
	Lost     EventKind = "Lost"     // the term has ended: the lease could not be renewed, or another process has it
	Failed   EventKind = "Failed"   // the store did not answer, or this process can't lead; it tries again
)

// Held is a term under a Lease. Run makes it.
type Held struct {
	token  Token
	limit  time.Duration // from the sending of a renewal, for which the term is known to last
	now    func() time.Time
	ctx    context.Context //nolint:containedctx // the context is the term
	cancel context.CancelCauseFunc

	mu   sync.Mutex
	sent time.Time // when the last successful renewal was sent
}

// Context implements Term.
func (h *Held) Context() context.Context { return h.ctx }

// Token is the fencing token of the term, which the store compares with each write.
func (h *Held) Token() Token { return h.token }

// Err implements Term. It looks at the clock, so that a process that was suspended knows at once.
func (h *Held) Err() error {
	if h.ctx.Err() == nil && h.left() <= 0 {
		h.End(fmt.Errorf("%w: it was not renewed for %v", ErrLost, h.limit))
	}
	return context.Cause(h.ctx)
}

// End ends the term, because err says that it is over. Run gives the lease back then.
func (h *Held) End(err error) { h.cancel(err) }

// left is for how long the term is known to last. The wall clock counts as well as the monotonic one, which may
// stop while the machine is suspended.
func (h *Held) left() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.now()
	return h.limit - max(now.Sub(h.sent), now.Round(0).Sub(h.sent.Round(0)))
}

func (h *Held) renewed(sent time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = sent
}

// These are shares of the TTL: how long a term lasts without renewal, how often the lease is renewed, how soon again
// after that has failed, and how long one call of the lease may take.
const (
	limitOf = 2.0 / 3
	renewOf = 1.0 / 6
	againOf = 1.0 / 50
	callOf  = 1.0 / 3
)

// firstPause and lastPause bound the pause after a call of the lease has failed.
const (
	firstPause = 100 * time.Millisecond
	lastPause  = 2 * time.Second
)

// Run waits for the lease, and calls do for the term that begins with it, again and again. It returns
//   - nil once ctx has ended, and do with it;
//   - the error of do, or nil, if do returns before its term has ended, or with an error that is not about the
//     end of the term. About that are ErrLost, context.Canceled, and the cause of the term's context.
//
// do must return soon when the context of the term ends: until then this process is no candidate. Run gives
// the lease back when do has returned.
func Run(ctx context.Context, lease Lease, o Options, do func(*Held) error) error {
	o.TTL = cmp.Or(o.TTL, DefaultTTL)
	switch {
	case o.ID == "":
		return errors.New("lead: no ID")
	case o.TTL < MinTTL:
		return fmt.Errorf("lead: a TTL of %v is below %v", o.TTL, MinTTL)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Notify == nil {
		o.Notify = func(Event) {}
	}
	e := election{Options: o, lease: lease}
	for {
		term := e.campaign(ctx)
		if term == nil {
			return nil
		}
		again, err := e.lead(ctx, term, do)
		if !again {
			return err
		}
	}
}

type election struct {
	Options
	lease  Lease
	holder string // the last leader that Standby was reported for
}

// campaign waits until this process has the lease. It returns nil when ctx has ended.
func (e *election) campaign(ctx context.Context) *Held {
	pause := firstPause
	for ctx.Err() == nil {
		term, err := e.take(ctx)
		var held *HeldError
		switch {
		case err == nil:
			e.holder = ""
			e.Notify(Event{Kind: Elected, Token: term.token})
			return term
		case errors.As(err, &held):
			if held.By != e.holder {
				e.holder = held.By
				e.Notify(Event{Kind: Standby, Err: err})
			}
			if err = e.lease.Wait(ctx); err == nil {
				pause = firstPause
				continue
			}
		}
		if ctx.Err() == nil {
			e.Notify(Event{Kind: Failed, Err: err})
			sleep(ctx, pause)
			pause = min(2*pause, lastPause)
		}
	}
	return nil
}

func (e *election) take(ctx context.Context) (*Held, error) {
	call, done := e.within(ctx)
	defer done()
	sent := e.Now()
	token, err := e.lease.Take(call, e.ID, e.TTL)
	if err != nil {
		return nil, err
	}
	term := &Held{token: token, limit: e.share(limitOf), now: e.Now, sent: sent}
	term.ctx, term.cancel = context.WithCancelCause(ctx)
	return term, nil
}

// lead calls do while it renews the lease. It reports whether there is to be another campaign.
func (e *election) lead(ctx context.Context, term *Held, do func(*Held) error) (again bool, err error) {
	done, renewing := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(renewing)
		e.renew(term, done)
	}()
	func() {
		defer close(done) // also if do panics: else the lease would be renewed for nobody
		err = do(term)
	}()
	<-renewing
	over := term.Err()
	term.End(errEnded)
	// ctx may have ended. The lease is to be given back all the same.
	call, cancel := e.within(context.WithoutCancel(ctx))
	defer cancel()
	released := e.lease.Release(call, term.token)
	if over != nil && (errors.Is(err, ErrLost) || errors.Is(err, context.Canceled) || errors.Is(err, over)) {
		err = nil // do says no more than that its term has ended
	}
	if over == nil || errors.Is(over, context.Cause(ctx)) {
		e.Notify(Event{Kind: Released, Token: term.token, Err: released})
		return false, err
	}
	e.Notify(Event{Kind: Lost, Token: term.token, Err: over})
	return err == nil && ctx.Err() == nil, err
}

var errEnded = errors.New("the term was ended")

// renew renews the lease until done is closed, and ends the term when it is lost. It goes on while do takes its
// time to end: nobody else acts meanwhile, unless the lease was lost.
func (e *election) renew(term *Held, done <-chan struct{}) {
	life, end := context.WithCancel(context.WithoutCancel(term.ctx))
	defer end()
	go func() {
		<-done
		end()
	}()
	pause := e.share(renewOf)
	for life.Err() == nil {
		sleep(life, min(pause, max(term.left(), 0)))
		if life.Err() != nil {
			return
		}
		sent := e.Now()
		call, cancel := e.within(life)
		watchdog := time.AfterFunc(max(term.left(), 0), func() { _ = term.Err() })
		err := e.lease.Renew(call, term.token, e.TTL)
		cancel()
		watchdog.Stop()
		switch {
		case life.Err() != nil:
			return
		case err == nil:
			term.renewed(sent)
			pause = e.share(renewOf)
		case errors.Is(err, ErrLost):
			term.End(err)
			return
		case term.Err() != nil:
			return
		default:
			e.Notify(Event{Kind: Failed, Token: term.token, Err: err})
			pause = e.share(againOf) // there is time for one more
		}
	}
}

func (e *election) share(of float64) time.Duration { return time.Duration(float64(e.TTL) * of) }

func (e *election) within(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, e.share(callOf))
}

func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
