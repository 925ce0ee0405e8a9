package engine

import (
	"context"
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Steps are the steps of one pass. A kind implements them by a value that keeps what it has read and
// decided.
type Steps interface {
	// Read reads the object and its surroundings, from caches or live. A later Read of the same pass
	// replaces what was read and keeps what the pass has learned.
	Read(ctx context.Context, live bool) error
	// Decide makes the next plan. It reads and changes nothing outside of this process.
	Decide(ctx context.Context) (Step, error)
	// Execute carries out the last plan, and puts the answers where Decide finds them.
	Execute(ctx context.Context) error
	// Changes lists what the last plan would change. It is asked in a dry run only.
	Changes() []Change
}

// Skipper is implemented by steps that have something to do after a dry run has withheld their plan.
type Skipper interface {
	// Skipped returns when to look again. Zero: after Options.Resync.
	Skipped() time.Time
}

// Verb is what a plan asks of the engine.
type Verb int

// The verbs.
const (
	Wait   Verb = iota // look again at Step.At: the pass is over
	Reread             // read again, live
	Read               // execute: it changes nothing outside of this process
	Mutate             // execute: it changes what Changes says
)

// Step is what the engine sees of a plan.
type Step struct {
	Verb Verb
	Why  decision.Why
	Warn decision.Why // a warning event, emitted once for as long as the process remembers; zero: none
	// At is when to look again though nothing has changed. Zero: after Options.Resync.
	At time.Time
	// Name is that of an effect, which is timed and passed to Hooks.Effect. Empty: it is not.
	Name string
	// Key is comparable. A second plan of the pass with the same fails the pass: the decision is going
	// in circles. Nil: the plan may come again.
	Key any
	// Live says that the plan rests on live reads, also when the last Read was not live.
	Live bool
}

// Change is one thing that a plan changes outside of this process, such as "update machine fleet/a".
type Change struct {
	What string
	Why  decision.Why // zero: the plan's own
}

// journalKeeps is how long the journal remembers changes that are no longer planned. It is twice
// Options.Resync if that is longer.
const journalKeeps = time.Hour

// journal remembers what a dry run has reported, so that it is reported once. Losing it costs repetition.
type journal struct {
	mu       sync.Mutex
	reported map[journalKey]map[telling]entry
}

type journalKey struct {
	kind string
	key  object.Key
}

// telling identifies a change, apart from the numbers in its sentence, which may change with time.
type telling struct{ what, reason string }

type entry struct {
	sentence string
	at, seen time.Time // when it was reported, and when it was last planned
}

// news is a change to report.
type news struct {
	telling
	sentence string
	why      decision.Why
}

// news returns the changes to report, and remembers them as reported. A change is reported when it is new,
// and again when its sentence has changed, but no sooner than resync after the last time.
func (j *journal) news(kind string, key object.Key, all []Change, now time.Time, resync time.Duration) []news {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := journalKey{kind, key}
	known := j.reported[at]
	for t, e := range known {
		if now.Sub(e.seen) > max(journalKeeps, 2*resync) {
			delete(known, t)
		}
	}
	if known == nil {
		known = make(map[telling]entry)
	}
	var out []news
	for _, c := range all {
		n := news{telling{c.What, c.Why.Reason.String()}, c.Why.String(), c.Why}
		e, there := known[n.telling]
		if !there || e.sentence != n.sentence && now.Sub(e.at) >= resync {
			e.sentence, e.at = n.sentence, now
			out = append(out, n)
		}
		e.seen = now
		known[n.telling] = e
	}
	if j.reported == nil {
		j.reported = make(map[journalKey]map[telling]entry)
	}
	j.reported[at] = known
	return out
}

// forget drops what was reported of an object that is gone.
func (j *journal) forget(kind string, key object.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.reported, journalKey{kind, key})
}
