package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/internal/clock"
)

// event is something that happens in a world. Its type is declared in the file that emits it, or in
// one below. It is emitted at the moment at which it happens, so that a subscriber sees the world as
// it is then.
type event any

// effect is the end of any change to what is stored, or to VMs.
type effect struct{}

// ground is what every part of a world stands on: time, chance, the faults that may happen, and the
// ways to tell what happens. It knows no part.
type ground struct {
	seed          uint64
	clock         *clock.Clock
	chance        func(n int) int // returns a number below n
	hazards       *Faults         // what may fail, and how often: Options has them
	faultsStopped bool
	faults        [faultCount]int // that occurred

	facts
	subscribers []func(event)
	altered     bool // since the last effect
	markers     []marker
	trace       func(at time.Time, what string) // Options.Tell, or nil
	violations  []error
}

// marker notes what happens over time, as a Recorder does.
type marker interface {
	note(kind history.Kind, what string)
	// span notes something that begins now. end notes its end, and may be called more than once.
	span(kind history.Kind, what string) (end func())
}

func newGround(seed uint64, hazards *Faults, trace func(time.Time, string)) *ground {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation
	return &ground{
		facts: newFacts(), seed: seed, chance: random.IntN, hazards: hazards, trace: trace,
		clock: clock.New(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), random.IntN),
	}
}

// Now is the world's time.
func (g *ground) Now() time.Time { return g.clock.Now() }

// After schedules do to run once d has passed.
func (g *ground) After(d time.Duration, do func()) { g.clock.After(d, do) }

// subscribe adds a subscriber to all events from now on.
func (g *ground) subscribe(see func(event)) { g.subscribers = append(g.subscribers, see) }

// emit tells all subscribers of an event, in the order in which they subscribed.
func (g *ground) emit(e event) {
	for _, see := range g.subscribers {
		see(e)
	}
}

// changed notes a change of what is stored, or of VMs.
func (g *ground) changed() { g.altered = true }

// check emits an effect if anything has changed since the last one.
func (g *ground) check() {
	if g.altered {
		g.altered = false
		g.emit(effect{})
	}
}

func (g *ground) latency() time.Duration { return g.upTo(g.hazards.Latency) }

// upTo returns a time from 0 to d.
func (g *ground) upTo(d time.Duration) time.Duration {
	ms := int(d / time.Millisecond)
	if ms <= 0 {
		return 0
	}
	return time.Duration(g.chance(ms+1)) * time.Millisecond
}

// happens reports true with probability p.
func (g *ground) happens(p float64) bool {
	if p <= 0 || g.faultsStopped {
		return false
	}
	return g.chance(1_000_000) < int(p*1_000_000)
}

// count counts a fault.
func (g *ground) count(f Fault) {
	g.faults[f]++
	if loud[f] {
		g.tell("%s", f)
	}
	if loud[f] && f != ControlOutage && f != TargetOutage && f != ZoneOutage { // those are spans
		g.Mark(history.Fault, f.String())
	}
}

// tell reports what happens to Options.Tell.
func (g *ground) tell(format string, args ...any) {
	if g.trace != nil {
		g.trace(g.Now(), fmt.Sprintf(format, args...))
	}
}

// Mark makes every recorder note that something happens now.
func (g *ground) Mark(kind history.Kind, what string) {
	for _, m := range g.markers {
		m.note(kind, what)
	}
}

// Span makes every recorder note that something begins now, and that it ends when end is called.
// end may be called more than once.
func (g *ground) Span(kind history.Kind, what string) (end func()) {
	var ends []func()
	for _, m := range g.markers {
		ends = append(ends, m.span(kind, what))
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}

// Violations returns the violations that were seen.
func (g *ground) Violations() []error { return g.violations }

// violated returns the first violation, or nil.
func (g *ground) violated() error {
	if len(g.violations) == 0 {
		return nil
	}
	return g.violations[0]
}

func (g *ground) violate(rule, format string, args ...any) {
	v := g.violation(rule, format, args...)
	g.Mark(history.Violation, v.Rule+": "+v.What)
	g.violations = append(g.violations, v)
}

func (g *ground) violation(rule, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Seed: g.seed, At: g.Now(), What: fmt.Sprintf(format, args...)}
}
