package stage

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// Place is the directory of a play. It holds the rosters of processes, the play's store and its
// progress.
type Place struct {
	path    string
	lasts   bool
	store   string
	rosters []string
	lock    *os.File
}

// Progress is how far a play has come: what a later program needs to go on with it and finds
// neither in the store nor in the rosters.
type Progress struct {
	Act    int    `json:"act"`              // that is being played, from 0
	Chosen string `json:"chosen,omitempty"` // the file of the process that was chosen in this act
}

// NewPlace returns the place at that path, which must be empty or have an earlier play with a store
// of that name. If the path is empty, the place is a temporary one. Its rosters are ended in their
// order: first those of processes that would start others.
func NewPlace(path, store string, rosters ...string) (p *Place, err error) {
	p = &Place{lasts: path != "", store: store, rosters: rosters}
	if !p.lasts {
		p.path, err = os.MkdirTemp("", "mw")
		return p, err
	}
	if p.path, err = filepath.Abs(path); err != nil { // processes get its path
		return nil, err
	}
	if err := os.MkdirAll(p.path, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(p.path)
	ours := func(e os.DirEntry) bool { return strings.Contains(e.Name(), store) } // even one that is being made
	if len(entries) > 0 && !slices.ContainsFunc(entries, ours) {
		err = fmt.Errorf("%s is neither empty nor a directory of this program", p.path)
	}
	return p, err
}

// In returns the path of something in the place.
func (p *Place) In(name string) string { return filepath.Join(p.path, name) }

// Lock returns the file that the program has locked which uses the place.
func (p *Place) Lock() string { return p.In("lock") }

// Outlives returns how long processes go on without a program.
func (p *Place) Outlives() time.Duration {
	if !p.lasts {
		return 0
	}
	return agent.Abandonment
}

// open opens the store, and returns how far an earlier program has come. From then on no other
// program can use the place. The place is emptied if there is no play to go on with: the last one
// has ended, or its processes have, because no program came in time.
func (p *Place) open(ctx context.Context, now func() time.Time) (db *bolt.DB, done Progress, err error) {
	db, err = p.openStore(now)
	if err != nil {
		return nil, done, err
	}
	text, err := os.ReadFile(p.progress())
	begun := err == nil
	if begun {
		err = json.Unmarshal(text, &done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, done, errors.Join(fmt.Errorf("%s: %w", p.progress(), err), db.Close())
	}
	abandoned, err := p.abandoned()
	if err == nil && (!begun || abandoned) {
		done = Progress{}
		if err = errors.Join(p.clear(ctx), db.Close()); err != nil {
			return nil, done, err
		}
		if db, err = p.openStore(now); err != nil {
			return nil, done, err
		}
	}
	if err == nil {
		err = p.save(done)
	}
	if err == nil {
		p.lock, err = roster.Hold(ctx, p.Lock())
	}
	if err != nil {
		err = errors.Join(err, db.Close())
	}
	return db, done, err
}

// openStore opens the file, which only one program at a time can. A program that was just killed
// has some seconds to release it.
func (p *Place) openStore(now func() time.Time) (*bolt.DB, error) {
	return bolt.Open(p.In(p.store), bolt.Options{Now: now})
}

func (p *Place) abandoned() (bool, error) {
	for _, name := range p.rosters {
		entries, err := roster.Open(p.In(name)).Entries()
		if err != nil || slices.ContainsFunc(entries, func(e roster.Entry) bool { return e.State == roster.Abandoned }) {
			return true, err
		}
	}
	return false, nil
}

func (p *Place) progress() string { return p.In("play.json") }

// save writes the progress.
func (p *Place) save(done Progress) error {
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return roster.WriteFile(p.progress(), text, 0o600)
}

// clear ends the processes that are left, and removes all that is in the place: first the progress,
// so that no program goes on with the rest, and last the store, which says that the place is ours.
func (p *Place) clear(ctx context.Context) error {
	if err := os.RemoveAll(p.progress()); err != nil {
		return err
	}
	for _, name := range p.rosters {
		if _, err := roster.Open(p.In(name)).End(ctx); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(p.path)
	for _, e := range entries {
		if e.Name() != p.store {
			err = errors.Join(err, os.RemoveAll(p.In(e.Name())))
		}
	}
	if err == nil {
		err = os.Remove(p.In(p.store))
	}
	return err
}
