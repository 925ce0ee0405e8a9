package simulated

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
)

// VM is one of the provider's.
type VM struct {
	ID      string    `json:"id"` // the provider ID
	Cluster string    `json:"cluster"`
	Machine string    `json:"machine"`
	Size    string    `json:"size,omitempty"`
	Zone    string    `json:"zone,omitempty"`
	Booted  time.Time `json:"booted"` // when it is ready
	// Pool is the pool of an instance, NAMESPACE/NAME. It is empty for a machine's VM.
	Pool string `json:"pool,omitempty"`
	// Node is what the node of an instance carries.
	Node *machine.NodeTemplate `json:"node,omitempty"`
}

// disk keeps VMs as files DIR/CLUSTER/MACHINE. A file appears whole or not at
// all, and never changes.
type disk string

func openDisk(dir string) (disk, error) { return disk(dir), os.MkdirAll(dir, 0o700) }

// plain reports whether a name can be that of a file here.
func plain(name string) bool {
	return name != "" && len(name) < 200 && name[0] != '.' && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

func (d disk) path(cluster, name string) string { return filepath.Join(string(d), cluster, name) }

// make stores a VM, or returns the one of that name that is there already.
func (d disk) make(v VM) (VM, error) {
	if !plain(v.Machine) {
		return VM{}, codes.Newf(codes.InvalidArgument, "machine name %q can't be that of a VM", v.Machine)
	}
	v.ID = newID(v.Cluster)
	err := d.place(filepath.Join(string(d), v.Cluster), v)
	if errors.Is(err, fs.ErrExist) {
		return d.get(v.Cluster, v.Machine)
	}
	return v, err
}

func newID(cluster string) string {
	return fmt.Sprintf("%s:///%s/%s", Name, cluster, strings.ToLower(rand.Text()))
}

// place stores a VM in a folder. If one of that name is there already, the error is an fs.ErrExist.
func (d disk) place(folder string, v VM) error {
	return d.write(folder, v, func(draft string) error { return os.Link(draft, filepath.Join(folder, v.Machine)) })
}

// write drafts a value for a folder, and moves it into place.
func (d disk) write(folder string, value any, put func(draft string) error) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	draft, err := os.CreateTemp(string(d), ".draft-")
	if err != nil {
		return err
	}
	_, err = draft.Write(text)
	err = errors.Join(err, draft.Close())
	if err == nil {
		err = put(draft.Name())
	}
	if gone := os.Remove(draft.Name()); gone != nil && !errors.Is(gone, fs.ErrNotExist) {
		err = errors.Join(err, gone)
	}
	return err
}

// get returns a VM, or an fs.ErrNotExist.
func (d disk) get(cluster, name string) (VM, error) {
	if !plain(name) {
		return VM{}, fs.ErrNotExist
	}
	return readVM(d.path(cluster, name))
}

func readVM(file string) (VM, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return VM{}, err
	}
	var v VM
	err = json.Unmarshal(text, &v)
	return v, err
}

func (d disk) remove(v VM) error { return os.Remove(d.path(v.Cluster, v.Machine)) }

// list returns the VMs of a cluster.
func (d disk) list(cluster string) ([]VM, error) {
	names, err := d.names(cluster)
	var out []VM
	for _, name := range names {
		v, err := d.get(cluster, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, err
}

// names returns those of the VMs of a cluster.
func (d disk) names(cluster string) ([]string, error) {
	return namesIn(filepath.Join(string(d), cluster))
}

func namesIn(path string) ([]string, error) {
	folder, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := folder.Readdirnames(-1)
	return names, errors.Join(err, folder.Close())
}

// clusters returns those that have had a VM.
func (d disk) clusters() ([]string, error) {
	entries, err := os.ReadDir(string(d))
	var out []string
	for _, e := range entries {
		if e.IsDir() && plain(e.Name()) {
			out = append(out, e.Name())
		}
	}
	return out, err
}
