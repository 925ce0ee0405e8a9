// Package roster says which processes of a fleet there are, and which of them run. Each process has
// a file of its own, and holds a lock on it for as long as it lives.
//
// The program that starts a process makes the file and locks it. The process inherits the lock. So
// the file exists before the process does, a crash at any moment loses no process, and the kernel
// says who is alive: it frees the lock when the process ends, in any way. Nothing else locks a file
// of a roster, and no file is used twice.
package roster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

// State is what a process says of itself.
type State string

// These are the states. A process that has just started has none.
const (
	Serving   State = "serving"   // it has booted and does its work
	Leaving   State = "leaving"   // it was told to end, and does no work any more
	Abandoned State = "abandoned" // it ends by itself, because no program managed it
)

// Entry is what a roster has about one process. Its file holds lines of JSON. Each adds to those
// before it.
type Entry struct {
	Path     string `json:"-"` // of the file
	Instance string `json:"-"` // the file's name, unique to this process

	Name  string          `json:"name,omitempty"`  // of the machine or task; a later process may have the same
	About json.RawMessage `json:"about,omitempty"` // what it was started with
	PID   int             `json:"pid,omitempty"`   // zero until the process has joined, as it first does
	State State           `json:"state,omitempty"`

	Alive bool      `json:"-"` // the process runs
	Beat  time.Time `json:"-"` // when the process was heard last
}

// Signal sends a signal to a process that was alive a moment ago.
func (e Entry) Signal(s syscall.Signal) error {
	if e.PID == 0 {
		return os.ErrProcessDone
	}
	return syscall.Kill(e.PID, s)
}

// Roster is a directory of entries. Open makes it. It is safe for concurrent use.
type Roster struct {
	path string

	mu    sync.Mutex
	ended map[string]Entry // by instance: nothing about them changes any more
}

// Open returns the roster of that directory, which need not exist yet.
func Open(path string) *Roster { return &Roster{path: path, ended: make(map[string]Entry)} }

// Entries returns all processes that there are or were, in no particular order.
func (r *Roster) Entries() ([]Entry, error) {
	files, err := os.ReadDir(r.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []Entry
	for _, file := range files {
		if strings.HasPrefix(file.Name(), ".") {
			continue // it is being made
		}
		e, known := r.ended[file.Name()]
		if !known {
			if e, err = Read(filepath.Join(r.path, file.Name())); err != nil {
				return nil, err
			}
			if !e.Alive {
				r.ended[e.Instance] = e
			}
		}
		all = append(all, e)
	}
	return all, nil
}

// Running returns the processes that have joined and run.
func (r *Roster) Running() (running []Entry, err error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.PID != 0 && e.Alive {
			running = append(running, e)
		}
	}
	return running, err
}

// Living returns the process of a name that runs, or nil if there is none. It may not have joined
// yet. An empty instance means any.
func (r *Roster) Living(name, instance string) (*Entry, error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.Alive && e.Name == name && (instance == "" || instance == e.Instance) {
			return &e, nil
		}
	}
	return nil, err
}

// Read reads the file of one process.
func Read(path string) (Entry, error) {
	e := Entry{Path: path, Instance: filepath.Base(path)}
	file, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer func() { _ = file.Close() }()
	// The lock comes first: what a process that has ended wrote is there already.
	if e.Alive, err = held(file); err != nil {
		return e, err
	}
	info, err := file.Stat()
	if err != nil {
		return e, err
	}
	e.Beat = info.ModTime()
	for lines := json.NewDecoder(file); err == nil; {
		err = lines.Decode(&e)
	}
	if !errors.Is(err, io.EOF) {
		return e, fmt.Errorf("%s: %w", path, err)
	}
	return e, nil
}

// Held reports whether a program holds the lock of the file of that path (Hold).
func Held(path string) (bool, error) {
	file, err := os.Open(path)
	if err != nil {
		return false, err
	}
	defer func() { _ = file.Close() }()
	return held(file)
}

func held(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return true, nil
	}
	return false, err
}

// Hold makes a file and locks it. It waits as long as another program has the lock. The caller
// closes the file to free the lock. Programs that it starts don't inherit it.
func Hold(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err == nil {
			return file, nil
		}
		if errors.Is(err, syscall.EWOULDBLOCK) {
			err = Pause(ctx)
		}
		if err != nil {
			return nil, errors.Join(err, file.Close())
		}
	}
}

// WriteFile writes a file in one step: a crash leaves what was there before.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Every calls look again and again until ctx ends. It returns what ended it.
func Every(ctx context.Context, interval time.Duration, look func(context.Context) error) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		if err := look(ctx); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// Pause waits a moment before the caller looks again.
func Pause(ctx context.Context) error {
	timer := time.NewTimer(5 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}
