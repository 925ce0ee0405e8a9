package drain

import (
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Observation is what a decision about the drain of one node is made from. The
// caller fills it from its caches at the beginning of a pass; nothing in it is
// changed by a decision. What is nil was not asked for, unless said otherwise.
type Observation struct {
	// Node to be drained. Nil: it was looked for, and there is none. That it
	// is not another machine's is the caller's duty.
	Node *machine.Node
	// Cached says that Node is as a cache knew it: the record of its drain may
	// be newer. False: it was read live, or written in this pass.
	Cached bool
	// Pods bound to the node, in any order.
	Pods []*Pod
	// PodsCached says that Pods are as a cache knew them, and that they can be read live: one
	// that was bound just before the cordon may be missing. A drain ends on a live list.
	PodsCached bool
	// Budgets of the pods' namespaces at least; not needed where all pods have
	// theirs resolved.
	Budgets []*Budget
	// Volumes bound to the pods' claims at least.
	Volumes []*Volume
	// Attachments of the volumes to any node. Nil: the cluster has no such
	// objects; empty: there is none.
	Attachments []*Attachment
	// Attached are the volumes that the node itself says are attached to it.
	// Nil: it is not known; empty: none is.
	Attached []string
	// Known are the IDs by which the provider knows volumes (GetVolumeIDs). Nil:
	// it was not asked, or does not say. Volumes that it does not know are not
	// waited for.
	Known []string
	// Complete says that all of the above is all there is, as far as caches
	// can tell: they were filled at least once. False: nothing is concluded
	// from what is missing.
	Complete bool

	// Asked is when this drain was asked for, for Detach when the stage began;
	// persisted by the caller. A record on the node from before it belongs to
	// an earlier drain. Zero: any record counts, and Detach has no deadline.
	Asked time.Time
	// Deadline is when the drain ends in any case; persisted by the caller, or
	// computed from what is. Zero: Policy.Timeout after the drain's start.
	Deadline time.Time
	// Forced says that force is due.
	Forced bool
	// Stays says that the node's VM goes on running, so that the node is never
	// declared out of service.
	Stays bool

	// Memory of this process about this node. Nil: the zero Memory.
	Memory *Memory
	// WriteFailed says that a write that an earlier plan of this pass asked for
	// was not stored, and not for a conflict either. Force goes on without it.
	WriteFailed bool
}

// Order is one call about one pod. UID is its precondition.
type Order struct {
	Pod object.Key
	UID string
	// Now is for deletions: with grace 0. False: with the pod's own grace.
	Now bool
	// Turn is what the record of the drain will say about a pod whose volumes are waited for, for
	// Memory.Begin. Nil: they are not. Shared, not to be changed.
	Turn *machine.DrainTurn
	Why  decision.Why
}

// DetachOrder is the deletion of one attachment.
type DetachOrder struct {
	Name string // of the attachment
	Why  decision.Why
}

// Blocked is a pod that the drain waits for longer than for its grace, or has
// given up waiting for.
type Blocked struct {
	Pod object.Key
	UID string
	Why decision.Why
	// Budgets that apply to a pod whose eviction was refused. Shared, not to
	// be changed.
	Budgets []*Budget
}

// Plan is what to do next: store Write, or carry out the orders of the one
// slice that is filled, put the answers into the memory, and decide again; or
// read live, and decide again; with none of these, look again at At.
type Plan struct {
	// Write is a changed copy of the node, to be stored under its version: the
	// cordon and the record, or the uncordon.
	Write *machine.Node
	// Begins says that Write begins the drain of a node that was not being
	// drained: Memory.Begun is due when it was stored.
	Begins bool
	// Look asks for the node and its pods as they are now, in the observation without Cached
	// and PodsCached.
	Look bool

	Evict  []Order
	Delete []Order
	Detach []DetachOrder

	// Done: there is nothing left to wait for. With Blocked not empty, not all
	// pods are gone.
	Done bool
	// At is when to look again though nothing has changed; zero: never.
	At  time.Time
	Why decision.Why
	// Blocked is filled in plans that wait, and in the last one; by namespace
	// and name.
	Blocked []Blocked
	// Warn is something tolerated that an operator should know; zero: nothing.
	Warn decision.Why
}

// busy tells whether the plan has something to carry out.
func (p *Plan) busy() bool {
	return p.Write != nil || p.Look || len(p.Evict) > 0 || len(p.Delete) > 0 || len(p.Detach) > 0
}
