package safety

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

// A caller's mistakes.
var (
	// ErrNoObservation: nothing to decide about was given.
	ErrNoObservation = errors.New("safety: there is no observation, or what it is about is missing")
	// ErrNoPolicy: a policy was not given.
	ErrNoPolicy = errors.New("safety: there is no policy")
)

// Policy is how careful a fleet is to be treated. The zero Policy is invalid:
// start from DefaultPolicy. Where no other source is named the figures are
// those of machine-controller-manager.
type Policy struct {
	// OrphanPeriod is how often the VMs of each class are listed. At least a
	// minute; default 15 min.
	OrphanPeriod time.Duration
	// OrphanGap is how far apart the two sightings of an orphan are at least,
	// and two listings of one class. At least a second; default 30 s.
	OrphanGap time.Duration
	// OrphanSoon is how long after a machine has disappeared its class is
	// listed. Not negative; default 10 s, this library's.
	OrphanSoon time.Duration
	// OrphanPrefix is what the machine names of this fleet begin with: a VM
	// under any other name is never deleted. Empty, the default: the driver's
	// word is enough that it lists this cluster's VMs only.
	OrphanPrefix string
	// Brake is how many VMs that no machine owns may go within OrphanPeriod,
	// whatever their share. At least 1; default 3. BrakeShare is the share of
	// the VMs listed that may go, in percent, rounded down, where that is
	// more: from a process's second OrphanPeriod on. 0 to 100; default 10; 100
	// is no brake. Both bound machines and sets whose owner is gone in the
	// same way, in an OwnerPeriod. The figures are this library's.
	Brake, BrakeShare int32
	// OrphansOfEmptyStore has VMs collected, by the brake, also while the
	// store holds no machine, no set and no deployment. Off by default: it may
	// be the wrong store.
	OrphansOfEmptyStore bool

	// OwnerPeriod is how often it is looked for machines whose set, and sets
	// whose deployment, is gone. At least a minute; default 15 min.
	OwnerPeriod time.Duration
	// OwnerGap is how far apart the two looks at one are at least, before it
	// goes, and two live reads. At least a second; default 2 min, which is how
	// long a write may be on its way. Both figures are this library's.
	OwnerGap time.Duration

	// SafetyUp is how many machines more than a set may ever have freeze it.
	// At least 1; default 2.
	SafetyUp int32
	// SafetyDown is how far below that number a frozen set thaws. At least 1;
	// default 1.
	SafetyDown int32

	// CheckPeriod is how often it is checked that both API servers answer. At
	// least a second; default 1 min.
	CheckPeriod time.Duration
	// CheckDown is the same while one does not. At least a second, at most
	// CheckPeriod; default 6 s.
	CheckDown time.Duration
	// DownTimeout is how long one may be down before the fleet freezes. At
	// least a second; default 30 s.
	DownTimeout time.Duration
	// SettleTime is how long a fleet stays frozen once all its clocks were
	// restarted, so that nodes can say how they are. Not negative; default 30 s.
	SettleTime time.Duration

	// Replacements is how many machines of one deployment, or of a set
	// without one, may be in replacement when a machine is given up for its
	// health, that one included: a number, or a percentage of the machines
	// wanted, rounded up. At least 1 whatever it says; default 0, which is 1.
	// The figure is this library's.
	Replacements rollout.IntOrPercent
	// ZoneRule gives up no machine in a zone of 3 or more of which most are
	// Unknown: then it is the zone that fails. Off by default.
	ZoneRule bool
	// GrantUse is how long a grant may be used, and GrantFlight how long a
	// write of a machine may be on its way; together they are how long a slot
	// is kept for a machine that does nothing with it. Each at least a second;
	// defaults 1 min and 2 min, this library's, the latter as sets have it.
	GrantUse    time.Duration
	GrantFlight time.Duration

	// NodeAge is from what age on a node that no machine owns is not waited
	// for any more: the creation timeout of machines, or more. At least a
	// second; default 20 min.
	NodeAge time.Duration
	// NodePeriod is how often nodes are looked through. At least a second;
	// default 15 min.
	NodePeriod time.Duration

	// PaceBase is how long after a refusal that concerns a whole class (see
	// Slows) the next machine of the class is tried, doubled with each further
	// refusal up to PaceMax, and no further than machines' creation timeout.
	// Zero: no class is slowed. At least a second otherwise; default 1 min,
	// this library's.
	PaceBase time.Duration
	// PaceMax is the longest such wait. At least PaceBase; default 20 min, the
	// creation timeout of machines.
	PaceMax time.Duration
	// PaceTurn is how long a machine waits that found others of its class
	// being tried. At least a second; default 10 s, this library's.
	PaceTurn time.Duration

	// Burst is how many orders one plan holds at most. At least 1; default 100.
	Burst int

	Keys Keys
}

