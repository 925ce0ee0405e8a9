package driver

import "context"

// Driver creates, finds and removes the machines of one provider. CreateMachine and DeleteMachine
// are required. A driver without one of the others always answers UNIMPLEMENTED there.
//
// The rules for every call:
//
//   - A nil error is OK. Any other answer is an error with a code (codes.Of) and
//     a message that a person can act on, without secrets, and without anything
//     that changes from one attempt to the next. A response may come beside an
//     error; see LastKnownState and UNINITIALIZED below.
//   - Calls come from several goroutines at once, and a call may be repeated
//     while an earlier one, whose caller is gone, is still at work. A second
//     operation on one machine may be refused with ABORTED.
//   - A call ends soon after its context does, with CANCELED or DEADLINE_EXCEEDED, or
//     with the answer if the work was done by then. It leaves nothing behind that
//     a repeated call could not take up.
//   - A driver acts on VMs of its own cluster only, which the provider spec names (by a
//     prefix of VM names, by the tags kubernetes.io/cluster and
//     kubernetes.io/role, or by a resource group; a driver documents which).
//   - Requests are shared: a driver changes nothing that it can reach from one, the class
//     to fill in GenerateMachineClassForMigration excepted, and keeps none of it.
//   - The secret is nil if the class names none, and if those that it names do not exist. A call
//     that needs one then answers UNAUTHENTICATED, never NOT_FOUND and no shorter list: the
//     library takes what it does not find for gone.
//   - A class of another provider, a blank machine name, and a provider spec that
//     can't work are INVALID_ARGUMENT; a provider spec that can't be decoded is
//     INTERNAL.
//   - Machine.Spec.ProviderID, where it is set, names the VM; otherwise
//     Machine.Name does. Machine.Status.LastKnown is the LastKnownState that a
//     call before answered, or empty: it may have been lost.
//
// Codes with the same meaning everywhere: UNAUTHENTICATED and PERMISSION_DENIED
// (credentials that are wrong, or not enough), UNAVAILABLE (the provider does
// not serve at present), UNKNOWN (too little is known), INTERNAL (an invariant
// is broken), PRECONDITION_FAILED (the VM's state doesn't allow the call).
type Driver interface {
	// CreateMachine creates the VM of a machine. It is idempotent by the machine's name. It adopts
	// a VM of that name that fits the class, and answers as if it had just created it. It never
	// creates a second one, even if two calls race or the answer to an earlier call was lost. It
	// marks the VM, also one that it adopts, with Machine.UID, in a tag for example, if the provider
	// can: see DeleteMachine.
	//
	// OK comes with ProviderID, and with NodeName if a cluster is attached. Without a cluster the
	// machine is Available from then on, so the VM must be usable. ALREADY_EXISTS: a VM of
	// that name differs from the request; the machine fails, and its replacement has another name.
	// RESOURCE_EXHAUSTED: quota or capacity. OUT_OF_RANGE: sizes the provider does not offer. An
	// error may come with LastKnownState.
	CreateMachine(context.Context, *CreateMachineRequest) (*CreateMachineResponse, error)

	// InitializeMachine configures a VM after it was created (network interfaces, for example). It
	// is idempotent, also on a VM that is configured already. Optional.
	//
	// OK: the VM is initialized. NOT_FOUND: there is no such VM. UNINITIALIZED: it is not possible
	// yet, and the library tries again.
	InitializeMachine(context.Context, *InitializeMachineRequest) (*InitializeMachineResponse, error)

	// DeleteMachine removes the VM of a machine and everything that was created with it. Given a
	// provider ID, it deletes exactly that VM and no other of the same name. Without an ID, it
	// deletes every VM of the machine's name, except one that is marked with the UID of another
	// machine. It is idempotent.
	//
	// The exception protects a machine that a person creates again under the same name: a delete of the
	// former machine may take effect late, after its caller has died. Machines of sets need no such
	// protection, because their names are never used again.
	//
	// OK: there is no such VM any more, or there never was one. An error may come with
	// LastKnownState.
	DeleteMachine(context.Context, *DeleteMachineRequest) (*DeleteMachineResponse, error)

	// GetMachineStatus looks up a machine's VM and changes nothing. Optional, but it saves the
	// provider needless creates.
	//
	// OK: the VM is there; the response is as CreateMachine's. UNINITIALIZED: it is there and
	// InitializeMachine has to be called; the response comes beside this error. If there is no
	// response, and no provider ID is recorded, InitializeMachine is called with the machine's name
	// alone, and its response says the ID. NOT_FOUND: there is none. If no provider ID was given, a VM
	// that is marked with another UID does not count, so that CreateMachine adopts and marks it.
	// OUT_OF_RANGE: several VMs have the machine's name, and no provider ID was given to tell them
	// apart.
	GetMachineStatus(context.Context, *GetMachineStatusRequest) (*GetMachineStatusResponse, error)

	// ListMachines lists the VMs of the class's cluster that the class may have created, with the
	// machine each was created for. Optional. Without it, the library does not find VMs that belong to
	// no machine, nor, without a cluster, machines whose VM has died. It must not list the VMs of
	// others, because the library deletes a listed VM that belongs to no machine. It spells IDs and names
	// as CreateMachine does, in case, prefix and slashes: a VM in another spelling is left alone, and
	// then no orphan of the class is found.
	ListMachines(context.Context, *ListMachinesRequest) (*ListMachinesResponse, error)

	// GetVolumeIDs returns the provider's names of volumes of the cluster, as they appear among a
	// node's attached volumes. Optional, but without it a drain can't evict pods with volumes one
	// after the other. Volumes of a type that the driver does not know are left out without an
	// error.
	GetVolumeIDs(context.Context, *GetVolumeIDsRequest) (*GetVolumeIDsResponse, error)

	// GenerateMachineClassForMigration fills Class from a provider's own, older kind of class.
	// Class may be partly or fully filled already. The caller stores the result; the driver stores
	// nothing. It is idempotent. Optional.
	//
	// UNIMPLEMENTED: no such kind is known. INTERNAL: it can't be converted.
	GenerateMachineClassForMigration(
		context.Context, *GenerateMachineClassForMigrationRequest,
	) (*GenerateMachineClassForMigrationResponse, error)

	// UpdateMachine changes a VM from one provider spec to another without replacing it, in the
	// fields that FieldUpdater declares. It is idempotent: the VM may be updated already, or in
	// part. Optional.
	//
	// OK: the VM is as wanted. NOT_FOUND: there is no such VM. UNIMPLEMENTED: the VM can't be
	// changed this way, and the library replaces it instead. An error may come with LastKnownState.
	UpdateMachine(context.Context, *UpdateMachineRequest) (*UpdateMachineResponse, error)
}
