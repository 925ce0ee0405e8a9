package main

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// place is the directory of a fleet: records, ledgers, desks, volumes, and what
// every play has.
type place struct{ home.Dir }

// storeFile is the store of a fleet that lasts.
const storeFile = "fleet.db"

// progress is how far a play has come: what a later program needs to go on with it and finds
// neither in the store nor in the ledgers.
type progress struct {
	Act     int          `json:"act"`              // that is being played, from 0
	Created int          `json:"created"`          // processes there were when it began
	Tasks   bool         `json:"tasks,omitempty"`  // tasks are to run
	Data    *ledger.Life `json:"data,omitempty"`   // the process that had the volume before a rollout
	From    string       `json:"from,omitempty"`   // its machine
	Victim  *ledger.Life `json:"victim,omitempty"` // the process that was chosen to be killed
	Over    bool         `json:"over,omitempty"`   // only the cleanup is left
}

// newPlace returns the place in that directory. If it is empty, the directory is a temporary one.
func newPlace(state string) (*place, error) {
	d, err := home.New(state, storeFile)
	return &place{d}, err
}

func (h *place) ledger() string     { return h.In("ledger") }
func (h *place) taskLedger() string { return h.In("tasks") }
func (h *place) desks() string      { return h.In("desks") }
func (h *place) volumes() string    { return h.In("volumes") }
func (h *place) records() string    { return h.In("machines") }

// recordsOf returns the records of a cluster's processes.
func (h *place) recordsOf(cluster string) *registry.Dir {
	return registry.At(filepath.Join(h.records(), cluster))
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
	abandoned, err := home.Abandoned(ledger.Open(h.ledger()))
	return done.Over || abandoned, err
}

// clear kills what an earlier program has left running, waits for it, and empties the place. The
// caller has opened the store.
func (h *place) clear() error {
	if err := h.Save(progress{Over: true}); err != nil {
		return err
	}
	if _, err := home.End(ledger.Open(h.ledger()), ledger.Open(h.taskLedger())); err != nil {
		return err
	}
	return h.wipe()
}

func (h *place) wipe() error { return h.Wipe("machines", "ledger", "tasks", "desks", "volumes") }
