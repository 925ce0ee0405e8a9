package safety

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// ErrNoPolicy is the error for a policy that is nil or Off where one is needed, a caller's mistake.
var ErrNoPolicy = errors.New("safety: there is no policy")

// Policy says how carefully a fleet is treated. A setting that is zero means its default, so the zero
// Policy is DefaultPolicy. Unless another source is named, the figures are those of
// machine-controller-manager.
type Policy struct {
	// Off turns all of safety off, see the function Off. The other settings are then ignored.
	Off bool `json:",omitempty"`

	// OrphanPeriod is how often the VMs of each class are listed, though no class more often than
	// OrphanGap says. At least a second; default 15 min.
	OrphanPeriod time.Duration
	// OrphanGap is the minimum time between the two sightings of an orphan, and between two
	// listings of one class. At least a second; default 30 s.
	OrphanGap time.Duration
	// OrphanSoon is how soon after a machine has disappeared its class is listed. Not negative;
	// default 10 s, this library's. object.Off: at once.
	OrphanSoon time.Duration
	// VMPeriod is, without a cluster, how often the VMs of each class are listed that has machines
	// which work, because nothing else shows that a VM is gone. If two listings this far apart lack a
	// VM, the provider is asked for it. No class is listed more often than OrphanGap says. At least a
	// second; default 1 min, this library's. object.Off: every OrphanPeriod, as with a cluster.
	VMPeriod time.Duration
	// OrphanPrefix is the prefix of the machine names of this fleet. A VM without it is never
	// deleted. Empty, the default: the library trusts the driver to list only this cluster's VMs.
	OrphanPrefix string
	// Brake and BrakeShare limit how many VMs without a machine are deleted within OrphanPeriod, or
	// within a minute if that is longer. Brake is a number of VMs. At least 1; default 3. BrakeShare
	// is a percentage of the listed VMs, rounded down. 1 to 100; default 10; 100 means no limit;
	// object.Off: only Brake counts. The larger limit applies; in the first OrphanPeriod of a process
	// it is Brake. Both limit in the same way how many machines and sets whose owner is gone are
	// deleted within OwnerPeriod. The figures are this library's.
	Brake, BrakeShare int32
	// OrphansOfEmptyStore lets VMs be deleted, within the brake, even while the store holds no
	// machine, no set and no deployment. Off by default: it may be the wrong store.
	OrphansOfEmptyStore bool

	// OwnerPeriod is the time between searches for machines whose set, and sets whose deployment,
	// is gone. At least a minute; default 15 min.
	OwnerPeriod time.Duration
	// OwnerGap is the minimum time between two live reads. An object is deleted if two such reads
	// show no owner. At least a second; default 2 min, which is how long a write may be in flight.
	// Both figures are this library's.
	OwnerGap time.Duration

	// SafetyUp is how many machines above a set's maximum freeze it. At least 1; default 2.
	SafetyUp int32
	// SafetyDown is how many machines below that number a frozen set thaws. At least 1; default 1.
	SafetyDown int32

	// CheckPeriod is the time between checks that both API servers answer. At least a second;
	// default 1 min.
	CheckPeriod time.Duration
	// CheckDown is the time between checks while one does not answer. At least a second, at most
	// CheckPeriod; default 6 s.
	CheckDown time.Duration
	// DownTimeout is how long an API server may be down before the fleet freezes. At least a
	// second; default 30 s.
	DownTimeout time.Duration
	// SettleTime is how long a fleet stays frozen after all its clocks were restarted, so that
	// nodes can report. Not negative; default 30 s. object.Off: it thaws at once.
	SettleTime time.Duration

	// Replacements is how many machines of one deployment, or of a set without one, may be in
	// replacement at a time, including the one that is to be failed for its health. It is a number, or
	// a percentage of the wanted machines, rounded up. It counts as at least 1; default 0, which
	// counts as 1. The figure is this library's.
	Replacements rollout.IntOrPercent
	// ZoneRule: no machine is failed in a zone of 3 or more machines of which most are Unknown,
	// because then the zone itself has failed. Off by default.
	ZoneRule bool
	// GrantUse is how long a grant may be used. GrantFlight is how long a write of a machine may be
	// in flight. A slot is kept for the sum of both if its machine does not use it. Each is at least a
	// second; defaults 1 min and 2 min, this library's; the latter is that of
	// machineset.Policy.RequestTimeout.
	GrantUse    time.Duration
	GrantFlight time.Duration

	// NodeAge is the age from which on a node without an owner counts as unmanaged. It should be at
	// least the creation timeout of machines. At least a second; default 20 min.
	NodeAge time.Duration
	// NodePeriod is the time between passes over the nodes. At least a second; default 15 min.
	NodePeriod time.Duration

	// ClassBackoffBase is the wait after a refusal that concerns a whole class (see backoff.Slows), until the
	// next machine of the class is tried. It doubles with each further refusal, up to ClassBackoffMax or
	// the machines' creation timeout, if that is shorter. At least a second; default 1 min, this library's.
	// object.Off: no class is slowed.
	ClassBackoffBase time.Duration
	// ClassBackoffMax is the longest such wait. At least ClassBackoffBase; default 20 min, the creation
	// timeout of machines.
	ClassBackoffMax time.Duration
	// ClassBackoffRetry is how long a machine waits if others of its class are being tried. At least a
	// second; default 10 s, this library's.
	ClassBackoffRetry time.Duration

	// Burst is the maximum number of orders in one plan. It does not slow anything down: the next plan
	// follows at once. At least 1; default 100.
	Burst int

	Keys Keys
}

