package ledger

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// Hand makes the entries of one process. The zero Hand enters nothing.
type Hand struct {
	Path     string // of the ledger; if empty, none is kept
	Machine  string
	Instance string // of the machine, unique to this process
	ID       procid.ID
}

// Enter adds an entry. note may be empty.
func (h Hand) Enter(event Event, note string) error {
	if h.Path == "" {
		return nil
	}
	return Append(h.Path, Entry{
		Event: event, Machine: h.Machine, Instance: h.Instance, ID: h.ID, At: time.Now(), Note: note,
	})
}

// Seated enters that the process is its machine's one, and every other process of this machine that
// the ledger knows and the process table shows alive right now.
func (h Hand) Seated() error {
	if err := h.Enter(Seated, ""); err != nil || h.Path == "" {
		return err
	}
	others, err := Open(h.Path).Alive()
	if err != nil {
		return err
	}
	for _, other := range others {
		if other.Machine == h.Machine && other.Instance != h.Instance && other.ID.Alive() {
			err = errors.Join(err, h.Enter(Overlap, other.Instance))
		}
	}
	return err
}
