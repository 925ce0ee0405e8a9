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

// The finalizers of the library's objects. They are those of machine-controller-manager (MCMFinalizerName and
// MCFinalizerName in its machine controller; pull request 1055 for nodes), so that either program can continue
// what the other began.
const (
	// Finalizer keeps a machine as long as a VM of it may exist, and a class as long as something refers
	// to it.
	Finalizer = "machine.sapcloud.io/machine-controller-manager"
	// SecretFinalizer keeps a secret that classes refer to.
	SecretFinalizer = "machine.sapcloud.io/machine-controller"
	// NodeFinalizer keeps a machine's node, so that its deletion is noticed.
	NodeFinalizer = "node.machine.sapcloud.io/machine-controller"
)

// Machine is one member of a fleet: a VM, a physical machine or a process, and its node.
type Machine struct {
	object.Meta
	Spec   Spec
	Status Status
}

// Spec is the desired state of a machine. The library fills in ProviderID and NodeName once the provider has
// answered.
type Spec struct {
	Class ClassRef
	// ProviderID is the provider's unique name of the VM. Empty: no VM is recorded yet.
	ProviderID string
	// NodeName is the name of the machine's node, which may not have joined yet. Empty: not known.
	NodeName string
	// NodeTemplate is applied to the node. Entries of other programs stay.
	NodeTemplate NodeTemplate
	Config       Configuration
	// InPlace is what an in-place rollout requests of the machine. The machine's owner writes it.
	InPlace InPlaceRequest
}

// ClassRef names the class of a machine, in the machine's namespace.
type ClassRef struct {
	APIGroup string
	Kind     string // empty or ClassKind: this library's own Class
	Name     string
}

// ClassKind is the kind of this library's own Class.
const ClassKind = "MachineClass"

// Foreign reports whether the class is of a provider's own kind, which machine-controller-manager used before
// it had a common one.
func (r ClassRef) Foreign() bool { return r.Kind != "" && r.Kind != ClassKind }

// missing returns the message that there is no such class.
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

// NodeTemplate is metadata and taints that a node should have.
type NodeTemplate struct {
	Labels      map[string]string
	Annotations map[string]string
	Taints      []object.Taint
}

// Configuration overrides a Policy for one machine. A zero value keeps the policy's. Negative durations are
// invalid.
type Configuration struct {
	CreationTimeout time.Duration
	HealthTimeout   time.Duration
	DrainTimeout    time.Duration
	InPlaceTimeout  time.Duration
	// PreserveTimeout applies to preservations that begin after it was set.
	PreserveTimeout time.Duration
	// DisableHealthTimeout keeps an unhealthy machine Unknown without a limit, instead of replacing it.
	DisableHealthTimeout bool
	// MaxEvictRetries overrides drain.Policy.MaxEvictRetries: for how many slots of 20 s, from the start
	// of the drain, a pod is evicted before it is deleted. Negative values are invalid.
	MaxEvictRetries int32
	// NodeConditions replaces Policy.NodeConditions unless nil.
	NodeConditions []string
}

// Status is the observed state of a machine. Only the library writes it.
type Status struct {
	Phase Phase
	Since time.Time // when Phase was entered
	// ClockFrom restarts all timeouts of this machine, after a time in which its health could not be
	// judged: they count from the later of it and their own start. Zero: never restarted.
	ClockFrom time.Time
	// ResumedAt is when a pause ended, or a delayed creation began. All timeouts count from it as from
	// ClockFrom, which is set for a whole fleet. Zero: neither happened.
	ResumedAt     time.Time
	LastOperation Operation
	// Conditions are copied from the node, except for ConditionSpecValid and ConditionPaused.
	Conditions []object.Condition
	Addresses  []Address
	// LastKnown is opaque VM state of the driver, which gets it back with each later call.
	LastKnown string
	// VMSpec is the spec that the VM was created from or last updated to. Zero: not known, or the driver
	// can't update VMs.
	VMSpec VMSpec
	// NeverCreated records that it is certain that no VM was created for this machine: no create call was issued,
	// or each was refused, the last one with ALREADY_EXISTS. If it is false, a VM may exist or not.
	NeverCreated bool
	// OnlyRefused records that every create call so far was refused with a code that means that nothing
	// was created. A call without a recorded answer is not counted. It has no meaning before a create is
	// announced.
	OnlyRefused bool
	// DeletedFrom is the phase that the machine had when its deletion began.
	DeletedFrom Phase
	// StageSince is when the current stage of the deletion began its own work, whole seconds. Its
	// deadline counts from it, or from the deletion if it is zero: then hooks block the stage, or another
	// program began it.
	StageSince time.Time
	// HeldSince is when a hook first blocked the current stage of the deletion, whole seconds. Zero: none
	// did.
	HeldSince time.Time
	// DrainedNode is the UID of the node that the deletion has drained last. Empty: none. A node of the
	// machine with another UID has joined since.
	DrainedNode string
	// DrainForced records that force was due, by the label or by the drain timeout, when a drain of the
	// deletion ended. Nodes that join later are not drained.
	DrainForced bool
	// JoinedAfter is the time from creation to the first Running. Zero: not joined yet.
	JoinedAfter time.Duration
	// Preservation says whether the machine is preserved for inspection.
	Preservation Preservation
}

