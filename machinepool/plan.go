package machinepool

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Group is a driver's answer about a pool's group. With a code other than OK
// only ID and LastKnown count.
type Group struct {
	machine.Outcome
	// ID is the provider's name for the group.
	ID string
	// Target is the size that the provider brings the group to.
	Target int32
	// Instances are those the group has, in any order. Empty and repeated IDs are ignored.
	// Decisions allocate least if they are sorted by ID.
	Instances []Instance
	// Ready: the group is made and works, with any number of instances.
	Ready bool
	// Failure is what the provider can't overcome by itself. Empty: nothing.
	Failure   string
	LastKnown string
	// At is when it was asked; the caller's clock.
	At time.Time
}

// Instance is one member of a group.
type Instance struct {
	ProviderID string
	// Terminating: the provider is removing it, so it is not chosen to leave.
	Terminating bool
	// AwaitsDrain: the provider will remove it once InstancesDrained says that it is empty.
	AwaitsDrain bool
}

// Features are what a driver declares that not every driver can do.
type Features struct {
	DeleteInstances bool // it can remove instances that we choose
	ReplaceInstance bool // it can replace one that we choose
	RollingUpdate   bool // its groups keep to Spec.RollingUpdate
}

// BootstrapAnswer is the state of a pool's bootstrap data.
type BootstrapAnswer struct {
	// Ready is what Template.Bootstrap.Config says of itself.
	Ready bool
	// Found: the secret named in Template.Bootstrap.DataSecret is there.
	Found bool
	// TokenExpires is when the token in it expires, by the clock of Decide's now. Zero: there is none, or
	// it does not expire.
	TokenExpires time.Time
	// OwnToken: the data have a placeholder for a token, which the caller creates at the first Renew. The
	// token is removed with the pool. For a pool that is being deleted only this field is needed.
	OwnToken bool
}

// DrainAnswer is the state of the drains of DrainNodes.
type DrainAnswer struct {
	Done   []string  // provider IDs of instances that are empty
	At     time.Time // when to decide again; zero: on the next change
	Detail string    // what the drain waits for, as a sentence
}

// Observation is what a decision about one pool is made from. The caller fills in the fields before
// Group from its caches before the first Decide of a pass. The rest are the answers to effects. A
// nil answer was not asked for.
type Observation struct {
	Pool   *Pool
	Class  *machine.Class // nil: there is no class of that name
	Secret string         // opaque version of the class's merged secrets; empty: none
	// Bootstrap is needed if the template names a secret. Nil: not looked.
	Bootstrap *BootstrapAnswer
	// Nodes are the nodes of Spec.ProviderIDs, by the ID there. Other nodes do no harm. A node under
	// an ID that its own is not alike to (object.Alike) is ignored. Nil: not known, so nothing is
	// concluded.
	Nodes map[string]*machine.Node
	// Unmatched are nodes without a known owner, one of which may be that of an instance without a node: what
	// MatchNodes returns. While there are any, such an instance is not empty before DrainTimeout has
	// passed. They are needed only if an instance is not in Nodes.
	Unmatched []*machine.Node
	// NoCluster: there is no target cluster, and no instance becomes a node.
	NoCluster bool
	// NoDrain: this process drains no nodes, and instances go without a drain.
	NoDrain bool
	// Frozen: nothing is done, except for a deletion.
	Frozen bool
	// Fresh: Pool is the answer to a write of this pass, or was read live in it, so that it is
	// known not to be stale.
	Fresh bool
	// Announced reports that this pass stored a write that Announces. Neither a live read nor another
	// write sets it: an announcement of an earlier pass does not count.
	Announced bool
	// LedSince is when this process began to act in the place of others, which may have another clock. The
	// time to drain an instance counts from no earlier time. Zero, or in the future: no other process has acted.
	LedSince time.Time
	// Failures counts this process's consecutive failures of the pool's current call. It only
	// lengthens waits.
	Failures int
	Features Features

	// Group is the last answer to GetGroup, also of an earlier pass. The caller drops it when it
	// issues a changing effect (see Call.Changing). Looked: GetGroup was carried out in this pass.
	Group  *Group
	Looked bool
	// Memory of this process about this pool. Nil: nothing is remembered, so a recorded group or
	// instance that an answer lacks is never given up.
	Memory *Memory

	// Created, Updated, Scaled, Deleted (of instances), Replaced and Reported are
	// the answers to the changing effects of this pass.
	Created, Updated, Scaled, Deleted, Replaced, Reported *Group
	// GroupDeleted and BootstrapDeleted are the answers to DeleteGroup and RemoveBootstrap.
	GroupDeleted     *Group
	BootstrapDeleted *machine.Outcome
	// Renewed is the answer to Renew. The caller brings Bootstrap up to date too.
	Renewed *machine.Outcome
	// TokenRemoved is the answer to RemoveToken.
	TokenRemoved *machine.Outcome
	// Drain and Kept are the answers to DrainNodes and KeepNodes.
	Drain *DrainAnswer
	Kept  *machine.Outcome
}

