package lab

import "time"

// Await returns true as soon as holds does, or false after the limit. At first it checks every 5 ms. Later
// it waits longer between checks, up to half a second, because each check is work for the server.
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