// ConditionSpecValid is False while the spec is invalid. Its message names the field.
const ConditionSpecValid = "SpecValid"

// Address is an address of a machine.
type Address struct {
	Type  string // "InternalIP", "Hostname", …
	Value string
}

// Phase is the state of a machine. PhaseTable holds all transitions.
type Phase string

// The phases, as stored. They are those of machine-controller-manager.
const (
	PhaseNew                     Phase = ""
	PhasePending                 Phase = "Pending"
	PhaseAvailable               Phase = "Available" // the VM exists, and there is no cluster to join
	PhaseRunning                 Phase = "Running"
	PhaseUnknown                 Phase = "Unknown"          // unhealthy, or its node is missing
	PhaseFailed                  Phase = "Failed"           // to be replaced
	PhaseCrashLoopBackOff        Phase = "CrashLoopBackOff" // its creation failed and is retried
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

// Stages of a creation. A stored StageCreateVM says that a create may have been issued, and that the VM is not
// known to be initialized.
const (
	StageNone                   Stage = ""
	StageCreateVM               Stage = "CreateVM"
	StageInstanceInitialization Stage = "InstanceInitialization"
	StageInitialized            Stage = "Initialized"
)

// Stages of a deletion, in order. DeletionTable holds the transitions.
const (
	StageGetVMStatus              Stage = "GetVMStatus"
	StageInitiateDrain            Stage = "InitiateDrain"
	StageDeleteVolumeAttachments  Stage = "DeleteVolumeAttachments"
	StageInitiateVMDeletion       Stage = "InitiateVMDeletion"
	StageInitiateNodeDeletion     Stage = "InitiateNodeDeletion"
	StageInitiateFinalizerRemoval Stage = "InitiateFinalizerRemoval"
)

// Stages of an in-place update. UpdateTable holds the transitions.
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
	Message string     // for people, never parsed
	Time    time.Time  // whole seconds
	// Forced says that this operation uses force since Time.
	Forced bool
	// Against are the inputs of a failed attempt. A change of any of them ends the backoff.
	Against Inputs
}

