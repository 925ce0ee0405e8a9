package home

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// EndPatience is how long killed processes may take to be gone.
const EndPatience = 10 * time.Second

// End kills the processes in ledgers, one ledger after the other, waits until they are gone, and
// returns how many ran.
func End(books ...*ledger.Book) (killed int, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), EndPatience)
	defer cancel()
	for _, book := range books {
		of, err := book.Kill()
		if err != nil {
			return killed, err
		}
		killed += len(of)
		if err := await(ctx, book); err != nil {
			return killed, err
		}
	}
	return killed, nil
}

func await(ctx context.Context, book *ledger.Book) error {
	for {
		survivors, err := book.Survivors()
		if err != nil || len(survivors) == 0 {
			return err
		}
		if err := registry.Pause(ctx); err != nil {
			return fmt.Errorf("%d processes do not end: %w", len(survivors), err)
		}
	}
}

// Abandoned reports whether a process of a ledger has ended because no program came in time.
func Abandoned(book *ledger.Book) (bool, error) {
	lives, err := book.Lives()
	return slices.ContainsFunc(lives, func(l ledger.Life) bool { return l.Abandoned }), err
}
