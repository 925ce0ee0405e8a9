package simulated

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Name is the name of the provider in a class.
const Name = "simulated"

// Spec is the provider spec of a class.
type Spec struct {
	// Cluster is the cluster of the VMs: calls see only VMs of the class's cluster. It is required, and
	// has lower-case letters, digits and dashes.
	Cluster string `json:"cluster"`
	// Size and Zone are labels on the nodes.
	Size string `json:"size,omitempty"`
	Zone string `json:"zone,omitempty"`
	// Capacity is how many VMs and instances the cluster may have. More are refused with
	// RESOURCE_EXHAUSTED. Zero means no limit.
	Capacity int `json:"capacity,omitempty"`
}

// Options of a Provider. Dir is required.
type Options struct {
	Dir string // the folder with the VMs
	// Nodes is the API server where VMs register their nodes. Nil means that they register none.
	Nodes kubernetes.Interface
	// Create, Boot and Delete are how long a VM takes to be created, to be ready after that, and to be
	// deleted.
	Create, Boot, Delete time.Duration
	// Heartbeat is how often nodes renew their leases. Zero means never.
	Heartbeat time.Duration
	// Period is how often Run looks for changes in the folder. Zero means 2 s.
	Period time.Duration
}

// Provider is a driver.Driver and a pooldriver.Driver. Its VMs boot only while Run runs.
type Provider struct {
	driver.Unimplemented
	options Options
	disk    disk
	nodes   nodes
}

// New returns a provider. It creates the folder if needed.
func New(o Options) (*Provider, error) {
	if o.Dir == "" {
		return nil, errors.New("simulated: no Dir")
	}
	if o.Period == 0 {
		o.Period = 2 * time.Second
	}
	d, err := openDisk(o.Dir)
	if err != nil {
		return nil, fmt.Errorf("simulated: %w", err)
	}
	return &Provider{options: o, disk: d, nodes: nodes{client: o.Nodes, heartbeat: o.Heartbeat, known: map[string]*boot{}}}, nil
}

// CreateMachine implements driver.Driver.
func (p *Provider) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	if err := p.roomFor(spec); err != nil {
		return nil, err
	}
	if err := sleep(ctx, p.options.Create); err != nil {
		return nil, err
	}
	v := VM{Cluster: spec.Cluster, Machine: req.Machine.Name, Size: spec.Size, Zone: spec.Zone, Booted: time.Now().Add(p.options.Boot)}
	created, err := p.disk.make(v)
	switch {
	case err != nil:
		return nil, failed("make a VM", err)
	case created.Size != spec.Size || created.Zone != spec.Zone:
		return nil, codes.Newf(codes.AlreadyExists, "VM %s is of another size or zone", created.Machine)
	}
	p.nodes.expect(created)
	return &driver.CreateMachineResponse{ProviderID: created.ID, NodeName: created.Machine}, nil
}

// roomFor returns an error if another VM would exceed the capacity.
func (p *Provider) roomFor(spec *Spec) error {
	if spec.Capacity == 0 {
		return nil
	}
	n, err := p.disk.count(spec.Cluster, object.Key{})
	switch {
	case err != nil:
		return failed("count VMs", err)
	case n >= spec.Capacity:
		return codes.Newf(codes.ResourceExhausted, "cluster %s has room for %d VMs", spec.Cluster, spec.Capacity)
	}
	return nil
}

// DeleteMachine implements driver.Driver.
func (p *Provider) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	found, err := p.find(spec, req.Machine)
	if err == nil {
		if err := sleep(ctx, p.options.Delete); err != nil {
			return nil, err
		}
		p.nodes.forget(found)
		err = p.disk.remove(found)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, failed("delete a VM", err)
	}
	return &driver.DeleteMachineResponse{}, nil
}

// GetMachineStatus implements driver.Driver.
func (p *Provider) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, 0); err != nil {
		return nil, err
	}
	found, err := p.find(spec, req.Machine)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, codes.Newf(codes.NotFound, "there is no VM of machine %s", req.Machine.Name)
	case err != nil:
		return nil, failed("look for a VM", err)
	}
	return &driver.GetMachineStatusResponse{ProviderID: found.ID, NodeName: found.Machine}, nil
}

// find returns the VM of a machine: the one with its provider ID, or, if it has none, the one with its
// name.
func (p *Provider) find(spec *Spec, m *machine.Machine) (VM, error) {
	if m.Name == "" {
		return VM{}, codes.New(codes.InvalidArgument, "the machine has no name")
	}
	found, err := p.disk.get(spec.Cluster, m.Name)
	if id := m.Spec.ProviderID; id == "" || err == nil && id == found.ID {
		return found, err
	}
	all, err := p.disk.list(spec.Cluster)
	if err != nil {
		return VM{}, err
	}
	if i := slices.IndexFunc(all, func(v VM) bool { return v.ID == m.Spec.ProviderID }); i >= 0 {
		return all[i], nil
	}
	return VM{}, fs.ErrNotExist
}

// ListMachines implements driver.Driver.
func (p *Provider) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	spec, err := read(req.Class)
	if err != nil {
		return nil, err
	}
	if err := sleep(ctx, 0); err != nil {
		return nil, err
	}
	all, err := p.disk.list(spec.Cluster)
	if err != nil {
		return nil, failed("list VMs", err)
	}
	resp := &driver.ListMachinesResponse{Machines: make(map[string]string, len(all))}
	for _, v := range all {
		resp.Machines[v.ID] = v.Machine
	}
	return resp, nil
}

// VMs returns the VMs of a cluster, in no particular order.
func (p *Provider) VMs(cluster string) ([]VM, error) { return p.disk.list(cluster) }

// ClusterOf returns the cluster in a provider ID, or false if the ID is not of this provider.
func ClusterOf(providerID string) (string, bool) {
	rest, ours := strings.CutPrefix(providerID, Name+":///")
	cluster, _, ok := strings.Cut(rest, "/")
	return cluster, ours && ok
}

// read decodes the provider spec of a class.
func read(c *machine.Class) (*Spec, error) {
	if c == nil || c.Provider != Name {
		return nil, codes.Newf(codes.InvalidArgument, "the class is not of provider %q", Name)
	}
	spec := &Spec{}
	if err := json.Unmarshal(c.ProviderSpec, spec); err != nil {
		return nil, codes.New(codes.Internal, "the provider spec is no JSON of this provider")
	}
	if !plain(spec.Cluster) {
		return nil, codes.New(codes.InvalidArgument, "cluster of the provider spec: needed, of lower-case letters, digits and dashes")
	}
	return spec, nil
}

// sleep waits for d. It returns an error if ctx ends before.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 && ctx.Err() == nil {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		if ctx.Err() == nil {
			return nil
		}
	case <-ctx.Done():
	}
	return codes.New(codes.Of(ctx.Err()), "the caller has gone")
}

// failed returns err if it has a code, or else an INTERNAL error whose text begins with what.
func failed(what string, err error) error {
	var coded *codes.Error
	if errors.As(err, &coded) {
		return err
	}
	return codes.Wrap(codes.Internal, err, what+": the folder failed")
}
