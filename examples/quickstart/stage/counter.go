package stage

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// Counts are the extremes of what was counted.
type Counts struct {
	Number       int // of counts
	LeastServing int
	MostStaying  int // processes that were not to end
}

// Counter counts the processes of a roster again and again. NewCounter makes it. It is safe for
// concurrent use.
type Counter struct {
	roster *roster.Roster
	stays  func(roster.Entry) bool

	mu     sync.Mutex
	counts Counts
	twice  map[string]bool // names of which two processes ran at a time
}

// NewCounter returns a counter. stays reports whether a process is not to end.
func NewCounter(r *roster.Roster, stays func(roster.Entry) bool) *Counter {
	return &Counter{roster: r, stays: stays, twice: make(map[string]bool)}
}

// countLimit is how long a valid count may take. That is much shorter than any process takes to
// boot or to end, so that none can have replaced one that was counted as gone.
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
			now.LeastServing++
		}
		if c.stays(e) {
			now.MostStaying++
		}
	}
	if !valid {
		return
	}
	was := c.counts
	if was.Number == 0 {
		was = now
	}
	c.counts = Counts{was.Number + 1, min(was.LeastServing, now.LeastServing), max(was.MostStaying, now.MostStaying)}
}

// Begin forgets the counts so far.
func (c *Counter) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = Counts{}
}

// Counts waits for a valid count since Begin, and returns all. What an earlier program has finished
// may leave no time for one. It returns an error if fewer served at any time than floor.
func (s *Stage) Counts(ctx context.Context, c *Counter, floor int) (n Counts, err error) {
	err = s.Await(ctx, func() string {
		c.mu.Lock()
		defer c.mu.Unlock()
		if n = c.counts; n.Number == 0 {
			return "a count that was quick enough"
		}
		return ""
	})
	if err == nil && n.LeastServing < floor {
		err = fmt.Errorf("only %d processes were serving at a time, %d should be", n.LeastServing, floor)
	}
	return n, err
}

// Duplicates returns of how many names two processes ran at the same time.
func (c *Counter) Duplicates() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.twice)
}
