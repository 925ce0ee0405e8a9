// Package home has the directory in which a play keeps what its processes need: records, ledgers,
// desks, a socket. A permanent one has the play's store too, its progress, and the program that its
// processes run. Its content outlives the program that plays.
package home

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/millwright-go/millwright/examples/quickstart/heartbeat"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// ProgressFile is the file that says how far a play has come.
const ProgressFile = "play.json"

// programFile is the program that processes run.
const programFile = "program"

// Dir is the directory of a play.
type Dir struct {
	Path  string
	Lasts bool
	store string // the name of the store's file
}

// New returns the directory at that path. New makes it if it does not exist. It must be empty or
// have an earlier play with a store of that name. If the path is empty, the directory is a
// temporary one.
func New(path, store string) (Dir, error) {
	if path == "" {
		path, err := shortDir()
		return Dir{Path: path, store: store}, err
	}
	path, err := filepath.Abs(path) // processes get its path
	if err != nil {
		return Dir{}, err
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return Dir{}, err
	}
	d := Dir{Path: path, Lasts: true, store: store}
	return d, d.check()
}

// check refuses a directory that belongs to something else.
func (d Dir) check() error {
	entries, err := os.ReadDir(d.Path)
	if err != nil {
		return err
	}
	ours := slices.ContainsFunc(entries, func(e os.DirEntry) bool {
		return e.Name() == ProgressFile || strings.Contains(e.Name(), d.store) // even one that is being made
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

// In returns the path of something in the directory.
func (d Dir) In(name string) string { return filepath.Join(d.Path, name) }

// Socket returns where agents report.
func (d Dir) Socket() string { return d.In("s") }

// Store returns the file of the store, if it is permanent.
func (d Dir) Store() string { return d.In(d.store) }

// Load reads the progress. A new directory has none, and Load reads nothing.
func (d Dir) Load(into any) error {
	_, err := registry.Load(d.In(ProgressFile), into)
	return err
}

// Save writes the progress, in one step, if it is permanent.
func (d Dir) Save(progress any) error {
	if !d.Lasts {
		return nil
	}
	return registry.Write(d.In(ProgressFile), progress)
}

// Install copies this program to where processes that outlive it can start it, because the one that
// "go run" has made is gone then.
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

// Program returns what processes run. If it is empty, it is the running program.
func (d Dir) Program() string {
	if !d.Lasts {
		return ""
	}
	return d.In(programFile)
}

// Wipe removes what is no longer needed in the directory: what is named, and what this package has
// put there. The file that says so is removed last.
func (d Dir) Wipe(names ...string) error {
	if !d.Lasts {
		return os.RemoveAll(d.Path)
	}
	for _, name := range append(names, filepath.Base(d.Socket()), programFile, programFile+".new", ProgressFile+".new", d.store, ProgressFile) {
		if err := os.RemoveAll(d.In(name)); err != nil {
			return err
		}
	}
	return nil
}

// Drop removes a temporary directory in which nothing was begun.
func (d Dir) Drop() error {
	if d.Lasts {
		return nil
	}
	return d.Wipe()
}
