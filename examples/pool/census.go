package main

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// countLimit is how long a valid count may take. That is much shorter than the boot of an agent, so
// that no agent can have started and replaced one that was counted as gone.
const countLimit = bootDelay / 10

// census counts agents, by ledger and process table, and reports what they enter.
type census struct {
	*ledger.Counter
	book *ledger.Book
	tell func(l ledger.Life, text string)
	seen map[string]string // what was reported last of each instance
}

func newCensus(book *ledger.Book, tell func(l ledger.Life, text string)) *census {
	c := &census{book: book, tell: tell, seen: make(map[string]string)}
	c.Counter = ledger.NewCounter(countLimit, c.count)
	return c
}

// recall marks what is in the ledger already as reported.
func (c *census) recall() error {
	lives, err := c.book.Lives()
	for _, life := range lives {
		c.seen[life.Instance] = step(life)
	}
	return err
}

// step returns how far a life has come. It is empty if the life is not its machine's.
func step(l ledger.Life) string {
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
func (c *census) count(context.Context) (ledger.Tally, error) {
	alive, err := c.book.Alive()
	if err != nil {
		return ledger.Tally{}, err
	}
	lives, err := c.book.Lives()
	if err != nil {
		return ledger.Tally{}, err
	}
	serving := make(map[string]bool, len(lives))
	for _, life := range lives {
		serving[life.Instance] = life.Serving
		if text := step(life); text != c.seen[life.Instance] {
			c.seen[life.Instance] = text
			c.tell(life, text)
		}
	}
	t := ledger.Tally{Running: len(alive)}
	for _, life := range alive {
		if serving[life.Instance] {
			t.Serving++
		}
	}
	return t, nil
}

// check checks the counts since the act began against their bounds: how many agents have to serve at
// any time, and how many may run.
func (c *census) check(floor, ceiling int) (report string, err error) {
	counts, err := c.Counts()
	switch {
	case err != nil:
		return "", err
	case counts.Least.Serving < floor:
		return "", fmt.Errorf("only %d agents were serving at a time, %d should be", counts.Least.Serving, floor)
	case counts.Most.Running > ceiling:
		return "", fmt.Errorf("%d agents were running at a time, %d are allowed", counts.Most.Running, ceiling)
	}
	return fmt.Sprintf("agents counted %d times: never fewer than %d serving, never more than %d running",
		counts.Number, counts.Least.Serving, counts.Most.Running), nil
}
