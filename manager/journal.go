package manager

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/object"
)

// journalKeeps is for how long the journal remembers what passes were kept from
// and do not come back to, unless Options.Resync is longer than half of it.
const journalKeeps = time.Hour

// journal remembers what was told in observe-only mode, so that it is told
// once. To lose it costs repetition.
type journal struct {
	mu   sync.Mutex
	told map[journalKey]map[telling]entry
}

type journalKey struct {
	kind Kind
	key  object.Key
}

// telling is what makes two intents the same but for the numbers in their
// sentence, which may change by themselves.
type telling struct{ what, reason string }

type entry struct {
	sentence string
	at, seen time.Time // when it was told, and when it was last intended
}

// news is something to tell.
type news struct {
	telling
	sentence string
}

// fresh picks what is to be told, and remembers it as told. An intent is told
// when it is new, and again, no sooner than resync later, when its sentence is
// another one.
func (j *journal) fresh(kind Kind, key object.Key, all []intent, now time.Time, resync time.Duration) []news {
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
	for _, i := range all {
		n := news{telling{i.what, i.why.Reason.String()}, i.why.String()}
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
func (j *journal) forget(kind Kind, key object.Key) {
	j.mu.Lock()
	defer j.mu.Unlock()
	delete(j.told, journalKey{kind, key})
}
