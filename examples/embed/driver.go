package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"sync"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
)

// provider is the Provider of the classes for this driver.
const provider = "file"

// vm is a VM, with the name and UID of its machine. Cluster and Size come from the class: its provider
// spec has them as JSON.
type vm struct{ Machine, UID, Cluster, Size string }

// fileDriver is a driver whose VMs are entries of a JSON file, by provider ID. driver.Driver lists
// the duties of each call, and TestDriver checks them.
type fileDriver struct {
	driver.Unimplemented // answers optional calls
	path                 string
	mu                   sync.Mutex // one call at a time
}

// CreateMachine adopts a VM that has the machine's name, so that a repeated call creates no second VM.
// It records the machine's UID with the VM.
func (d *fileDriver) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	vms, want, err := d.load(ctx, q.Class, q.Machine)
	if err != nil {
		return nil, err
	}
	id := find(vms, vm{Machine: want.Machine, Cluster: want.Cluster}, "")
	if id == "" {
		id = "file:///" + want.Cluster + "/" + rand.Text() // no ID is used twice
	} else if vms[id].Size != want.Size {
		return nil, codes.Newf(codes.AlreadyExists, "the VM of machine %s is %s, not %s", want.Machine, vms[id].Size, want.Size)
	}
	vms[id] = want
	return &driver.CreateMachineResponse{ProviderID: id}, d.save(vms)
}

// DeleteMachine deletes a VM. It succeeds if the VM is gone already.
func (d *fileDriver) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	vms, want, err := d.load(ctx, q.Class, q.Machine)
	if err != nil {
		return nil, err
	}
	if id := find(vms, want, q.Machine.Spec.ProviderID); id != "" {
		delete(vms, id)
		err = d.save(vms)
	}
	return &driver.DeleteMachineResponse{}, err
}

// GetMachineStatus looks a VM up.
func (d *fileDriver) GetMachineStatus(ctx context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	vms, want, err := d.load(ctx, q.Class, q.Machine)
	if err != nil {
		return nil, err
	}
	id := find(vms, want, q.Machine.Spec.ProviderID)
	if id == "" {
		return nil, codes.Newf(codes.NotFound, "cluster %s has no VM of machine %s", want.Cluster, want.Machine)
	}
	return &driver.GetMachineStatusResponse{ProviderID: id}, nil
}

// ListMachines lists the VMs of the class's cluster. It must list no others, because the manager
// deletes a listed VM that belongs to no machine.
func (d *fileDriver) ListMachines(ctx context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	vms, want, err := d.load(ctx, q.Class, nil)
	if err != nil {
		return nil, err
	}
	listed := map[string]string{}
	for id, v := range vms {
		if v.Cluster == want.Cluster {
			listed[id] = v.Machine
		}
	}
	return &driver.ListMachinesResponse{Machines: listed}, nil
}

// find returns the provider ID of a VM, or "" if there is none. With an id it looks for the VM with that
// ID. Otherwise it looks for one with the machine's name, unless the VM has another machine's UID.
func find(vms map[string]vm, want vm, id string) string {
	for vmID, v := range vms {
		named := v.Machine == want.Machine && (v.UID == want.UID || v.UID == "" || want.UID == "")
		if v.Cluster == want.Cluster && (vmID == id || id == "" && named) {
			return vmID
		}
	}
	return ""
}

// load checks a request. It returns all VMs, and what the request wants of the machine's VM. m is nil
// for a list.
func (d *fileDriver) load(ctx context.Context, c *machine.Class, m *machine.Machine) (vms map[string]vm, want vm, err error) {
	if c.Provider != provider {
		return nil, want, codes.Newf(codes.InvalidArgument, "the class is for the provider %q; this is %q", c.Provider, provider)
	}
	if err := json.Unmarshal(c.ProviderSpec, &want); err != nil {
		return nil, want, codes.Wrap(codes.Internal, err, "the provider spec can't be decoded")
	}
	if m != nil {
		want.Machine, want.UID = m.Name, m.UID
	}
	if want.Cluster == "" || want.Size == "" || m != nil && m.Name == "" {
		return nil, want, codes.New(codes.InvalidArgument, "the cluster, the size or the machine's name is missing")
	}
	if ctx.Err() != nil {
		return nil, want, ctx.Err() // the library reads its code: CANCELED or DEADLINE_EXCEEDED
	}
	text, err := os.ReadFile(d.path)
	if errors.Is(err, fs.ErrNotExist) {
		return map[string]vm{}, want, nil
	}
	if err == nil {
		err = json.Unmarshal(text, &vms)
	}
	return vms, want, err
}

// save replaces the file in one step, so that a crash leaves the old one or the new one.
func (d *fileDriver) save(vms map[string]vm) error {
	text, err := json.MarshalIndent(vms, "", "\t")
	if err == nil {
		err = os.WriteFile(d.path+".new", text, 0o600)
	}
	if err == nil {
		err = os.Rename(d.path+".new", d.path)
	}
	return err
}
