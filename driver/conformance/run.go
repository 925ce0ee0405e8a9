package conformance

import (
	"sync"
	"testing"
)

// Check is one duty of a driver.
type Check struct {
	Group, Name string
	// Needs lists checks, by Group/Name, whose duties this one builds on. If one of them failed, this
	// check is not run: it could only show the same fault again, under another name.
	Needs []string
	// Why says why the duty matters to those who use the driver. A failure ends with it.
	Why string
	// Start makes a driver, which t cleans up, and the trial that watches it and reports to tb. run is
	// the check.
	Start func(t *testing.T, tb testing.TB) (trial *Trial, run func())
}

func (c Check) title() string { return c.Group + "/" + c.Name }

// Run runs each check in a subtest Group/Name, in the order given. At the end it says how many were
// checked, and why others were not.
func Run(t *testing.T, checks []Check) {
	t.Helper()
	m := newMemory()
	for _, c := range checks {
		t.Run(c.title(), func(t *testing.T) { m.try(t, t, c) })
	}
	t.Log(m.summary())
}

// Crowd is how many calls Together makes at once.
const Crowd = 8

// Together calls the function do with each i from 0 to Crowd-1, all at once, and waits.
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
