package manager

import (
	"sync"
	"time"
)

// watched is since when this process watches its machines: since its first
// decision about one, which its caches have to be filled for, with API servers
// that answer. Nothing of it is stored.
type watched struct {
	mu   sync.Mutex
	from time.Time
}

// since returns when watching began. It begins now if it has not yet.
func (w *watched) since(now time.Time) time.Time {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.from.IsZero() {
		w.from = now
	}
	return w.from
}

// forget is for a Run that follows another: nobody has watched in between.
func (w *watched) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.from = time.Time{}
}
