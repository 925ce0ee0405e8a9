package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Outcome is how a call ended: codes.OK, or a code and a sentence.
type Outcome struct {
	Code    codes.Code
	Message string
}

// VM is a driver's answer about one VM. With a code other than OK the fields
// may still hold something: UNINITIALIZED comes with ProviderID and NodeName,
// a failed create or delete with LastKnown.
type VM struct {
	Outcome
	ProviderID string
	NodeName   string
	LastKnown  string
	Addresses  []Address
	// Of is the key of another machine that has recorded ProviderID as its own
	// VM: the driver is mistaken. Empty: none is known.
	Of string
}

// NodeAnswer says what was found under a node name. Node nil: looked, and
// there is none.
type NodeAnswer struct {
	// Name that was looked for; empty: a node that carries the machine's
	// name was looked for.
	Name string
	Node *Node
	// Cached says that a cache answered, which may be old: nobody is given up
	// for that.
	Cached bool
	// Gone says that it was looked for after the VM was gone, so that no node
	// of it can come any more.
	Gone bool
}

// Observation is what a decision about one machine is made from. The caller
// fills in Machine, Class, Secret and, where a node name is known, Node from
// its caches before the first Decide of a pass; the rest are the answers to
// effects carried out in this pass. A nil answer was not asked for.
type Observation struct {
	Machine *Machine
	Class   *Class // nil: there is no class of that name
	Secret  string // opaque version of the class's merged secrets; empty: none

	// Frozen holds back creations and verdicts, not deletions.
	Frozen bool
	// NoCluster says that there is no target cluster: no node belongs to
	// any machine.
	NoCluster bool
	// NoDrain says that nobody here drains nodes: no pod and no volume is
	// waited for.
	NoDrain bool
	// NoInitialize says that this driver is known to have no InitializeMachine.
	NoInitialize bool
	// Fenced says that Machine is the answer to a write made in this pass,
	// so that it is known not to be stale.
	Fenced bool
	// WatchedSince is when this process began to watch the fleet, with its
	// caches filled, or went on after it had been stopped. A wait that began before it ends no earlier than
	// Policy.Grace after it. Zero, or a time to come: it has always watched.
	WatchedSince time.Time
	// Failures counts this process's consecutive failures of the machine's
	// current step; it only lengthens waits.
	Failures int

	// VMSpec is Class split by the fields that the driver declares, see
	// SplitSpec. Nil: it declares none, or there is no class. It is shared.
	VMSpec *VMSpec

	Node *NodeAnswer

	VM, Created, Initialized, Updated, VMDeleted *VM
	// UpdateTurn is asked for before a VM is updated.
	UpdateTurn *UpdateTurn

	NodeSynced, NodeMarked, NodeDeleted *Outcome

	// Missing says that the machine's VM was in no recent listing. Nil: it was,
	// or there is a cluster, where the health of its node decides.
	Missing *MissingVM

	Drain, Detach *DrainAnswer
	// Budgeted says that a budget limits how many machines are replaced at a
	// time: none is given up for its health without a Grant.
	Budgeted bool
	Grant    *Grant

	// Hold says that creations of the machine's class are slowed, as of the
	// moment of the decision; CreateTurn is the answer to AskCreate. Hold nil: they
	// are not.
	Hold       *Hold
	CreateTurn *CreateTurn

	// Token says whether the class's user data asks for a bootstrap token; it
	// may be left TokenUnused for a machine whose node has joined once.
	Token TokenUse
	// TokenEnsured is how EnsureToken or RenewToken ended, TokenRemoved how
	// RemoveToken did.
	TokenEnsured, TokenRemoved *Outcome
}

// Write is one change of the machine in the store: *Update, *UpdateStatus or *Delete.
//
//sumtype:decl
type Write interface{ write() }

// Update stores metadata and spec.
type Update struct{ Machine *Machine }

// UpdateStatus stores the status.
type UpdateStatus struct{ Status Status }

// Delete asks for the deletion of the machine itself.
type Delete struct{}

func (*Update) write()       {}
func (*UpdateStatus) write() {}
func (*Delete) write()       {}

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

// DeleteVM has the driver delete the VM (Observation.VMDeleted). ProviderID,
// unless empty, overrides the one recorded on the machine.
type DeleteVM struct{ ProviderID string }

// FindNode reads a node, live (Observation.Node). An empty Name looks for a
// node that carries the machine's name.
type FindNode struct {
	Name string
	Gone bool // goes into the answer
}

// SyncNode writes Node, a changed copy of the node observed, under its
// version (Observation.NodeSynced; the written node replaces Observation.Node).
// Capacity is written before the rest: Applied, which goes with the rest, is
// the only record of what to remove again.
type SyncNode struct {
	Node     *Node
	Spec     bool // metadata, taints and Applied differ
	Capacity bool // Capacity differs
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

func (GetVM) effect()        {}
func (CreateVM) effect()     {}
func (InitializeVM) effect() {}
func (DeleteVM) effect()     {}
func (FindNode) effect()     {}
func (*SyncNode) effect()    {}
func (*MarkNode) effect()    {}
func (DeleteNode) effect()   {}

// Move is one step of a state machine that a write carries out.
type Move struct {
	Table string
	From  string
	On    Event
	To    string
}

// Plan is what to do next: carry out Write, or Effect, put the answer into
// the observation, and decide again; with neither, look again at At.
type Plan struct {
	Write  Write
	Moves  [2]Move // state changes that Write makes; unused ones are zero
	Effect Effect  // only when Write is nil
	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Warn is something tolerated that its owner should know; zero: nothing.
	Warn decision.Why
}
