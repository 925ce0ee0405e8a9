package machinepool

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// Group is a driver's answer about a pool's group. With a code other than OK
// only LastKnown may hold something.
type Group struct {
	machine.Outcome
	// ID is the provider's name for the group.
	ID string
	// Target is the size that the provider brings the group to.
	Target int32
	// Instances are those the group has, in any order; empty and repeated IDs
	// are passed over. Deciding allocates least if they are sorted by ID.
	Instances []Instance
	// Ready says that the group is made and works. How many instances there
	// are is another matter.
	Ready bool
	// Failure says what the provider can't overcome by itself; empty: nothing.
	Failure   string
	LastKnown string
	// At is when it was asked; the caller's clock.
	At time.Time
}

// Instance is one member of a group.
type Instance struct {
	ProviderID string
	// Going says that the provider is removing it: it is not chosen to leave.
	Going bool
	// AwaitsDrain says that the provider will remove it once it is told, by
	// InstancesDrained, that it is empty.
	AwaitsDrain bool
}

// Features is what a driver declares beyond the calls that every one has.
type Features struct {
	DeleteInstances bool // it can remove instances that we choose
	ReplaceInstance bool // it can replace one that we choose
}

// BootstrapAnswer is how the bootstrap data of a pool stand.
type BootstrapAnswer struct {
	// Ready is what Template.Bootstrap.Config says of itself.
	Ready bool
	// Found says that the secret named in Template.Bootstrap.DataSecret is there.
	Found bool
	// TokenExpires is when the token in it lapses. Zero: there is none, or it
	// does not.
	TokenExpires time.Time
}

// DrainAnswer is how the drains of DrainNodes stand.
type DrainAnswer struct {
	Done   []string  // provider IDs of instances that are empty
	At     time.Time // when to look again; zero: on the next change
	Detail string    // what is waited for, as a sentence
}

// Observation is what a decision about one pool is made from. The caller fills
// in what stands before Group from its caches before the first Decide of a
// pass; the rest are the answers to effects. A nil answer was not asked for.
type Observation struct {
	Pool   *Pool
	Class  *machine.Class // nil: there is no class of that name
	Secret string         // opaque version of the class's merged secrets; empty: none
	// Bootstrap is needed where the template names a secret. Nil: not looked.
	Bootstrap *BootstrapAnswer
	// Nodes are the nodes of Spec.ProviderIDs, by provider ID. More do no harm;
	// one that stands under another ID than its own is passed over. Nil: not
	// known, so nothing is concluded.
	Nodes map[string]*machine.Node
	// NoCluster says that there is no target cluster: no instance becomes a node.
	NoCluster bool
	// NoDrain says that nobody here drains nodes: instances go as they are.
	NoDrain bool
	// Frozen holds everything back but a deletion.
	Frozen bool
	// Fenced says that Pool is the answer to a write made in this pass, or was
	// read live in it, so that it is known not to be stale.
	Fenced bool
	// Announced reports that this very pass stored a write that Announces. Neither a live
	// read nor another write sets it: an announcement of an earlier pass covers no order.
	Announced bool
	// Failures counts this process's consecutive failures of the pool's current
	// call; it only lengthens waits.
	Failures int
	Features Features

	// Group is the last answer to GetGroup, also of an earlier pass, as long as
	// no changing effect (see Call.Changing) was issued since: the caller drops it
	// then. Looked says that GetGroup was carried out in this pass.
	Group  *Group
	Looked bool

	// Created, Updated, Scaled, Deleted (of instances), Replaced and Told are
	// the answers to the changing effects of this pass.
	Created, Updated, Scaled, Deleted, Replaced, Told *Group
	// GroupDeleted and BootstrapDeleted are those of a deletion.
	GroupDeleted     *Group
	BootstrapDeleted *machine.Outcome
	// Renewed is the answer to Renew. The caller brings Bootstrap up to date too.
	Renewed *machine.Outcome
	Drain   *DrainAnswer
	Kept    *machine.Outcome
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

// Effect is one call to provider, cluster or whoever makes bootstrap data.
// Effects carry no secrets.
//
//sumtype:decl
type Effect interface{ effect() }

// ReadPool reads the pool live (Observation.Pool and Fenced). One that is gone, or
// has another UID, ends the pass.
type ReadPool struct{}

// GetGroup asks the driver how the group stands (Observation.Group and Looked).
type GetGroup struct{}

// CreateGroup has the driver make the group, with so many instances
// (Observation.Created).
type CreateGroup struct{ Replicas int32 }

// UpdateGroup has the driver bring the group to the pool's template
// (Observation.Updated).
type UpdateGroup struct{}

// ScaleGroup has the driver bring the group to a size (Observation.Scaled).
type ScaleGroup struct{ To int32 }

// RemoveInstances has the driver remove these instances and lower the group's
// target by as many (Observation.Deleted).
type RemoveInstances struct{ ProviderIDs []string }

// ReplaceOne has the driver put another instance in the place of this one
// (Observation.Replaced).
type ReplaceOne struct{ ProviderID string }

// TellDrained tells the driver that these instances, which it wants to remove,
// are empty (Observation.Told).
type TellDrained struct{ ProviderIDs []string }

// DrainNodes drains the nodes of these instances, as far as it can be done
// without waiting (Observation.Drain).
type DrainNodes struct{ Leaving []Leaving }

// KeepNodes undoes what DrainNodes did to the nodes of these instances, which
// stay after all (Observation.Kept). What others did stays.
type KeepNodes struct{ ProviderIDs []string }

// DeleteGroup has the driver delete the group and all of its instances
// (Observation.GroupDeleted).
type DeleteGroup struct{}

// RemoveBootstrap deletes what Template.Bootstrap.Config names, and what it made
// (Observation.BootstrapDeleted).
type RemoveBootstrap struct{}

// Renew has the bootstrap token live on, or another take its place in the
// bootstrap data if it has lapsed (Observation.Renewed).
type Renew struct{ Until time.Time }

func (ReadPool) effect()         {}
func (GetGroup) effect()         {}
func (CreateGroup) effect()      {}
func (UpdateGroup) effect()      {}
func (ScaleGroup) effect()       {}
func (*RemoveInstances) effect() {}
func (ReplaceOne) effect()       {}
func (*TellDrained) effect()     {}
func (*DrainNodes) effect()      {}
func (*KeepNodes) effect()       {}
func (DeleteGroup) effect()      {}
func (RemoveBootstrap) effect()  {}
func (Renew) effect()            {}

// Plan is what to do next: carry out Write, or Effect, put the answer into the
// observation, and decide again; with neither, look again at At.
type Plan struct {
	Write  Write
	Move   machine.Move // the phase's change that Write makes; zero: none
	Effect Effect       // only when Write is nil
	// Announces reports that Write announces a call. Once it is stored, the caller sets
	// Observation.Announced.
	Announces bool
	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something that the pool's owner should know; zero: nothing.
	Warn decision.Why
}
