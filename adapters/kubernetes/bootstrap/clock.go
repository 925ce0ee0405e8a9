package bootstrap

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock knows how far the server's clock is ahead of the caller's. Tokens expire by the
// server's clock.
type serverClock struct {
	now   func() time.Time
	ahead atomic.Int64 // rounded to minutes, so that the duration of a request does not count
}

// serverTime returns the time of the server's clock at time t of the caller's clock.
func (c *serverClock) serverTime(t time.Time) time.Time { return t.Add(time.Duration(c.ahead.Load())) }

// observe wraps a transport, and updates the difference from the Date of each answer.
func (c *serverClock) observe(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(req *http.Request) (*http.Response, error) {
		answer, err := next.RoundTrip(req)
		if err != nil {
			return answer, err
		}
		if at, err := http.ParseTime(answer.Header.Get("Date")); err == nil {
			c.ahead.Store(int64(at.Sub(c.now()).Round(time.Minute)))
		}
		return answer, nil
	})
}

type roundTripper func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