// Inputs are the versions of what a provider call depends on.
type Inputs struct {
	Machine int64  // the machine's generation
	Class   int64  // the class's generation; zero: there was none
	Secret  string // opaque; changes only with the data of the merged secrets
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

// Equal reports whether both specs are the same.
func (s *Spec) Equal(t *Spec) bool {
	return s.Class == t.Class && s.ProviderID == t.ProviderID && s.NodeName == t.NodeName &&
		s.InPlace == t.InPlace && s.NodeTemplate.Equal(&t.NodeTemplate) && s.Config.Equal(&t.Config)
}

// RolloutMarks are set on nodes during a rollout. The zero value: none.
//
// If somebody else has set the same key on a node, the mark is not made, and their value is neither changed nor
// removed.
type RolloutMarks struct {
	// Avoid asks schedulers to prefer other nodes, because this one will be deleted: a taint with effect
	// PreferNoSchedule, Keys.AvoidTaint.
	Avoid bool
	// Keep asks the cluster autoscaler not to remove the node, because the rollout counts on it:
	// annotation Keys.KeepNode, with Keys.KeptByUs.
	Keep bool
}

// Stages of an operation of kind OperationUpdate. A failure at StageSyncNode says that the API server rejects
// a part of the node template; the machine works all the same.
const (
	StageUpdateVM Stage = "UpdateVM"
	StageSyncNode Stage = "SyncNode"
)

// defaultPriority is the deletion priority of a machine that records none.
const defaultPriority = 3

// Ready reports whether a machine is Running or, without a cluster, Available, and not being deleted.
func (m *Machine) Ready() bool {
	return !m.Deleted() && (m.Status.Phase == PhaseRunning || m.Status.Phase == PhaseAvailable)
}

// DeletionStage returns the state of the machine in DeletionTable. It is StageNone before the deletion begins.
func (s *Status) DeletionStage() Stage {
	op := &s.LastOperation
	if s.Phase != PhaseTerminating || op.Kind != OperationDelete {
		return StageNone
	}
	return Stage(deletions.State(string(op.Stage)))
}

// UpdateStage returns the state of the machine in UpdateTable: by its operation while it is InPlaceUpdating, and
// by its phase afterwards. It is StageCandidate outside of updates.
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

// AvailableAt returns when a ready machine has been ready for minReady; zero if it is not ready.
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

// Priority returns the deletion priority from an annotation: machines with lower ones are deleted first. It is 3
// if the annotation is missing or invalid.
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

// Preserved reports whether the machine is preserved and not being deleted.
func (m *Machine) Preserved(now time.Time) bool {
	return !m.Deleted() && m.Status.Preservation.Active(now)
}

// PreservedFailed reports whether the machine is Failed and preserved. Lists of failed machines leave it out,
// because it needs no action.
func (m *Machine) PreservedFailed(now time.Time) bool {
	return m.Status.Phase == PhaseFailed && m.Preserved(now)
}

// ToBePreserved reports whether the annotation of a Failed machine requests its preservation, and the status
// does not record that yet.
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

// certainlyNoVM reports whether it is certain that no VM was created for this machine: NeverCreated says so, or
// nothing was done for the machine yet.
func (m *Machine) certainlyNoVM() bool {
	s := &m.Status
	fresh := s.Phase == PhaseNew && s.LastOperation.Kind == ""
	return m.Spec.ProviderID == "" && (s.NeverCreated || fresh)
}

// Validate returns an *object.FieldError for the first invalid field, or for the first entry of the node
// template that no API server accepts (NodeTemplate.InvalidEntry).
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

// invalidForNode returns the first field that no API server accepts on the machine's node, or nil. No VM is
// created meanwhile, because it would fail to join and be replaced again and again. A machine that has a VM
// continues to work.
func (d *decider) invalidForNode() *object.FieldError {
	switch {
	case d.o.NoCluster:
		return nil
	case d.machineLabelKey() != d.p.Keys.NodeMachine:
		return object.Invalid("metadata.name", "must be a valid value of label "+d.p.Keys.NodeMachine+" on its node")
	}
	if d.templateApplied() {
		return nil
	}
	return d.m.Spec.NodeTemplate.InvalidEntry(templatePath)
}

// templateApplied reports whether the whole template, as it is now, was applied to the node. Then it is
// valid, and need not be checked in every pass. While condition ConditionSpecValid is set, the template is
// always checked: otherwise, if the record on the node is wrong, each pass that has read the node would
// remove the condition, and each pass that has not would set it again.
func (d *decider) templateApplied() bool {
	if d.o.Node == nil || d.o.Node.Node == nil {
		return false
	}
	n := d.o.Node.Node
	return d.nodeOwner == d.m.Name && n.Applied.Generation != 0 && n.Applied.Generation == d.m.Generation &&
		object.FindCondition(d.m.Status.Conditions, ConditionSpecValid) == nil
}

func (m *Machine) invalidField() *object.FieldError {
	switch {
	case m.Name == "":
		return object.Invalid("metadata.name", "must not be empty")
	case m.Spec.Class.Name == "":
		return object.Invalid("spec.class.name", "must not be empty")
	case !m.Spec.InPlace.known():
		return object.Invalid("spec.inPlace", "is unknown: "+string(m.Spec.InPlace))
	}
	return m.Spec.Config.InvalidField("spec.config")
}

// InvalidField returns the first setting that is out of range, or nil. Its name begins with path.
func (c *Configuration) InvalidField(path string) *object.FieldError {
	field := ""
	switch {
	case c.CreationTimeout < 0:
		field = ".creationTimeout"
	case c.HealthTimeout < 0:
		field = ".healthTimeout"
	case c.DrainTimeout < 0:
		field = ".drainTimeout"
	case c.InPlaceTimeout < 0:
		field = ".inPlaceTimeout"
	case c.PreserveTimeout < 0:
		field = ".preserveTimeout"
	case c.MaxEvictRetries < 0:
		field = ".maxEvictRetries"
	default:
		return nil
	}
	return object.Invalid(path+field, "must not be negative")
}

// LogValue implements slog.LogValuer: a logged secret shows only its name. A secret inside a value that a logger
// encodes as JSON is not protected, because encoders write the data.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }
