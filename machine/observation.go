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

// VM is a driver's answer about one VM. Other codes than OK may come with fields too: UNINITIALIZED with
// ProviderID and NodeName, a failed create or delete with LastKnown.
type VM struct {
	Outcome
	ProviderID string
	NodeName   string
	LastKnown  string
	Addresses  []Address
	// Unhealthy says why the VM does not work. Empty: it works, or the driver does not know.
	Unhealthy string
	// ClaimedBy is the key of another machine that has recorded ProviderID as its own VM, so that the
	// driver's answer is wrong. Empty: there is no such machine.
	ClaimedBy string
}

// NodeAnswer is the result of looking for a node. A nil Node: it does not exist.
type NodeAnswer struct {
	// Name is the name that was looked for. Empty: a node labeled with the machine's name.
	Name string
	Node *Node
	// ClaimedBy is the key of another machine that has recorded the node's provider ID. Empty: none has,
	// or the ID is this machine's.
	ClaimedBy string
	// Read says how the node was read. A cached read may be old: no machine is marked Failed on it.
	Read decision.Freshness
	// Gone says that the node was looked for after the VM was gone, so that no node of it can join any
	// more.
	Gone bool
	// Failure says why the node could not be read (FindNode.Forced); Node is nil then. Empty: it was
	// read.
	Failure string
}

// Observation is what a decision about one machine is made from. Before the first Decide of a pass, the
// caller fills in Machine, Class, Secret and, if a node name is known, Node from its caches. Each Effect
// names the field that its answer goes into; nil: not asked for in this pass.
type Observation struct {
	Machine *Machine
	Class   *Class // nil: the class does not exist
	Secret  string // opaque version of the class's merged secrets; empty: none

	// Frozen says that the fleet is frozen: no machine is created or marked Failed. Deletions go on.
	Frozen bool
	// NoCluster says that there is no target cluster, so that machines have no nodes.
	NoCluster bool
	// NoDrain says that this process drains no nodes: deletions wait for no pod and no volume.
	NoDrain bool
	// NoInitialize says that the driver has no InitializeMachine.
	NoInitialize bool
	// Fresh says that Machine is the answer to a write of this pass. Otherwise it may be stale.
	Fresh bool
	// WatchedSince is when this process began to watch the fleet with synced caches, or continued
	// after it was stopped. A timeout that began earlier ends no earlier than Policy.Grace after it.
	// Zero, or in the future: it has always watched.
	WatchedSince time.Time
	// LedSince is when this process began to act in the place of others, which may have another clock: stored
	// times may be theirs. So no timeout counts from an earlier time. Zero, or in the future: no other
	// process has acted.
	LedSince time.Time
	// Failures is how often the machine's current step has failed in a row, as far as this process
	// knows. It only lengthens backoff.
	Failures int

	// Paced says that the provider's rate limit delays, or has delayed, calls for this machine. The
	// creation timeout does not run meanwhile.
	Paced bool

	// VMSpec is the spec of Class, split by the fields that the driver can update (SplitSpec). Nil: the
	// driver can update none, or there is no class. It is shared: read only.
	VMSpec *VMSpec

	// Marks are the rollout marks that the machine's set wants on its node; a machine without owner has none. Nil:
	// not known, so the node keeps those that it has.
	Marks *RolloutMarks

	Node *NodeAnswer

	VM, Created, Initialized, Updated, VMDeleted *VM
	// UpdateTurn is the answer to AskUpdate.
	UpdateTurn *UpdateTurn

	NodeSynced, NodeMarked, NodeDeleted *Outcome
	// NodeWrites is what this process remembers of its accepted writes of the machine's node,
	// including those of this pass.
	NodeWrites NodeWrites

	// Missing says that recent listings lack the machine's VM. Nil: they have it, or there is a
	// cluster, where the health of the node decides.
	Missing *MissingVM
	// VMUnhealthy says that the last listing of the class reports the machine's VM as unhealthy, and
	// that the driver was not asked for it since. Always false with a cluster.
	VMUnhealthy bool

	Drain, Detach *DrainAnswer
	// Budgeted says that a replacement budget exists: without a Grant no machine is marked Failed for
	// its health, and none is deleted because its node is being deleted.
	Budgeted bool
	Grant    *Grant

	// ClassBackoff says that the machine's class is backing off. Nil: it is not. CreatePermit is the answer to
	// AskCreate.
	ClassBackoff *ClassBackoff
	CreatePermit *CreatePermit

	// Token says whether the user data of the class needs a bootstrap token. It may be TokenUnused for
	// a machine whose node has joined.
	Token TokenUse
	// TokenEnsured is the answer to EnsureToken or RenewToken, TokenRemoved that to RemoveToken.
	TokenEnsured, TokenRemoved *Outcome
}

