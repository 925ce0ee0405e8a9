package safety

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/safety/internal/times"
)

// limit limits how many different things may be deleted within a period. A repeated order for the
// same thing counts once.
type limit struct {
	Most   int // how many may go
	period time.Duration
	now    time.Time
	used   map[string]time.Time // of this period, by ID
}

// newLimit returns the limit of a period that ends now. before are the earlier orders, and the
// policy's share applies to the number of things. settled means that this process has watched for a
// whole period, and so knows every order of that period.
func newLimit(p *Policy, before []Spent, of int, settled bool, period time.Duration, now time.Time) *limit {
	l := &limit{Most: int(p.Brake), period: period, now: now, used: make(map[string]time.Time, len(before))}
	switch {
	case p.BrakeShare >= 100:
		l.Most = math.MaxInt
	case settled:
		l.Most = max(l.Most, int(int64(of)*int64(p.BrakeShare)/100))
	}
	for _, s := range before {
		if s.At.After(now) {
			s.At = now // the clock was set back
		}
		if now.Before(s.At.Add(period)) {
			l.used[s.ID] = times.Later(l.used[s.ID], s.At)
		}
	}
	return l
}

// Take reports whether something may go, and counts it if so.
func (l *limit) Take(id string) bool {
	if l.Counts(id) {
		return true
	}
	if len(l.used) >= l.Most {
		return false
	}
	l.used[id] = l.now
	return true
}

// Counts reports whether something was ordered to go within the period.
func (l *limit) Counts(id string) bool {
	_, yes := l.used[id]
	return yes
}

// FreeAt returns when another thing may go. Zero means now.
func (l *limit) FreeAt() time.Time {
	if len(l.used) < l.Most {
		return time.Time{}
	}
	all := l.Orders()
	slices.SortFunc(all, func(x, y Spent) int { return x.At.Compare(y.At) })
	return all[len(all)-l.Most].At.Add(l.period)
}

// Orders returns the orders that count, by ID.
func (l *limit) Orders() []Spent {
	var all []Spent
	for id, at := range l.used {
		all = append(all, Spent{id, at})
	}
	slices.SortFunc(all, func(x, y Spent) int { return cmp.Compare(x.ID, y.ID) })
	return all
}