// Write is one change of the pool in the store: *Update or *UpdateStatus.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata and spec.
type Update struct{ Pool *Pool }

// UpdateStatus stores the status.
type UpdateStatus struct{ Status Status }

func (*Update) write()       {}
func (*UpdateStatus) write() {}

// Effect is one call to the provider, the cluster or the maker of bootstrap data. Effects carry no
// secrets.
//
//sumtype:decl
type Effect interface{ effect() }

// ReadPool reads the pool live (Observation.Pool and Fresh). One that is gone, or
// has another UID, ends the pass.
type ReadPool struct{}

// GetGroup asks the driver for the state of the group (Observation.Group and Looked).
type GetGroup struct{}

// CreateGroup makes the driver create the group, with that many instances (Observation.Created).
type CreateGroup struct{ Replicas int32 }

// UpdateGroup makes the driver bring the group to the pool's template (Observation.Updated).
type UpdateGroup struct{}

// ScaleGroup makes the driver bring the group to a size (Observation.Scaled).
type ScaleGroup struct{ To int32 }

// RemoveInstances makes the driver remove these instances and lower the group's target by as many
// (Observation.Deleted).
type RemoveInstances struct{ ProviderIDs []string }

// ReplaceOne makes the driver replace this instance with a new one (Observation.Replaced).
type ReplaceOne struct{ ProviderID string }

// ReportDrained tells the driver that these instances, which it wants to remove,
// are empty (Observation.Reported).
type ReportDrained struct{ ProviderIDs []string }

// DrainNodes drains the nodes of these instances, as far as it can be done
// without waiting (Observation.Drain).
type DrainNodes struct{ Leaving []Leaving }

// KeepNodes undoes what DrainNodes did to the nodes of these instances, which stay after all
// (Observation.Kept). What others have changed is left as it is.
type KeepNodes struct{ ProviderIDs []string }

// DeleteGroup makes the driver delete the group and all of its instances
// (Observation.GroupDeleted).
type DeleteGroup struct{}

// RemoveBootstrap deletes the object that Template.Bootstrap.Config names, and what it made
// (Observation.BootstrapDeleted).
type RemoveBootstrap struct{}

// Renew extends the life of the bootstrap token, or puts a new one into the bootstrap data if it
// has expired (Observation.Renewed).
type Renew struct{ Until time.Time }

// RemoveToken deletes the bootstrap token that the caller made (Observation.TokenRemoved).
type RemoveToken struct{}

func (ReadPool) effect()         {}
func (GetGroup) effect()         {}
func (CreateGroup) effect()      {}
func (UpdateGroup) effect()      {}
func (ScaleGroup) effect()       {}
func (*RemoveInstances) effect() {}
func (ReplaceOne) effect()       {}
func (*ReportDrained) effect()   {}
func (*DrainNodes) effect()      {}
func (*KeepNodes) effect()       {}
func (DeleteGroup) effect()      {}
func (RemoveBootstrap) effect()  {}
func (Renew) effect()            {}
func (RemoveToken) effect()      {}

// Plan is what to do next: carry out Write, or Effect, put the answer into the observation, and
// decide again. With neither, decide again at At.
type Plan struct {
	Write  Write
	Move   machine.Move // the phase's change that Write makes; zero: none
	Effect Effect       // only when Write is nil
	// Announces reports that Write announces a call. Once it is stored, the caller sets
	// Observation.Announced.
	Announces bool
	// At is when to decide again even if nothing has changed. Zero: never.
	At  time.Time
	Why decision.Why
	// Warn is a warning for the pool's owner. Zero: none.
	Warn decision.Why
}

