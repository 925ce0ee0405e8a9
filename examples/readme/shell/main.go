// Command shell is the program of the README: a manager with a driver of its own.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

func main() {
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	o := manager.InMemory(time.Now)         // your store here
	o.Driver = &cloud{vms: map[string]vm{}} // your driver here
	m, err := manager.New(o)
	check(err)
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()

	for _, size := range []string{"small", "large"} { // a class says how VMs are made, in the driver's own words
		class := &machine.Class{Meta: object.Meta{Key: object.Key{Name: size}}, ProviderSpec: []byte(`{"size":"` + size + `"}`)}
		_, err = store.CreateOrEdit(ctx, o.Store.Classes, class, nil) // nil: one that is there stays as it is
		check(err)
	}
	web := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}}}
	web.Spec.Replicas = 3
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = machineset.Template{Labels: web.Spec.Selector.Labels}
	web.Spec.Template.Spec.Class.Name = "small"
	_, err = store.CreateOrEdit(ctx, o.Store.Deployments, web, nil)
	check(err)
	_, err = store.Await(ctx, o.Store.Deployments, web.Key, deployment.Missing)
	check(err)

	// All readers share what is stored, so it is never changed in place: Edit changes a copy and stores that.
	_, err = store.Edit(ctx, o.Store.Deployments, web.Key, func(d *deployment.Deployment) error {
		d.Spec.Template.Spec.Class.Name = "large" // a rollout: by default 25% more machines for a while, and 25% less
		d.Spec.Replicas = 5
		return nil
	})
	check(err)
	web, err = store.Await(ctx, o.Store.Deployments, web.Key, deployment.Missing)
	check(err)
	fmt.Println(web.Status.Available, "large VMs")

	check(o.Store.Deployments.Delete(ctx, web.Key, web.UID))
	check(store.AwaitGone(ctx, o.Store.Deployments, web.Key))
	fmt.Println("gone, with all its machines and their VMs")
	stop()
	check(<-ended)
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

// cloud is a driver whose VMs are entries of a map, by provider ID.
type cloud struct {
	driver.Unimplemented // the calls that a driver may leave out
	mu                   sync.Mutex
	vms                  map[string]vm
	made                 int
}

// vm is one VM. It is marked with the name and the UID of its machine.
type vm struct{ machine, uid string }

// CreateMachine makes one VM for a machine's name, however often it is called: it adopts, and marks,
// the one that is there.
func (c *cloud) CreateMachine(_ context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, size, err := c.find(q.Class, q.Machine, true)
	if err != nil {
		return nil, err
	}
	if id == "" {
		c.made++
		id = fmt.Sprintf("cloud:///%s/%d", size, c.made)
	}
	c.vms[id] = vm{q.Machine.Name, q.Machine.UID}
	return &driver.CreateMachineResponse{ProviderID: id}, nil
}

// DeleteMachine answers without an error once the VM is gone.
func (c *cloud) DeleteMachine(_ context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, _, err := c.find(q.Class, q.Machine, false)
	delete(c.vms, id)
	return &driver.DeleteMachineResponse{}, err
}

// GetMachineStatus is asked before a create whether the VM is there already.
func (c *cloud) GetMachineStatus(_ context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, _, err := c.find(q.Class, q.Machine, false)
	if err == nil && id == "" {
		err = codes.New(codes.NotFound, "there is no VM of machine "+q.Machine.Name)
	}
	return &driver.GetMachineStatusResponse{ProviderID: id}, err
}

// ListMachines names the VMs of this fleet and no others: one that belongs to no machine is deleted.
func (c *cloud) ListMachines(_ context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err := sizeOf(q.Class)
	names := map[string]string{}
	for id, v := range c.vms {
		names[id] = v.machine
	}
	return &driver.ListMachinesResponse{Machines: names}, err
}

// find returns the provider ID of a machine's VM: the recorded one, or else the one of its name. It
// is empty if there is none. A VM that is marked with another UID counts only for a create.
func (c *cloud) find(class *machine.Class, m *machine.Machine, adopt bool) (id, size string, err error) {
	if m.Name == "" {
		return "", "", codes.New(codes.InvalidArgument, "the machine has no name")
	}
	if size, err = sizeOf(class); err != nil {
		return "", "", err
	}
	for id, v := range c.vms {
		ours := v.machine == m.Name && (adopt || v.uid == m.UID)
		if id == m.Spec.ProviderID || m.Spec.ProviderID == "" && ours {
			return id, size, nil
		}
	}
	return "", size, nil
}

// sizeOf reads what a class says of its VMs.
func sizeOf(class *machine.Class) (string, error) {
	var spec struct{ Size string }
	if err := json.Unmarshal(class.ProviderSpec, &spec); err != nil {
		return "", codes.Wrap(codes.Internal, err, "the provider spec can't be decoded")
	}
	if spec.Size != "small" && spec.Size != "large" {
		return "", codes.Newf(codes.InvalidArgument, "there are no VMs of size %q", spec.Size)
	}
	return spec.Size, nil
}