// MissingVM says that listings of the machine's class lack its VM.
type MissingVM struct {
	// Since is when the first of at least two such listings was requested.
	Since time.Time
	// NotFound says that GetMachineStatus returned NOT_FOUND in an earlier pass, after the last
	// listing. It is called once more before the machine is marked Failed.
	NotFound bool
}

// Grant is the answer to AskGrant.
type Grant struct {
	// Allowed permits one write that marks the machine Failed or deletes it, if it is issued before Until.
	Allowed bool
	// Until is when the grant expires. Zero: it does not.
	Until time.Time
	// Detail is a sentence that says what forbids it. Empty if allowed.
	Detail string
}

// ClassBackoff says that a class is backing off, because the provider refuses to create its machines.
type ClassBackoff struct {
	Class string     // name of the class
	Zone  string     // of its machines; empty: the class does not say
	Code  codes.Code // of the latest refusal
	Since time.Time  // when the first refusal was answered, whole seconds
	// Until is when the next attempt for the class may be made. Then one machine after the other tries.
	Until time.Time
}

// String says which class the provider refuses, and why: "creations of class small in zone a are
// refused with RESOURCE_EXHAUSTED since 2026-03-01T09:00:00Z".
func (b *ClassBackoff) String() string {
	text := "creations of class " + b.Class
	if b.Zone != "" {
		text += " in zone " + b.Zone
	}
	return text + " are refused with " + b.Code.Contract() + " since " + b.Since.UTC().Format(time.RFC3339)
}

// CreatePermit is the answer to AskCreate.
type CreatePermit struct {
	Given bool
	// At is when to ask again if it is not given. Zero: soon.
	At time.Time
}

// DrainAnswer is the progress of a drain, or of detaching a node's volumes.
type DrainAnswer struct {
	// Outcome is a failure of the drain itself, which is retried. codes.OK: pods and volumes only take
	// their time.
	Outcome
	// Done says that there is nothing left to wait for: the node is empty or, with force, all
	// deletions were accepted; or no volume is attached any longer.
	Done bool
	// Forced says that force was used, so that volumes may still be attached.
	Forced bool
	// At is when to ask again even if nothing changes. Zero: at the next change. If it is not Done, the
	// machine asks again at its deadline at the latest.
	At time.Time
	// Why says what the drain waits for. It is stored on the machine when it changes, so it should not
	// contain what changes all the time, such as durations.
	Why string
	// Blocked says that Why names something that does not resolve itself or, with Done, something
	// left on the node. A warning reports it.
	Blocked bool
	// Node is the node as the drain has written it. Nil: the drain did not write it.
	Node *Node
}

// UpdateTurn is the answer to AskUpdate.
type UpdateTurn struct {
	Allowed bool
	Detail  string // a sentence that says what forbids it; empty if allowed
	// At is when to ask again if it is not allowed. Zero, or in the past: in 10 s.
	At time.Time
}

// TokenUse says whether a machine needs a bootstrap token.
type TokenUse uint8

// The uses of a bootstrap token.
const (
	// TokenUnused: the user data needs no token, or is not known. A token that was made for earlier
	// user data is left to expire.
	TokenUnused TokenUse = iota
	// TokenNeeded: the user data has a placeholder for a token.
	TokenNeeded
	// TokenUnavailable: the user data has a placeholder for a token, and this process makes none. A VM
	// created from it could not join.
	TokenUnavailable
)

// cached reports whether a cache answered.
func (a *NodeAnswer) cached() bool { return !a.Read.Live() }
