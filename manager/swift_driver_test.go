package manager_test

import (
	"context"
	"maps"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// swiftDriver is a provider that answers at once, and whose VMs join at once.
type swiftDriver struct {
	driver.Unimplemented
	w   *swift
	vms map[string]string // name to provider ID
}

// theirs is a label that others put on each node.
const theirs = "others/label"

func (d *swiftDriver) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	id, ok := d.vms[req.Machine.Name]
	if !ok {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

func (d *swiftDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	w, name := d.w, req.Machine.Name
	_, twice := d.vms[name]
	w.book.made(req.Machine, twice)
	id := "swift:///" + name
	d.vms[name] = id
	acting := w.passing
	w.passing = swiftPlace{}
	defer func() { w.passing = acting }()
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, Labels: map[string]string{theirs: name}}, ProviderID: id}
	stored, err := w.nodes.Create(ctx, node)
	if err == nil {
		err = w.ready(stored, object.True)
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: name}, err
}

func (d *swiftDriver) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.w.book.unmade(req.Machine)
	delete(d.vms, req.Machine.Name)
	return &driver.DeleteMachineResponse{}, nil
}

// ready has a node be ready, or not.
func (w *swift) ready(n *machine.Node, status object.ConditionStatus) error {
	changed := n.Clone()
	changed.Conditions = []object.Condition{{Type: machine.NodeReady, Status: status, Since: w.now}}
	_, err := w.nodes.UpdateStatus(context.Background(), changed)
	return err
}

// lookNode holds what is done to nodes to P17 and P23.
func (b *book) lookNode(old, new *machine.Node) {
	if b.w.passing.kind != manager.KindMachine {
		return
	}
	name := b.w.passing.key.Name
	switch {
	case old == nil:
		b.violated("P17", "machine %s makes a node", name)
	case old.Name != name:
		b.violated("P17", "machine %s changes node %s", name, old.Name)
	case new != nil && new.Labels[theirs] != old.Labels[theirs]:
		b.violated("P23", "machine %s changes a label of others: %v", name, maps.Clone(new.Labels))
	}
}
