package manager

import (
	"sync"
	"time"
)

// watched is since when this process watches its machines: since its first
// decision about one, which its caches have to be filled for, with API servers
// that answer. Nothing of it is stored.
//
// A process that is stopped for a while, by SIGSTOP or together with its VM, has
// not watched meanwhile. It notices by its clock: it beats as long as it runs,
// also while there is nothing to do, and this beat is late. A decision that comes
// before the beat notices it too.
type watched struct {
	mu     sync.Mutex
	from   time.Time
	most   time.Duration // the longest time between two beats in which it was not stopped
	beaten time.Time     // when it beat last; zero: it does not beat, and no stop is noticed
}

// beatsOfGrace is how often a process beats in a grace. One that was stopped for
// longer than a grace has not watched.
const beatsOfGrace = 4

// since returns when watching began. It begins now if it has not yet, or if the
// process was stopped.
func (w *watched) since(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	if w.from.IsZero() {
		w.from = now
	}
	return w.from
}

// notice restarts the watch if the process was stopped. A clock that was set back
// says nothing. It compares wall clocks, since a monotonic clock may stop with a
// VM that is suspended.
func (w *watched) notice(now time.Time) {
	if w.beaten.IsZero() || now.Round(0).Sub(w.beaten) <= w.most {
		return
	}
	w.beaten = now.Round(0)
	if !w.from.IsZero() {
		w.from = now
	}
}

// beat says that the process runs, and how long the next beat may take to come.
func (w *watched) beat(now time.Time, most time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.notice(now)
	w.beaten, w.most = now.Round(0), most
}

// forget is for a Run that follows another: no process has watched in between.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from, w.beaten = time.Time{}, time.Time{}
}
