package machine

import (
	"time"

	"github.com/millwright-go/millwright/object"
)

// Policy holds the settings for machines. A zero setting means its default, so the zero Policy is
// DefaultPolicy. Defaults are those of machine-controller-manager unless noted. Durations are at least a
// second.
type Policy struct {
	// CreationTimeout is how long a machine may take from its creation until its node has joined; then it
	// is Failed. If the first step is delayed for more than Grace, as by a class that backs off, the
	// timeout counts from that step. Default 20 min.
	CreationTimeout time.Duration
	// HealthTimeout is how long a machine may be unhealthy; then it is Failed. Default 10 min.
	HealthTimeout time.Duration
	// DrainTimeout is how long the drain of a machine that is being deleted may take before force is
	// used. It counts from when the drain's stage is stored, or the last hook is removed. Finding the
	// node has as much time. Default 2 h.
	DrainTimeout time.Duration
	// Unresponsive is how long a node is not Ready or is read-only before the deletion of its machine
	// uses force. Default 5 min.
	Unresponsive time.Duration
	// DetachTimeout is how long a forced deletion waits for all volumes of the node to detach. Default
	// 2 min. Without force, drain.Policy.DetachTimeout applies to each pod with volumes instead.
	DetachTimeout time.Duration
	// InPlaceTimeout is how long an in-place update may take from the drain to the agent's answer; then
	// it has failed. Default 20 min.
	InPlaceTimeout time.Duration
	// Grace is how long a new process watches before it ends a timeout that began before the process
	// did, see Observation.WatchedSince: creation, health and in-place timeouts. A process that was
	// stopped for longer, as by SIGSTOP or with its VM, counts as new. Default 1 min, this library's.
	// object.Off: no grace.
	Grace time.Duration
	// PreserveTimeout is how long a machine is preserved for inspection. Default 96 h.
	PreserveTimeout time.Duration
	// HookTimeout is how long hooks (annotations Keys.PreDrainHook and Keys.PreTerminateHook) may block one
	// stage of a machine's deletion, the drain or the VM's deletion, from when the first of them does. The label
	// that forces a deletion overrides them. Default 2 h. object.Off: no limit.
	HookTimeout time.Duration
	// QuotaRetry is how long to wait after RESOURCE_EXHAUSTED. Default as the recovery table's long
	// class, 10 min.
	QuotaRetry time.Duration
	// WaitForChange makes calls whose code the driver contract declares as not retried
	// (codes.Recovery.AutoRetry) wait until the machine, its class or its secrets change. A creation
	// still ends at CreationTimeout. A deletion waits without a limit, and its VM costs money meanwhile.
	// Default: such calls are retried, slowly.
	WaitForChange bool
	// ReplaceFailedUpdates replaces a machine whose in-place update failed at once, within the
	// replacement budget. Default: after its health timeout.
	ReplaceFailedUpdates bool
	// NodeConditions make a node unhealthy unless they are False or absent. Nil: those of
	// DefaultPolicy. Empty: none.
	NodeConditions []string
	// StartupTaints are keys of template taints that are added to a node only once, because another
	// program, such as a network plugin, removes them when the node is ready for it. Further startup
	// taints are Keys.CriticalComponents and those of the cluster autoscaler, which begin with
	// startup-taint.cluster-autoscaler.kubernetes.io/. Default: none.
	StartupTaints []string
	// ProviderIDsMatch says that the driver declares that its provider IDs equal those on nodes. Then a
	// different ID on a node is another VM's, unless it is the same in another spelling (object.Alike).
	ProviderIDsMatch bool
	Keys             Keys
}

// Keys are the labels, annotations and taints of machines and nodes by which users and other programs
// communicate with this library. The zero Keys are those of DefaultPolicy. In other Keys, an empty key disables
// its feature.
type Keys struct {
	ForceDeletion      string // label on a machine: force its deletion
	ForceDrain         string // label on a machine: force its drain for an in-place update or its preservation
	NodeMachine        string // label on a node: its machine's name
	NotReadyTaint      string // taint that nodes register with; it is removed when the node is healthy
	CriticalComponents string // taint on a node: not ready for workload yet
	CandidateForUpdate string // label on a node: an in-place update is wanted
	SelectedForUpdate  string // label on a node: update it now; users may set it
	UpdateResult       string // label on a node: the update agent's answer
	UpdateFailedReason string // annotation on a node: why the update agent failed
	Paused             string // annotation on a machine, "true": do not reconcile it; see ConditionPaused
	PreDrainHook       string // prefix of annotations on a machine that block its drain
	PreTerminateHook   string // prefix of annotations on a machine that block the deletion of its VM
	// Replace is the annotation on a machine that asks its set to replace it, written if the VM can't
	// be updated. It must equal that of machineset.Policy.
	Replace string

	// Preserve is the annotation on a machine or its node that requests its preservation.
	// PreservedTaint is the key of the taint, with effect NoSchedule, on the node of a preserved machine
	// that is Failed.
	Preserve, PreservedTaint string

	// AvoidTaint is the key of the taint, with effect PreferNoSchedule, on nodes with RolloutMarks.Avoid.
	AvoidTaint string
	// KeepNode is the annotation on nodes with RolloutMarks.Keep that keeps autoscalers from removing
	// them. KeptByUs is written with it, and distinguishes it from one that somebody else wrote.
	KeepNode, KeptByUs string
}

