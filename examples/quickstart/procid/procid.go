// Package procid tells processes apart. A PID alone does not: once a process is gone, the kernel
// gives its PID to another one. PID and start time together do.
package procid

import (
	"errors"
	"fmt"
	"os"
)

// ErrGone says that a process no longer exists, or is about to be gone: a zombie, or in the middle
// of its exit. Its PID may belong to another process.
var ErrGone = errors.New("the process is gone")

// ID identifies one process of this computer, and never another one. The zero ID is no process.
type ID struct {
	PID int `json:"pid"`
	// Start says when the process was started. It is the kernel's own figure in a spelling that
	// differs between systems. Compare it for equality only.
	Start string `json:"start"`
}

// Self identifies the calling process.
func Self() (ID, error) { return Of(os.Getpid()) }

// Of identifies the process that has this PID now. It returns ErrGone if none has. A child that was
// not waited for has its PID, even when it has ended.
func Of(pid int) (ID, error) {
	found, err := lookUp(pid)
	if err != nil {
		return ID{}, fmt.Errorf("process %d: %w", pid, err)
	}
	return ID{PID: pid, Start: found.start}, nil
}

// Alive reports whether the process still runs. If the kernel can't be asked, it returns true:
// nothing may be concluded from a death that was not seen.
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

// Signal sends a signal to this process and to no other. It returns ErrGone if no process or
// another one has its PID now.
func (id ID) Signal(signal os.Signal) error {
	if id.PID <= 0 {
		return ErrGone
	}
	// If the system has handles for processes, FindProcess takes one, so that the process that is
	// checked is also the one that gets the signal.
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
