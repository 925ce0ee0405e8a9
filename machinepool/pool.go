package machinepool

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Finalizer keeps a pool's record as long as a group of it may exist.
const Finalizer = machine.Finalizer

// Pool is a number of worker machines that the provider manages as one group.
type Pool struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec says what a pool should be. The library fills in ProviderIDs, and Replicas too while the
// provider owns the size (see Policy.Autoscaled).
type Spec struct {
	// ClusterName is the cluster that the machines belong to. Required.
	ClusterName string
	// Replicas is how many machines are wanted, not negative; nil: 1.
	Replicas *int32
	// MinReady is how long a node must be ready until it counts as available. Not negative; zero:
	// at once.
	MinReady time.Duration
	// FailureDomains are the zones, or what the provider calls them, over which the machines are
	// spread. Empty: the provider's choice.
	FailureDomains []string
	// RollingUpdate bounds how the provider replaces instances that were made from an earlier template.
	// Nil: the provider's own choice, or the provider spec's.
	RollingUpdate *RollingUpdate
	Template      Template
	// ProviderIDs names every instance that the group has, each once, sorted.
	ProviderIDs []string
}

// RollingUpdate bounds a provider's update. A bound that is not set is 0. If both are 0, one instance may
// be missing.
type RollingUpdate struct {
	// MaxSurge is how many instances more than wanted there may be, rounded up.
	MaxSurge rollout.IntOrPercent
	// MaxUnavailable is how many of the wanted instances may be missing or not ready, rounded down.
	MaxUnavailable rollout.IntOrPercent
}

// Bounds returns surge and unavailable for a group of that target, in instances; never both 0.
func (r *RollingUpdate) Bounds(target int32) rollout.Bounds {
	return rollout.Fenceposts(r.MaxSurge, r.MaxUnavailable, target)
}

// Template describes each machine of a pool. The provider decides what happens to machines that
// were made from an earlier template, within Spec.RollingUpdate.
type Template struct {
	// Class is the infrastructure: what the group is made from. The pool waits for a class that is
	// not named yet, or does not exist.
	Class machine.ClassRef
	// NodeTemplate is what nodes should carry from their beginning. The maker of the bootstrap
	// data, or the provider, puts it there.
	NodeTemplate machine.NodeTemplate
	Bootstrap    Bootstrap
}

// Bootstrap says where a machine's first program comes from. All machines of a pool share it.
type Bootstrap struct {
	// Config names the object that makes the bootstrap data for this pool alone. It is deleted with
	// the pool. Empty: there is no such object, and DataSecret is the user's own.
	Config string
	// DataSecret names the secret with the bootstrap data. Nil: another program will set it, and
	// the pool waits for that. Empty: there is nothing to bootstrap.
	DataSecret *string
}

// Wanted returns the number of machines that the spec asks for, never negative.
func (s *Spec) Wanted() int32 {
	if s.Replicas == nil {
		return 1
	}
	return max(0, *s.Replicas)
}

// Clone implements object.Object.
func (s *Pool) Clone() *Pool {
	c := &Pool{Meta: s.CloneMeta(), Spec: s.Spec.Clone()}
	c.CopyStatus(s)
	return c
}

// CopyStatus implements object.Object.
func (s *Pool) CopyStatus(from *Pool) { s.Status = from.Status.Clone() }

// SpecEqual implements object.Object.
func (s *Pool) SpecEqual(t *Pool) bool { return s.Spec.Equal(&t.Spec) }

// Clone returns a copy that shares nothing changeable with s.
func (s *Spec) Clone() Spec {
	c := *s
	c.Replicas = copied(s.Replicas)
	c.FailureDomains = slices.Clone(s.FailureDomains)
	c.RollingUpdate = copied(s.RollingUpdate)
	c.Template = s.Template.Clone()
	c.ProviderIDs = slices.Clone(s.ProviderIDs)
	return c
}

// Equal reports whether both are the same, field by field: nil replicas differ from the 1 they
// stand for.
func (s *Spec) Equal(t *Spec) bool {
	return s.ClusterName == t.ClusterName && samePointer(s.Replicas, t.Replicas) && s.MinReady == t.MinReady &&
		slices.Equal(s.FailureDomains, t.FailureDomains) && samePointer(s.RollingUpdate, t.RollingUpdate) && s.Template.Equal(&t.Template) &&
		slices.Equal(s.ProviderIDs, t.ProviderIDs)
}

// Clone returns a copy that shares nothing changeable with t.
func (t *Template) Clone() Template {
	c := *t
	c.NodeTemplate = t.NodeTemplate.Clone()
	c.Bootstrap.DataSecret = copied(t.Bootstrap.DataSecret)
	return c
}

// Equal reports whether both describe the same machine.
func (t *Template) Equal(u *Template) bool {
	return t.Class == u.Class && t.NodeTemplate.Equal(&u.NodeTemplate) &&
		t.Bootstrap.Config == u.Bootstrap.Config && samePointer(t.Bootstrap.DataSecret, u.Bootstrap.DataSecret)
}

func copied[T any](p *T) *T {
	if p == nil {
		return nil
	}
	c := *p
	return &c
}

func samePointer[T comparable](a, b *T) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// Phase is the state of a pool. PhaseTable holds every transition from one to another.
type Phase string

