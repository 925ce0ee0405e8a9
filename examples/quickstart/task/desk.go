package task

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// Desk is the directory of one node: orders that the cluster puts there,
// reports of the node's agent, and the volumes that are attached to the node.
type Desk struct{ path string }

// At returns the desk of that path. If there is no directory, it is empty.
func At(path string) *Desk { return &Desk{path} }

// Letter is an order with what has changed about it since it was given.
type Letter struct {
	Order
	// Told says that the task is to end.
	Told bool `json:"told,omitempty"`
	// Grace is how long a task that was told to end may take before it is killed. If it is zero,
	// the task is killed at once.
	Grace time.Duration `json:"grace,omitempty"`
}

// State is what an agent reports of a task.
type State string

// These are the states. Without a report, the state is unknown.
const (
	Serving State = "Serving"
	// Ended: the process was waited for, or will never be started.
	Ended State = "Ended"
)

// Report of an agent about a task.
type Report struct {
	State State  `json:"state"`
	PID   int    `json:"pid,omitempty"`
	Note  string `json:"note,omitempty"` // how it ended
}

const (
	orderSuffix  = ".order"
	reportSuffix = ".report"
	volumeSuffix = ".volume"
)

// Give stores an order, or a change of it.
func (d *Desk) Give(l Letter) error {
	if err := errors.Join(l.validate(), registry.CheckName(l.UID)); err != nil {
		return err
	}
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	return registry.Write(filepath.Join(d.path, l.UID+orderSuffix), l)
}

// Report stores a report.
func (d *Desk) Report(uid string, r Report) error {
	return registry.Write(filepath.Join(d.path, uid+reportSuffix), r)
}

// Orders returns what lies there, by UID.
func (d *Desk) Orders() (map[string]Letter, error) {
	return read[Letter](d, orderSuffix)
}

// Reports returns the reports, by UID.
func (d *Desk) Reports() (map[string]Report, error) {
	return read[Report](d, reportSuffix)
}

func read[T any](d *Desk, suffix string) (map[string]T, error) {
	uids, err := registry.Names(d.path, suffix)
	if err != nil {
		return nil, err
	}
	all := make(map[string]T)
	for _, uid := range uids {
		var content T
		found, err := registry.Load(filepath.Join(d.path, uid+suffix), &content)
		if err != nil {
			return nil, err
		}
		if found { // it may be gone meanwhile
			all[uid] = content
		}
	}
	return all, nil
}

// Drop removes an order and its report. It removes the order first, because an agent without an
// order starts nothing.
func (d *Desk) Drop(uid string) error {
	return errors.Join(gone(os.Remove(filepath.Join(d.path, uid+orderSuffix))),
		gone(os.Remove(filepath.Join(d.path, uid+reportSuffix))))
}

// Mount returns the path of a volume that is attached to the node.
func (d *Desk) Mount(volume string) string { return filepath.Join(d.path, volume+volumeSuffix) }

// Volumes returns those that are attached to the node.
func (d *Desk) Volumes() ([]string, error) { return registry.Names(d.path, volumeSuffix) }

// Attach lets the node's tasks open the volume of that path, under Mount. A second call is
// harmless.
func (d *Desk) Attach(volume, path string) error {
	if err := os.MkdirAll(d.path, 0o700); err != nil {
		return err
	}
	err := os.Link(path, d.Mount(volume))
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// Detach detaches a volume. It returns registry.ErrHeld if a process still has it.
func (d *Desk) Detach(volume string) error {
	lock, err := registry.Try(d.Mount(volume))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return lock.Remove()
}

func gone(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