// Keys are the names by which users and other programs speak to this package.
// An empty key switches its feature off.
type Keys struct {
	Freeze      string // label on a deployment or set, "True": frozen
	Unfreeze    string // annotation on a deployment or set: do not freeze it for this overshoot
	Slots       string // annotation on a deployment or lone set: replacements under way
	NotManaged  string // annotation on a node: no machine owns it
	NodeMachine string // label on a node: its machine's name
	Paused      string // annotation on a machine: it is left as it is
}

// DefaultPolicy returns the established settings.
func DefaultPolicy() *Policy {
	return &Policy{
		OrphanPeriod: 15 * time.Minute,
		OrphanGap:    30 * time.Second,
		OrphanSoon:   10 * time.Second,
		Brake:        3,
		BrakeShare:   10,
		OwnerPeriod:  15 * time.Minute,
		OwnerGap:     2 * time.Minute,
		SafetyUp:     2,
		SafetyDown:   1,
		CheckPeriod:  time.Minute,
		CheckDown:    6 * time.Second,
		DownTimeout:  30 * time.Second,
		SettleTime:   30 * time.Second,
		GrantUse:     time.Minute,
		GrantFlight:  2 * time.Minute,
		NodeAge:      20 * time.Minute,
		NodePeriod:   15 * time.Minute,
		PaceBase:     time.Minute,
		PaceMax:      20 * time.Minute,
		PaceTurn:     10 * time.Second,
		Burst:        100,
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

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	for _, at := range [...]struct {
		field      string
		have, min  time.Duration
		complaints string
	}{
		{"orphanPeriod", p.OrphanPeriod, time.Minute, "must be at least a minute"},
		{"orphanGap", p.OrphanGap, time.Second, "must be at least a second"},
		{"orphanSoon", p.OrphanSoon, 0, "must not be negative"},
		{"ownerPeriod", p.OwnerPeriod, time.Minute, "must be at least a minute"},
		{"ownerGap", p.OwnerGap, time.Second, "must be at least a second"},
		{"checkPeriod", p.CheckPeriod, time.Second, "must be at least a second"},
		{"checkDown", p.CheckDown, time.Second, "must be at least a second"},
		{"downTimeout", p.DownTimeout, time.Second, "must be at least a second"},
		{"settleTime", p.SettleTime, 0, "must not be negative"},
		{"grantUse", p.GrantUse, time.Second, "must be at least a second"},
		{"grantFlight", p.GrantFlight, time.Second, "must be at least a second"},
		{"nodeAge", p.NodeAge, time.Second, "must be at least a second"},
		{"nodePeriod", p.NodePeriod, time.Second, "must be at least a second"},
		{"paceMax", p.PaceMax, p.PaceBase, "must be at least policy.paceBase"},
		{"paceTurn", p.PaceTurn, time.Second, "must be at least a second"},
	} {
		if at.have < at.min {
			return object.Invalid("policy."+at.field, at.complaints)
		}
	}
	switch {
	case p.CheckDown > p.CheckPeriod:
		return object.Invalid("policy.checkDown", "must be at most policy.checkPeriod")
	case p.Brake < 1:
		return object.Invalid("policy.brake", "must be at least 1")
	case p.BrakeShare < 0 || p.BrakeShare > 100:
		return object.Invalid("policy.brakeShare", "must be from 0 to 100")
	case p.SafetyUp < 1:
		return object.Invalid("policy.safetyUp", "must be at least 1")
	case p.SafetyDown < 1:
		return object.Invalid("policy.safetyDown", "must be at least 1")
	case p.PaceBase < 0 || p.PaceBase > 0 && p.PaceBase < time.Second:
		return object.Invalid("policy.paceBase", "must be zero or at least a second")
	case p.Replacements.Value < 0:
		return object.Invalid("policy.replacements", "must not be negative")
	case p.Burst < 1:
		return object.Invalid("policy.burst", "must be at least 1")
	case p.Keys.Slots == "":
		return object.Invalid("policy.keys.slots", "must not be empty")
	}
	return nil
}

// usable is what every front door checks first; about: there is something to
// decide about.
func (p *Policy) usable(about bool) error {
	switch {
	case !about:
		return ErrNoObservation
	case p == nil:
		return ErrNoPolicy
	}
	return p.Validate()
}

// stamp is a time as stores keep it.
func stamp(t time.Time) time.Time { return t.Truncate(time.Second) }

// earlier is the earlier of two times, of which a zero one is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
