package ledger

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// countEvery is how often processes are counted.
const countEvery = 20 * time.Millisecond

// Tally is one count of processes.
type Tally struct {
	Running int
	Staying int // of these, those that are not to end
	Serving int // of those that run, those that do their work
}

// Counts are the counts since Begin.
type Counts struct {
	Number      int
	Least, Most Tally // of each kind
}

// Counter counts processes again and again. NewCounter makes it. It is safe for concurrent use.
type Counter struct {
	count func(context.Context) (Tally, error)
	limit time.Duration

	mu      sync.Mutex
	counts  Counts
	trouble error
}

// NewCounter returns a counter. A count is not valid if it took limit or more, because a process that
// was counted as gone can have been replaced meanwhile.
func NewCounter(limit time.Duration, count func(context.Context) (Tally, error)) *Counter {
	return &Counter{count: count, limit: limit}
}

// Run counts until ctx ends.
func (c *Counter) Run(ctx context.Context) {
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			start := time.Now()
			t, err := c.count(ctx)
			c.take(t, err, time.Since(start) < c.limit)
		}
	}
}

func (c *Counter) take(t Tally, err error, valid bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if err != nil {
		c.trouble = err
		return
	}
	if !valid {
		return
	}
	if c.counts.Number == 0 {
		c.counts.Least, c.counts.Most = t, t
	}
	least, most := c.counts.Least, c.counts.Most
	c.counts = Counts{
		Number: c.counts.Number + 1,
		Least:  Tally{min(least.Running, t.Running), min(least.Staying, t.Staying), min(least.Serving, t.Serving)},
		Most:   Tally{max(most.Running, t.Running), max(most.Staying, t.Staying), max(most.Serving, t.Serving)},
	}
}

// Begin forgets the counts so far.
func (c *Counter) Begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = Counts{}
}

// Missing names what Counts still needs, or nothing. What an earlier program has finished may leave no
// time for a count.
func (c *Counter) Missing() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts.Number == 0 && c.trouble == nil {
		return "a count that was quick enough"
	}
	return ""
}

// Counts returns the valid counts since Begin. Without one it returns an error.
func (c *Counter) Counts() (Counts, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.trouble != nil:
		return Counts{}, fmt.Errorf("processes could not be counted: %w", c.trouble)
	case c.counts.Number == 0:
		return Counts{}, errors.New("processes were never counted in time")
	}
	return c.counts, nil
}
