package drivertest_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A provider in memory for your own test: the first create is refused, the second takes effect
// while its answer is lost, the third finds the VM.
func ExampleMemory() {
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	provider.FailNext(codes.CreateMachine, codes.New(codes.ResourceExhausted, "no cores are left"))
	provider.FailAfter(codes.CreateMachine, codes.New(codes.Unavailable, "the connection broke"))

	request := &driver.CreateMachineRequest{
		Machine: &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m-1"}}},
		Class:   provider.Class(object.Key{Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "small"}),
	}
	for range 3 {
		made, err := provider.CreateMachine(context.Background(), request)
		fmt.Println(provider.Count(), err)
		if err == nil {
			fmt.Println(made.ProviderID)
		}
	}
	// Output:
	// 0 ResourceExhausted: no cores are left
	// 1 Unavailable: the connection broke
	// 1 <nil>
	// memory:///blue/1
}