// Keys are the labels and annotations with which users and other programs control this package. The
// zero Keys are those of DefaultPolicy. If any key is set, an empty key switches its feature off.
type Keys struct {
	Freeze      string // label on a deployment or set, "True": frozen
	Unfreeze    string // annotation on a deployment or set: do not freeze it for this overshoot
	Slots       string // annotation on a deployment, or a set without one: replacements under way
	NotManaged  string // annotation on a node: no machine owns it
	NodeMachine string // label on a node: its machine's name
	Paused      string // annotation on a machine: it is paused
}

// Off returns a policy with all of safety turned off: the manager deletes no orphans, freezes nothing, has no
// budget of replacements, slows no class, and does nothing about nodes and machines without an owner. (A manager
// without a policy has DefaultPolicy.)
func Off() *Policy { return &Policy{Off: true} }

// DefaultPolicy returns the default settings.
func DefaultPolicy() *Policy {
	return &Policy{
		OrphanPeriod:      15 * time.Minute,
		OrphanGap:         30 * time.Second,
		OrphanSoon:        10 * time.Second,
		VMPeriod:          time.Minute,
		Brake:             3,
		BrakeShare:        10,
		OwnerPeriod:       15 * time.Minute,
		OwnerGap:          2 * time.Minute,
		SafetyUp:          2,
		SafetyDown:        1,
		CheckPeriod:       time.Minute,
		CheckDown:         6 * time.Second,
		DownTimeout:       30 * time.Second,
		SettleTime:        30 * time.Second,
		GrantUse:          time.Minute,
		GrantFlight:       2 * time.Minute,
		NodeAge:           20 * time.Minute,
		NodePeriod:        15 * time.Minute,
		ClassBackoffBase:  time.Minute,
		ClassBackoffMax:   20 * time.Minute,
		ClassBackoffRetry: 10 * time.Second,
		Burst:             100,
		Keys: Keys{
			Freeze:      "freeze",
			Unfreeze:    "safety.machine.sapcloud.io/unfreeze",
			Slots:       "millwright-go/replacing",
			NotManaged:  "node.machine.sapcloud.io/not-managed-by-mcm",
			Paused:      "millwright-go/paused",
			NodeMachine: "node.gardener.cloud/machine-name",
		},
	}
}

var defaults = DefaultPolicy()

// Paused reports whether a user has paused a machine (machine.Paused). VMs with the name of a paused machine are no
// orphans. After an outage its clocks are restarted only when the pause ends. It does not count in the budget of
// replacements, even if it has failed, because no set replaces it.
func (p *Policy) Paused(m *machine.Machine) bool {
	paused, _ := machine.Paused(&m.Meta, p.WithDefaults().Keys.Paused)
	return paused
}

