package main

import (
	"testing"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func TestDriver(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(t *testing.T) drivertest.Setup {
		return drivertest.Setup{
			NoNodeNames: true, // no cluster is joined
			Driver:      &cloud{vms: map[string]vm{}},
			Class:       &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}, ProviderSpec: []byte(`{"size":"small"}`)},
			Invalid:     &machine.Class{Meta: object.Meta{Key: object.Key{Name: "huge"}}, ProviderSpec: []byte(`{"size":"huge"}`)},
		}
	}})
}

func Example() {
	main()
	// Output:
	// 5 large VMs
	// gone, with all its machines and their VMs
}
