package codes

import (
	"iter"
	"strconv"
)

// Call names a call of the driver interface. The zero value is CreateMachine.
type Call uint8

// These are the calls of a driver. All but UpdateMachine are the provider contract's.
const (
	// CreateMachine makes the VM of a machine, or adopts the one that is there.
	CreateMachine Call = iota
	// InitializeMachine configures a VM once it has been created. Optional.
	InitializeMachine
	// DeleteMachine removes the VM of a machine.
	DeleteMachine
	// GetMachineStatus looks a machine's VM up and changes nothing. Optional.
	GetMachineStatus
	// ListMachines lists the cluster's VMs of one class. Optional.
	ListMachines
	// GetVolumeIDs names the provider's volumes behind volume specs. Optional.
	GetVolumeIDs
	// GenerateMachineClassForMigration fills a class in from a provider's own, older kind of class.
	// Optional.
	GenerateMachineClassForMigration
	// UpdateMachine changes a VM without replacing it. Optional; this library's addition to the
	// contract.
	UpdateMachine

	callCount = int(UpdateMachine) + 1
)

var callNames = [callCount]string{
	CreateMachine:                    "CreateMachine",
	InitializeMachine:                "InitializeMachine",
	DeleteMachine:                    "DeleteMachine",
	GetMachineStatus:                 "GetMachineStatus",
	ListMachines:                     "ListMachines",
	GetVolumeIDs:                     "GetVolumeIDs",
	GenerateMachineClassForMigration: "GenerateMachineClassForMigration",
	UpdateMachine:                    "UpdateMachine",
}

// Calls yields the calls in the order of their declaration.
func Calls() iter.Seq[Call] {
	return func(yield func(Call) bool) {
		for c := range Call(callCount) {
			if !yield(c) {
				return
			}
		}
	}
}

// String returns the name of the driver's method. A number that is no call reads as "Call(42)".
func (c Call) String() string {
	if int(c) >= callCount {
		return "Call(" + strconv.Itoa(int(c)) + ")"
	}
	return callNames[c]
}
