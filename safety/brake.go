package safety

import (
	"cmp"
	"math"
	"slices"
	"time"
)

// Spent records that the deletion of one thing was ordered, by ID, and when. It counts towards the
// brake's limit for one period.
type Spent struct {
	ID string // of a VM, or of a machine or set
	At time.Time
}

// brake limits how many different things may be ordered to go within a period. A repeated order for
// the same thing counts once.
type brake struct {
	limit  int
	period time.Duration
	now    time.Time
	spent  map[string]time.Time // of this period, by ID
}

// brake returns a brake. spent are the earlier orders, and share applies to the number of things.
// settled means that this process has watched for a whole period, and so knows every order of that
// period.
func (p *Policy) brake(before []Spent, of int, settled bool, period time.Duration, now time.Time) *brake {
	b := &brake{limit: int(p.Brake), period: period, now: now, spent: make(map[string]time.Time, len(before))}
	switch {
	case p.BrakeShare >= 100:
		b.limit = math.MaxInt
	case settled:
		b.limit = max(b.limit, int(int64(of)*int64(p.BrakeShare)/100))
	}
	for _, s := range before {
		if s.At.After(now) {
			s.At = now // the clock was set back
		}
		if now.Before(s.At.Add(period)) {
			b.spent[s.ID] = later(b.spent[s.ID], s.At)
		}
	}
	return b
}

// take reports whether something may go, and counts it if so.
func (b *brake) take(id string) bool {
	if b.counted(id) {
		return true
	}
	if len(b.spent) >= b.limit {
		return false
	}
	b.spent[id] = b.now
	return true
}

// counted reports whether something was ordered to go within the period.
func (b *brake) counted(id string) bool {
	_, yes := b.spent[id]
	return yes
}

// freeAt returns when another thing may go. Zero means now.
func (b *brake) freeAt() time.Time {
	if len(b.spent) < b.limit {
		return time.Time{}
	}
	all := b.memory()
	slices.SortFunc(all, func(x, y Spent) int { return x.At.Compare(y.At) })
	return all[len(all)-b.limit].At.Add(b.period)
}

// memory returns the orders that count, by ID.
func (b *brake) memory() []Spent {
	var all []Spent
	for id, at := range b.spent {
		all = append(all, Spent{id, at})
	}
	slices.SortFunc(all, func(x, y Spent) int { return cmp.Compare(x.ID, y.ID) })
	return all
}
