package decision

import "time"

// Freshness says how an observation was read. The zero value says that it was read from caches, which
// lag behind by an unknown time.
type Freshness struct {
	// Began is when the first of the live reads began: what was stored before then is in the answers.
	Began time.Time
	// Ended is when the last of them was answered. Ages count from Ended: if they counted from Began,
	// a read that takes longer than the limit would always be too old. Zero counts as now, which is
	// right only if carrying out a plan takes no time.
	Ended time.Time
}

// Live reports whether the observation was read live at all.
func (f Freshness) Live() bool { return !f.Began.IsZero() }

// Covers reports whether the reads were live and contain what was stored before since.
func (f Freshness) Covers(since time.Time) bool { return f.Live() && !f.Began.Before(since) }

// Within reports whether the reads were live and ended less than limit ago. It is false if they ended in
// the future: the clock was set back, and their age is not known.
func (f Freshness) Within(limit time.Duration, now time.Time) bool {
	return f.Live() && !f.Ended.After(now) && now.Before(f.Until(limit, now))
}

// Until returns when the reads become older than limit.
func (f Freshness) Until(limit time.Duration, now time.Time) time.Time {
	if f.Ended.IsZero() {
		return now.Add(limit)
	}
	return f.Ended.Add(limit)
}
