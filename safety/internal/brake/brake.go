// Package brake limits how many objects without an owner are deleted within a period.
package brake

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Brake limits how many objects may be deleted within a period. Repeated orders for the same object count once.
//
// An order counts for one period (OrphanPeriod or OwnerPeriod, 15 min by default); nothing ends that earlier. The
// orders are kept in the memory of the process. So after a restart Policy.Brake objects may be deleted at once,
// and Policy.BrakeShare counts only after a whole period.
type Brake struct {
	Most   int // how many objects may be deleted within a period
	period time.Duration
	now    time.Time
	used   map[string]time.Time // the orders of this period, by ID of the object
}

// Period returns the period of a brake, given that of its search: the same, but at least a minute. A frequent
// search must not make the brake useless, because people need time to notice that something is wrong.
func Period(search time.Duration) time.Duration { return max(search, time.Minute) }

// New returns the brake of a period that ends now. earlier are the orders so far. total is the number of
// objects that the policy's share applies to. settled: this process has run for a whole period, so that it
// knows all orders of the period.
func New(p *safety.Policy, earlier []safety.Spent, total int, settled bool, period time.Duration, now time.Time) *Brake {
	b := &Brake{Most: int(p.Brake), period: period, now: now, used: make(map[string]time.Time, len(earlier))}
	switch {
	case p.BrakeShare >= 100:
		b.Most = math.MaxInt
	case settled:
		b.Most = max(b.Most, int(int64(total)*int64(p.BrakeShare)/100))
	}
	for _, s := range earlier {
		if s.At.After(now) {
			s.At = now // the clock was set back
		}
		if now.Before(s.At.Add(period)) {
			b.used[s.ID] = times.Later(b.used[s.ID], s.At)
		}
	}
	return b
}

// Take reports whether an object may be deleted. If so, the order counts.
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

// Counts reports whether the deletion of an object was ordered within the period.
func (b *Brake) Counts(id string) bool {
	_, yes := b.used[id]
	return yes
}

// FreeAt returns when another object may be deleted. Zero means now.
func (b *Brake) FreeAt() time.Time {
	if len(b.used) < b.Most {
		return time.Time{}
	}
	all := b.Orders()
	slices.SortFunc(all, func(x, y safety.Spent) int { return x.At.Compare(y.At) })
	return all[len(all)-b.Most].At.Add(b.period)
}

// Orders returns the orders of the period, sorted by ID.
func (b *Brake) Orders() []safety.Spent {
	var all []safety.Spent
	for id, at := range b.used {
		all = append(all, safety.Spent{ID: id, At: at})
	}
	slices.SortFunc(all, func(x, y safety.Spent) int { return cmp.Compare(x.ID, y.ID) })
	return all
}
