package demo

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

// Dir is the directory of a demo. It holds the rosters of processes, the store and the progress.
type Dir struct {
	path    string
	lasts   bool // it was given with -state, and outlives the program
	store   string
	rosters []string
	lock    *os.File
}

// Progress is how far a demo has come. It has what the next run needs to continue the demo, and
// can't find in the store or the rosters.
type Progress struct {
	Step   int    `json:"act"`              // index of the present step
	Chosen string `json:"chosen,omitempty"` // the file of the process that this step has chosen
}

// NewDir returns the directory at path, which must be empty or have the store of an earlier run. If
// path is empty, the directory is a temporary one. store and rosters are names in it. The processes
// of the first roster are ended first, so supervisors must come before what they restart.
func NewDir(path, store string, rosters ...string) (d *Dir, err error) {
	d = &Dir{lasts: path != "", store: store, rosters: rosters}
	if !d.lasts {
		d.path, err = os.MkdirTemp("", "mw")
		return d, err
	}
	if d.path, err = filepath.Abs(path); err != nil { // the path is passed to processes
		return nil, err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return nil, err
	}
	entries, err := os.ReadDir(d.path)
	ours := func(e os.DirEntry) bool { return strings.Contains(e.Name(), store) } // also a store that is being created
	if len(entries) > 0 && !slices.ContainsFunc(entries, ours) {
		err = fmt.Errorf("%s is neither empty nor a directory of this program", d.path)
	}
	return d, err
}

// In returns the path of a file or directory in d.
func (d *Dir) In(name string) string { return filepath.Join(d.path, name) }

// Lock returns the path of the file that the program locks as long as it uses the directory.
func (d *Dir) Lock() string { return d.In("lock") }

// Outlives returns how long the processes run on after the program has ended.
func (d *Dir) Outlives() time.Duration {
	if !d.lasts {
		return 0
	}
	return agent.Abandonment
}

// open opens the store, and returns the progress of the run that is to be continued. From then on no
// other program can use the directory. If there is no run to continue, open empties the directory:
// the last run was completed, or its processes have ended because no program came in time.
func (d *Dir) open(ctx context.Context, now func() time.Time) (db *bolt.DB, done Progress, err error) {
	db, err = d.openStore(now)
	if err != nil {
		return nil, done, err
	}
	text, err := os.ReadFile(d.progressFile())
	begun := err == nil
	if begun {
		err = json.Unmarshal(text, &done)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, done, errors.Join(fmt.Errorf("%s: %w", d.progressFile(), err), db.Close())
	}
	abandoned, err := d.abandoned()
	if err == nil && (!begun || abandoned) {
		done = Progress{}
		if err = errors.Join(d.clear(ctx), db.Close()); err != nil {
			return nil, done, err
		}
		if db, err = d.openStore(now); err != nil {
			return nil, done, err
		}
	}
	if err == nil {
		err = d.save(done)
	}
	if err == nil {
		d.lock, err = roster.Hold(ctx, d.Lock())
	}
	if err != nil {
		err = errors.Join(err, db.Close())
	}
	return db, done, err
}

// openStore opens the store. Only one program at a time can, so openStore waits some seconds for a
// program that was just killed to release it.
func (d *Dir) openStore(now func() time.Time) (*bolt.DB, error) {
	return bolt.Open(d.In(d.store), bolt.Options{Now: now})
}

// abandoned reports whether processes have ended because no program managed them.
func (d *Dir) abandoned() (bool, error) {
	for _, name := range d.rosters {
		entries, err := roster.Open(d.In(name)).Entries()
		if err != nil || slices.ContainsFunc(entries, func(e roster.Entry) bool { return e.State == roster.Abandoned }) {
			return true, err
		}
	}
	return false, nil
}

func (d *Dir) progressFile() string { return d.In("play.json") }

// save writes the progress.
func (d *Dir) save(done Progress) error {
	text, err := json.Marshal(done)
	if err != nil {
		return err
	}
	return roster.WriteFile(d.progressFile(), text, 0o600)
}

// clear ends the processes that are left, and empties the directory. The progress is removed first,
// so that no run continues with the rest. The store is removed last, because it shows NewDir that
// the directory is ours.
func (d *Dir) clear(ctx context.Context) error {
	if err := os.RemoveAll(d.progressFile()); err != nil {
		return err
	}
	for _, name := range d.rosters {
		if _, err := roster.Open(d.In(name)).End(ctx); err != nil {
			return err
		}
	}
	entries, err := os.ReadDir(d.path)
	for _, e := range entries {
		if e.Name() != d.store {
			err = errors.Join(err, os.RemoveAll(d.In(e.Name())))
		}
	}
	if err == nil {
		err = os.Remove(d.In(d.store))
	}
	return err
}
