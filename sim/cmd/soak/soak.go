package main

import (
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millwright-go/millwright/sim"
)

// tally sums the results of all workers.
type tally struct {
	mu        sync.Mutex
	stats     sim.Stats
	scenarios uint64
	violated  int
	failed    *sim.Scenario // the failed scenario with the lowest seed, or nil
	violation *sim.Violation
	err       error
}

// note adds the result of a scenario. It reports whether to continue: after a violation only if goOn is
// true.
func (t *tally) note(s *sim.Scenario, r *sim.Result, err error, goOn bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if err != nil {
		t.err = fmt.Errorf("seed %d: %w", s.Options.Seed, err)
		return false
	}
	t.scenarios++
	t.stats.Add(&r.Stats)
	if r.Violation != nil && (goOn || t.failed == nil) {
		t.violated++ // without -all, the first violation ends the run, even if other workers find more
	}
	if r.Violation != nil && (t.failed == nil || s.Options.Seed < t.failed.Options.Seed) {
		t.failed, t.violation = s, r.Violation
	}
	return (goOn || t.failed == nil) && t.err == nil
}

// say writes a line to errs, which workers and the report of progress share.
func (t *tally) say(errs io.Writer, line any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	_, _ = fmt.Fprintln(errs, line)
}

// soak plays scenarios until the limit of time or number is reached or, without -all, one of them fails.
func (s *settings) soak(out, errs io.Writer) (violated bool, err error) {
	var t tally
	began := time.Now()
	s.work(&t, errs, began)
	if t.err != nil {
		return false, t.err
	}
	if err := summary(out, s, &t, time.Since(began)); err != nil || t.failed == nil {
		return false, err
	}
	return true, s.explain(out, errs, &t)
}

// work starts workers that play scenarios, and reports progress.
func (s *settings) work(t *tally, errs io.Writer, began time.Time) {
	var next atomic.Uint64
	var over atomic.Bool
	var workers sync.WaitGroup
	for range s.workers {
		workers.Go(func() {
			for !over.Load() {
				i := next.Add(1) - 1
				if s.scenarios > 0 && i >= s.scenarios || s.limit > 0 && time.Since(began) >= s.limit {
					return
				}
				scenario := s.draw(s.seed + i)
				scenario.Limit = s.settle
				r, err := sim.Play(scenario)
				if s.all && r.Violation != nil {
					t.say(errs, r.Violation)
				}
				if !t.note(scenario, &r, err, s.all) {
					over.Store(true)
				}
			}
		})
	}
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		progress(t, errs, began, done)
	}()
	workers.Wait()
	close(done)
	<-ended
}

// between is the time between two lines of progress.
const between = 5 * time.Second

func progress(t *tally, errs io.Writer, began time.Time, done <-chan struct{}) {
	tick := time.NewTicker(between)
	defer tick.Stop()
	for {
		select {
		case <-done:
			return
		case <-tick.C:
		}
		t.mu.Lock()
		_, _ = fmt.Fprintf(errs, "%4.0fs: %d scenarios, %d steps, %d kills, %d violations\n",
			time.Since(began).Seconds(), t.scenarios, t.stats.Steps, t.stats.Kills(), t.violated)
		t.mu.Unlock()
	}
}
