package machinepool

import "github.com/millwright-go/millwright/codes"

// Call names a call that a decision about a pool can ask for. Empty: none.
type Call string

// The calls of a pool driver, and two to whoever makes bootstrap data.
const (
	CreatePool       Call = "CreatePool"
	UpdatePool       Call = "UpdatePool"
	ScalePool        Call = "ScalePool"
	GetPoolStatus    Call = "GetPoolStatus"
	DeletePool       Call = "DeletePool"
	DeleteInstances  Call = "DeleteInstances"
	ReplaceInstance  Call = "ReplaceInstance"
	InstancesDrained Call = "InstancesDrained"
	// ListPools is about a class and no pool: no decision about a pool asks for it.
	ListPools Call = "ListPools"

	DeleteBootstrap Call = "DeleteBootstrap"
	RenewToken      Call = "RenewToken"
)

// Calls returns the calls of a pool driver, in the order of their declaration.
func Calls() []Call {
	return []Call{
		CreatePool, UpdatePool, ScalePool, GetPoolStatus, DeletePool, DeleteInstances, ReplaceInstance, InstancesDrained,
		ListPools,
	}
}

// String returns the name of the driver's method.
func (c Call) String() string { return string(c) }

// Changing tells whether a call changes a group, so that what was known of it
// is not to be relied on afterwards.
func (c Call) Changing() bool {
	switch c {
	case CreatePool, UpdatePool, ScalePool, DeleteInstances, ReplaceInstance, InstancesDrained:
		return true
	case GetPoolStatus, DeletePool, ListPools, DeleteBootstrap, RenewToken:
	}
	return false
}

// Recovery says what follows a code: as the recovery table of package codes says
// for the call on a single machine that is most like c. UNIMPLEMENTED, which
// no other way is tried for here, is looked at again after a long time.
func (c Call) Recovery(code codes.Code) codes.Recovery {
	if code == codes.Unimplemented {
		return codes.Recovery{Class: codes.Long, Remedy: codes.ImplementOrAlternate}
	}
	like := codes.UpdateMachine
	switch c {
	case CreatePool:
		like = codes.CreateMachine
	case GetPoolStatus:
		like = codes.GetMachineStatus
	case ListPools:
		like = codes.ListMachines
	case DeletePool, DeleteBootstrap:
		like = codes.DeleteMachine
	case UpdatePool, ScalePool, DeleteInstances, ReplaceInstance, InstancesDrained, RenewToken:
	}
	return codes.RecoveryFor(like, code)
}

// Terminal tells whether a person has to see to it when c fails with code:
// trying again does not help by itself.
func (c Call) Terminal(code codes.Code) bool {
	r := c.Recovery(code)
	return code != codes.OK && code != codes.Canceled && !r.AutoRetry && r.Class != codes.None
}

// failure is the reason that a pool fails for when this call does.
func (c Call) failure() FailureReason {
	switch c {
	case CreatePool:
		return FailureCreate
	case GetPoolStatus, ListPools:
		return FailureLook
	case RenewToken:
		return FailureToken
	case UpdatePool, ScalePool, DeletePool, DeleteInstances, ReplaceInstance, InstancesDrained, DeleteBootstrap:
	}
	return FailureUpdate
}
