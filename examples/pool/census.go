package main

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// These say how often agents are counted, and how long a valid count may take. That is much shorter
// than the boot of an agent, so that no agent can have started and replaced one that was counted as
// gone.
const (
	countEvery = 20 * time.Millisecond
	countLimit = bootDelay / 10
)

// census counts agents, by ledger and process table, again and again.
type census struct {
	book *ledger.Book
	tell func(l ledger.Life, text string)

	seen map[string]string // what was reported last of each instance

	mu      sync.Mutex
	now     tally
	counts  int // since begin
	least   tally
	most    tally
	trouble error
}

// tally is one count.
type tally struct {
	running int
	serving int // of these, those that have booted
}

// recall marks what is in the ledger already as reported.
func (c *census) recall() error {
	lives, err := c.book.Lives()
	c.seen = make(map[string]string, len(lives))
	for _, life := range lives {
		c.seen[life.Instance] = stage(life)
	}
	return err
}

// begin forgets extremes.
func (c *census) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = 0
}

// run counts until ctx ends.
func (c *census) run(ctx context.Context) {
	ticker := time.NewTicker(countEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			c.count()
		}
	}
}

// stage returns how far a life has come. It is empty if the life is not its machine's.
func stage(l ledger.Life) string {
	switch {
	case !l.Seated:
		return ""
	case l.Ended:
		return "ended"
	case l.Serving:
		return "serves"
	}
	return "was started"
}

// count counts once.
func (c *census) count() {
	start := time.Now()
	alive, err := c.book.Alive()
	lives, failed := c.book.Lives()
	if err != nil || failed != nil {
		c.mu.Lock()
		c.trouble = fmt.Errorf("agents can't be counted: %w", err)
		c.mu.Unlock()
		return
	}
	serving := make(map[string]bool, len(lives))
	for _, life := range lives {
		serving[life.Instance] = life.Serving
		if text := stage(life); text != c.seen[life.Instance] {
			c.seen[life.Instance] = text
			c.tell(life, text)
		}
	}
	t := tally{running: len(alive)}
	for _, life := range alive {
		if serving[life.Instance] {
			t.serving++
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.now = t; time.Since(start) > countLimit {
		return
	}
	if c.counts == 0 {
		c.least, c.most = t, t
	}
	c.counts++
	c.least = tally{min(c.least.running, t.running), min(c.least.serving, t.serving)}
	c.most = tally{max(c.most.running, t.running), max(c.most.serving, t.serving)}
}

// latest returns the last count.
func (c *census) latest() tally {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// uncounted names a missing count. If an earlier program has finished its part, there may be no
// time for one.
func (c *census) uncounted() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == 0 && c.trouble == nil {
		return "a count that was quick enough"
	}
	return ""
}

// check checks the counts since begin against their bounds: how many agents have to serve at any
// time, and how many may run.
func (c *census) check(floor, ceiling int) (report string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.trouble != nil:
		return "", c.trouble
	case c.least.serving < floor:
		return "", fmt.Errorf("only %d agents were serving at a time, %d should be", c.least.serving, floor)
	case c.most.running > ceiling:
		return "", fmt.Errorf("%d agents were running at a time, %d are allowed", c.most.running, ceiling)
	}
	return fmt.Sprintf("agents counted %d times: never fewer than %d serving, never more than %d running",
		c.counts, c.least.serving, c.most.running), nil
}
