package codes

import (
	"strconv"
	"time"
)

// RetryClass says how soon a failed call is retried. The zero value is None.
type RetryClass uint8

// These are the retry classes, from the table of recoveries (testdata/recovery.csv).
const (
	// None: there is nothing to retry.
	None RetryClass = iota
	// Requeue: at once.
	Requeue
	// Conflict: after 200 ms; another writer was first.
	Conflict
	// Short: after 5 s; this passes by itself.
	Short
	// Medium: after 3 min; something has to be changed first.
	Medium
	// Long: after 10 min; as Medium, but a retry costs more or a wait does no harm.
	Long
	// Quota: after a period that the caller chooses; Long's if it chooses none.
	Quota

	classCount = int(Quota) + 1
)

// These are the base periods of the classes. The provider contract says only whether to retry. The
// figures are this library's choice; established machine controllers use the same.
const (
	conflictPeriod = 200 * time.Millisecond
	shortPeriod    = 5 * time.Second
	mediumPeriod   = 3 * time.Minute
	longPeriod     = 10 * time.Minute
)

var classNames = [classCount]string{
	None: "none", Requeue: "requeue", Conflict: "conflict", Short: "short", Medium: "medium", Long: "long", Quota: "quota",
}

// String returns the class as the table of recoveries spells it: "short". A number that is no class
// reads as "RetryClass(42)".
func (k RetryClass) String() string {
	if int(k) >= classCount {
		return "RetryClass(" + strconv.Itoa(int(k)) + ")"
	}
	return classNames[k]
}

// Period returns how long to wait after a first failure. It is zero for None (which means never,
// not at once) and for Requeue. quota is the period of Quota; if it is zero or less, Quota has
// Long's period. A number that is no class waits as Short does.
func (k RetryClass) Period(quota time.Duration) time.Duration {
	switch k {
	case None, Requeue:
		return 0
	case Conflict:
		return conflictPeriod
	case Medium:
		return mediumPeriod
	case Long:
		return longPeriod
	case Quota:
		if quota > 0 {
			return quota
		}
		return longPeriod
	}
	return shortPeriod
}

// Backoff returns how long to wait after so many failures in a row. The caller adds jitter.
//
// For one failure, or zero if the count was lost, it is the class's [RetryClass.Period].
// Each further failure doubles it, up to the period of the next class: Conflict to Short's, Short
// to Medium's, Medium to Long's. Long and Quota stay at their own period, None at zero. Requeue,
// which has nothing to double, waits Conflict's period from the second failure on. quota is as for
// Period.
func (k RetryClass) Backoff(failures int, quota time.Duration) time.Duration {
	wait := k.Period(quota)
	if failures <= 1 {
		return wait
	}
	switch k {
	case None, Long, Quota:
		return wait
	case Requeue:
		return conflictPeriod
	case Conflict:
		return doubled(wait, failures-1, shortPeriod)
	case Medium:
		return doubled(wait, failures-1, longPeriod)
	}
	return doubled(wait, failures-1, mediumPeriod)
}

// doubled returns wait doubled so many times, but at most limit. It stops at the limit, so it can't
// overflow. wait is positive.
func doubled(wait time.Duration, times int, limit time.Duration) time.Duration {
	for ; times > 0 && wait < limit; times-- {
		wait *= 2
	}
	return min(wait, limit)
}
