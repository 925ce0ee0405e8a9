package main

import (
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// place is the directory of a fleet: records, ledgers, desks, volumes, and what
// every play has.
type place struct{ *home.Place }

// storeFile is the store of a fleet that lasts.
const storeFile = "fleet.db"

// clock is the clock of objects and the manager. Tests start programs whose clock is behind, so
// that what they leave is as old as if time had passed.
var clock = time.Now

// newPlace returns the place in that directory. If it is empty, the directory is a temporary one.
func newPlace(state string) (place, error) {
	d, err := home.New(state, storeFile)
	return place{&home.Place{
		Dir: d, Ledgers: []string{"ledger", "tasks"}, Rest: []string{"machines", "desks", "volumes"}, Acts: len(acts),
	}}, err
}

func (h place) ledger() string     { return h.In("ledger") }
func (h place) taskLedger() string { return h.In("tasks") }
func (h place) desks() string      { return h.In("desks") }
func (h place) volumes() string    { return h.In("volumes") }
func (h place) records() string    { return h.In("machines") }

// recordsOf returns the records of a cluster's processes.
func (h place) recordsOf(cluster string) *registry.Dir {
	return registry.At(filepath.Join(h.records(), cluster))
}
