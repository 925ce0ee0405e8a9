package drain

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Observation is what a decision about the drain of one node is made from. The caller fills it from
// its caches at the beginning of a pass. A decision changes nothing in it. A nil field was not
// asked for, unless said otherwise.
type Observation struct {
	// Node to be drained. Nil: the caller looked for it, and there is none. The caller must make
	// sure that it is not another machine's.
	Node *machine.Node
	// Cached: Node came from a cache, and the record of its drain may be newer. False: it was read
	// live, or written in this pass.
	Cached bool
	// Pods bound to the node, in any order.
	Pods []*Pod
	// PodsCached: Pods came from a cache, and can be read live. A pod that was bound just before
	// the cordon may be missing. A drain ends on a live list.
	PodsCached bool
	// Budgets of the pods' namespaces at least. Not needed if all pods have resolved budgets.
	Budgets []*Budget
	// Volumes bound to the pods' claims at least.
	Volumes []*Volume
	// Attachments of the volumes to any node. Nil: the cluster has no such
	// objects; empty: there is none.
	Attachments []*Attachment
	// Attached are the volumes that the node's own status lists as attached. Nil: not known. Empty:
	// there are none.
	Attached []string
	// Known are the IDs by which the provider knows volumes (GetVolumeIDs). Nil: it was not asked,
	// or does not say. The drain does not wait for volumes that the provider does not know.
	Known []string
	// Complete: all of the above is complete, as far as caches can tell: they were filled at least
	// once. False: a missing object proves nothing.
	Complete bool

	// Asked is when this drain was asked for, or for Detach when the stage began. The caller
	// persists it. A record on the node from before it belongs to an earlier drain. Zero: any
	// record counts, and Detach has no deadline.
	Asked time.Time
	// Deadline is when the drain ends in any case. The caller persists it, or computes it from
	// persisted times. Zero: Policy.Timeout after the drain's start.
	Deadline time.Time
	// MaxEvictRetries takes the place of Policy.MaxEvictRetries for this drain. Zero or less: the
	// policy's.
	MaxEvictRetries int
	// Forced: force is due.
	Forced bool
	// Stays: the node's VM keeps running, so the node is never declared out of service.
	Stays bool

	// Memory of this process about this node. Nil: the zero Memory.
	Memory *Memory
	// WriteFailed: a write of an earlier plan of this pass was not stored, for a reason other than
	// a conflict. Force continues without it.
	WriteFailed bool
}

// Order is one call about one pod. UID is its precondition.
type Order struct {
	Pod object.Key
	UID string
	// Now is for deletions: with grace 0. False: with the pod's own grace.
	Now bool
	// Turn is what the record of the drain will say about a pod whose volumes the drain waits for;
	// pass it to Memory.Begin. Nil: the drain does not wait for them. Shared, must not be changed.
	Turn *machine.DrainTurn
	Why  decision.Why
}

// DetachOrder is the deletion of one attachment.
type DetachOrder struct {
	Name string // of the attachment
	Why  decision.Why
}

// Blocked is a pod that the drain waits for longer than for its grace, or no longer waits for.
type Blocked struct {
	Pod object.Key
	UID string
	Why decision.Why
	// Budgets that apply to a pod whose eviction was refused. Shared, must not be changed.
	Budgets []*Budget
}

// InTurn reports whether the pod waits only for its turn: for pods that go first, for the volumes of
// the pod before it, or for the end of a slot that an earlier process may have used.
func (b *Blocked) InTurn() bool {
	switch b.Why.Reason {
	case reasonInTurn, reasonOrder, reasonNotYet:
		return true
	}
	return false
}

// Plan is what to do next. Store Write, or carry out the orders of the one slice that is filled,
// record the answers in the memory, and decide again. Or read live, and decide again. With none of
// these, decide again at At.
type Plan struct {
	// Write is a changed copy of the node: the cordon and the record, or the uncordon. Store it
	// under its version.
	Write *machine.Node
	// Begins: Write begins the drain of a node that was not being drained. Call Memory.Begun once
	// it was stored.
	Begins bool
	// Look asks for the current node and its pods, in the observation without Cached and
	// PodsCached.
	Look bool

	Evict  []Order
	Delete []Order
	Detach []DetachOrder

	// Done: the drain has nothing left to wait for. If Blocked is not empty, not all pods are gone.
	Done bool
	// At is when to decide again even if nothing has changed. Zero: never.
	At  time.Time
	Why decision.Why
	// Blocked is filled in plans that wait, and in the last one; by namespace and name.
	Blocked []Blocked
	// Warn is a tolerated problem that an operator should know of. Zero: none.
	Warn decision.Why
}

// busy reports whether the plan has something to carry out.
func (p *Plan) busy() bool {
	return p.Write != nil || p.Look || len(p.Evict) > 0 || len(p.Delete) > 0 || len(p.Detach) > 0
}
