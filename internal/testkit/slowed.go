package testkit

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
)

// SlowedOnce is a provider that refuses the first call of a method, and asks to wait for seven minutes.
// It refuses all calls until then.
type SlowedOnce struct {
	Method fmt.Stringer
	Until  time.Time
	Early  int // how many calls came before Until
}

// Refuse returns the error of a call, or nil if the call is not refused.
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
