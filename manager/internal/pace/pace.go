// Package pace keeps what a process knows of the limits of providers, by credentials. Before a call of a
// provider, a pass asks for its turn; after it, the pass notes how the call ended.
package pace

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
)

// ReasonPaced is why an object waits for its turn.
var ReasonPaced = decision.NewReason("CallsPaced", "the provider limits calls for class {name}: its turn, or the next look, is in {for}")

// Paces holds the pace of calls that each credentials allow. The zero value limits nothing until a provider
// asks to wait. Nil never limits anything.
type Paces struct {
	mu sync.Mutex
	of map[object.Key]*backoff.Pace
}

// Credentials returns what the calls for a class share: the key of its credentials, else of its secret, else
// of the class.
func Credentials(c *machine.Class) object.Key {
	for _, ref := range []*object.Key{c.CredentialsRef, c.SecretRef} {
		if ref != nil && ref.Name != "" {
			return index.SecretKey(c, ref)
		}
	}
	return c.Key
}

// Of returns the key under which an object of a kind takes its turns.
func Of(kind string, key object.Key) object.Key {
	return object.Key{Namespace: kind + " " + key.Namespace, Name: key.Name}
}

// Ask returns when an object, named by Of, may make that many calls in a row. Zero: now.
func (s *Paces) Ask(who object.Key, class *machine.Class, calls int, now time.Time) time.Time {
	if s == nil {
		return time.Time{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	pace := s.of[Credentials(class)]
	if pace == nil {
		return time.Time{}
	}
	return pace.Ask(who, calls, now)
}

// Note records how a call ended, and returns how long the provider asks to wait.
func (s *Paces) Note(class *machine.Class, err error, began, now time.Time) time.Duration {
	if s == nil {
		return 0
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	of := Credentials(class)
	if s.of == nil {
		s.of = make(map[object.Key]*backoff.Pace)
	}
	pace := s.of[of]
	if pace == nil {
		pace = new(backoff.Pace)
		s.of[of] = pace
	}
	wait := codes.RetryAfter(err)
	if wait <= 0 {
		pace.Called(now)
		return 0
	}
	pace.Slow(wait, began, now)
	return wait
}
