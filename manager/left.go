package manager

import (
	"cmp"
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
		of := ""
		if p.Kind != "" {
			of = strings.TrimSuffix(" of "+p.Kind+" "+p.Key.String(), " ")
		}
		all = append(all, "a "+p.In+of)
	}
	more := ""
	if len(all) > mostNamed {
		more, all = fmt.Sprintf(", and %d more", len(all)-mostNamed), all[:mostNamed]
	}
	return "what does not end with its context was left: " + strings.Join(all, ", ") + more
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
