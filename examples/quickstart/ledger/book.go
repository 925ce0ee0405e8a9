package ledger

import (
	"errors"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// Life is what the ledger says of one process.
type Life struct {
	Machine  string
	Instance string
	ID       procid.ID
	Began    time.Time // when it was born
	Seated   bool
	Turned   bool
	Serving  bool // it has booted
	Leaving  bool // it was told to end
	Ended    bool
	// Abandoned says that it ended because no program managed it.
	Abandoned bool
}

// Book is a ledger read as far as it is written, and what was seen in the process table meanwhile.
// Open makes it. It is safe for concurrent use.
type Book struct {
	path string

	mu       sync.Mutex
	offset   int64
	lives    map[string]*Life // by instance
	order    []*Life          // by birth
	overlaps map[pair]bool
}

// pair is two instances of one machine that lived at the same time.
type pair [2]string

// Open returns the book of the ledger of that path, which need not exist yet.
func Open(path string) *Book {
	return &Book{path: path, lives: make(map[string]*Life), overlaps: make(map[pair]bool)}
}

// Path returns where the ledger is.
func (b *Book) Path() string { return b.path }

// Lives returns what the ledger says now of all processes, by birth.
func (b *Book) Lives() ([]Life, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refresh(); err != nil {
		return nil, err
	}
	lives := make([]Life, len(b.order))
	for i, life := range b.order {
		lives[i] = *life
	}
	return lives, nil
}

// refresh reads what was written since. The caller holds the lock.
func (b *Book) refresh() error {
	entries, offset, err := Read(b.path, b.offset)
	b.offset = offset
	for _, e := range entries {
		b.enter(e)
	}
	return err
}

func (b *Book) enter(e Entry) {
	life := b.lives[e.Instance]
	if life == nil {
		life = &Life{Machine: e.Machine, Instance: e.Instance, ID: e.ID, Began: e.At}
		b.lives[e.Instance] = life
		b.order = append(b.order, life)
	}
	switch e.Event {
	case Born:
		life.ID = e.ID
	case Seated:
		life.Seated = true
	case Turned:
		life.Turned = true
	case Serving:
		life.Serving = true
	case Leaving:
		life.Leaving = true
	case Abandoned:
		life.Abandoned = true
	case Ended:
		life.Ended = true
	case Overlap:
		b.overlap(e.Instance, e.Note)
	}
}

func (b *Book) overlap(one, other string) {
	if one > other {
		one, other = other, one
	}
	b.overlaps[pair{one, other}] = true
}

// Alive returns the processes that have their seat and run at this moment, by the process table. It
// records two of one machine as duplicates.
func (b *Book) Alive() ([]Life, error) {
	lives, err := b.Lives()
	if err != nil {
		return nil, err
	}
	alive := slices.DeleteFunc(lives, func(l Life) bool { return !l.Seated || l.Ended || !l.ID.Alive() })
	b.mu.Lock()
	defer b.mu.Unlock()
	for i, one := range alive {
		for _, other := range alive[:i] {
			if one.Machine == other.Machine && other.ID.Alive() { // both are alive now
				b.overlap(one.Instance, other.Instance)
			}
		}
	}
	return alive, nil
}

// Account is the sum of a ledger.
type Account struct {
	Created    int // processes that had their machine's seat
	Deleted    int // of these, those whose end was waited for
	Duplicates int // pairs of processes of one machine that lived at the same time
}

// Account sums up.
func (b *Book) Account() (Account, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.refresh(); err != nil {
		return Account{}, err
	}
	a := Account{Duplicates: len(b.overlaps)}
	for _, life := range b.order {
		if !life.Seated {
			continue
		}
		a.Created++
		if life.Ended {
			a.Deleted++
		}
	}
	return a, nil
}

// Survivors returns every process that runs at this moment, seated or not.
func (b *Book) Survivors() ([]Life, error) {
	lives, err := b.Lives()
	return slices.DeleteFunc(lives, func(l Life) bool { return !l.ID.Alive() }), err
}

// Kill kills every process that still runs, by PID and start time, and returns
// which ones it were.
func (b *Book) Kill() ([]Life, error) {
	survivors, err := b.Survivors()
	var killed []Life
	for _, life := range survivors {
		switch sent := life.ID.Signal(os.Kill); {
		case sent == nil:
			killed = append(killed, life)
		case !errors.Is(sent, procid.ErrGone):
			err = errors.Join(err, sent)
		}
	}
	return killed, err
}
