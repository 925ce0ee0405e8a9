package fleet

import (
	"context"
	"errors"
	"slices"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
	"github.com/millwright-go/millwright/store"
)

// orphanVMs are VMs that no machine owns.
type orphanVMs struct {
	*orphanPass
	spaces []string // namespaces that a machine may be in
}

func (*orphanVMs) names() quarryNames {
	return quarryNames{
		list: "ListVMs", read: "ReadMachines", delete: "DeleteOrphan", failed: reasonVMNotDeleted,
		change: "call DeleteMachine for machine ",
	}
}

func (p *orphanVMs) list(ctx context.Context, class *machine.Class, secret *machine.Secret) (map[string]string, map[string]bool, error) {
	got, err := p.Driver.ListMachines(ctx, &driver.ListMachinesRequest{Class: class.Clone(), Secret: secret})
	if err != nil {
		return nil, nil, err
	}
	return withDropped(got.Machines, got.Dropped), got.Unhealthy, nil
}

// spared are the instances of pools.
func (p *orphanVMs) spared(ctx context.Context) (map[string]bool, error) { return p.instances(ctx) }

// readOwners reads the machines. Where there are none, sets and deployments say whether
// that may be so.
func (p *orphanVMs) readOwners(ctx context.Context, live bool) error {
	reader := store.Reader[*machine.Machine](p.Machines)
	if live {
		reader = p.Machines.Live()
	}
	machines, err := reader.List(ctx, store.Query{})
	if p.Own != nil {
		machines = slices.DeleteFunc(slices.Clone(machines), func(m *machine.Machine) bool { return !p.Own(m.Key) })
	}
	owners := 0
	if err == nil && len(machines) == 0 && live {
		owners, err = p.owners(ctx)
	}
	if err == nil {
		p.o.Machines, p.o.Owners = machines, owners
		p.spaces = p.namespaces()
	}
	return err
}

// still asks for the machines of the order's name.
func (p *orphanVMs) still(ctx context.Context, order *orphan.Delete) (bool, error) {
	for _, namespace := range p.spaces {
		m, err := p.Machines.Live().Get(ctx, object.Key{Namespace: namespace, Name: order.Name})
		switch {
		case errors.Is(err, store.ErrNotFound):
		case err != nil:
			return false, err
		case !order.StillOrphan(m):
			return false, nil
		}
	}
	return true, nil
}

func (*orphanVMs) about(order *orphan.Delete) object.Key {
	return object.Key{Namespace: order.Class.Namespace, Name: order.Name}
}

// delete deletes a VM by its ID, as that of a machine made up for it.
func (p *orphanVMs) delete(ctx context.Context, order *orphan.Delete, class *machine.Class, secret *machine.Secret) error {
	secrets.Address(secret, order.Name)
	m := &machine.Machine{Meta: object.Meta{Key: p.about(order)}}
	m.Spec.ProviderID, m.Spec.Class.Name = order.ProviderID, order.Class.Name
	_, err := p.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: class.Clone(), Secret: secret})
	return err
}

// namespaces are those that a machine may be in: of classes, and of machines
// whose class is gone.
func (p *orphanVMs) namespaces() []string {
	var all []string
	seen := make(map[string]bool)
	note := func(namespace string) {
		if !seen[namespace] {
			seen[namespace] = true
			all = append(all, namespace)
		}
	}
	for key := range p.classes {
		note(key.Namespace)
	}
	for _, m := range p.o.Machines {
		note(m.Namespace)
	}
	slices.Sort(all)
	return all
}

// owners counts all sets and deployments, live.
func (c *Config) owners(ctx context.Context) (int, error) {
	n := 0
	if c.Sets != nil {
		sets, err := c.Sets.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(sets)
	}
	if c.Deployments != nil {
		deployments, err := c.Deployments.Live().List(ctx, store.Query{})
		if err != nil {
			return 0, err
		}
		n += len(deployments)
	}
	return n, nil
}
