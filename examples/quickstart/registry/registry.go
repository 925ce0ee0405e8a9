// Package registry keeps, for each machine of a cluster, a record of the one process that may be
// it, and the locks that make it one. It is a directory, so it outlives the programs that read and
// write it.
//
// Three files belong to a machine:
//
//   - the guard, locked while the machine's process is created or deleted;
//   - the record, which names the incarnation (the instance) that is wanted;
//   - the seat, locked by the machine's process for as long as it lives.
//
// A process that has taken the seat reads the record, and ends unless that names it. Only a process
// that holds the guard and the seat writes or removes a record. So at any time:
//
//   - at most one process of a machine stays alive, however many were
//     started, and if any died half way: the kernel frees the locks;
//   - a process that stays alive is the one on record.
package registry

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// These are the errors of this package.
var (
	// ErrName says that a name can't be a file's name.
	ErrName = errors.New("must consist of lower-case letters, digits, '-' and '.', begin and end with a letter or a digit, and have at most 200 characters")
	// ErrHeld says that another one holds a lock.
	ErrHeld = errors.New("the lock is held by another process")
	// ErrSuperseded says that a process is not the one on record.
	ErrSuperseded = errors.New("the record names no or another incarnation")
)

var names = regexp.MustCompile(`^[a-z0-9]([-a-z0-9.]{0,198}[a-z0-9])?$`)

// CheckName returns ErrName unless name can be a machine's or a cluster's.
func CheckName(name string) error {
	if !names.MatchString(name) {
		return fmt.Errorf("%q %w", name, ErrName)
	}
	return nil
}

// Record says which process is wanted for a machine.
type Record struct {
	Machine  string          `json:"machine"`
	Instance string          `json:"instance"` // unique among all incarnations
	Spec     json.RawMessage `json:"spec"`     // what it was made from
}

// Occupant is the process that holds a machine's seat.
type Occupant struct {
	Instance string    `json:"instance"`
	ID       procid.ID `json:"id"`
}

// Dir is the directory of one cluster.
type Dir struct{ path string }

// At returns the directory of that path. If there is none, it is empty.
func At(path string) *Dir { return &Dir{path} }

// Make returns the directory of that path, and makes it if it does not exist.
func Make(path string) (*Dir, error) {
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, err
	}
	return At(path), nil
}

// Path returns where the directory is.
func (d *Dir) Path() string { return d.path }

const recordSuffix = ".json"

func (d *Dir) record(name string) string { return filepath.Join(d.path, name+recordSuffix) }
func (d *Dir) guard(name string) string  { return filepath.Join(d.path, name+".guard") }
func (d *Dir) seat(name string) string   { return filepath.Join(d.path, name+".seat") }

// Read returns the record of a machine, or nil.
func (d *Dir) Read(name string) (*Record, error) {
	r := &Record{}
	found, err := Load(d.record(name), r)
	switch {
	case err != nil:
		return nil, fmt.Errorf("record of machine %s: %w", name, err)
	case !found:
		return nil, nil //nolint:nilnil // nothing is on record
	}
	return r, nil
}

// List returns all records.
func (d *Dir) List() ([]*Record, error) {
	names, err := Names(d.path, recordSuffix)
	if err != nil {
		return nil, err
	}
	var all []*Record
	for _, name := range names {
		r, err := d.Read(name)
		if err != nil {
			return nil, err
		}
		if r != nil { // it may be gone meanwhile
			all = append(all, r)
		}
	}
	return all, nil
}

// Occupant returns the holder of a machine's seat, by its own account. The process may have died
// since, or its account may be a leftover: check whether it is alive. It returns false if there is
// no readable account.
func (d *Dir) Occupant(name string) (Occupant, bool) {
	var o Occupant
	text, err := os.ReadFile(d.seat(name))
	if err != nil || json.Unmarshal(text, &o) != nil {
		return Occupant{}, false
	}
	return o, true
}

// Living returns the process on record r, if it lives.
func (d *Dir) Living(r *Record) (Occupant, bool) {
	if r == nil {
		return Occupant{}, false
	}
	o, ok := d.Occupant(r.Machine)
	return o, ok && o.Instance == r.Instance && o.ID.Alive()
}

// Guard waits for the right to create or delete a machine's process.
func (d *Dir) Guard(ctx context.Context, name string) (*Lock, error) {
	return wait(ctx, func() (*Lock, error) { return tryLock(d.guard(name), os.O_CREATE) })
}

// TakeSeat takes the seat of a machine for the moment. It returns ErrHeld if a process has it. The
// caller holds the guard.
func (d *Dir) TakeSeat(name string) (*Seat, error) {
	lock, err := tryLock(d.seat(name), os.O_CREATE)
	if err != nil {
		return nil, err
	}
	return &Seat{lock, d, name}, nil
}

// Seat is a machine's seat, held by a process that is about to change the record.
type Seat struct {
	*Lock
	dir  *Dir
	name string
}

// Write records r, in one step.
func (s *Seat) Write(r *Record) error { return Write(s.dir.record(s.name), r) }

// Clear removes the record and the seat itself.
func (s *Seat) Clear() error {
	err := os.Remove(s.dir.record(s.name))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, s.Remove())
}

// Occupy makes the calling process the machine's process. It returns the seat, which must not be
// released as long as the process does anything. It returns ErrSuperseded if another incarnation is
// wanted, or none.
func (d *Dir) Occupy(ctx context.Context, self Record, id procid.ID) (*Lock, error) {
	lock, err := wait(ctx, func() (*Lock, error) { return tryLock(d.seat(self.Machine), 0) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil, ErrSuperseded
	}
	if err != nil {
		return nil, err
	}
	if err := d.confirm(lock, self, id); err != nil {
		lock.Release()
		return nil, err
	}
	return lock, nil
}

func (d *Dir) confirm(seat *Lock, self Record, id procid.ID) error {
	switch wanted, err := d.Wanted(self); {
	case err != nil:
		return err
	case !wanted:
		return ErrSuperseded
	}
	text, err := json.Marshal(Occupant{self.Instance, id})
	if err != nil {
		return err
	}
	return seat.write(text)
}

// Wanted reports whether the record of a machine names this incarnation.
func (d *Dir) Wanted(self Record) (bool, error) {
	r, err := d.Read(self.Machine)
	return r != nil && r.Instance == self.Instance, err
}
