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

// These variables tell a process which part it plays, and where its entry is. It finds the entry
// open and locked, too.
const (
	roleVariable  = "MILLWRIGHT_ROLE"
	entryVariable = "MILLWRIGHT_ENTRY"
	entryFD       = 3
)

// NewInstance returns an instance that no other process has.
func NewInstance() string { return strings.ToLower(rand.Text()[:12]) }

// Role returns the part that this process was started for. It is empty for the program itself.
func Role() string { return os.Getenv(roleVariable) }

// Start starts a process with an entry, which has a Name, an Instance, and what it is About. The
// process runs the program of that path; if it is empty, the running program. It is in a process
// group of its own, because terminal input is not for it. Start waits for it in the background.
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
	defer func() { _ = file.Close() }() // from then on only the process has the lock
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
	go func() { _ = cmd.Wait() }() // the lock says that it has ended
	return nil
}

// Self is the entry of the calling process.
type Self struct{ path string }

// Join says that this process is there, and reads what it was started with. The process does so
// before anything else.
func Join(about any) (Self, error) {
	syscall.CloseOnExec(entryFD) // what this process starts has entries of its own
	s := Self{os.Getenv(entryVariable)}
	e, err := Read(s.path)
	if err != nil {
		return s, err
	}
	return s, errors.Join(write(Entry{PID: os.Getpid()}), json.Unmarshal(e.About, about))
}

// Say records the state of the process.
func (s Self) Say(state State) error { return write(Entry{State: state}) }

// Beat sends a heartbeat. It returns an error if the entry was removed, and the process with it.
func (s Self) Beat() error {
	now := time.Now()
	return os.Chtimes(s.path, now, now)
}

// write adds a line to the entry of this process. The descriptor is no os.File, which would free
// the lock when it is collected.
func write(e Entry) error {
	line, err := json.Marshal(e)
	if err == nil {
		_, err = syscall.Write(entryFD, append(line, '\n'))
	}
	return err
}

// End kills all processes that run, waits until they are gone, and returns which ones it killed. A
// process that has not joined yet is killed when it has.
func (r *Roster) End(ctx context.Context) (killed []Entry, err error) {
	told := make(map[string]bool)
	for {
		all, err := r.Entries()
		if err != nil {
			return killed, err
		}
		left := false
		for _, e := range all {
			left = left || e.Alive
			if e.Alive && !told[e.Instance] && e.Signal(syscall.SIGKILL) == nil {
				told[e.Instance] = true
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
