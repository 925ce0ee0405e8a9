package clock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/sim/internal/clock"
)

var start = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// run is a clock and a log of what happened, each entry with the seconds since start.
type run struct {
	*clock.Clock
	seen []string
}

// newRun makes a clock whose "random" numbers are those of order. Without them, timers of an instant run in
// the order in which they were scheduled.
func newRun(order ...int) *run {
	return &run{Clock: clock.New(start, func(int) int {
		if len(order) == 0 {
			return 0
		}
		next := order[0]
		order = order[1:]
		return next
	})}
}

func (r *run) note(what string) {
	r.seen = append(r.seen, fmt.Sprint(r.Now().Sub(start).Seconds(), " ", what))
}

func (r *run) schedule(d time.Duration, what string) { r.After(d, func() { r.note(what) }) }

// stepAll runs all timers that are due within a minute.
func (r *run) stepAll() []string {
	for r.Step(start.Add(time.Minute)) {
	}
	return r.seen
}

func TestTimersRunInTheirOrder(t *testing.T) {
	r := newRun()
	r.schedule(3*time.Second, "late")
	r.schedule(2*time.Second, "early")
	r.schedule(-time.Second, "at once")
	r.schedule(2*time.Minute, "too late")
	require.Equal(t, []string{"0 at once", "2 early", "3 late"}, r.stepAll())
	require.Equal(t, start.Add(3*time.Second), r.Now())
}

// TestChanceOrdersAnInstant: of timers at the same instant, the one with the smaller random number runs
// first. With equal numbers, the one that was scheduled first does.
func TestChanceOrdersAnInstant(t *testing.T) {
	r := newRun(2, 1, 3, 1)
	for _, what := range []string{"a", "b", "c", "d"} {
		r.schedule(time.Second, what)
	}
	require.Equal(t, []string{"1 b", "1 d", "1 a", "1 c"}, r.stepAll())
}

// TestSetRunsNothing: Set runs no timers. Overdue timers run at the time that was set.
func TestSetRunsNothing(t *testing.T) {
	r := newRun()
	r.schedule(time.Second, "overdue")
	r.Set(start.Add(5 * time.Second))
	require.Empty(t, r.seen)
	require.Equal(t, []string{"5 overdue"}, r.stepAll())
}

// TestTasksPause: a task runs alone up to its pause. Timers that are due during the pause run before it
// continues.
func TestTasksPause(t *testing.T) {
	r := newRun()
	for range 2 { // the second time, the task is reused
		r.seen = nil
		r.Set(start)
		r.schedule(time.Second, "other")
		r.Begin(func() {
			r.note("begins")
			r.Pause(2 * time.Second)
			r.note("goes on")
		})
		require.Equal(t, []string{"0 begins"}, r.seen)
		require.Equal(t, []string{"0 begins", "1 other", "2 goes on"}, r.stepAll())
	}
}

// TestPauseWithoutTime: a pause of no time lets timers of the same instant run, unless SkipEmptyPauses is
// set.
func TestPauseWithoutTime(t *testing.T) {
	for skip, want := range map[bool][]string{false: {"0 other", "0 goes on"}, true: {"0 goes on", "0 other"}} {
		r := newRun()
		r.SkipEmptyPauses = skip
		r.schedule(0, "other")
		r.Begin(func() {
			r.Pause(0)
			r.note("goes on")
		})
		require.Equal(t, want, r.stepAll(), "SkipEmptyPauses: %t", skip)
	}
	r := newRun()
	r.Pause(time.Hour) // outside a task
	require.Equal(t, start, r.Now())
}

// TestClose: tasks run to their ends without pauses, and no timer runs any more.
func TestClose(t *testing.T) {
	r := newRun()
	r.schedule(time.Second, "other")
	r.Begin(func() {
		r.Pause(2 * time.Second)
		r.Pause(2 * time.Second)
		r.note("ends")
	})
	r.Close()
	require.Equal(t, []string{"0 ends"}, r.stepAll())
}

// TestAwait: a task waits for another task, for a limited time. The other one continues after that.
func TestAwait(t *testing.T) {
	r := newRun()
	for _, takes := range []time.Duration{0, 2 * time.Second, 9 * time.Second} {
		r.Begin(func() {
			returned := r.Await(5*time.Second, func() {
				if takes > 0 {
					r.Pause(takes)
				}
				r.note(fmt.Sprint(takes, " is over"))
			})
			r.note(fmt.Sprint(takes, " waited for: ", returned))
		})
	}
	require.Equal(t, []string{
		"0 0s is over", "0 0s waited for: true", "2 2s is over", "2 2s waited for: true",
		"5 9s waited for: false", "9 9s is over",
	}, r.stepAll())
}

// TestAwaitOutsideATask: outside a task, and once the clock is closed, Await just calls its function.
func TestAwaitOutsideATask(t *testing.T) {
	r := newRun()
	require.True(t, r.Await(time.Second, func() { r.note("plain") }))
	r.Begin(func() {
		r.Await(time.Second, func() { r.Pause(time.Hour); r.note("closed") })
		require.True(t, r.Await(time.Second, func() { r.note("after") }))
	})
	r.Close()
	require.ElementsMatch(t, []string{"0 plain", "0 closed", "0 after"}, r.seen)
}
