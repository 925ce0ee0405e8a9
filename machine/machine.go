package machine

import (
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/object"
)

// The finalizers of the library's objects. They are those of
// machine-controller-manager (MCMFinalizerName and MCFinalizerName in its machine
// controller; pull request 1055 for nodes), so that either can go on with what the
// other began.
const (
	// Finalizer keeps a machine's record for as long as a VM of it may exist, and
	// a class for as long as something refers to it.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// SecretFinalizer keeps a secret that classes refer to.
	SecretFinalizer = "machine.sapcloud.io/machine-controller"
	// NodeFinalizer keeps a machine's node, so that its deletion is noticed.
	NodeFinalizer = "node.machine.sapcloud.io/machine-controller"
)

// Machine is one member of a fleet: the record of a VM, of a physical machine
// or of a process, and of the node it becomes.
type Machine struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec says what a machine should be. ProviderID and NodeName are filled in by
// the library once the provider has answered.
type Spec struct {
	Class ClassRef
	// ProviderID is the provider's name for the VM, unique at that provider.
	// Empty: no create was acknowledged yet.
	ProviderID string
	// NodeName is the node this machine is, or will be. Empty: not known.
	NodeName string
	// NodeTemplate is applied to the node; what others add there stays.
	NodeTemplate NodeTemplate
	Config       Configuration
	// InPlace is what the rollout of the machine's owner asks of it.
	InPlace InPlaceRequest
	// Marks are on the node for as long as a rollout lasts. The machine's
	// owner writes them.
	Marks RolloutMarks
}

// ClassRef names the class a machine is made from, in the machine's namespace.
type ClassRef struct {
	APIGroup string
	Kind     string // empty or ClassKind: this library's own Class
	Name     string
}

// ClassKind is the kind of this library's own Class.
const ClassKind = "MachineClass"

// Foreign reports whether the class is of another kind than ours: a provider's
// own, from before there was a common one.
func (r ClassRef) Foreign() bool { return r.Kind != "" && r.Kind != ClassKind }

// missing says that there is no such class.
func (r ClassRef) missing() string {
	if r.Foreign() {
		return "there is no class " + r.Name + " that replaces the one of kind " + r.GroupKind()
	}
	return "class " + r.Name + " does not exist"
}

// GroupKind is the kind with its group, if it has one: "BlueClass.example.com".
func (r ClassRef) GroupKind() string {
	if r.APIGroup == "" {
		return r.Kind
	}
	return r.Kind + "." + r.APIGroup
}

// NodeTemplate is metadata that a node should carry.
type NodeTemplate struct {
	Labels      map[string]string
	Annotations map[string]string
	Taints      []object.Taint
}

// Configuration overrides a Policy for one machine. A zero value leaves the
// policy's; negative durations are refused.
type Configuration struct {
	CreationTimeout time.Duration
	HealthTimeout   time.Duration
	DrainTimeout    time.Duration
	InPlaceTimeout  time.Duration
	// PreserveTimeout counts for preservations that begin after it was set.
	PreserveTimeout time.Duration
	// DisableHealthTimeout keeps an unhealthy machine in Unknown for as long
	// as it takes, instead of replacing it.
	DisableHealthTimeout bool
	// MaxEvictRetries is how many slots of 20 s, from its drain's start, a pod has to be evicted in
	// before it is deleted; it takes the place of drain.Policy.MaxEvictRetries. Zero: the policy's;
	// negative ones are refused.
	MaxEvictRetries int32
	// NodeConditions replaces Policy.NodeConditions unless nil.
	NodeConditions []string
}

// Status is what is known of a machine. Only the library writes it.
type Status struct {
	Phase Phase
	Since time.Time // when Phase was entered
	// ClockFrom restarts every wait of this machine (after a time in which
	// nothing could be judged); waits count from the later of it and their
	// own base. Zero: never restarted.
	ClockFrom time.Time
	// ResumedAt is when a pause ended, or a creation began that was held back:
	// waits count from it as from ClockFrom, which speaks for a whole fleet.
	// Zero: there was none.
	ResumedAt     time.Time
	LastOperation Operation
	// Conditions are copied from the node; ConditionSpecValid
	// and ConditionPaused are ours.
	Conditions []object.Condition
	Addresses  []Address
	// LastKnown is the driver's own note of a VM's state, handed back to it
	// with each later call.
	LastKnown string
	// VMSpec is what the VM was made from or last updated to, as far as it can
	// be updated. Zero: not known, or the driver can't update VMs.
	VMSpec VMSpec
	// NeverCreated records that no VM was made for this machine: no create call was issued, or each
	// was refused, the last one with ALREADY_EXISTS. False says nothing: one may have been made.
	NeverCreated bool
	// OnlyRefused records that every create call but the latest was refused with a code after which
	// nothing was made. It says nothing of a machine for which none was announced.
	OnlyRefused bool
	// DeletedFrom is the phase in which deletion found the machine.
	DeletedFrom Phase
	// StageSince is when the present stage of the deletion began its own work,
	// whole seconds: its deadline counts from it. Zero: hooks hold the stage
	// back, or it is not known, and the deadline counts from the deletion.
	StageSince time.Time
	// HeldSince is when hooks first held the present stage of the deletion
	// back, whole seconds. Zero: none did.
	HeldSince time.Time
	// DrainedNode is the UID of the node that the deletion's last drain has ended with. Empty: no drain
	// has ended, or there was no node. A node of the machine with another UID has joined since.
	DrainedNode string
	// DrainForced records that a drain of the deletion ended when force was due, by the label or by the
	// drain timeout. Nodes that join later are not drained.
	DrainForced bool
	// JoinedAfter is the time from creation to the first Running; zero: not
	// joined yet.
	JoinedAfter time.Duration
	// Preservation says whether the machine is kept for inspection.
	Preservation Preservation
}