// The phases, in order of precedence: a pool is in the last one whose condition holds.
const (
	PhaseNew          Phase = ""
	PhasePending      Phase = "Pending"      // accepted; waits for bootstrap data
	PhaseProvisioning Phase = "Provisioning" // bootstrap data are there; the group is being made
	PhaseProvisioned  Phase = "Provisioned"  // the provider says that the group is ready
	PhaseRunning      Phase = "Running"      // as many nodes are ready as are wanted
	PhaseFailed       Phase = "Failed"       // an operator must act
	PhaseDeleting     Phase = "Deleting"     // deletion was asked for
)

// The events of the phase table. Each says which condition is the strongest that holds.
const (
	eventAccepted       machine.Event = "accepted"
	eventBootstrapReady machine.Event = "bootstrap ready"
	eventGroupReady     machine.Event = "group ready"
	eventNodesReady     machine.Event = "nodes ready"
	eventFailed         machine.Event = "failed"
	eventDelete         machine.Event = "delete"
	eventNotDeleted     machine.Event = "not deleted" // Deleting, but no deletion was asked for
	eventRestart        machine.Event = "restart"     // the stored phase is unknown
)

// step is one phase with the condition under which a pool is in it.
type step struct {
	phase Phase
	on    machine.Event
	rises string // why a pool comes here from an earlier phase
	falls string // why it falls back here from a later one
}

// steps are in order of precedence: the last condition that holds counts.
var steps = []step{
	{PhasePending, eventAccepted, "", "neither bootstrap data nor a group are there any more"},
	{PhaseProvisioning, eventBootstrapReady, "bootstrap data are there, or none are needed: the group can be made",
		"the group is gone or not ready any more; bootstrap data are there"},
	{PhaseProvisioned, eventGroupReady, "the provider says that the group is ready",
		"the group is ready; its ready nodes are not as many as are wanted, or the failure is over"},
	{PhaseRunning, eventNodesReady, "as many nodes of the group are ready as are wanted",
		"the failure is over, and as many nodes are ready as are wanted"},
	{PhaseFailed, eventFailed, "a failure is recorded that a person has to see to", ""},
}

var phases = newPhaseTable()

// PhaseTable is the state machine of Status.Phase. It is shared and must not be changed.
func PhaseTable() *machine.Table { return phases }

func newPhaseTable() *machine.Table {
	var edges []machine.Edge
	add := func(from Phase, on machine.Event, to Phase, why string) {
		edges = append(edges, machine.Edge{From: string(from), On: on, To: string(to), Why: why})
	}
	add(PhaseNew, eventAccepted, PhasePending, "every pool begins here")
	for i, from := range steps {
		for j, to := range steps {
			switch {
			case i < j:
				add(from.phase, to.on, to.phase, to.rises)
			case i > j:
				add(from.phase, to.on, to.phase, to.falls)
			}
		}
	}
	add(PhaseDeleting, eventNotDeleted, PhasePending, "its group may be half gone and no deletion will finish it: it is made whole again")
	for _, from := range []Phase{
		PhaseNew, PhasePending, PhaseProvisioning, PhaseProvisioned, PhaseRunning, PhaseFailed, machine.Unrecognized,
	} {
		add(from, eventDelete, PhaseDeleting, "deletion can begin at any time")
	}
	add(machine.Unrecognized, eventRestart, PhasePending, "what storage holds makes no sense: every pool begins here")
	return machine.NewTable("pool", string(PhaseNew), nil, edges)
}

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
	// Available how many have been ready for MinReady, Unavailable how many more are wanted than are
	// available.
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
	// Leaving are instances that are drained before they are removed, in the order in which they were
	// chosen.
	Leaving       []Leaving
	LastOperation Operation
	// NeverCreated is recorded when a deletion begins: no create call was issued. False: one may have been.
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

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon.
func (s *Pool) Validate() error {
	err := s.invalidField()
	if err == nil {
		return nil
	}
	return err.Of("pool", s.Key)
}

func (r *RollingUpdate) invalidField() *object.FieldError {
	switch {
	case r == nil:
	case r.MaxSurge.Problem() != "":
		return object.Invalid("spec.rollingUpdate.maxSurge", r.MaxSurge.Problem())
	case r.MaxUnavailable.Problem() != "":
		return object.Invalid("spec.rollingUpdate.maxUnavailable", r.MaxUnavailable.Problem())
	}
	return nil
}

func (s *Pool) invalidField() *object.FieldError {
	boot := &s.Spec.Template.Bootstrap
	switch {
	case s.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case s.Spec.ClusterName == "":
		return object.Invalid("spec.clusterName", "must not be empty")
	case s.Spec.Replicas != nil && *s.Spec.Replicas < 0:
		return object.Invalid("spec.replicas", "must not be negative")
	case s.Spec.MinReady < 0:
		return object.Invalid("spec.minReady", "must not be negative")
	case boot.DataSecret != nil && *boot.DataSecret != "" && strings.TrimSpace(*boot.DataSecret) == "":
		return object.Invalid("spec.template.bootstrap.dataSecret", "must not be blank; empty skips the bootstrap")
	}
	if bad := s.Spec.RollingUpdate.invalidField(); bad != nil {
		return bad
	}
	for i, domain := range s.Spec.FailureDomains {
		field := "spec.failureDomains"
		switch {
		case domain == "":
			return object.Invalid(field+"["+strconv.Itoa(i)+"]", "must not be empty")
		case slices.Contains(s.Spec.FailureDomains[:i], domain):
			return object.Invalid(field+"["+strconv.Itoa(i)+"]", "must not be named twice")
		}
	}
	return s.Spec.Template.NodeTemplate.InvalidEntry("spec.template.nodeTemplate")
}
