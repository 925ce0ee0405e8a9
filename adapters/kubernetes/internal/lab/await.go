package lab

import "time"

// Await returns true as soon as something holds, and false if it does not within
// the limit. It looks often at first. What takes long is looked at more seldom,
// by up to half a second or a twelfth of the wait so far: each look costs the
// server time that others wait for.
func Await(limit time.Duration, holds func() bool) bool {
	began := time.Now()
	for {
		if holds() {
			return true
		}
		waited := time.Since(began)
		if waited >= limit {
			return false
		}
		<-time.After(min(max(waited/12, 5*time.Millisecond), 500*time.Millisecond))
	}
}
