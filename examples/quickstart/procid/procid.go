// Package procid tells processes apart. A PID alone does not: once a process is
// gone, the kernel gives its PID to another one. PID and start time together do.
package procid

import (
	"errors"
	"fmt"
	"os"
)

// ErrGone says that a process is not there any more, or is about to be gone: a
// zombie, or in the middle of its exit. Whoever has its PID is somebody else.
var ErrGone = errors.New("the process is gone")

// ID identifies one process of this computer, for ever. The zero ID is no
// process.
type ID struct {
	PID int `json:"pid"`
	// Start says when the process was started. It is the kernel's own figure
	// in a spelling that differs between systems; compare it for equality only.
	Start string `json:"start"`
}

// Self identifies the calling process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of identifies the process that has this PID now; ErrGone if none has. A child
// that was not waited for has its PID, also when it has ended.
func Of(pid int) (ID, error) {
	found, err := lookUp(pid)
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ID{PID: pid, Start: found.start}, nil
}

// Alive tells whether the process still runs. When the kernel can't be asked,
// the answer is yes: nothing may be concluded from a death that was not seen.
func (id ID) Alive() bool {
	if id.PID <= 0 {
		return false
	}
	found, err := lookUp(id.PID)
	if err != nil {
		return !errors.Is(err, ErrGone)
	}
	return found.start == id.Start && !found.ended
}

// Signal sends a signal to this process and to no other: ErrGone if its PID is
// nobody's or somebody else's by now.
func (id ID) Signal(signal os.Signal) error {
	if id.PID <= 0 {
		return ErrGone
	}
	// Where the system has handles for processes, FindProcess takes one, so that
	// who is looked at is also who gets the signal.
	process, err := os.FindProcess(id.PID)
	if err != nil {
		return fmt.Errorf("process %d: %w", id.PID, err)
	}
	defer func() { _ = process.Release() }()
	if !id.Alive() {
		return ErrGone
	}
	err = process.Signal(signal)
	if errors.Is(err, os.ErrProcessDone) {
		return ErrGone
	}
	return err
}

// entry is what the process table holds under a PID.
type entry struct {
	start string
	ended bool // a zombie, or exiting: it runs no code any more
}
