package machinepool

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Status is what is known of a pool. Only the library writes it.
type Status struct {
	Phase Phase
	Since time.Time // when Phase was entered; whole seconds
	// ObservedGeneration is the generation of the spec that the rest of the status is about.
	ObservedGeneration int64
	// NodeRefs are the nodes of the instances in Spec.ProviderIDs, in that order. An instance
	// without a node has none.
	NodeRefs []NodeRef
	// Replicas is how many instances the group last had, Ready how many of them are ready nodes,
	// Available how many have been ready for MinReady, Unavailable how many of the wanted ones are
	// missing.
	Replicas, Ready, Available, Unavailable int32
	BootstrapReady, InfrastructureReady     bool
	// FailureReason and FailureMessage say what an operator must act on. Empty: nothing. They
	// disappear with their cause.
	FailureReason  FailureReason
	FailureMessage string
	Conditions     []object.Condition

	// GroupID is the provider's name for the group. Empty: not known.
	GroupID string
	// LastKnown is the driver's own note. Each call gets it back.
	LastKnown string
	// Applied is what the group was made from, or updated to.
	Applied Applied
	// Leaving are instances that are drained before they go, in the order in which they were
	// chosen.
	Leaving       []Leaving
	LastOperation Operation
	// NeverCreated records that no create call was issued for this pool. False: one may have been.
	NeverCreated bool
}

// NodeRef names the node that an instance has become.
type NodeRef struct {
	ProviderID string
	Name       string
	UID        string
	// ReadySince is when the library saw that the node had become ready, by its own clock; whole
	// seconds. Spec.MinReady counts from here. Zero: it is not ready.
	ReadySince time.Time
}

// FailureReason is one word for what an operator must act on.
type FailureReason string

// The reasons of failures.
const (
	FailureSpec     FailureReason = "InvalidConfiguration" // a field can't be acted upon
	FailureCreate   FailureReason = "CreateError"
	FailureUpdate   FailureReason = "UpdateError" // also of a change of size, or of single instances
	FailureLook     FailureReason = "StatusError" // the group can't be looked at
	FailureToken    FailureReason = "TokenError"  // the bootstrap token can't be renewed
	FailureProvider FailureReason = "GroupFailed" // the provider says so
)

// ConditionSpecValid is False while a spec can't be acted upon. Its message names the field.
const ConditionSpecValid = machine.ConditionSpecValid

// ConditionScaleDownHeld is True while no further instance is chosen for a smaller size, because the
// provider has replaced what DeleteInstances removed. That lasts for an hour, or until another size
// is wanted.
const ConditionScaleDownHeld = "ScaleDownHeld"

// ConditionNodesUnmatched is True while the nodes of instances carry their provider IDs in another
// spelling, or while no node is known for an instance that may have one. The message says which.
const ConditionNodesUnmatched = "NodesUnmatched"

// Exit is why an instance leaves.
type Exit string

// The reasons to leave.
const (
	ExitScaleDown Exit = "ScaleDown" // there are too many
	ExitReplace   Exit = "Replace"   // its node asks for a replacement
	ExitProvider  Exit = "Provider"  // the provider removes it, and waits for the drain
)

// Leaving is an instance that is drained before it is removed.
type Leaving struct {
	ProviderID string
	Exit       Exit
	Since      time.Time // the drain's timeout counts from here; whole seconds
}

// Operation is the last call for a pool that should change something, or that failed.
type Operation struct {
	Call     Call
	State    machine.OperationState
	Replicas int32      // how many were wanted when it was ordered
	Code     codes.Code // of a failure; codes.OK otherwise
	Message  string     // for people; never parsed
	Time     time.Time  // whole seconds
	// Against is what a failure was seen with. Once any of it has changed, the next attempt does
	// not wait.
	Against Inputs
}

// Inputs are the versions of everything a call depends on.
type Inputs struct {
	Pool   int64  // the pool's generation
	Class  int64  // the class's generation; zero: there was none
	Secret string // opaque version of the merged secrets
}

// Clone returns a copy that shares nothing changeable with s.
func (s *Status) Clone() Status {
	c := *s
	c.NodeRefs = slices.Clone(s.NodeRefs)
	c.Conditions = slices.Clone(s.Conditions)
	c.Leaving = slices.Clone(s.Leaving)
	c.Applied = s.Applied.Clone()
	return c
}

// Equal reports whether both are the same.
func (s *Status) Equal(t *Status) bool {
	return s.Phase == t.Phase && s.Since.Equal(t.Since) && s.ObservedGeneration == t.ObservedGeneration &&
		s.Replicas == t.Replicas && s.Ready == t.Ready && s.Available == t.Available && s.Unavailable == t.Unavailable &&
		s.BootstrapReady == t.BootstrapReady && s.InfrastructureReady == t.InfrastructureReady &&
		s.FailureReason == t.FailureReason && s.FailureMessage == t.FailureMessage && s.sameRecords(t)
}

// sameRecords compares the records that later decisions need.
func (s *Status) sameRecords(t *Status) bool {
	return s.GroupID == t.GroupID && s.LastKnown == t.LastKnown && s.NeverCreated == t.NeverCreated &&
		s.LastOperation == t.LastOperation && s.Applied.Equal(&t.Applied) &&
		slices.Equal(s.NodeRefs, t.NodeRefs) && slices.Equal(s.Conditions, t.Conditions) && slices.Equal(s.Leaving, t.Leaving)
}
