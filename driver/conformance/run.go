package conformance

import (
	"fmt"
	"strings"
	"sync"
	"testing"
)

// Check is one duty of a driver.
type Check struct {
	Group, Name string
	// Start makes a driver, in t, and the trial that watches it and reports to tb what it finds.
	// run is the check.
	Start func(t *testing.T, tb testing.TB) (trial *Trial, run func())
}

// Run runs each check in a subtest of its group. At the end it names the checks that were not run.
// Checks of one group stand together.
func Run(t *testing.T, checks []Check) {
	t.Helper()
	var left []string
	for rest := checks; len(rest) > 0; {
		group, n := rest[0].Group, 1
		for n < len(rest) && rest[n].Group == group {
			n++
		}
		together := rest[:n]
		rest = rest[n:]
		t.Run(group, func(t *testing.T) {
			for _, c := range together {
				t.Run(c.Name, func(t *testing.T) {
					trial, run := c.Start(t, t)
					defer func() {
						if t.Skipped() && !t.Failed() {
							left = append(left, fmt.Sprintf("%s/%s: %s", group, c.Name, trial.Left))
						}
					}()
					run()
				})
			}
		})
	}
	if len(left) > 0 {
		t.Logf("%d of %d checks were not run, or not wholly:\n  %s", len(left), len(checks), strings.Join(left, "\n  "))
	}
}

// Crowd is how many calls Together makes at once.
const Crowd = 8

// Together calls do for 0 to Crowd-1 at once, and waits.
func Together(do func(i int)) {
	var all sync.WaitGroup
	start := make(chan struct{})
	for i := range Crowd {
		all.Go(func() {
			<-start
			do(i)
		})
	}
	close(start)
	all.Wait()
}