// ConditionSpecValid is False while a spec can't be acted upon; its message
// names the field.
const ConditionSpecValid = "SpecValid"

// Address of a machine.
type Address struct {
	Type  string // "InternalIP", "Hostname", …
	Value string
}

// Phase is where a machine stands. PhaseTable holds every way from one to another.
type Phase string

// The phases, in the spelling that stored objects have.
const (
	PhaseNew                     Phase = ""
	PhasePending                 Phase = "Pending"
	PhaseAvailable               Phase = "Available" // made, and there is no cluster to join
	PhaseRunning                 Phase = "Running"
	PhaseUnknown                 Phase = "Unknown" // unhealthy, or its node is missing
	PhaseFailed                  Phase = "Failed"  // to be replaced
	PhaseCrashLoopBackOff        Phase = "CrashLoopBackOff"
	PhaseTerminating             Phase = "Terminating"
	PhaseInPlaceUpdating         Phase = "InPlaceUpdating"
	PhaseInPlaceUpdateSuccessful Phase = "InPlaceUpdateSuccessful"
	PhaseInPlaceUpdateFailed     Phase = "InPlaceUpdateFailed"
)

// OperationKind says what was last attempted on a machine.
type OperationKind string

// The operations.
const (
	OperationCreate        OperationKind = "Create"
	OperationUpdate        OperationKind = "Update"
	OperationInPlaceUpdate OperationKind = "InPlaceUpdate"
	OperationHealthCheck   OperationKind = "HealthCheck"
	OperationDrainNode     OperationKind = "DrainNode"
	OperationDelete        OperationKind = "Delete"
)

// OperationState says how the last operation stands.
type OperationState string

// The states of an operation.
const (
	StateProcessing OperationState = "Processing"
	StateFailed     OperationState = "Failed"
	StateSuccessful OperationState = "Successful"
)

// Stage is the step of an operation that is being done or has failed.
type Stage string

// Stages of a creation. A persisted StageCreateVM says that a create may have
// been issued, and that nothing is known of its initialization.
const (
	StageNone                   Stage = ""
	StageCreateVM               Stage = "CreateVM"
	StageInstanceInitialization Stage = "InstanceInitialization"
	StageInitialized            Stage = "Initialized"
)

// Stages of a deletion, in their order. DeletionTable holds the ways between them.
const (
	StageGetVMStatus              Stage = "GetVMStatus"
	StageInitiateDrain            Stage = "InitiateDrain"
	StageDeleteVolumeAttachments  Stage = "DeleteVolumeAttachments"
	StageInitiateVMDeletion       Stage = "InitiateVMDeletion"
	StageInitiateNodeDeletion     Stage = "InitiateNodeDeletion"
	StageInitiateFinalizerRemoval Stage = "InitiateFinalizerRemoval"
)

// Stages of an in-place update. UpdateTable holds the ways between them.
const (
	StageCandidate        Stage = "CandidateForUpdate"
	StageSelected         Stage = "SelectedForUpdate"
	StageReady            Stage = "ReadyForUpdate"
	StageUpdateSuccessful Stage = "UpdateSuccessful"
	StageUpdateFailed     Stage = "UpdateFailed"
	StageInService        Stage = "InService"
)

// Operation is the last thing attempted on a machine.
type Operation struct {
	Kind    OperationKind
	State   OperationState
	Stage   Stage
	Code    codes.Code // of a failure; codes.OK otherwise
	Message string     // for people; never parsed
	Time    time.Time  // whole seconds
	// Forced says that since Time this operation disregards what would hold
	// it back.
	Forced bool
	// Against is what a failure was seen with: once any of it has changed,
	// the next attempt does not wait.
	Against Inputs
}

