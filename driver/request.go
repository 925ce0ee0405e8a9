package driver

import "github.com/millwright-go/millwright/machine"

// CreateMachineRequest asks for the VM of Machine.
type CreateMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	// Secret is the class's boot secret (SecretRef) and credentials (CredentialsRef) merged. The
	// placeholders in its user data are replaced by this machine's values. The placeholder of the
	// bootstrap token is replaced in calls that may need a token: CreateMachine and InitializeMachine.
	// Nil: the class names none, or none that exists.
	Secret *machine.Secret
}

// CreateMachineResponse describes a VM that was created or adopted.
type CreateMachineResponse struct {
	// ProviderID is the provider's unique name for the VM, as the node itself
	// will spell it if possible: "gce://project/region/vm". Never used again for
	// another VM.
	ProviderID string
	// NodeName is the name under which the VM will join the cluster.
	NodeName  string
	Addresses []machine.Address // empty: not known yet
	// LastKnownState is the driver's own note of the VM's state, for the following calls. It is
	// stored in the machine's status, so it must hold no secret and change only with the VM. It may
	// come beside an error. Empty: the note before it stays.
	LastKnownState string
}

// InitializeMachineRequest asks that Machine's VM be configured.
type InitializeMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine
}

// InitializeMachineResponse describes the VM that was initialized. Empty fields keep what is known.
type InitializeMachineResponse struct {
	ProviderID string
	NodeName   string
	Addresses  []machine.Address
}

// DeleteMachineRequest asks that Machine's VM be gone.
type DeleteMachineRequest struct {
	Machine *machine.Machine
	Class   *machine.Class
	Secret  *machine.Secret // as for CreateMachine
}

// DeleteMachineResponse is the state of a deletion.
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
	// Unhealthy says why the VM does not work although it exists, such as "stopped" or "its host has
	// failed". It changes only with the VM. Without a cluster, a machine whose VM stays unhealthy for
	// its health timeout is replaced. With a cluster the health of the node decides, and this is
	// ignored. Empty: the VM works, or the driver can't tell.
	Unhealthy string
}

// ListMachinesRequest asks for the VMs of a class.
type ListMachinesRequest struct {
	Class  *machine.Class
	Secret *machine.Secret // as for CreateMachine, without placeholders replaced
}

// ListMachinesResponse maps VMs to the machines they were created for.
type ListMachinesResponse struct {
	Machines map[string]string // from provider ID to the name of the machine
	// Unhealthy holds the provider IDs of those VMs in Machines that are unhealthy. GetMachineStatus,
	// which the library calls before anything follows, says why. Nil: none is, or the driver can't
	// tell.
	Unhealthy map[string]bool
	// Dropped are entries of Machines that can't be acted upon: without an ID or a name, or with
	// one that is too long, which is cut. Validate moves them here. A driver leaves it empty.
	Dropped map[string]string
}

// Volume is a persistent volume of the cluster.
type Volume struct {
	Name   string // of the persistent volume
	Type   string // the CSI driver's name, or the name of the volume source
	Handle string // the name of the volume at that driver or source
	// Attributes are further fields of the volume source, as strings.
	Attributes map[string]string
	// Spec is everything that the cluster knows of the volume, in its own notation: the JSON of a
	// PersistentVolumeSpec on Kubernetes. Empty: not known. It distinguishes volume sources from
	// before CSI, whose Type is that of the CSI driver that replaced them.
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
	// LastApplied is the provider spec that the VM was created from or last updated to. Wanted is
	// the one it should have. They differ in fields that FieldUpdater declares, or not at all. The
	// text of LastApplied need not be that of any class byte for byte. After calls without an OK
	// answer it also holds what these have asked for. So remove from the VM what is in LastApplied
	// and not in Wanted, and apply everything in Wanted, in any state of the VM. Leave alone what
	// is in neither: it belongs to others.
	LastApplied, Wanted []byte
}

// UpdateMachineResponse is the state of an update.
type UpdateMachineResponse struct {
	LastKnownState string // as for CreateMachine
}
