package main

import (
	"testing"

	"github.com/millwright-go/millwright/driver"
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

// TestMark: a delete of a machine that comes late spares the VM of the one made again under its name.
func TestMark(t *testing.T) {
	c := &cloud{vms: map[string]vm{}}
	class := &machine.Class{ProviderSpec: []byte(`{"size":"small"}`)}
	made := func(uid string) *machine.Machine {
		return &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "m"}, UID: uid}}
	}
	create := func(m *machine.Machine) string {
		a, err := c.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: m, Class: class})
		check(err)
		return a.ProviderID
	}
	id := create(made("first"))
	if again := create(made("second")); again != id {
		t.Errorf("VM %s was made beside %s", again, id)
	}
	_, err := c.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: made("first"), Class: class})
	check(err)
	if len(c.vms) != 1 {
		t.Error("the VM of the second machine is gone")
	}
	_, err = c.DeleteMachine(t.Context(), &driver.DeleteMachineRequest{Machine: made("second"), Class: class})
	check(err)
	if len(c.vms) != 0 {
		t.Error("the VM of the second machine is left")
	}
}

func Example() {
	main()
	// Output:
	// 5 large VMs
	// gone, with all its machines and their VMs
}
