package backoff

import (
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Bounds of what is learned of a provider's limit.
const (
	fastest    = 10 * time.Millisecond // a limit of more calls is none
	slowest    = time.Minute
	longest    = time.Hour        // that a provider may ask to wait
	window     = time.Minute      // in which calls are counted
	forgotten  = 10 * time.Minute // after the last slow-down: all go at full speed
	lookAgain  = time.Minute      // after which a machine looks at its place again
	quickening = 64               // with each call, the time between two becomes shorter by one part of so many
)

// Pace is what a process remembers of how many calls a provider takes with one set of credentials:
// after an answer with a codes.RetryAfter machines take turns, and the time between two calls is
// learned. A further such answer makes it longer by a half; each call makes it a little shorter. A
// machine gets its calls one after the other, not a round of all machines between two of them.
//
// The zero value limits nothing. It is not safe for concurrent use.
type Pace struct {
	every time.Duration // between two calls; zero: there is no limit
	next  time.Time     // when the first call may be made that no machine has a turn for
	floor time.Time     // no call before
	since time.Time     // when the last slow-down was answered
	turns map[object.Key]calls
	from  time.Time // calls were counted since
	calls int
}

// calls are the next calls of a machine.
type calls struct {
	at   time.Time // of the first
	left int
}

// Ask returns when a machine may make its next call, of so many that are to follow each other. Zero:
// now, and it is counted. A later time is its turn, or when to ask again; it keeps its place meanwhile.
func (p *Pace) Ask(m object.Key, n int, now time.Time) time.Time {
	if p.every == 0 || now.Sub(p.since) > forgotten || now.Before(p.since) {
		*p = Pace{from: p.from, calls: p.calls}
		return time.Time{}
	}
	turn, has := p.turns[m]
	if !has || turn.at.Before(p.floor) {
		turn = calls{at: times.Later(p.next, now), left: max(n, 1)}
		p.turns[m], p.next = turn, turn.at.Add(time.Duration(turn.left)*p.every)
	}
	if now.Before(turn.at) {
		return times.Earlier(turn.at, now.Add(lookAgain))
	}
	if turn.left--; turn.left > 0 {
		turn.at = now.Add(p.every)
		p.turns[m] = turn
	} else {
		delete(p.turns, m)
	}
	if p.every -= p.every / quickening; p.every < fastest {
		p.every = 0
	}
	return time.Time{}
}

// Called counts a call that the provider has not refused for its rate.
func (p *Pace) Called(now time.Time) {
	if p.from.IsZero() || now.Sub(p.from) > window || now.Before(p.from) {
		p.from, p.calls = now, 0
	}
	p.calls++
}

// Slow records that a call that began at began was answered with a request to wait.
func (p *Pace) Slow(wait time.Duration, began, now time.Time) {
	wait = min(max(wait, fastest), longest)
	if floor := now.Add(wait); floor.After(p.floor) {
		p.floor = floor
	}
	if p.next.Before(p.floor) {
		p.next = p.floor
	}
	switch {
	case p.every == 0: // so many calls were taken until then
		p.every = (now.Sub(p.from) + wait) / time.Duration(max(p.calls, 1))
	case !began.After(p.since):
		return // it was under way when the provider asked for the first time
	default:
		p.every += p.every / 2
	}
	p.every = min(max(p.every, fastest), slowest)
	p.since, p.next, p.turns = now, p.floor, make(map[object.Key]calls)
}
