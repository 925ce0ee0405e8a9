package manager

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// Place is a part of a manager's work: In says of what sort, as in Hooks.Panicked, on behalf of the
// object Key of a Kind.
type Place = engine.Place

// LeftError is the error of a Run that returned before all that it had begun: its context had ended,
// and Tuning.CallGrace after it. What is left goes on in goroutines of the process, until it returns.
type LeftError struct {
	// Calls of drivers that have not returned, the oldest first.
	Calls []driver.OverdueCall
	// Places are passes and watches that have not returned, because another port or a hook has not.
	// A hook that was not called by one of them stands for itself.
	Places []Place
}

// mostNamed is how many calls and places a sentence names.
const mostNamed = 5

// Error names what was left.
func (e *LeftError) Error() string {
	var all []string
	for i := range e.Calls {
		c := &e.Calls[i]
		about := c.Kind + " " + c.Object.String()
		if c.Object == (object.Key{}) {
			about = "class " + c.Class.String()
		}
		all = append(all, c.Method.String()+" for "+about)
	}
	for _, p := range e.Places {
		all = append(all, "a "+p.In+" of "+p.Kind+" "+p.Key.String())
	}
	more := ""
	if len(all) > mostNamed {
		more, all = fmt.Sprintf(", and %d more", len(all)-mostNamed), all[:mostNamed]
	}
	return "what does not end with its context was left: " + strings.Join(all, ", ") + more
}

// ErrStuck is in the error of Health.
var ErrStuck = errors.New("manager: stuck")

// stuckAfter is for how long a call may be overdue, and a pass under way, before the process counts as
// stuck. A pass has the time of several calls besides.
const (
	stuckAfter   = time.Hour
	callsOfAPass = 8
)

// Health returns an error that is an ErrStuck if a restart of the process would help: a call of a driver
// has been overdue for more than an hour, so many are overdue that no more are made for a class, or a
// pass of Run has lasted longer than an hour and eight calls may. It is for a liveness check. Nil: none
// of this is so. A new process forgets overdue calls, and makes them again as after a crash.
func (m *Manager) Health() error {
	now, t := m.options.Runtime.Now(), &m.options.Tuning
	if refused := m.calls.Refused(); len(refused) > 0 {
		return fmt.Errorf("%w: so many calls of the driver have not returned that none is made for class %s", ErrStuck, refused[0])
	}
	longest := t.CallTimeout + t.CallGrace
	for _, c := range m.calls.Overdue() {
		if now.Sub(c.Began) > longest+stuckAfter {
			return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Calls: []driver.OverdueCall{c}})
		}
	}
	long := m.doing.places(func(p Place, since time.Time) bool {
		return p.In != inWatch && now.Sub(since) > stuckAfter+callsOfAPass*longest
	})
	if len(long) > 0 {
		return fmt.Errorf("%w: %w", ErrStuck, &LeftError{Places: long})
	}
	return nil
}

// doing is what Run does at present, and since when. The zero value is nothing.
type doing struct {
	mu  sync.Mutex
	all map[*Place]time.Time
}

// do calls do, which is under way at a place until it returns.
func (b *doing) do(at Place, now time.Time, do func()) {
	b.mu.Lock()
	if b.all == nil {
		b.all = make(map[*Place]time.Time)
	}
	b.all[&at] = now
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.all, &at)
	}()
	do()
}

// places returns what is under way that is wanted, in order.
func (b *doing) places(wanted func(Place, time.Time) bool) []Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Place
	for p, since := range b.all {
		if wanted(*p, since) {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}
