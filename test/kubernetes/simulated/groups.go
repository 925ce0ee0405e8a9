package simulated

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// A group is a folder DIR/.groups/CLUSTER/NAMESPACE/POOL, with a file for each instance, as for VMs, and
// the file groupFile with the group's target state. A call first stores the target state and then carries
// it out, so that after a crash another process can complete the work.
const (
	groupsFolder = ".groups"
	groupFile    = ".group"
	noNamespace  = "_"
)

// group is the target state of a group.
type group struct {
	ID      string               `json:"id"`
	Cluster string               `json:"cluster"`
	Pool    object.Key           `json:"pool"`
	Target  int32                `json:"target"`
	Size    string               `json:"size,omitempty"`
	Zones   []string             `json:"zones,omitempty"` // over which the instances are spread
	Node    machine.NodeTemplate `json:"node"`
	// Rolling bounds the replacement of outdated instances. Nil: one after the other.
	Rolling *machinepool.RollingUpdate `json:"rolling,omitempty"`
	// Removing are the IDs of instances that are to be removed. Draining are the IDs of instances that are
	// to be removed once they are reported as drained.
	Removing []string `json:"going,omitempty"`
	Draining []string `json:"awaiting,omitempty"`
}

// locked calls the function do while it holds the lock of the groups, which other processes use, too.
func (d disk) locked(do func() error) (err error) {
	folder := filepath.Join(string(d), groupsFolder)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return err
	}
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lock.Close()) }() // this releases the lock
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return do()
}

func (d disk) groupPath(cluster string, pool object.Key) string {
	return filepath.Join(string(d), groupsFolder, cluster, cmp.Or(pool.Namespace, noNamespace), pool.Name)
}

func (d disk) folderOf(g *group) string { return d.groupPath(g.Cluster, g.Pool) }

// group returns a group, or fs.ErrNotExist.
func (d disk) group(cluster string, pool object.Key) (*group, error) {
	if !plain(pool.Name) || pool.Namespace != "" && !plain(pool.Namespace) {
		return nil, fs.ErrNotExist
	}
	text, err := os.ReadFile(filepath.Join(d.groupPath(cluster, pool), groupFile))
	if err != nil {
		return nil, err
	}
	g := &group{}
	return g, json.Unmarshal(text, g)
}

// save stores the target state of a group.
func (d disk) save(g *group) error {
	folder := d.folderOf(g)
	return d.write(folder, g, func(draft string) error { return os.Rename(draft, filepath.Join(folder, groupFile)) })
}

// drop removes a group with its instances, all at once.
func (d disk) drop(cluster string, pool object.Key) error {
	gone, err := os.MkdirTemp(string(d), ".gone-")
	if err != nil {
		return err
	}
	err = os.Rename(d.groupPath(cluster, pool), filepath.Join(gone, "group"))
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return errors.Join(err, os.RemoveAll(gone))
}

// members returns a group's instances, oldest first.
func (d disk) members(g *group) ([]VM, error) { return membersIn(d.folderOf(g)) }

func membersIn(folder string) ([]VM, error) {
	names, err := namesIn(folder)
	var all []VM
	for _, name := range names {
		if !plain(name) {
			continue
		}
		v, err := readVM(filepath.Join(folder, name))
		if errors.Is(err, fs.ErrNotExist) {
			continue // gone meanwhile
		}
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	slices.SortFunc(all, func(a, b VM) int { return cmp.Or(a.Booted.Compare(b.Booted), cmp.Compare(a.ID, b.ID)) })
	return all, err
}

// groups returns the groups of all clusters.
func (d disk) groups() ([]*group, error) {
	files, err := filepath.Glob(filepath.Join(string(d), groupsFolder, "*", "*", "*", groupFile))
	var all []*group
	for _, file := range files {
		g := &group{}
		text, err := os.ReadFile(file)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err == nil {
			err = json.Unmarshal(text, g)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		all = append(all, g)
	}
	return all, err
}

// count returns how many VMs a cluster has, and instances its groups should have, without those of one
// pool.
func (d disk) count(cluster string, except object.Key) (int, error) {
	names, err := d.names(cluster)
	if err != nil {
		return 0, err
	}
	all, err := d.groups()
	if err != nil {
		return 0, err
	}
	n := len(names)
	for _, g := range all {
		if g.Cluster == cluster && g.Pool != except {
			n += int(g.Target)
		}
	}
	return n, nil
}
