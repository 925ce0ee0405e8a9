package demo

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// Counts sums up the counts since Begin.
type Counts struct {
	Number     int // of counts
	MinServing int // the fewest processes that served at a time
	MaxActive  int // the most active processes at a time
}

// Counter counts the processes of a roster again and again. NewCounter makes it. It is safe for
// concurrent use.
type Counter struct {
	roster *roster.Roster
	active func(roster.Entry) bool

	mu     sync.Mutex
	counts Counts
	twice  map[string]bool // names that two processes had at the same time
}

// NewCounter returns a counter. active reports whether a running process is meant to go on, and so
// counts for MaxActive.
func NewCounter(r *roster.Roster, active func(roster.Entry) bool) *Counter {
	return &Counter{roster: r, active: active, twice: make(map[string]bool)}
}

// countLimit is how long a count may take to be valid. Any process takes much longer to boot or to
// end, so the processes of a valid count all ran at the same time.
const countLimit = 50 * time.Millisecond

// Run counts until ctx ends.
func (c *Counter) Run(ctx context.Context) error {
	return roster.Every(ctx, 20*time.Millisecond, func(context.Context) error {
		start := time.Now()
		running, err := c.roster.Running()
		if err == nil {
			c.take(running, time.Since(start) < countLimit)
		}
		return err
	})
}

// take adds a count of these processes. An invalid one can only find duplicates.
func (c *Counter) take(running []roster.Entry, valid bool) {
	now := Counts{}
	names := make(map[string]bool)
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, e := range running {
		if names[e.Name] {
			c.twice[e.Name] = true
		}
		names[e.Name] = true
		if e.State == roster.Serving {
			now.MinServing++
		}
		if c.active(e) {
			now.MaxActive++
		}
	}
	if !valid {
		return
	}
	was := c.counts
	if was.Number == 0 {
		was = now
	}
	c.counts = Counts{was.Number + 1, min(was.MinServing, now.MinServing), max(was.MaxActive, now.MaxActive)}
}

// Begin forgets the counts so far.
func (c *Counter) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = Counts{}
}

// Counts returns the counts since Begin.
func (c *Counter) Counts() Counts {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts
}

// CheckCounts waits until there was a valid count since Begin: if an interrupted run had done a
// step's work already, there may be none yet. It returns the counts since Begin, and an error if
// fewer processes than floor served in any of them.
func (d *Demo) CheckCounts(ctx context.Context, c *Counter, floor int) (n Counts, err error) {
	err = d.Await(ctx, func() string {
		if n = c.Counts(); n.Number == 0 {
			return "a count that was quick enough"
		}
		return ""
	})
	if err == nil && n.MinServing < floor {
		err = fmt.Errorf("only %d processes were serving at a time, %d should be", n.MinServing, floor)
	}
	return n, err
}

// Duplicates returns how many names had two processes at the same time.
func (c *Counter) Duplicates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.twice)
}