// The reasons of decisions about one pool.
var (
	reasonSpecInvalid      = decision.NewReason("SpecInvalid", "{name} {detail}")
	reasonFrozen           = decision.NewReason("Frozen", "frozen: nothing is done")
	reasonFinalizer        = decision.NewReason("FinalizerAdded", "finalizer added, so that the pool outlives its group")
	reasonInstances        = decision.NewReason("InstancesRecorded", "recording {count|instance|instances} of the group; wanted: {all}")
	reasonFollows          = decision.NewReason("ReplicasFollow", "the provider sets the size: now {all} wanted; instances: {count}")
	ReasonStatus           = decision.NewReason("StatusChanged", "{name}: {count} of {all} nodes are ready")
	reasonDone             = decision.NewReason("CallDone", "{name} is done")
	reasonCallFailed       = decision.NewReason("CallFailed", "{name} failed: {code}: {detail}")
	reasonRetryAt          = decision.NewReason("RetryLater", "{name} failed: {code}: {detail}; next attempt in {for}")
	reasonWaitForChange    = decision.NewReason("WaitForChange", "{name} failed: {code}: {detail}; next attempt when the pool, its class or its secret changes")
	reasonAnnounce         = decision.NewReason("Announced", "checking that this record of the pool is current before {name}")
	reasonReadPool         = decision.NewReason("ReadLive", "checking that this record of the pool is current before acting")
	reasonTakesEffect      = decision.NewReason("TakesEffect", "checking the result in {for}")
	reasonNoClass          = decision.NewReason("NoClass", "no class is set yet")
	reasonClassMissing     = decision.NewReason("ClassMissing", "class {name} does not exist yet")
	reasonReadGroup        = decision.NewReason("ReadGroup", "reading the state of the group from the provider")
	reasonNoBootstrap      = decision.NewReason("NoBootstrapData", "the name of the bootstrap data is not set yet")
	reasonBootstrapMissing = decision.NewReason("BootstrapDataMissing", "bootstrap data {name} are not ready yet")
	reasonRenew            = decision.NewReason("RenewToken", "the bootstrap token expires in {for} and machines may need it: renewing it")
	reasonCreate           = decision.NewReason("Create", "creating the group with {count|instance|instances}")
	reasonGroupGone        = decision.NewReason("GroupGone", "group {name} is gone, although the pool is not being deleted: creating it again")
	reasonGroupNotFound    = decision.NewReason("GroupNotFound", "the provider does not find group {name} of {count|instance|instances}: it counts as gone if that lasts {for}")
	reasonUnlisted         = decision.NewReason("InstancesUnlisted", "the provider does not list {count} of {all} instances, such as {name}: asking again before they count as gone")
	reasonUpdate           = decision.NewReason("Update", "updating the group to the pool and its class {name}")
	reasonScale            = decision.NewReason("Scale", "scaling the group from {count} to {all} instances")
	reasonLeaving          = decision.NewReason("RemovalChosen", "{count} of {all} instances are to be removed, the last chosen {name}: {detail}")
	reasonHeld             = decision.NewReason("ScaleDownHeld", "DeleteInstances succeeded, but the provider created others: the group stays larger than {all}; no more are removed for {for}, unless the size is changed")
	reasonLeft             = decision.NewReason("NoneToRemove", "the instances chosen for removal are gone, or stay")
	reasonUncordon         = decision.NewReason("Uncordon", "{count|instance stays|instances stay} after all, the first {name}: uncordoning the nodes")
	reasonUncordonFailed   = decision.NewReason("UncordonFailed", "could not uncordon the node of instance {name}: {code}: {detail}")
	reasonDrain            = decision.NewReason("Drain", "draining the nodes of {count|instance|instances}, the first {name}")
	reasonDraining         = decision.NewReason("Draining", "{count|instance is|instances are} not drained yet, the first {name}: {detail}; {for} left")
	reasonNodesSpelled     = decision.NewReason("NodesSpelledOtherwise", "nodes of {count} of {all} instances carry the provider ID in another spelling, such as {detail} for {name}: they are counted and drained; make the pool driver return the IDs that nodes carry")
	reasonNodeUnknown      = decision.NewReason("NodeUnknown", "{count} of {all} instances, such as {name}, have no known node, and node {detail} has no known owner: such an instance is removed undrained only after {for}; set its provider ID on its node")
	reasonRemoveInstances  = decision.NewReason("RemoveInstances", "removing {count|instance|instances}, the first {name}: {detail}")
	reasonRunning          = decision.NewReason("Running", "{count} of {all} nodes are ready")
	reasonWaiting          = decision.NewReason("Waiting", "{count} of {all} nodes are ready: waiting for the others")
	reasonGroupNotReady    = decision.NewReason("GroupNotReady", "waiting until the provider reports the group ready")
	reasonFailed           = decision.NewReason("Failed", "{name}: {detail}")
	reasonNotOurs          = decision.NewReason("NotOurs", "being deleted without our finalizer: nothing to do")
	reasonDeleting         = decision.NewReason("Deleting", "deletion asked for while {name}")
	reasonClassGone        = decision.NewReason("ClassGone", "class {name} is gone: without it the provider can't be called")
	reasonDelete           = decision.NewReason("Delete", "{name}: the pool is being deleted")
	reasonRemoveToken      = decision.NewReason("RemoveToken", "no instance of the pool needs its bootstrap token any more: deleting it")
	reasonTokenLeft        = decision.NewReason("TokenNotDeleted", "its bootstrap token could not be deleted and will expire: {code}: {detail}")
	reasonReleased         = decision.NewReason("Released", "group and bootstrap data are gone: removing the finalizer")
)

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
