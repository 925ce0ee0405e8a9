package main

import "github.com/millwright-go/millwright/examples/quickstart/home"

// place is the directory with groups, ledgers, desks, and what every play has.
type place struct{ *home.Place }

// storeFile is the store of a play that lasts.
const storeFile = "pool.db"

// newPlace returns the place in that directory. If it is empty, the directory is a temporary one.
func newPlace(state string) (place, error) {
	d, err := home.New(state, storeFile)
	return place{&home.Place{
		Dir: d, Ledgers: []string{"supervisors", "agents", "tasks"}, Rest: []string{"groups", "desks", "volumes"}, Acts: len(acts),
	}}, err
}

func (h place) groups() string { return h.In("groups") }
func (h place) desks() string  { return h.In("desks") }

// These are the ledgers: of agents, of their supervisors, and of the tasks on agents.
func (h place) agents() string      { return h.In("agents") }
func (h place) supervisors() string { return h.In("supervisors") }
func (h place) tasks() string       { return h.In("tasks") }