// Frozen reports whether a deployment or a set is frozen by its label. If a set is, set
// machineset.Observation.Frozen.
func (p *Policy) Frozen(m *object.Meta) bool {
	key := p.WithDefaults().Keys.Freeze
	if key == "" {
		return false
	}
	frozen, err := strconv.ParseBool(m.Labels[key])
	return err == nil && frozen
}

// WithDefaults returns p with the default in place of each setting that is zero: p itself if there is none
// or p is Off, and DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	if p != nil && p.Off {
		return p
	}
	return object.WithDefaults(p, defaults)
}

// Validate returns an *object.FieldError for the first setting out of range, and ErrNoPolicy for a
// policy that is nil or Off.
func (p *Policy) Validate() error {
	if p == nil || p.Off {
		return ErrNoPolicy
	}
	p = p.WithDefaults()
	return cmp.Or(p.validateDurations(), p.validateFigures())
}

// validateFigures returns an *object.FieldError for the first other setting out of range.
func (p *Policy) validateFigures() error {
	switch {
	case p.CheckDown > p.CheckPeriod:
		return object.Invalid("policy.checkDown", "must be at most policy.checkPeriod")
	case p.Brake < 1:
		return object.Invalid("policy.brake", "must be at least 1")
	case p.BrakeShare != object.Off && p.BrakeShare < 0 || p.BrakeShare > 100:
		return object.Invalid("policy.brakeShare", "must be from 1 to 100, or off")
	case p.SafetyUp < 1:
		return object.Invalid("policy.safetyUp", "must be at least 1")
	case p.SafetyDown < 1:
		return object.Invalid("policy.safetyDown", "must be at least 1")
	case p.VMPeriod != object.Off && p.VMPeriod < time.Second:
		return object.Invalid("policy.vmPeriod", "must be at least a second, or off")
	case p.ClassBackoffBase != object.Off && p.ClassBackoffBase < time.Second:
		return object.Invalid("policy.classBackoffBase", "must be at least a second, or off")
	case p.Replacements.Value < 0:
		return object.Invalid("policy.replacements", "must not be negative")
	case p.Burst < 1:
		return object.Invalid("policy.burst", "must be at least 1")
	case p.Keys.Slots == "":
		return object.Invalid("policy.keys.slots", "must not be empty")
	}
	return nil
}

// validateDurations returns an *object.FieldError for the first duration that is too short.
func (p *Policy) validateDurations() error {
	for _, at := range [...]struct {
		field      string
		have, min  time.Duration
		complaints string
	}{
		{"orphanPeriod", p.OrphanPeriod, time.Second, "must be at least a second"},
		{"orphanGap", p.OrphanGap, time.Second, "must be at least a second"},
		{"orphanSoon", p.OrphanSoon, object.Off, "must not be negative, or off"},
		{"ownerPeriod", p.OwnerPeriod, time.Minute, "must be at least a minute"},
		{"ownerGap", p.OwnerGap, time.Second, "must be at least a second"},
		{"checkPeriod", p.CheckPeriod, time.Second, "must be at least a second"},
		{"checkDown", p.CheckDown, time.Second, "must be at least a second"},
		{"downTimeout", p.DownTimeout, time.Second, "must be at least a second"},
		{"settleTime", p.SettleTime, object.Off, "must not be negative, or off"},
		{"grantUse", p.GrantUse, time.Second, "must be at least a second"},
		{"grantFlight", p.GrantFlight, time.Second, "must be at least a second"},
		{"nodeAge", p.NodeAge, time.Second, "must be at least a second"},
		{"nodePeriod", p.NodePeriod, time.Second, "must be at least a second"},
		{"classBackoffMax", p.ClassBackoffMax, max(p.ClassBackoffBase, 0), "must be at least policy.classBackoffBase"},
		{"classBackoffRetry", p.ClassBackoffRetry, time.Second, "must be at least a second"},
	} {
		if at.have < at.min {
			return object.Invalid("policy."+at.field, at.complaints)
		}
	}
	return nil
}

// Spent records that the deletion of an object was ordered, and when. It counts towards the policy's Brake for
// one period.
type Spent struct {
	ID string // of a VM, or of a machine or set
	At time.Time
}
