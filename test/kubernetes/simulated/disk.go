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

// VM is a VM of the provider: one of a machine, or an instance of a pool's group.
type VM struct {
	ID      string    `json:"id"` // the provider ID
	Cluster string    `json:"cluster"`
	Machine string    `json:"machine"`
	Size    string    `json:"size,omitempty"`
	Zone    string    `json:"zone,omitempty"`
	Booted  time.Time `json:"booted"` // when the VM is or will be ready
	// Pool is the pool of an instance, as NAMESPACE/NAME. It is empty for a machine's VM.
	Pool string `json:"pool,omitempty"`
	// Node has the labels, annotations and taints for the node of an instance.
	Node *machine.NodeTemplate `json:"node,omitempty"`
}

// disk is the folder with the VMs, as files DIR/CLUSTER/MACHINE. A file is created in one step, and never
// changed.
type disk string

func openDisk(dir string) (disk, error) { return disk(dir), os.MkdirAll(dir, 0o700) }

// plain reports whether a name may be the name of a file or folder in the provider's folder.
func plain(name string) bool {
	return name != "" && len(name) < 200 && name[0] != '.' && !strings.ContainsFunc(name, func(r rune) bool {
		return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z')
	})
}

func (d disk) path(cluster, name string) string { return filepath.Join(string(d), cluster, name) }

// make creates a VM, or returns the existing one of the same name.
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

// place creates the file of a VM in a folder. If there is one of the same name, the error is fs.ErrExist.
func (d disk) place(folder string, v VM) error {
	return d.write(folder, v, func(draft string) error { return os.Link(draft, filepath.Join(folder, v.Machine)) })
}

// write writes a value to a draft, and calls put, which moves the draft into the folder in one step.
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

// get returns a VM, or fs.ErrNotExist.
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

// names returns the names of the VMs of a cluster.
func (d disk) names(cluster string) ([]string, error) {
	return namesIn(filepath.Join(string(d), cluster))
}

// namesIn returns the names in a folder, which need not exist.
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

// clusters returns all clusters that have or had a VM.
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
