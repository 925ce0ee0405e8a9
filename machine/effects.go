package machine

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Effect is one call to provider or cluster; its answer goes into the
// observation's field of the same name. Effects carry no secrets.
//
//sumtype:decl
type Effect interface{ effect() }

// GetVM asks the driver for the machine's VM (Observation.VM).
type GetVM struct{}

// CreateVM has the driver create the VM (Observation.Created).
type CreateVM struct{}

// InitializeVM has the driver initialize the VM (Observation.Initialized).
type InitializeVM struct{}

// UpdateVM asks the driver to change the VM to the spec of the class
// (Observation.Updated). LastApplied is the provider spec that the VM is known
// to have, with what calls have asked for since whose success is not known.
type UpdateVM struct{ LastApplied string }

// DeleteVM has the driver delete the VM (Observation.VMDeleted). ProviderID,
// unless empty, overrides the one recorded on the machine.
type DeleteVM struct{ ProviderID string }

// FindNode reads a node, live (Observation.Node). An empty Name looks for a
// node that carries the machine's name.
type FindNode struct {
	Name string
	Gone bool // goes into the answer
	// Forced has a failed read answered as NodeAnswer.Failure. Otherwise it ends the pass, which
	// is repeated.
	Forced bool
}

// SyncNode writes Node, a changed copy of the node observed, under its
// version (Observation.NodeSynced; the written node replaces Observation.Node).
// Capacity is written before the rest: Applied, which is written with the rest, is
// the only record of what to remove again.
type SyncNode struct {
	Node     *Node
	Spec     bool // metadata, taints and Applied differ
	Capacity bool // Capacity differs
	// Rest is what to write instead if the server refuses Node (INVALID_ARGUMENT, PERMISSION_DENIED):
	// each in turn until it accepts one. It has less and less of what a user's template asks for. The code and the
	// message of the first refusal go into Applied.Refused of what is written, and the answer is
	// that of the last write.
	Rest []*Node
	// Changes are what differs from the node observed, for NodeWrites.With.
	Changes []NodeChange
}

// MarkNode sets a condition on the node, under its version
// (Observation.NodeMarked; the written node replaces Observation.Node).
type MarkNode struct {
	Node      *Node
	Condition object.Condition
}

// DeleteNode takes our finalizer off the node and deletes it, if it still has
// this UID (Observation.NodeDeleted). A node that is gone counts as deleted.
type DeleteNode struct{ Name, UID string }

// DrainNode has a node emptied of its workload, or asks how far that has come
// (Observation.Drain). The node is this machine's, and is told of its deletion
// or taken out of service already; to cordon it is the drain's matter otherwise.
type DrainNode struct {
	Node *Node
	// Forced says that no budget and no volume is to be waited for.
	Forced bool
	// Stays says that the VM keeps running: it must not be declared out
	// of service.
	Stays bool
	// Since is the persisted beginning of this drain; what a former drain has
	// recorded is older.
	Since time.Time
	// Until is when this drain is forced or, if it is forced or for an
	// in-place update, given up; a last attempt may come later. A node that
	// does not answer may get force before, but only by an order of its own:
	// no caller can know beforehand how long it stays silent.
	Until time.Time
}

// DetachVolumes has the volumes of a node detached that a forced drain did not
// wait for, or asks how far that has come (Observation.Detach).
type DetachVolumes struct {
	Node *Node
	// Forced says that they are to be taken off. Without it force is not due any
	// more, as for a node that answers again: its pods may still write to them, and
	// they have to come off by themselves.
	Forced bool
	// Until is when the deletion goes on without it.
	Until time.Time
}

// AskCreate asks whether this machine may be tried next of its class
// (Observation.CreateTurn). A turn that was given lasts until CreateVM is answered, or
// until the pass has ended without.
type AskCreate struct{}

// AskGrant asks whether this machine may be given up now (Observation.Grant): marked failed or,
// with NodeLeaves, deleted because others delete its node.
// The answer is read live: it must take into account every grant that was ever
// given.
type AskGrant struct{ NodeLeaves bool }

// AskUpdate asks whether this machine's VM may be changed now (Observation.UpdateTurn).
// It protects the provider, and a fleet from a change that fails everywhere; it
// is not asked for safety.
type AskUpdate struct{}

// EnsureToken makes sure that the machine has a bootstrap token which lasts
// until then, whole seconds (Observation.TokenEnsured). In the rest of the pass
// it is in the user data that drivers are given.
type EnsureToken struct{ Until time.Time }

// RenewToken is EnsureToken for a token that exists: it makes none, and the
// answer is NOT_FOUND where there is none (Observation.TokenEnsured).
type RenewToken struct{ Until time.Time }

// RemoveToken deletes the machine's bootstrap token (Observation.TokenRemoved).
// One that does not exist counts as deleted.
type RemoveToken struct{}

func (GetVM) effect() {}

func (CreateVM) effect() {}

func (InitializeVM) effect() {}

func (UpdateVM) effect() {}

func (DeleteVM) effect() {}

func (FindNode) effect() {}

func (*SyncNode) effect() {}

func (*MarkNode) effect() {}

func (DeleteNode) effect() {}

func (*DrainNode) effect() {}

func (*DetachVolumes) effect() {}

func (AskCreate) effect() {}

func (AskGrant) effect() {}

func (AskUpdate) effect() {}

func (EnsureToken) effect() {}

func (RenewToken) effect() {}

func (RemoveToken) effect() {}
