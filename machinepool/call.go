package machinepool

import "github.com/millwright-go/millwright/codes"

// Call names a call that a decision about a pool can ask for. Empty: none.
type Call string

// The calls of a pool driver, and two to the maker of bootstrap data.
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

// Changing reports whether a call changes a group, so that earlier knowledge of the group is no
// longer reliable.
func (c Call) Changing() bool {
	switch c {
	case CreatePool, UpdatePool, ScalePool, DeleteInstances, ReplaceInstance, InstancesDrained:
		return true
	case GetPoolStatus, DeletePool, ListPools, DeleteBootstrap, RenewToken:
	}
	return false
}

// provider reports whether c is a call to the provider, and not to the maker of bootstrap data.
func (c Call) provider() bool { return c != DeleteBootstrap && c != RenewToken }

// Recovery returns the recovery from a code. It is that of the recovery table of package codes for
// the call on a single machine that is most like c. After UNIMPLEMENTED, for which there is no
// other way here, the wait is long.
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

// Terminal reports whether an operator must act when c fails with code, because a retry alone does
// not help.
func (c Call) Terminal(code codes.Code) bool {
	r := c.Recovery(code)
	return code != codes.OK && code != codes.Canceled && !r.AutoRetry && r.Class != codes.None
}

// failure returns the reason that a pool fails for when this call does.
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
