package driver

import "github.com/millwright-go/millwright/machine"

// CreateMachineRequest asks for the VM of Machine.
type CreateMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	// Secret is boot secret and credentials merged, the placeholders in its
	// user data replaced by this machine's values. That of the bootstrap token
	// is replaced where a token may be needed: in CreateMachine and
	// InitializeMachine. Nil: the class names none.
	Secret *machine.Secret
}

// CreateMachineResponse describes a VM that was made or adopted.
type CreateMachineResponse struct {
	// ProviderID is the provider's unique name for the VM, as the node itself
	// will spell it if possible: "gce://project/region/vm". Never used again for
	// another VM.
	ProviderID string
	// NodeName is the name under which the VM will join the cluster.
	NodeName  string
	Addresses []machine.Address // empty: not known yet
	// LastKnownState is the driver's own note of where the VM stands, for the
	// calls that follow; it is stored in the machine's status, so it must hold no
	// secret and change only with the VM. It may come beside an error. Empty:
	// the note before it stays.
	LastKnownState string
}

// InitializeMachineRequest asks that Machine's VM be configured.
type InitializeMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine
}

// InitializeMachineResponse describes the VM that was initialized. Empty
// fields leave what is known as it is.
type InitializeMachineResponse struct {
	ProviderID string
	NodeName   string
	Addresses  []machine.Address
}

// DeleteMachineRequest asks that Machine's VM be gone.
type DeleteMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine; nil also when it is gone
}

// DeleteMachineResponse says how a deletion stands.
type DeleteMachineResponse struct {
	LastKnownState string // as for CreateMachine
}

// GetMachineStatusRequest asks for the VM of Machine.
type GetMachineStatusRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine
}

// GetMachineStatusResponse describes the VM that was found. It comes beside
// UNINITIALIZED too.
type GetMachineStatusResponse struct {
	ProviderID string // as for CreateMachine
	NodeName   string
	Addresses  []machine.Address
}

// ListMachinesRequest asks for the VMs of a class.
type ListMachinesRequest struct {
	Class  *machine.Class
	Secret *machine.Secret // as for CreateMachine, without placeholders replaced
}

// ListMachinesResponse names VMs and the machines they were made for.
type ListMachinesResponse struct {
	Machines map[string]string // from provider ID to the name of the machine
	// Dropped are entries of Machines that can't be acted upon, without an ID
	// or a name, or with one that is too long, which is cut: Validate moves them
	// here. A driver leaves it empty.
	Dropped map[string]string
}

// Volume is a persistent volume of the cluster.
type Volume struct {
	Name   string // of the persistent volume
	Type   string // the CSI driver's name, or the name of the volume source
	Handle string // what that driver or source calls the volume
	// Attributes are further fields of the volume source, as strings.
	Attributes map[string]string
	// Spec is all that the cluster knows of the volume, in its own notation: the JSON
	// of a PersistentVolumeSpec on Kubernetes. Empty: not known. It tells volume
	// sources from before CSI, whose Type is that of the CSI driver after them.
	Spec []byte
}

// GetVolumeIDsRequest asks for the provider's names of Volumes.
type GetVolumeIDsRequest struct {
	Volumes []Volume
}

// GetVolumeIDsResponse names the volumes that the driver knows, in any order.
type GetVolumeIDsResponse struct {
	VolumeIDs []string
}

// GenerateMachineClassForMigrationRequest asks that Class be filled.
type GenerateMachineClassForMigrationRequest struct {
	// ProviderSpecificClass is the older class, of a Go type that the driver
	// documents.
	ProviderSpecificClass any
	// Class is to be filled. It belongs to the call alone.
	Class *machine.Class
	// ClassRef names the older class and its kind.
	ClassRef machine.ClassRef
}

// GenerateMachineClassForMigrationResponse is empty; the answer is in the
// request's Class.
type GenerateMachineClassForMigrationResponse struct{}

// UpdateMachineRequest asks that Machine's VM be changed from one provider
// spec to another.
type UpdateMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine
	// LastApplied is the provider spec that the VM was made from or last updated
	// to, Wanted the one it should have. They differ in fields that FieldUpdater
	// declares, or not at all. The text of LastApplied need not be that of any
	// class byte for byte. After calls that were not answered with OK it holds
	// what these have asked for as well. So what is in LastApplied and not in
	// Wanted is to be taken away, and all that is in Wanted is to hold, whatever
	// the VM is found with; what is in neither is somebody else's.
	LastApplied, Wanted []byte
}

// UpdateMachineResponse says how an update stands.
type UpdateMachineResponse struct {
	LastKnownState string // as for CreateMachine
}
