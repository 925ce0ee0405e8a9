package sim

import (
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/internal/clock"
)

// invariant is something that must hold at any moment. It sees each event, in order, and reports a
// violation with World.violate. Each is a type in a file check_*.go that is named after its subject.
// What several invariants have to remember is in fleet_history.go.
type invariant interface{ see(event) }

// addInvariants subscribes the invariants that hold in all worlds.
func addInvariants(w *World) {
	choices, turns := newP20(w), newP22Volumes(w)
	for _, i := range []invariant{
		&p13{w}, newP07(w), newChildren(w), &p10{World: w}, p23{w}, newP30(w),
		p04{w}, p15{w}, newP17(w), p19{w, choices}, choices, turns, newP22(turns), p24{w}, p25{w}, p25Paused{w}, newP28(w),
		newP44(w), newP45(w), newP46(w), p47{w}, p07InPlace{w}, newClassFirst(w), newP49(w), &p51{turns}, newP61(w), newP62(w), newP63(w), newP64(w), newP65(w), newP66(w),
	} {
		w.subscribe(i.see)
	}
}

// Violation says that a rule was broken, or that something did not become true in time.
type Violation struct {
	// Rule is what was broken: the number of an invariant, the name of a Property, or a constant of this
	// package, such as RuleSettled.
	Rule string
	Seed uint64    // of the world
	At   time.Time // virtual time
	What string    // for people
}

// These are the rules that are neither invariants nor properties.
const (
	// RuleSettled: when faults have stopped, everything converges. After its deletion nothing is left.
	RuleSettled = "settled"
	// RuleStarted: a manager can start with anything that is stored.
	RuleStarted = "started"
	// RulePanicked: no pass panics.
	RulePanicked = "panicked"
	// RuleDriverPanicked: no call of a driver of Options.Driver panics.
	RuleDriverPanicked = "driver panicked"
	// RuleContext: no call of a driver of Options.Driver runs on after its context has ended.
	RuleContext = "context"
)

// Error returns what was broken, where and when.
func (v *Violation) Error() string {
	return fmt.Sprintf("sim: seed %d, at %s: %s: %s", v.Seed, v.At.Format(time.RFC3339), v.Rule, v.What)
}

// checkProperties makes the world check Options.Properties after each effect.
func checkProperties(w *World) {
	w.subscribe(func(e event) {
		if _, ok := e.(effect); !ok {
			return
		}
		for _, p := range w.o.Properties {
			if p.Check == nil {
				continue
			}
			if err := p.Check(w); err != nil {
				w.violate(p.Name, "%v", err)
			}
		}
	})
}

// event is something that happens in a world. Its type is declared in the file that emits it, or in a
// package below sim/internal. It is emitted at the moment at which it happens, so that a subscriber
// sees the world as it is then.
type event any

// effect: a change of objects or VMs is complete.
type effect struct{}

// base is what every part of a world uses: time, randomness, the faults that may happen, and events.
// It knows none of the parts.
type base struct {
	seed          uint64
	clock         *clock.Clock
	chance        func(n int) int // returns a number below n
	jitter        func(n int) int // the same, from a stream of its own, so that it does not shift the draws of chance
	hazards       *Faults         // what may fail, and how often: Options.Faults
	faultsStopped bool
	faults        [faultCount]int // how often each occurred

	excuses
	subscribers []func(event)
	altered     bool // whether anything changed since the last effect
	markers     []marker
	trace       func(at time.Time, what string) // Options.Tell, or nil
	violations  []error
}

// marker records what happens over time; see recording.
type marker interface {
	// note records something that happens now.
	note(kind history.Kind, what string)
	// span records something that begins now. end records its end, and may be called more than once.
	span(kind history.Kind, what string) (end func())
}

func newBase(seed uint64, hazards *Faults, trace func(time.Time, string)) *base {
	random := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // a simulation
	jitter := rand.New(rand.NewPCG(seed, 7)) //nolint:gosec // a simulation
	return &base{
		excuses: newExcuses(), seed: seed, chance: random.IntN, jitter: jitter.IntN, hazards: hazards, trace: trace,
		clock: clock.New(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), random.IntN),
	}
}

// Now returns the virtual time.
func (g *base) Now() time.Time { return g.clock.Now() }

// After makes the clock call do once d has passed.
func (g *base) After(d time.Duration, do func()) { g.clock.After(d, do) }

