// Package home has the directory in which a play keeps what its processes need:
// records, ledgers, desks, a socket. One that lasts has the play's store too, its
// progress, and the program that its processes run; what is in it outlives the
// program that plays.
package home

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
)

// Progress is the file that says how far a play has come.
const Progress = "play.json"

// programFile is the program that processes run.
const programFile = "program"

// Dir is the directory of a play.
type Dir struct {
	Path  string
	Lasts bool
	store string // the name of the store's file
}

// New returns the directory at that path, which is made if it is not there and
// must be empty or of an earlier play with a store of that name; an empty path: a
// temporary one.
func New(path, store string) (Dir, error) {
	if path == "" {
		path, err := shortDir()
		return Dir{Path: path, store: store}, err
	}
	path, err := filepath.Abs(path) // processes get to know it
	if err != nil {
		return Dir{}, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Dir{}, err
	}
	d := Dir{Path: path, Lasts: true, store: store}
	return d, d.check()
}

// check refuses a directory that is somebody else's.
func (d Dir) check() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	ours := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == Progress || strings.Contains(e.Name(), d.store) // also one that is being made
	})
	if len(entries) > 0 && !ours {
		return fmt.Errorf("%s is neither empty nor a directory of this program", d.Path)
	}
	return nil
}

// shortDir makes a directory in which the path of a socket is short enough.
func shortDir() (string, error) {
	dir, err := os.MkdirTemp("", "mw")
	if err == nil && len(filepath.Join(dir, "s")) > heartbeat.MaxSocketPath {
		err = os.Remove(dir)
		if err == nil {
			dir, err = os.MkdirTemp("/tmp", "mw")
		}
	}
	return dir, err
}

// In is the path of something in the directory.
func (d Dir) In(name string) string { return filepath.Join(d.Path, name) }

// Socket is where agents report.
func (d Dir) Socket() string { return d.In("s") }

// Store is the file of the store, where it lasts.
func (d Dir) Store() string { return d.In(d.store) }

// Load reads the progress. In a directory that is new there is none, and nothing
// is read.
func (d Dir) Load(into any) error {
	text, err := os.ReadFile(d.In(Progress))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", d.In(Progress), err)
	}
	return nil
}

// Save writes the progress, in one step, where it is to last.
func (d Dir) Save(progress any) error {
	if !d.Lasts {
		return nil
	}
	text, err := json.Marshal(progress)
	if err != nil {
		return err
	}
	path := d.In(Progress)
	if err := os.WriteFile(path+".new", text, 0o600); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Install puts this program where processes that outlive it can start it: the
// one that "go run" has made is gone by then.
func (d Dir) Install() error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	from, err := os.Open(self)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	path := d.In(programFile)
	to, err := os.OpenFile(path+".new", os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o700)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	if err := errors.Join(err, to.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Program is what processes run; empty: this very program.
func (d Dir) Program() string {
	if !d.Lasts {
		return ""
	}
	return d.In(programFile)
}

// Wipe removes what is in the directory, of which nobody has a use any more: what
// is named, and what this package has put there. What says so goes last.
func (d Dir) Wipe(names ...string) error {
	if !d.Lasts {
		return os.RemoveAll(d.Path)
	}
	for _, name := range append(names, filepath.Base(d.Socket()), programFile, programFile+".new", Progress+".new", d.store, Progress) {
		if err := os.RemoveAll(d.In(name)); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes a directory that nothing was begun in, if it is temporary.
func (d Dir) Drop() error {
	if d.Lasts {
		return nil
	}
	return d.Wipe()
}
