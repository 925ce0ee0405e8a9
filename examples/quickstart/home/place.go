package home

import (
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// Progress is how far a play has come: what a later program needs to go on with it and finds
// neither in the store nor in the ledgers.
type Progress struct {
	Act     int          `json:"act"`              // that is being played, from 0
	Created int          `json:"created"`          // processes there were when it began
	Tasks   bool         `json:"tasks,omitempty"`  // tasks are to run
	Chosen  *ledger.Life `json:"chosen,omitempty"` // the process that was chosen in this act
	From    string       `json:"from,omitempty"`   // its machine
	Over    bool         `json:"over,omitempty"`   // only the cleanup is left
}

// Place is the directory of a play, and what the play keeps there.
type Place struct {
	Dir
	// Ledgers are the names of ledgers, in the order in which their processes are ended: first those
	// that would start others.
	Ledgers []string
	Rest    []string // the names of what else is to be removed in the end
	Acts    int      // how many the play has
}

func (p *Place) books() (all []*ledger.Book) {
	for _, name := range p.Ledgers {
		all = append(all, ledger.Open(p.In(name)))
	}
	return all
}

// Open opens the objects, and returns how far an earlier program has come. From then on no other
// program can use the place. If there is nothing to go on with, the place is empty.
func (p *Place) Open(now func() time.Time) (Objects, Progress, error) {
	if !p.Lasts {
		return inMemory(now), Progress{}, nil
	}
	o, err := inFile(p.Store(), now)
	if err != nil {
		return Objects{}, Progress{}, err
	}
	done, err := p.progress()
	if err == nil && done.Over {
		if err = errors.Join(p.Clear(), o.Close()); err != nil {
			return Objects{}, Progress{}, err
		}
		done = Progress{}
		if o, err = inFile(p.Store(), now); err != nil {
			return Objects{}, Progress{}, err
		}
	}
	if err == nil {
		err = p.Install()
	}
	if err != nil {
		return Objects{}, Progress{}, errors.Join(err, o.Close())
	}
	return o, done, nil
}

// progress returns how far an earlier program has come. It is over if the play has ended, or if
// processes have ended because no program came in time.
func (p *Place) progress() (done Progress, err error) {
	if err := p.Load(&done); err != nil {
		return done, err
	}
	if done.Act < 0 || done.Act > p.Acts {
		return done, fmt.Errorf("%s: there is no act %d", p.In(ProgressFile), done.Act)
	}
	for _, book := range p.books() {
		abandoned, err := Abandoned(book)
		if err != nil {
			return done, err
		}
		done.Over = done.Over || abandoned
	}
	return done, nil
}

// Clear kills what is left running, waits for it, and empties the place. The caller has opened the
// objects.
func (p *Place) Clear() error {
	if err := p.Save(Progress{Over: true}); err != nil {
		return err
	}
	if _, err := p.End(); err != nil {
		return err
	}
	return p.Wipe(append(p.Rest, p.Ledgers...)...)
}

// End kills the processes in the ledgers, waits until they are gone, and returns how many ran.
func (p *Place) End() (killed int, err error) { return End(p.books()...) }
