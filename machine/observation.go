package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
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
	// Unhealthy says why the VM does not work. Empty: it works, or that is not known.
	Unhealthy string
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
	// Of is another machine for which the node's provider ID is recorded. Empty: none is known, or
	// the ID is this machine's.
	Of string
	// Read says when it was read or written. What a cache answered may be old:
	// no machine is marked failed for that.
	Read decision.Freshness
	// Gone says that it was looked for after the VM was gone, so that no node
	// of it can come any more.
	Gone bool
	// Failure says why the node could not be read, for FindNode.Forced. Node is nil then. Empty: it
	// was read.
	Failure string
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
	// NoDrain says that this process drains no nodes: no pod and no volume is
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

	// Paced says that calls about this machine wait, or have waited before the
	// last one, because the provider limits how many it takes. The time does not
	// count as that of a creation.
	Paced bool

	// VMSpec is Class split by the fields that the driver declares, see
	// SplitSpec. Nil: it declares none, or there is no class. It is shared.
	VMSpec *VMSpec

	Node *NodeAnswer

	VM, Created, Initialized, Updated, VMDeleted *VM
	// UpdateTurn is asked for before a VM is updated.
	UpdateTurn *UpdateTurn

	NodeSynced, NodeMarked, NodeDeleted *Outcome
	// NodeWrites is what this process remembers of its SyncNodes about this machine that were
	// accepted, those of this pass included.
	NodeWrites NodeWrites

	// Missing says that the machine's VM was in no recent listing. Nil: it was,
	// or there is a cluster, where the health of its node decides.
	Missing *MissingVM
	// VMUnhealthy says that the last listing of the machine's class named its VM as
	// unhealthy, and that the driver was not asked since. False if there is a cluster.
	VMUnhealthy bool

	Drain, Detach *DrainAnswer
	// Budgeted says that a budget limits how many machines are replaced at a
	// time: without a Grant none is marked failed for its health, and none is
	// deleted because others delete its node.
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

// MissingVM says that listings of the machine's class did not name its VM.
type MissingVM struct {
	// Since is when the first of the two listings or more was asked for.
	Since time.Time
	// NotFound says that GetMachineStatus has answered NOT_FOUND in an earlier
	// pass since the last listing. It is asked once more before the verdict.
	NotFound bool
}

// Grant is the answer to AskGrant.
type Grant struct {
	// Allowed lets the machine be given up by one write, to be issued before
	// Until.
	Allowed bool
	// Until is when a grant lapses; zero: it does not.
	Until time.Time
	// Detail says what stands against it, as a sentence; empty if allowed.
	Detail string
}

// Hold says that creations of a class are slowed, because the provider refuses
// them.
type Hold struct {
	Class string     // name of the class
	Zone  string     // that it makes machines in; empty: it does not say
	Code  codes.Code // of the latest refusal
	Since time.Time  // when the first refusal was answered, whole seconds
	// Until is the moment before which no machine of the class is tried; then
	// they take turns.
	Until time.Time
}

// String says what is slowed, and why: "creations of class small in zone a are
// refused with RESOURCE_EXHAUSTED since 2026-03-01T09:00:00Z".
func (h *Hold) String() string {
	text := "creations of class " + h.Class
	if h.Zone != "" {
		text += " in zone " + h.Zone
	}
	return text + " are refused with " + h.Code.Contract() + " since " + h.Since.UTC().Format(time.RFC3339)
}

// CreateTurn is the answer to AskCreate.
type CreateTurn struct {
	Given bool
	// At is when to ask again if it was not given; zero: soon.
	At time.Time
}

// DrainAnswer says how far a node has been emptied, or its volumes detached.
type DrainAnswer struct {
	// Outcome is a failure of the drain itself, to be tried again; codes.OK
	// where pods or volumes only take their time.
	Outcome
	// Done says that there is nothing more to wait for: the node is empty, or
	// by force all deletions were accepted; or no volume is held any more.
	Done bool
	// Forced says that force was used, so that volumes may still be attached.
	Forced bool
	// At is when to ask again though nothing has changed; zero: at the next
	// change. Without Done, the machine asks at the latest when its time is up.
	At time.Time
	// Why says what is waited for. It is stored on the machine when it
	// changes, so it should not hold what changes by itself, such as times.
	Why string
	// Blocked says that Why names something that will not pass by itself, or
	// with Done, something that was left on the node; it is told as a warning.
	Blocked bool
	// Node is the node as the drain has written it; nil: it was not written.
	Node *Node
}

// UpdateTurn is the answer to AskUpdate.
type UpdateTurn struct {
	Allowed bool
	Detail  string // what stands against it, as a sentence; empty if allowed
	// At is when to ask again if it is refused; zero, or over: in 10 s.
	At time.Time
}

// TokenUse says whether a machine needs a bootstrap token.
type TokenUse uint8

// The uses of a bootstrap token.
const (
	// TokenUnused says that the user data asks for none, or that it is not
	// known. A token made for an earlier user data is left to expire.
	TokenUnused TokenUse = iota
	// TokenNeeded says that the user data has a place for one.
	TokenNeeded
	// TokenUnavailable says that the user data has a place for one, and that
	// this process makes none: a VM made from it could not join.
	TokenUnavailable
)

// cached reports whether a cache answered.
func (a *NodeAnswer) cached() bool { return !a.Read.Live() }