// ownLabel reports whether a node label belongs to this library, even if a template has it too.
func ownLabel(k *Keys, key string) bool {
	switch key {
	case "":
		return false
	case k.NodeMachine, k.CandidateForUpdate, k.SelectedForUpdate, k.UpdateResult:
		return true
	}
	return false
}

// ownAnnotation is ownLabel for annotations.
func ownAnnotation(k *Keys, key string) bool { return key != "" && key == k.UpdateFailedReason }

// DefaultPolicy returns the default settings.
func DefaultPolicy() *Policy {
	return &Policy{
		CreationTimeout: 20 * time.Minute,
		HealthTimeout:   10 * time.Minute,
		DrainTimeout:    2 * time.Hour,
		Unresponsive:    5 * time.Minute,
		DetachTimeout:   2 * time.Minute,
		InPlaceTimeout:  20 * time.Minute,
		Grace:           time.Minute,
		PreserveTimeout: 96 * time.Hour,
		HookTimeout:     2 * time.Hour,
		NodeConditions:  []string{"KernelDeadlock", NodeReadonlyFilesystem, "DiskPressure", "NetworkUnavailable"},
		Keys: Keys{
			ForceDeletion:      "force-deletion",
			ForceDrain:         "force-drain",
			NodeMachine:        "node.gardener.cloud/machine-name",
			NotReadyTaint:      "node.machine.sapcloud.io/instance-not-ready",
			CriticalComponents: "node.gardener.cloud/critical-components-not-ready",
			CandidateForUpdate: "node.machine.sapcloud.io/candidate-for-update",
			SelectedForUpdate:  "node.machine.sapcloud.io/selected-for-update",
			UpdateResult:       "node.machine.sapcloud.io/update-result",
			UpdateFailedReason: "node.machine.sapcloud.io/update-failed-reason",
			Paused:             "millwright-go/paused",
			PreDrainHook:       "pre-drain.millwright-go/",
			PreTerminateHook:   "pre-terminate.millwright-go/",
			Replace:            "millwright-go/replace",

			Preserve:       "node.machine.sapcloud.io/preserve",
			PreservedTaint: "node.machine.sapcloud.io/preserved",

			AvoidTaint: "deployment.machine.sapcloud.io/prefer-no-schedule",
			KeepNode:   "cluster-autoscaler.kubernetes.io/scale-down-disabled",
			KeptByUs:   "cluster-autoscaler.kubernetes.io/scale-down-disabled-by-mcm",
		},
	}
}

var defaults = DefaultPolicy()

// WithDefaults returns p with the default in place of each setting that is zero: p itself if there is none, and
// DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	return object.WithDefaults(p, defaults)
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	for _, d := range [...]struct {
		field string
		value time.Duration
		off   bool // may be object.Off
	}{
		{"policy.creationTimeout", p.CreationTimeout, false},
		{"policy.healthTimeout", p.HealthTimeout, false},
		{"policy.drainTimeout", p.DrainTimeout, false},
		{"policy.unresponsive", p.Unresponsive, false},
		{"policy.detachTimeout", p.DetachTimeout, false},
		{"policy.inPlaceTimeout", p.InPlaceTimeout, false},
		{"policy.grace", p.Grace, true},
		{"policy.preserveTimeout", p.PreserveTimeout, false},
		{"policy.hookTimeout", p.HookTimeout, true},
		{"policy.quotaRetry", p.QuotaRetry, false},
	} {
		switch {
		case d.value >= time.Second, d.value == 0, d.off && d.value == object.Off:
		case d.off:
			return object.Invalid(d.field, "must be at least a second, or off")
		default:
			return object.Invalid(d.field, "must be at least a second")
		}
	}
	return nil
}

func (p *Policy) creationTimeout(m *Machine) time.Duration {
	return override(m.Spec.Config.CreationTimeout, p.CreationTimeout)
}

func (p *Policy) healthTimeout(m *Machine) time.Duration {
	return override(m.Spec.Config.HealthTimeout, p.HealthTimeout)
}

func (p *Policy) drainTimeout(m *Machine) time.Duration {
	return override(m.Spec.Config.DrainTimeout, p.DrainTimeout)
}

func (p *Policy) inPlaceTimeout(m *Machine) time.Duration {
	return override(m.Spec.Config.InPlaceTimeout, p.InPlaceTimeout)
}

func (p *Policy) nodeConditions(m *Machine) []string {
	if m.Spec.Config.NodeConditions != nil {
		return m.Spec.Config.NodeConditions
	}
	return p.NodeConditions
}

func override(own, general time.Duration) time.Duration {
	if own > 0 {
		return own
	}
	return general
}

func (p *Policy) preserveTimeout(m *Machine) time.Duration {
	return override(m.Spec.Config.PreserveTimeout, p.PreserveTimeout)
}

// keptByUs returns KeptByUs, or nothing if it equals KeepNode and so distinguishes nothing.
func (k *Keys) keptByUs() string {
	if k.KeptByUs == k.KeepNode {
		return ""
	}
	return k.KeptByUs
}
