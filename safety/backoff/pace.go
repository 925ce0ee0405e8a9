package backoff

import (
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/internal/times"
)

const (
	shortestGap   = 10 * time.Millisecond // below this gap calls are not limited
	longestGap    = time.Minute
	longestWait   = time.Hour        // a longer RetryAfter counts as this
	countWindow   = time.Minute      // calls are counted for so long, to compute the first gap
	forgetAfter   = 10 * time.Minute // calls are not limited any more so long after the last RetryAfter
	askAgainAfter = time.Minute      // a machine that waits for its turn asks again after this time at the latest
	speedUpParts  = 64               // each call shortens the gap by gap / speedUpParts
)

// Pace is what a process has learned about the rate of calls that a provider accepts with one set of credentials.
// After an answer with a codes.RetryAfter, machines take turns, with a gap between two calls. Each further such
// answer makes the gap longer by a half; each call makes it a little shorter. A machine makes all calls of its
// turn one after the other, before the next machine's turn.
//
// The zero value limits nothing. A Pace is not safe for concurrent use.
type Pace struct {
	gap   time.Duration // between two calls; zero: there is no limit
	next  time.Time     // when the next new turn begins
	floor time.Time     // no call may be made before this
	since time.Time     // when the last answer with a RetryAfter came
	turns map[object.Key]calls
	from  time.Time // when the count of calls began
	calls int
}

// calls is the turn of one machine.
type calls struct {
	at   time.Time // when the next call may be made
	left int       // how many calls are left
}

// Ask returns when a machine may make its next call. n is how many calls it needs to make one after the other.
// Zero: it may make the call now, which uses up one call of its turn. Otherwise Ask returns when its turn
// comes, or when to ask again; the machine keeps its place.
func (p *Pace) Ask(m object.Key, n int, now time.Time) time.Time {
	if p.gap == 0 || now.Sub(p.since) > forgetAfter || now.Before(p.since) {
		*p = Pace{from: p.from, calls: p.calls}
		return time.Time{}
	}
	turn, has := p.turns[m]
	if !has || turn.at.Before(p.floor) {
		turn = calls{at: times.Later(p.next, now), left: max(n, 1)}
		p.turns[m], p.next = turn, turn.at.Add(time.Duration(turn.left)*p.gap)
	}
	if now.Before(turn.at) {
		return times.Earlier(turn.at, now.Add(askAgainAfter))
	}
	if turn.left--; turn.left > 0 {
		turn.at = now.Add(p.gap)
		p.turns[m] = turn
	} else {
		delete(p.turns, m)
	}
	if p.gap -= p.gap / speedUpParts; p.gap < shortestGap {
		p.gap = 0
	}
	return time.Time{}
}

// Called counts a call that the provider has not refused for its rate.
func (p *Pace) Called(now time.Time) {
	if p.from.IsZero() || now.Sub(p.from) > countWindow || now.Before(p.from) {
		p.from, p.calls = now, 0
	}
	p.calls++
}

// Slow records that the provider answered a call with a request to wait. began is when the call began.
func (p *Pace) Slow(wait time.Duration, began, now time.Time) {
	wait = min(max(wait, shortestGap), longestWait)
	if floor := now.Add(wait); floor.After(p.floor) {
		p.floor = floor
	}
	if p.next.Before(p.floor) {
		p.next = p.floor
	}
	switch {
	case p.gap == 0: // the first such answer: the gap follows from the calls that were accepted before it
		p.gap = (now.Sub(p.from) + wait) / time.Duration(max(p.calls, 1))
	case !began.After(p.since):
		return // the call was in flight when an earlier one was answered so
	default:
		p.gap += p.gap / 2
	}
	p.gap = min(max(p.gap, shortestGap), longestGap)
	p.since, p.next, p.turns = now, p.floor, make(map[object.Key]calls)
}