// Inputs are the versions of everything a provider call depends on.
type Inputs struct {
	Machine int64  // the machine's generation
	Class   int64  // the class's generation; zero: there was none
	Secret  string // opaque; changes with the data of the merged secrets, and with nothing else
}

// Clone implements object.Object.
func (m *Machine) Clone() *Machine {
	c := &Machine{Meta: m.CloneMeta(), Spec: m.Spec.Clone()}
	c.CopyStatus(m)
	return c
}

// Clone returns a copy that shares nothing changeable with s.
func (s *Spec) Clone() Spec {
	c := *s
	c.NodeTemplate = s.NodeTemplate.Clone()
	c.Config.NodeConditions = slices.Clone(s.Config.NodeConditions)
	return c
}

// Clone returns a copy that shares nothing with t.
func (t *NodeTemplate) Clone() NodeTemplate {
	return NodeTemplate{
		Labels:      maps.Clone(t.Labels),
		Annotations: maps.Clone(t.Annotations),
		Taints:      slices.Clone(t.Taints),
	}
}

// Equal reports whether both templates hold the same; a nil map equals an empty one.
func (t *NodeTemplate) Equal(u *NodeTemplate) bool {
	return maps.Equal(t.Labels, u.Labels) && maps.Equal(t.Annotations, u.Annotations) &&
		slices.Equal(t.Taints, u.Taints)
}

// Equal reports whether both override the same.
func (c *Configuration) Equal(d *Configuration) bool {
	return c.CreationTimeout == d.CreationTimeout && c.HealthTimeout == d.HealthTimeout &&
		c.DrainTimeout == d.DrainTimeout && c.InPlaceTimeout == d.InPlaceTimeout && c.PreserveTimeout == d.PreserveTimeout &&
		c.DisableHealthTimeout == d.DisableHealthTimeout && c.MaxEvictRetries == d.MaxEvictRetries && (c.NodeConditions == nil) == (d.NodeConditions == nil) &&
		slices.Equal(c.NodeConditions, d.NodeConditions)
}

// CopyStatus implements object.Object.
func (m *Machine) CopyStatus(from *Machine) { m.Status = from.Status.Clone() }

// Clone returns a copy that shares nothing with s.
func (s *Status) Clone() Status {
	c := *s
	c.Conditions = slices.Clone(s.Conditions)
	c.Addresses = slices.Clone(s.Addresses)
	return c
}

// SpecEqual implements object.Object.
func (m *Machine) SpecEqual(n *Machine) bool { return m.Spec.Equal(&n.Spec) }

// Equal reports whether both say the same.
func (s *Spec) Equal(t *Spec) bool {
	return s.Class == t.Class && s.ProviderID == t.ProviderID && s.NodeName == t.NodeName &&
		s.InPlace == t.InPlace && s.Marks == t.Marks && s.NodeTemplate.Equal(&t.NodeTemplate) && s.Config.Equal(&t.Config)
}

// RolloutMarks are what a rollout writes on nodes while it lasts. The zero
// value: nothing.
//
// What somebody else has put on a node under the same key, before or since, is
// theirs: it is neither changed nor taken away, and the mark is not made there.
type RolloutMarks struct {
	// Avoid asks schedulers to prefer other nodes, since this one is about to
	// go: a taint with effect PreferNoSchedule, Keys.AvoidTaint.
	Avoid bool
	// Keep has the cluster's autoscaler leave the node alone, so that it does
	// not take machines away that the rollout counts on: annotation
	// Keys.KeepNode, with Keys.KeptByUs.
	Keep bool
}

// Stages of an operation of kind OperationUpdate. StageSyncNode has failed if the API server refuses
// what the template says of the node; such a machine does its work.
const (
	StageUpdateVM Stage = "UpdateVM"
	StageSyncNode Stage = "SyncNode"
)

// defaultPriority is the deletion priority of a machine that records none.
const defaultPriority = 3

// Ready reports whether a machine does its work: it is Running, or Available if there
// is no cluster, and it is not being deleted.
func (m *Machine) Ready() bool {
	return !m.Deleted() && (m.Status.Phase == PhaseRunning || m.Status.Phase == PhaseAvailable)
}

// DeletionStage is where the machine stands in the deletion table: at StageNone until its
// deletion was begun.
func (s *Status) DeletionStage() Stage {
	op := &s.LastOperation
	if s.Phase != PhaseTerminating || op.Kind != OperationDelete {
		return StageNone
	}
	return Stage(deletions.State(string(op.Stage)))
}

