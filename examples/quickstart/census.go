package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// These say how often processes are counted, and how long a valid count may take. That is much
// shorter than the boot of a machine, so that no process can have started and replaced one that was
// counted as gone.
const (
	countEvery = 20 * time.Millisecond
	countLimit = bootDelay / 10
)

// census counts processes, by ledger and process table, again and again.
type census struct {
	book     *ledger.Book
	machines store.Reader[*machine.Machine]
	found    func([]ledger.Life) // receives all processes, or nil

	mu      sync.Mutex
	now     tally
	pids    map[string]int // by machine
	counts  int            // since begin
	least   tally
	most    tally
	orphans map[string]bool // instances that ran though there was no machine of theirs
	trouble error
}

// tally is one count.
type tally struct {
	processes int // that run
	staying   int // of these, those whose machine is not being deleted
	serving   int // of those that run, those that have booted
}

// begin forgets extremes.
func (c *census) begin() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts = 0
}

// counted reports whether there was a count since begin, or never will be.
func (c *census) counted() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.counts > 0 || c.trouble != nil
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
			c.count(ctx)
		}
	}
}

// count counts once. Later reads can only favour the counts of earlier reads. That is the right way
// round: a process that runs while its machine is not being deleted was one too many at some
// moment.
func (c *census) count(ctx context.Context) {
	start := time.Now()
	alive, err := c.book.Alive()
	if err != nil {
		c.fail(err)
		return
	}
	lives, err := c.book.Lives()
	if err != nil {
		c.fail(err)
		return
	}
	if c.found != nil {
		c.found(lives)
	}
	serving := make(map[string]bool, len(lives))
	for _, life := range lives {
		serving[life.Instance] = life.Serving
	}
	t := tally{processes: len(alive)}
	pids := make(map[string]int, len(alive))
	for _, life := range alive {
		pids[life.Machine] = life.ID.PID
		if serving[life.Instance] {
			t.serving++
		}
		m, err := c.machines.Get(ctx, object.Key{Namespace: namespace, Name: life.Machine})
		switch {
		case err == nil && !m.Deleted():
			t.staying++
		case errors.Is(err, store.ErrNotFound) && life.ID.Alive():
			c.orphan(life)
		}
	}
	if time.Since(start) < countLimit {
		c.take(t, pids)
	}
}

// orphan records a process that outlived its machine's record.
func (c *census) orphan(life ledger.Life) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.orphans == nil {
		c.orphans = make(map[string]bool)
	}
	c.orphans[life.Instance] = true
}

func (c *census) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.trouble = err
}

func (c *census) take(t tally, pids map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.counts == 0 {
		c.least, c.most = t, t
	}
	c.counts++
	c.now, c.pids = t, pids
	c.least = tally{min(c.least.processes, t.processes), min(c.least.staying, t.staying), min(c.least.serving, t.serving)}
	c.most = tally{max(c.most.processes, t.processes), max(c.most.staying, t.staying), max(c.most.serving, t.serving)}
}

// latest returns the last count, and the PIDs of machines' processes.
func (c *census) latest() (tally, map[string]int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now, c.pids
}

// checkCensus checks the counts of a rollout against its bounds: how many have to serve at any
// time, and how many may exist.
func (p *play) checkCensus(floor, ceiling int) error {
	c := p.census
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.trouble != nil:
		return fmt.Errorf("processes could not be counted: %w", c.trouble)
	case c.counts == 0:
		return fmt.Errorf("processes were never counted within %s", countLimit)
	case c.least.serving < floor:
		return fmt.Errorf("only %d processes were serving at a time, %d should be", c.least.serving, floor)
	case c.most.staying > ceiling:
		return fmt.Errorf("%d processes were there at a time, %d are allowed", c.most.staying, ceiling)
	}
	p.say("processes counted %d times: never fewer than %d serving, never more than %d (%d with those told to end)",
		c.counts, c.least.serving, c.most.staying, c.most.processes)
	return nil
}
