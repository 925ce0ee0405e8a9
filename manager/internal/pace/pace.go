// Package pace keeps what a process knows of the limits of providers, by credentials. All that calls a
// provider asks it for its turn, and tells it how the call ended.
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

// Paces are the paces of a process. The zero value, and nil, limit nothing until a provider asks to wait;
// nil does not learn of it either.
type Paces struct {
	mu sync.Mutex
	of map[object.Key]*backoff.Pace
}

// Credentials name what calls for a class share: its credentials, or what it has in their place.
func Credentials(c *machine.Class) object.Key {
	for _, ref := range []*object.Key{c.CredentialsRef, c.SecretRef} {
		if ref != nil && ref.Name != "" {
			return index.SecretKey(c, ref)
		}
	}
	return c.Key
}

// Of makes the key of what takes turns: an object of a kind. No two kinds share one.
func Of(kind string, key object.Key) object.Key {
	return object.Key{Namespace: kind + " " + key.Namespace, Name: key.Name}
}

// Ask returns when it is somebody's turn to make so many calls that are to follow each other. Zero: now.
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

// Note notes how a call ended that began at began, and returns how long the provider asks to wait.
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