// UpdateStage is where the machine stands in the table of updates in place. While the agent may
// be at work the operation says it, afterwards the phase does. It is StageCandidate outside of updates.
func (s *Status) UpdateStage() Stage {
	op := &s.LastOperation
	stage := StageNone
	if op.Kind == OperationInPlaceUpdate {
		stage = op.Stage
	}
	switch s.Phase {
	case PhaseInPlaceUpdating:
		if stage == StageSelected || stage == StageReady {
			return stage
		}
		return Unrecognized
	case PhaseInPlaceUpdateSuccessful:
		return StageUpdateSuccessful
	case PhaseInPlaceUpdateFailed:
		if stage != StageCandidate {
			return StageUpdateFailed
		}
	}
	return StageCandidate
}

// AvailableAt returns when a ready machine has been ready for minReady; zero if it is
// not ready.
func (m *Machine) AvailableAt(minReady time.Duration) time.Time {
	if !m.Ready() {
		return time.Time{}
	}
	at := m.Status.Since.Add(minReady)
	if minReady > 0 {
		at = at.Add(time.Second) // Since lost its fraction of a second
	}
	return at
}

// Priority is the deletion priority recorded under an annotation key: lower
// ones go first. It is 3 if there is none, or none that can be read.
func (m *Machine) Priority(key string) int {
	text, ok := m.Annotations[key]
	if !ok {
		return defaultPriority
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return defaultPriority
	}
	return n
}

// Preserved reports whether the machine is kept for inspection and not being
// deleted.
func (m *Machine) Preserved(now time.Time) bool {
	return !m.Deleted() && m.Status.Preservation.Active(now)
}

// PreservedFailed reports whether the machine failed and is kept for inspection. The lists of failed
// machines leave it out: nothing needs to be done about it.
func (m *Machine) PreservedFailed(now time.Time) bool {
	return m.Status.Phase == PhaseFailed && m.Preserved(now)
}

// ToBePreserved reports whether a failed machine's own annotation, under this
// key, asks to keep it, and its status does not say so yet.
func (m *Machine) ToBePreserved(key string) bool {
	p := &m.Status.Preservation
	if key == "" || m.Deleted() || m.Status.Phase != PhaseFailed || p.NodeAsked || !p.Since.IsZero() {
		return false
	}
	switch text := m.Annotations[key]; text {
	case PreserveNow, PreserveWhenFailed, PreserveAutomatically:
		return text != p.Request
	}
	return false
}

// untouched reports whether it is certain that no create was issued for this machine.
func (m *Machine) untouched() bool {
	s := &m.Status
	fresh := s.Phase == PhaseNew && s.LastOperation.Kind == ""
	return m.Spec.ProviderID == "" && (s.NeverCreated || fresh)
}

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon, or else the first entry of the node template that no API
// server accepts: see NodeTemplate.InvalidEntry.
func (m *Machine) Validate() error {
	err := m.invalidField()
	if err == nil {
		err = m.Spec.NodeTemplate.InvalidEntry(templatePath)
	}
	if err == nil {
		return nil
	}
	return err.Of("machine", m.Key)
}

const templatePath = "spec.nodeTemplate"

// invalidForNode returns what no API server accepts on the machine's node, or nil. No VM is made meanwhile:
// its node could not be written, and it would be replaced again and again. A machine that has one
// works on.
func (d *decider) invalidForNode() *object.FieldError {
	switch {
	case d.o.NoCluster:
		return nil
	case d.machineLabelKey() != d.p.Keys.NodeMachine:
		return object.Invalid("metadata.name", "must be a valid value of label "+d.p.Keys.NodeMachine+" on its node")
	}
	return d.m.Spec.NodeTemplate.InvalidEntry(templatePath)
}

func (m *Machine) invalidField() *object.FieldError {
	c := &m.Spec.Config
	switch {
	case m.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case m.Spec.Class.Name == "":
		return object.Invalid("spec.class.name", "must not be empty")
	case c.CreationTimeout < 0:
		return object.Invalid("spec.config.creationTimeout", "must not be negative")
	case c.HealthTimeout < 0:
		return object.Invalid("spec.config.healthTimeout", "must not be negative")
	case c.DrainTimeout < 0:
		return object.Invalid("spec.config.drainTimeout", "must not be negative")
	case c.InPlaceTimeout < 0:
		return object.Invalid("spec.config.inPlaceTimeout", "must not be negative")
	case c.PreserveTimeout < 0:
		return object.Invalid("spec.config.preserveTimeout", "must not be negative")
	case c.MaxEvictRetries < 0:
		return object.Invalid("spec.config.maxEvictRetries", "must not be negative")
	case !m.Spec.InPlace.known():
		return object.Invalid("spec.inPlace", "is unknown: "+string(m.Spec.InPlace))
	}
	return nil
}

// LogValue implements slog.LogValuer: a secret that is logged shows its name. It
// does not help where a secret is a part of a value that a logger encodes as
// JSON: encoders write the data.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
