package testkit

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// SlowedOnce is a provider that answers the first call of a method by asking for a wait of seven
// minutes. It takes no call meanwhile.
type SlowedOnce struct {
	Method fmt.Stringer
	Until  time.Time
	Early  int // calls that came too soon
}

// Refuse returns the answer to a call, nil if the call is made.
func (s *SlowedOnce) Refuse(method fmt.Stringer, now time.Time) error {
	switch {
	case s.Until.IsZero() && method == s.Method:
		s.Until = now.Add(7 * time.Minute)
	case now.Before(s.Until):
		s.Early++
	default:
		return nil
	}
	err := codes.New(codes.Unavailable, "too many requests")
	err.RetryAfter = s.Until.Sub(now)
	return err
}
