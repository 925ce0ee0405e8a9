package lab

import "time"

// Await returns true as soon as a condition holds, and false if it does not within the limit. It
// checks often at first. Later it waits up to half a second or a twelfth of the time so far between
// checks, because each check costs the server time that others wait for.
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
