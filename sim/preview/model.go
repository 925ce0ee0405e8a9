package preview

import (
	"cmp"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// The bounds and defaults of a Model.
const (
	// DefaultLimit is how far a preview looks ahead by default.
	DefaultLimit = 30 * 24 * time.Hour
	// MaxLimit is how far a preview can look ahead.
	MaxLimit = 10 * 365 * 24 * time.Hour
	// MaxMachines is how many machines a deployment or a set may want in a preview.
	MaxMachines = 50_000
	// MaxPods is how many pods each node may have.
	MaxPods = 1000
	// DefaultPatience is how long a rollout may make no progress by default.
	DefaultPatience = 24 * time.Hour
)

// Model is what a preview assumes: how long machines take, and which fail. It has no randomness: the same
// model gives the same timeline. The zero Model is valid: machines take a moment, and none fails.
type Model struct {
	// Create is the time from the creation of a VM until its node is ready. Not negative.
	Create time.Duration
	// Delete is how long the provider takes to delete a VM. Not negative.
	Delete time.Duration
	// Fail says which of the creations in the preview fail: their VMs never join, and their machines
	// fail at the creation timeout. A percentage, at most 100, is spread evenly: with 5%, the 20th, the
	// 40th and so on fail. A number, at most 1,000,000, means that so many of the first creations fail.
	Fail rollout.IntOrPercent
	// Update is how long a node takes to be updated in place once it is drained. Not negative.
	Update time.Duration
	// FailUpdate says which of the updates in place fail, in the same form as Fail. They fail after
	// Update. A machine whose update failed is Failed at the end of its health timeout.
	FailUpdate rollout.IntOrPercent
	// Classes are the classes that templates and machines name, as they will be during the rollout. A
	// class that is missing here is assumed to differ from every other.
	Classes []*machine.Class
	// Updatable are the fields of a provider spec that the driver can change on existing VMs, as
	// driver.FieldUpdater declares them. If a class changes only in these, its VMs are changed and
	// not replaced. Nil: none. A VM is assumed to be as its class says if Status.VMSpec is zero.
	Updatable []string
	// UpdateVM is how long the provider takes to change a VM. Not negative.
	UpdateVM time.Duration
	// Pods is how many pods each node has before it is drained, from 0 to MaxPods. PodEnd is how long
	// each of them takes to end once it is evicted, which is also its grace period. Not negative. The
	// pods have no disruption budget and no volumes, and no others replace them.
	Pods   int
	PodEnd time.Duration
	// Capacity is how many VMs the provider has room for. It answers further creates with
	// RESOURCE_EXHAUSTED. Not negative. Zero: no limit.
	Capacity int
	// Limit is how far to look ahead. Not negative and at most MaxLimit. Zero: DefaultLimit.
	Limit time.Duration
	// Patience is how long the rollout may make no progress before the preview ends. Not negative.
	// Zero: DefaultPatience.
	Patience time.Duration

	// Start is the time at which the rollout begins, from 1970 to 9999. All offsets count from it. Zero:
	// the latest time in the given objects, so that none of them is in the future; if they have none,
	// the year 1970.
	Start time.Time
	// Policy, SetPolicy, MachinePolicy and Safety are the fleet's policies. Nil: the defaults. The
	// preview ignores StatusInterval, ProgressInterval, Resync, FailedSummaries and RolloutMarks, which
	// do not affect which machines are created and deleted.
	Policy        *deployment.Policy
	SetPolicy     *machineset.Policy
	MachinePolicy *machine.Policy
	Safety        *safety.Policy
}

// Validate returns an *object.FieldError for the first field out of range. It validates the policies,
// too.
func (m *Model) Validate() error {
	if bad := m.invalidField(); bad != nil {
		return bad
	}
	if err := valid(m.Policy); err != nil {
		return err
	}
	if err := valid(m.SetPolicy); err != nil {
		return err
	}
	if err := valid(m.MachinePolicy); err != nil {
		return err
	}
	if m.Safety == nil || m.Safety.Off {
		return nil
	}
	return m.Safety.Validate()
}

// valid validates a policy, unless it is nil.
func valid[P interface {
	comparable
	Validate() error
}](p P) error {
	var none P
	if p == none {
		return nil
	}
	return p.Validate()
}

func (m *Model) invalidField() *object.FieldError {
	switch {
	case m.Create < 0:
		return object.Invalid("model.create", "must not be negative")
	case m.Delete < 0:
		return object.Invalid("model.delete", "must not be negative")
	case m.Pods < 0 || m.Pods > MaxPods:
		return object.Invalid("model.pods", "must be from 0 to "+strconv.Itoa(MaxPods))
	case m.PodEnd < 0:
		return object.Invalid("model.podEnd", "must not be negative")
	case m.Capacity < 0:
		return object.Invalid("model.capacity", "must not be negative")
	case m.Patience < 0:
		return object.Invalid("model.patience", "must not be negative")
	case m.Update < 0:
		return object.Invalid("model.update", "must not be negative")
	case m.UpdateVM < 0:
		return object.Invalid("model.updateVM", "must not be negative")
	case m.Limit < 0:
		return object.Invalid("model.limit", "must not be negative")
	case m.Limit > MaxLimit:
		return object.Invalid("model.limit", "must not be more than "+MaxLimit.String())
	case !m.Start.IsZero() && !plausible(m.Start):
		return object.Invalid("model.start", "must be zero or from 1970 to 9999")
	}
	if bad := invalidShare("model.fail", m.Fail); bad != nil {
		return bad
	}
	return invalidShare("model.failUpdate", m.FailUpdate)
}

// invalidShare returns an error if Fail or FailUpdate is out of range, or nil.
func invalidShare(field string, share rollout.IntOrPercent) *object.FieldError {
	switch {
	case share.Value < 0:
		return object.Invalid(field, "must not be negative")
	case share.Over100():
		return object.Invalid(field, "must not be more than 100%")
	case share.Value > maxFirstFailures:
		return object.Invalid(field, "must not be more than 1000000")
	}
	return nil
}

const maxFirstFailures = 1_000_000

// Among reports whether the n-th item, counted from 1, is among those that a share selects: a number
// selects the first so many, a percentage that part of them, spread evenly. See Model.Fail.
func Among(n int64, share rollout.IntOrPercent) bool {
	value := int64(share.Value)
	if !share.Percent {
		return n <= value
	}
	return n*value/100 > (n-1)*value/100
}

// Ahead returns how far the preview looks ahead: Limit, or its default.
func (m *Model) Ahead() time.Duration { return cmp.Or(m.Limit, DefaultLimit) }

// Waits returns how long the rollout may make no progress: Patience, or its default.
func (m *Model) Waits() time.Duration { return cmp.Or(m.Patience, DefaultPatience) }

// Hopeless reports whether every creation fails.
func (m *Model) Hopeless() bool { return m.Fail.Percent && m.Fail.Value >= 100 }

// plausible reports whether t is from 1970 to 9999, so that durations can be added to it.
func plausible(t time.Time) bool { return t.Unix() >= 0 && t.Year() <= 9999 }

// Begins returns the time at which the preview of a deployment begins: Start, or its default.
func (m *Model) Begins(d *deployment.Deployment, sets []deployment.Children) time.Time {
	if !m.Start.IsZero() {
		return m.Start
	}
	latest := time.Unix(0, 0).UTC()
	see := func(times ...time.Time) {
		for _, t := range times {
			if t.After(latest) && plausible(t) {
				latest = t
			}
		}
	}
	see(d.CreatedAt, d.DeletedAt)
	for _, c := range sets {
		if c.Set == nil {
			continue
		}
		s := c.Set
		see(s.CreatedAt, s.DeletedAt, s.Instructions.Reservation.At, s.Status.LastOperation.Time)
		for _, m := range c.Machines {
			if m != nil {
				see(m.CreatedAt, m.DeletedAt, m.Status.Since, m.Status.ClockFrom, m.Status.LastOperation.Time)
			}
		}
	}
	return latest
}
