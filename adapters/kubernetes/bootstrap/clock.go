package bootstrap

import (
	"net/http"
	"sync/atomic"
	"time"
)

// serverClock knows how far the server's clock, by which tokens end, is ahead of the caller's.
type serverClock struct {
	now   func() time.Time
	ahead atomic.Int64 // in whole minutes, so that the time an answer takes changes no token
}

// by returns when it is t by the caller's clock, by the server's.
func (c *serverClock) by(t time.Time) time.Time { return t.Add(time.Duration(c.ahead.Load())) }

// listen learns from the answers to each request.
func (c *serverClock) listen(next http.RoundTripper) http.RoundTripper {
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
