package main

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// countLimit is how long a valid count may take. That is much shorter than the boot of a machine, so
// that no process can have started and replaced one that was counted as gone.
const countLimit = bootDelay / 10

// census counts machines' processes, by ledger and process table.
type census struct {
	*ledger.Counter
	book     *ledger.Book
	machines store.Reader[*machine.Machine]
	found    func([]ledger.Life) // receives all processes

	mu      sync.Mutex
	orphans map[string]bool // instances that ran though there was no machine of theirs
}

func newCensus(book *ledger.Book, machines store.Reader[*machine.Machine], found func([]ledger.Life)) *census {
	c := &census{book: book, machines: machines, found: found, orphans: make(map[string]bool)}
	c.Counter = ledger.NewCounter(countLimit, c.count)
	return c
}

// count counts once. Later reads can only favour the counts of earlier reads. That is the right way
// round: a process that runs while its machine is not being deleted was one too many at some
// moment.
func (c *census) count(ctx context.Context) (ledger.Tally, error) {
	alive, err := c.book.Alive()
	if err != nil {
		return ledger.Tally{}, err
	}
	lives, err := c.book.Lives()
	if err != nil {
		return ledger.Tally{}, err
	}
	c.found(lives)
	serving := make(map[string]bool, len(lives))
	for _, life := range lives {
		serving[life.Instance] = life.Serving
	}
	t := ledger.Tally{Running: len(alive)}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, life := range alive {
		if serving[life.Instance] {
			t.Serving++
		}
		m, err := c.machines.Get(ctx, object.Key{Namespace: namespace, Name: life.Machine})
		switch {
		case err == nil && !m.Deleted():
			t.Staying++
		case errors.Is(err, store.ErrNotFound) && life.ID.Alive():
			c.orphans[life.Instance] = true // it outlived its machine's record
		}
	}
	return t, nil
}

// checkCensus checks the counts of a rollout against its bounds: how many have to serve at any
// time, and how many may exist.
func (p *play) checkCensus(floor, ceiling int) error {
	counts, err := p.census.Counts()
	switch {
	case err != nil:
		return err
	case counts.Least.Serving < floor:
		return fmt.Errorf("only %d processes were serving at a time, %d should be", counts.Least.Serving, floor)
	case counts.Most.Staying > ceiling:
		return fmt.Errorf("%d processes were there at a time, %d are allowed", counts.Most.Staying, ceiling)
	}
	p.Say("processes counted %d times: never fewer than %d serving, never more than %d (%d with those told to end)",
		counts.Number, counts.Least.Serving, counts.Most.Staying, counts.Most.Running)
	return nil
}
