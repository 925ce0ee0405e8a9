package mcm_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/adapters/mcm"
	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// This is the whole main function of a provider that was written for machine-controller-manager.
func ExampleRun() {
	_ = func(d theirDriver) { // d := myprovider.NewDriver()
		app.Exit(mcm.Run(context.Background(), d))
	}
	// Output:
}

// Driver turns a provider of machine-controller-manager into a driver of this library.
func ExampleDriver() {
	memory := drivertest.NewMemory(drivertest.MemoryOptions{})
	d := &cloud{Memory: memory} // has the types of machine-controller-manager
	bridge := mcm.Driver(d.CreateMachine, d.InitializeMachine, d.DeleteMachine, d.GetMachineStatus, d.ListMachines, d.GetVolumeIDs)

	class := memory.Class(object.Key{Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"})
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web-1"}}}
	created, err := bridge.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: m, Class: class})
	fmt.Println(created.ProviderID, created.NodeName, err)
	// Output: memory:///blue/1 web-1 <nil>
}
