package machine

import (
	"cmp"
	"time"

	"github.com/millwright-go/millwright/object"
)

// Policy says how to treat machines. A setting that is zero means its default, so the zero Policy is
// DefaultPolicy. The figures are those of machine-controller-manager.
type Policy struct {
	// CreationTimeout is how long a machine may take from its creation to
	// its joining; then it is Failed. If its first step was held back for
	// more than Grace, as by a class that the provider refuses, it counts
	// from that step. At least a second; default 20 min.
	CreationTimeout time.Duration
	// HealthTimeout is how long a machine may be unhealthy; then it is
	// Failed. At least a second; default 10 min.
	HealthTimeout time.Duration
	// DrainTimeout is how long the drain of a machine that is being deleted may
	// take before force is used. It counts from when the drain's stage is stored,
	// or the last hook before it is off. To look for the node may take as long
	// again. At least a second; default 2 h.
	DrainTimeout time.Duration
	// Unresponsive is how long a node is not Ready or read-only before the
	// deletion of its machine uses force. At least a second; default 5 min.
	Unresponsive time.Duration
	// DetachTimeout is how long a forced deletion waits for volumes to leave the node, all of them
	// together. At least a second; default 2 min. drain.Policy has a DetachTimeout too: without
	// force, each pod with volumes has that.
	DetachTimeout time.Duration
	// InPlaceTimeout is how long an in-place update may take from the drain
	// to the agent's answer; then it has failed. At least a second; default
	// 20 min.
	InPlaceTimeout time.Duration
	// Grace is how long a process watches before it ends a wait that began
	// before the process did: no machine is Failed for a timeout that ran while no
	// process looked, see Observation.WatchedSince. A process that was stopped
	// for longer than this, as by SIGSTOP or with its VM, starts to watch again
	// when it continues. It concerns the creation,
	// health and in-place timeouts, and nothing is stored for it. At least a
	// second; default 1 min, this library's. object.Off: such a wait ends on its
	// own time.
	Grace time.Duration
	// PreserveTimeout is how long a machine is kept for inspection. At least a
	// second; default 96 h.
	PreserveTimeout time.Duration
	// HookTimeout is how long the hooks on a machine may hold one stage of its
	// deletion back, the drain or the VM's deletion, from when the first of them
	// does; force by label does not wait for them. At least a second; default 2 h.
	// object.Off: without end.
	HookTimeout time.Duration
	// QuotaRetry is how long to wait after RESOURCE_EXHAUSTED. At least a second; default as
	// long as the recovery table's long class, 10 min.
	QuotaRetry time.Duration
	// WaitForChange has the calls to the provider whose code the driver contract says is not
	// retried (codes.Recovery.AutoRetry) wait until machine, class or secret change. A creation
	// still ends with CreationTimeout; a deletion waits without end, and its VM costs money
	// meanwhile. Default: they are made again, slowly.
	WaitForChange bool
	// ReplaceFailedUpdates has a machine whose in-place update failed replaced at once, within the
	// budget of replacements. Default: when its health timeout has passed since.
	ReplaceFailedUpdates bool
	// NodeConditions make a node unhealthy unless they are False or absent. Nil: those of
	// DefaultPolicy. Empty: none do.
	NodeConditions []string
	// StartupTaints are keys of taints of a node template that are put on a node once, because
	// another program removes them when it is ready there, such as a network plugin. Startup taints
	// besides are Keys.CriticalComponents and those that begin as the cluster autoscaler's do,
	// startup-taint.cluster-autoscaler.kubernetes.io/. Default: none.
	StartupTaints []string
	// ProviderIDsMatch is what a driver declares: that a node's provider ID
	// is always spelled as the driver's own answer. One that is alike to it
	// (object.Alike) still is no other VM's.
	ProviderIDsMatch bool
	Keys             Keys
}

// Keys are the names by which users and other programs speak to this library
// on machines and nodes. The zero Keys are those of DefaultPolicy. In others, an empty key switches
// its feature off.
type Keys struct {
	ForceDeletion      string // label on a machine: delete without regard
	ForceDrain         string // label on a machine: drain it by force for an in-place update, or while it is preserved
	NodeMachine        string // label on a node: its machine's name
	NotReadyTaint      string // that a node registers with; it is removed when the node is healthy
	CriticalComponents string // taint on a node: not ready for workload yet
	CandidateForUpdate string // label on a node: an in-place update is wanted
	SelectedForUpdate  string // label on a node: it is its turn; users may set it
	UpdateResult       string // label on a node: the update agent's answer
	UpdateFailedReason string // annotation on a node: why the agent failed
	Paused             string // annotation on a machine, "true": it is left as it is; see ConditionPaused
	PreDrainHook       string // begins annotations on a machine that hold back its drain
	PreTerminateHook   string // begins annotations on a machine that hold back the deletion of its VM
	// Replace is the annotation on a machine that asks its set to replace it: it
	// must be that of the sets' policy. Here, for a VM that can't be updated.
	Replace string

	// Preserve is the annotation on a machine or its node that asks to keep it
	// for inspection. PreservedTaint is the key of the taint, with effect
	// NoSchedule, on the node of one that is kept and failed.
	Preserve, PreservedTaint string

	// AvoidTaint is the key of the taint, with effect PreferNoSchedule, on
	// nodes with RolloutMarks.Avoid.
	AvoidTaint string
	// KeepNode is the annotation on nodes with RolloutMarks.Keep that keeps
	// autoscalers off; KeptByUs is written with it, and tells it from
	// one that somebody else wrote.
	KeepNode, KeptByUs string
}

// ownLabel reports whether a label of a node is this library's to write, even if
// a template has it too.
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

// DefaultPolicy returns the established settings.
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

// WithDefaults returns p with the default in place of each setting that is zero: p itself if there
// is none, and DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	if p != nil && p.complete() {
		return p
	}
	d := DefaultPolicy()
	if p == nil {
		return d
	}
	c := *p
	c.CreationTimeout = cmp.Or(c.CreationTimeout, d.CreationTimeout)
	c.HealthTimeout = cmp.Or(c.HealthTimeout, d.HealthTimeout)
	c.DrainTimeout = cmp.Or(c.DrainTimeout, d.DrainTimeout)
	c.Unresponsive = cmp.Or(c.Unresponsive, d.Unresponsive)
	c.DetachTimeout = cmp.Or(c.DetachTimeout, d.DetachTimeout)
	c.InPlaceTimeout = cmp.Or(c.InPlaceTimeout, d.InPlaceTimeout)
	c.Grace = cmp.Or(c.Grace, d.Grace)
	c.PreserveTimeout = cmp.Or(c.PreserveTimeout, d.PreserveTimeout)
	c.HookTimeout = cmp.Or(c.HookTimeout, d.HookTimeout)
	if c.NodeConditions == nil {
		c.NodeConditions = d.NodeConditions
	}
	c.Keys = cmp.Or(c.Keys, d.Keys)
	return &c
}

// complete reports whether no setting is left to its default.
func (p *Policy) complete() bool {
	return p.CreationTimeout != 0 && p.HealthTimeout != 0 && p.DrainTimeout != 0 && p.Unresponsive != 0 &&
		p.DetachTimeout != 0 && p.InPlaceTimeout != 0 && p.Grace != 0 && p.PreserveTimeout != 0 &&
		p.HookTimeout != 0 && p.NodeConditions != nil && p.Keys != (Keys{})
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

// keptByUs is KeptByUs, unless it could tell nothing apart.
func (k *Keys) keptByUs() string {
	if k.KeptByUs == k.KeepNode {
		return ""
	}
	return k.KeptByUs
}
