// Package roster keeps records of processes, and knows which of them run. A roster is a directory with
// a file for each process, and each process holds a lock on its file as long as it runs.
//
// The program that starts a process creates the file and locks it. The process inherits the lock. So
// the file exists before the process, and no process is forgotten if the program crashes. When a
// process ends, for any reason, the kernel frees the lock. Nothing else locks a file of a roster, and
// no file is used twice.
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

// These are the states. A process that boots has none.
const (
	Serving   State = "serving"   // it has booted, and does its work
	Leaving   State = "leaving"   // it was told to end, and does no work any more
	Abandoned State = "abandoned" // it has ended by itself, because no program managed it
)

// Entry is the record of one process. Its file holds lines of JSON; each line adds fields or replaces
// them.
type Entry struct {
	Path     string `json:"-"` // of the file
	Instance string `json:"-"` // the file's name; no two processes have the same

	Name  string          `json:"name,omitempty"`  // of the machine or task; several processes may have the same
	About json.RawMessage `json:"about,omitempty"` // the arguments of the process
	PID   int             `json:"pid,omitempty"`   // zero until the process has joined (Join)
	State State           `json:"state,omitempty"`

	Alive bool      `json:"-"` // whether the process runs
	Beat  time.Time `json:"-"` // time of the last heartbeat
}

// Signal sends a signal to a process that was alive a moment ago, and has joined.
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
	ended map[string]Entry // by instance: entries of ended processes, which don't change any more
}

// Open returns the roster in a directory, which need not exist yet.
func Open(path string) *Roster { return &Roster{path: path, ended: make(map[string]Entry)} }

// Entries returns all processes, also those that have ended, in no particular order.
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
			continue // Start is creating it
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

// Running returns the processes that run and have joined.
func (r *Roster) Running() (running []Entry, err error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.PID != 0 && e.Alive {
			running = append(running, e)
		}
	}
	return running, err
}

// Living returns the running process with a name and an instance, or nil if there is none. An empty
// instance means any. The process may not have joined yet.
func (r *Roster) Living(name, instance string) (*Entry, error) {
	all, err := r.Entries()
	for _, e := range all {
		if e.Alive && e.Name == name && (instance == "" || instance == e.Instance) {
			return &e, nil
		}
	}
	return nil, err
}

// Read reads the entry of one process.
func Read(path string) (Entry, error) {
	e := Entry{Path: path, Instance: filepath.Base(path)}
	file, err := os.Open(path)
	if err != nil {
		return e, err
	}
	defer func() { _ = file.Close() }()
	// The lock is read before the content: if the process has ended, the content is complete.
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

// Held reports whether a program has locked a file (Hold).
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

// Hold opens a file, creates it if needed, and locks it. It waits as long as another program has the
// lock. The caller closes the file to free the lock. Programs that the caller starts don't inherit it.
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

// Hold waits until nobody starts a process with a name, in this program or another, and keeps others from it
// until the file is closed.
func (r *Roster) Hold(ctx context.Context, name string) (*os.File, error) {
	if err := os.MkdirAll(r.path, 0o700); err != nil {
		return nil, err
	}
	return Hold(ctx, filepath.Join(r.path, ".name-"+name))
}

// WriteFile replaces a file in one step: a crash leaves the old file or the new one.
func WriteFile(path string, text []byte, mode fs.FileMode) error {
	if err := os.WriteFile(path+".new", text, mode); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}

// Every calls the function look, and again after each interval, until ctx ends or look fails. It
// returns the error.
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

// Pause waits 5 ms, or until ctx ends.
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
