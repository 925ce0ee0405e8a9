package engine

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// journalKeeps is for how long the journal remembers what passes no longer want to change, unless
// Options.Resync is longer than half of it.
const journalKeeps = time.Hour

// journal remembers what a dry run has told, so that it is told once. To lose it costs repetition.
type journal struct {
	mu   sync.Mutex
	told map[journalKey]map[telling]entry
}

type journalKey struct {
	kind string
	key  object.Key
}

// telling is what makes two changes the same but for the numbers in their sentence, which may vary by
// themselves.
type telling struct{ what, reason string }

type entry struct {
	sentence string
	at, seen time.Time // when it was told, and when it was last planned
}

// news is something to tell.
type news struct {
	telling
	sentence string
	why      decision.Why
}

// news picks what is to be told, and remembers it as told. A change is told when it is new, and again,
// no sooner than resync later, when its sentence is another one.
func (j *journal) news(kind string, key object.Key, all []Change, now time.Time, resync time.Duration) []news {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := journalKey{kind, key}
	known := j.told[at]
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
	if j.told == nil {
		j.told = make(map[journalKey]map[telling]entry)
	}
	j.told[at] = known
	return out
}

// forget drops what was told of an object that is gone.
func (j *journal) forget(kind string, key object.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.told, journalKey{kind, key})
}
