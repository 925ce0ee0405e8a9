package main

import (
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// place is the directory with groups, ledgers, desks, and what every play has.
type place struct{ home.Dir }

// storeFile is the store of a play that lasts.
const storeFile = "pool.db"

// progress is how far a play has come: what a later program needs to go on with it and finds
// neither in the store nor in the ledgers.
type progress struct {
	Act     int          `json:"act"`              // that is being played, from 0
	Created int          `json:"created"`          // agents there were when it began
	Tasks   bool         `json:"tasks,omitempty"`  // tasks are to run
	Victim  *ledger.Life `json:"victim,omitempty"` // the process that was chosen in this act
	Over    bool         `json:"over,omitempty"`   // only the cleanup is left
}

// newPlace returns the place in that directory. If it is empty, the directory is a temporary one.
func newPlace(state string) (*place, error) {
	d, err := home.New(state, storeFile)
	return &place{d}, err
}

func (h *place) groups() string { return h.In("groups") }
func (h *place) desks() string  { return h.In("desks") }

// These are the ledgers: of agents, of their supervisors, and of the tasks on agents.
func (h *place) agents() string      { return h.In("agents") }
func (h *place) supervisors() string { return h.In("supervisors") }
func (h *place) tasks() string       { return h.In("tasks") }

// books returns all ledgers, in the order in which their processes are ended: first those that
// would start others.
func (h *place) books() []*ledger.Book {
	return []*ledger.Book{ledger.Open(h.supervisors()), ledger.Open(h.agents()), ledger.Open(h.tasks())}
}

// open opens the stores. From then on no other program can use the place.
func (h *place) open() (stores, progress, error) {
	if !h.Lasts {
		return inMemory(), progress{}, nil
	}
	s, err := inFile(h.Store())
	if err != nil {
		return stores{}, progress{}, err
	}
	done, err := h.progress()
	if err == nil && done.Over {
		if err = errors.Join(h.clear(), s.closes()); err != nil {
			return stores{}, progress{}, err
		}
		done = progress{}
		if s, err = inFile(h.Store()); err != nil {
			return stores{}, progress{}, err
		}
	}
	if err == nil {
		err = h.Install()
	}
	if err != nil {
		return stores{}, progress{}, errors.Join(err, s.closes())
	}
	return s, done, nil
}

// progress returns how far an earlier program has come, and whether it is over.
func (h *place) progress() (done progress, err error) {
	if err := h.Load(&done); err != nil {
		return done, err
	}
	if done.Act < 0 || done.Act > len(acts) {
		return done, fmt.Errorf("%s: there is no act %d", h.In(home.Progress), done.Act)
	}
	done.Over, err = h.over(done)
	return done, err
}

// over reports whether there is nothing to go on with: a play has ended, or processes have ended
// because no program came in time.
func (h *place) over(done progress) (bool, error) {
	over := done.Over
	for _, book := range h.books()[:2] {
		abandoned, err := home.Abandoned(book)
		if err != nil {
			return false, err
		}
		over = over || abandoned
	}
	return over, nil
}

// clear kills what is left running, waits for it, and empties the place. It returns only when all
// of it is gone. The caller has opened the store.
func (h *place) clear() error {
	if err := h.Save(progress{Over: true}); err != nil {
		return err
	}
	_, err := home.End(h.books()...)
	return errors.Join(err, h.wipe())
}

func (h *place) wipe() error {
	return h.Wipe("groups", "agents", "supervisors", "tasks", "desks", "volumes")
}
