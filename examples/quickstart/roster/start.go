package roster

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// These variables of the environment tell a process its role and the path of its entry. It inherits
// the entry's file, open and locked, as descriptor entryFD.
const (
	roleVariable  = "MILLWRIGHT_ROLE"
	entryVariable = "MILLWRIGHT_ENTRY"
	entryFD       = 3
)

// NewInstance returns a random instance, which no other process has.
func NewInstance() string { return strings.ToLower(rand.Text()[:12]) }

// Role returns the role that Start has given this process. It is empty if Start has not started it.
func Role() string { return os.Getenv(roleVariable) }

// Start starts a process. The entry needs Name, Instance and About. program is the path of the program
// to run; if it is empty, that is the running program. The process gets a process group of its own, so
// that Ctrl-C does not end it.
func (r *Roster) Start(program, role string, e Entry) error {
	self, err := os.Executable()
	if program == "" && err == nil {
		program = self
	}
	if err := os.MkdirAll(r.path, 0o700); err != nil {
		return err
	}
	path := filepath.Join(r.path, e.Instance)
	file, err := Hold(context.Background(), filepath.Join(r.path, "."+e.Instance))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }() // then only the process has the lock
	if err := json.NewEncoder(file).Encode(Entry{Name: e.Name, About: e.About}); err != nil {
		return err
	}
	if err := os.Rename(file.Name(), path); err != nil {
		return err
	}
	cmd := exec.Command(program)
	cmd.Args = []string{role + " " + e.Name}
	cmd.Env = append(os.Environ(), roleVariable+"="+role, entryVariable+"="+path, "GOMAXPROCS=1")
	cmd.ExtraFiles = []*os.File{file}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	go func() { _ = cmd.Wait() }() // so that no zombie is left
	return nil
}

// Self is the entry of the calling process.
type Self struct{ path string }

// Join records the PID of this process in its entry, and decodes the entry's About. The process must
// call it before anything else.
func Join(about any) (Self, error) {
	syscall.CloseOnExec(entryFD) // processes that this one starts have entries of their own
	s := Self{os.Getenv(entryVariable)}
	e, err := Read(s.path)
	if err != nil {
		return s, err
	}
	return s, errors.Join(write(Entry{PID: os.Getpid()}), json.Unmarshal(e.About, about))
}

// SetState records the state of the process.
func (s Self) SetState(state State) error { return write(Entry{State: state}) }

// Beat sends a heartbeat. It returns an error if the entry was removed: then the process must end.
func (s Self) Beat() error {
	now := time.Now()
	return os.Chtimes(s.path, now, now)
}

// write adds a line to the entry of this process. It uses the plain descriptor, because the garbage
// collector would close an os.File, and so free the lock.
func write(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = syscall.Write(entryFD, append(line, '\n'))
	}
	return err
}

// End kills all running processes, waits until they have ended, and returns those that it killed. A
// process that has not joined yet is killed once it has joined.
func (r *Roster) End(ctx context.Context) (killed []Entry, err error) {
	signaled := make(map[string]bool)
	for {
		all, err := r.Entries()
		if err != nil {
			return killed, err
		}
		left := false
		for _, e := range all {
			left = left || e.Alive
			if e.Alive && !signaled[e.Instance] && e.Signal(syscall.SIGKILL) == nil {
				signaled[e.Instance] = true
				killed = append(killed, e)
			}
		}
		if !left {
			return killed, nil
		}
		if err := Pause(ctx); err != nil {
			return killed, err
		}
	}
}