// subscribe makes the world call see with every event from now on.
func (g *base) subscribe(see func(event)) { g.subscribers = append(g.subscribers, see) }

// emit calls all subscribers with an event, in the order in which they subscribed.
func (g *base) emit(e event) {
	for _, see := range g.subscribers {
		see(e)
	}
}

// changed notes that objects or VMs have changed.
func (g *base) changed() { g.altered = true }

// check emits an effect if anything has changed since the last one.
func (g *base) check() {
	if g.altered {
		g.altered = false
		g.emit(effect{})
	}
}

func (g *base) latency() time.Duration { return g.upTo(g.hazards.Latency) }

// upTo returns a random time from 0 to d.
func (g *base) upTo(d time.Duration) time.Duration { return upTo(d, g.chance) }

// jittered returns d plus a jitter of up to a tenth.
func (g *base) jittered(d time.Duration) time.Duration { return d + upTo(d/10, g.jitter) }

func upTo(d time.Duration, chance func(n int) int) time.Duration {
	ms := int(d / time.Millisecond)
	if ms <= 0 {
		return 0
	}
	return time.Duration(chance(ms+1)) * time.Millisecond
}

// happens reports true with probability p, and false once faults have stopped.
func (g *base) happens(p float64) bool {
	if p <= 0 || g.faultsStopped {
		return false
	}
	return g.chance(1_000_000) < int(p*1_000_000)
}

// count counts a fault.
func (g *base) count(f Fault) {
	g.faults[f]++
	if traced[f] {
		g.tell("%s", f)
	}
	if traced[f] && f != ControlOutage && f != TargetOutage && f != ZoneOutage { // outages are recorded as spans
		g.Mark(history.Fault, f.String())
	}
}

// tell calls Options.Tell, if it is set, with the current time and a formatted text.
func (g *base) tell(format string, args ...any) {
	if g.trace != nil {
		g.trace(g.Now(), fmt.Sprintf(format, args...))
	}
}

// Mark makes every recorder record that something happens now.
func (g *base) Mark(kind history.Kind, what string) {
	for _, m := range g.markers {
		m.note(kind, what)
	}
}

// Span makes every recorder record that something begins now, and that it ends when end is called. end
// may be called more than once.
func (g *base) Span(kind history.Kind, what string) (end func()) {
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

// Violations returns the violations that were found so far.
func (g *base) Violations() []error { return g.violations }

// violated returns the first violation, or nil.
func (g *base) violated() error {
	if len(g.violations) == 0 {
		return nil
	}
	return g.violations[0]
}

func (g *base) violate(rule, format string, args ...any) {
	v := g.violation(rule, format, args...)
	g.Mark(history.Violation, v.Rule+": "+v.What)
	g.violations = append(g.violations, v)
}

func (g *base) violation(rule, format string, args ...any) *Violation {
	return &Violation{Rule: rule, Seed: g.seed, At: g.Now(), What: fmt.Sprintf(format, args...)}
}

// excuses records what the world and its users did, so that invariants do not blame the manager for
// what it did not do or could not know.
type excuses struct {
	acting  bool // whether the present change is made by the manager, not by the world or a user
	belated bool // whether it is made by a late call of a process that has died

	excused   map[string]bool // machines, by UID, that somebody other than the manager deletes
	orphanVMs map[string]bool // VMs that were not created through the driver
	lateVMs   map[string]bool // machines whose VM was created by a late call of a dead process
	lateTags  map[string]bool // machines whose VM was changed by a late call of a dead process
	cordoned  map[string]bool // nodes, by UID, that a user has cordoned
	misled    map[string]bool // machines for which GetMachineStatus named no node, though there may be one

	lateGroups map[object.Key]bool // deleted pools that still have a group, or may get one by a late call
	forgotten  map[string]bool     // UIDs of pools whose record a user removed
}

func newExcuses() excuses {
	return excuses{
		excused: map[string]bool{}, orphanVMs: map[string]bool{}, lateVMs: map[string]bool{}, lateTags: map[string]bool{},
		cordoned: map[string]bool{}, misled: map[string]bool{}, lateGroups: map[object.Key]bool{}, forgotten: map[string]bool{},
	}
}

// trackSince sets t to now when a condition becomes true, and to zero when it is false.
func trackSince(t *time.Time, now time.Time, is bool) {
	switch {
	case !is:
		*t = time.Time{}
	case t.IsZero():
		*t = now
	}
}
