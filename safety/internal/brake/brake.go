// Package brake limits how many things that have no owner are deleted within a period. Packages
// orphan and ownerless use it.
package brake

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Brake limits how many different things may be deleted within a period. A repeated order for the
// same thing counts once.
//
// It releases by age alone: an order counts for one period (OrphanPeriod and OwnerPeriod, 15 min),
// then another thing may go. No command releases it earlier. It is memory of
// the process: after a restart as many as Policy.Brake may go at once, and the share counts again
// after a whole period.
type Brake struct {
	Most   int // how many may go
	period time.Duration
	now    time.Time
	used   map[string]time.Time // of this period, by ID
}

// Period returns the period of a brake on what is looked for once in every: every itself, but at
// least a minute. Fast searches must not take the brake off, because people need time to see what
// goes wrong.
func Period(every time.Duration) time.Duration { return max(every, time.Minute) }

// New returns the brake of a period that ends now. before are the earlier orders, and the policy's
// share applies to the number of things. settled means that this process has watched for a whole
// period, and so knows every order of that period.
func New(p *safety.Policy, before []safety.Spent, of int, settled bool, period time.Duration, now time.Time) *Brake {
	b := &Brake{Most: int(p.Brake), period: period, now: now, used: make(map[string]time.Time, len(before))}
	switch {
	case p.BrakeShare >= 100:
		b.Most = math.MaxInt
	case settled:
		b.Most = max(b.Most, int(int64(of)*int64(p.BrakeShare)/100))
	}
	for _, s := range before {
		if s.At.After(now) {
			s.At = now // the clock was set back
		}
		if now.Before(s.At.Add(period)) {
			b.used[s.ID] = times.Later(b.used[s.ID], s.At)
		}
	}
	return b
}

// Take reports whether something may go, and counts it if so.
func (b *Brake) Take(id string) bool {
	if b.Counts(id) {
		return true
	}
	if len(b.used) >= b.Most {
		return false
	}
	b.used[id] = b.now
	return true
}

// Counts reports whether something was ordered to go within the period.
func (b *Brake) Counts(id string) bool {
	_, yes := b.used[id]
	return yes
}

// FreeAt returns when another thing may go. Zero means now.
func (b *Brake) FreeAt() time.Time {
	if len(b.used) < b.Most {
		return time.Time{}
	}
	all := b.Orders()
	slices.SortFunc(all, func(x, y safety.Spent) int { return x.At.Compare(y.At) })
	return all[len(all)-b.Most].At.Add(b.period)
}

// Orders returns the orders that count, by ID.
func (b *Brake) Orders() []safety.Spent {
	var all []safety.Spent
	for id, at := range b.used {
		all = append(all, safety.Spent{ID: id, At: at})
	}
	slices.SortFunc(all, func(x, y safety.Spent) int { return cmp.Compare(x.ID, y.ID) })
	return all
}
