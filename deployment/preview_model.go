package deployment

import (
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// The bounds of a Model.
const (
	// DefaultPreviewLimit is how far a preview looks ahead by default.
	DefaultPreviewLimit = 30 * 24 * time.Hour
	// MaxPreviewLimit is how far it can look ahead at most.
	MaxPreviewLimit = 10 * 365 * 24 * time.Hour
	// MaxPreviewMachines is how many machines one set of a preview may be
	// ordered to have.
	MaxPreviewMachines = 50_000
	// DefaultPreviewBudget is how many decisions a preview takes by default. Replacing 1,000
	// machines one at a time takes a quarter of it.
	DefaultPreviewBudget = 500_000
	// budgetMachines is how many machines a decision may look at for each decision more that it
	// counts as.
	budgetMachines = 100
)

// Model is what a preview assumes: how long machines take, and which fail. It is plain data without
// a seed: the same model gives the same future. The zero Model is valid: machines are ready as soon
// as they are created, gone as soon as they are deleted, and none fails.
type Model struct {
	// Create is how long a machine takes from its creation until it is ready.
	// Not negative. Zero: no time.
	Create time.Duration
	// Delete is how long a machine takes from the order to delete it until it
	// is gone. Not negative. Zero: no time.
	Delete time.Duration
	// Fail says which of the creations in the preview fail. A percentage, at most 100, is spread
	// evenly and fails late: of 5%, the 20th, the 40th and so on. A number, at most 1,000,000,
	// means that many of the first creations. Zero: none.
	Fail rollout.IntOrPercent
	// FailAfter is how long after its creation a failing machine is Failed. At
	// least a second. Zero: its creation timeout, which is its template's, or
	// 20 min.
	FailAfter time.Duration
	// Update is how long a machine takes, from its selection, to be updated in
	// place. Not negative. Zero: no time. Once moved to its new set it is ready
	// at once.
	Update time.Duration
	// FailUpdate says which of the updates in place fail, when they have taken Update, in the same
	// form as Fail. A machine whose update failed is Failed at the end of its health timeout.
	FailUpdate rollout.IntOrPercent
	// Limit is how far to look ahead. Not negative and at most
	// MaxPreviewLimit. Zero: DefaultPreviewLimit.
	Limit time.Duration
	// Budget is how many decisions the preview may take before it stops. A decision counts one more
	// for every 100 machines that it looks at. Not negative. Zero: DefaultPreviewBudget, which is
	// reached within seconds.
	Budget int64

	// Start is the present, from which all offsets count. Zero: the latest time in the objects
	// passed in, so that none of them lies in the future; if they have none, the year 1970.
	// Otherwise from 1970 to 9999.
	Start time.Time
	// Policy and SetPolicy are the fleet's policies. The preview ignores StatusInterval,
	// ProgressInterval, Resync and FailedSummaries, which order nothing, RolloutMarks, which
	// creates and deletes no machine, and Gather, which only delays some. Nil: the defaults.
	Policy    *Policy
	SetPolicy *machineset.Policy
}

// Validate returns an *object.FieldError for the first field out of range. It validates the
// policies too.
func (m *Model) Validate() error {
	if bad := m.invalidField(); bad != nil {
		return bad
	}
	if m.Policy != nil {
		if err := m.Policy.Validate(); err != nil {
			return err
		}
	}
	if m.SetPolicy != nil {
		return m.SetPolicy.Validate()
	}
	return nil
}

func (m *Model) invalidField() *object.FieldError {
	switch {
	case m.Create < 0:
		return object.Invalid("model.create", "must not be negative")
	case m.Delete < 0:
		return object.Invalid("model.delete", "must not be negative")
	case m.FailAfter < 0 || m.FailAfter > 0 && m.FailAfter < time.Second:
		return object.Invalid("model.failAfter", "must be zero or at least a second")
	case m.Update < 0:
		return object.Invalid("model.update", "must not be negative")
	case m.Limit < 0:
		return object.Invalid("model.limit", "must not be negative")
	case m.Limit > MaxPreviewLimit:
		return object.Invalid("model.limit", "must not be more than "+MaxPreviewLimit.String())
	case m.Budget < 0:
		return object.Invalid("model.budget", "must not be negative")
	case !m.Start.IsZero() && !plausible(m.Start):
		return object.Invalid("model.start", "must be zero or from 1970 to 9999")
	}
	if bad := invalidShare("model.fail", m.Fail); bad != nil {
		return bad
	}
	return invalidShare("model.failUpdate", m.FailUpdate)
}

// invalidShare returns what is wrong with a setting that says which ones fail.
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

// limit returns how far to look ahead.
func (m *Model) limit() time.Duration {
	if m.Limit == 0 {
		return DefaultPreviewLimit
	}
	return m.Limit
}

// budget returns how many decisions the preview may take.
func (m *Model) budget() int64 {
	if m.Budget == 0 {
		return DefaultPreviewBudget
	}
	return m.Budget
}

// policies returns those of the model with a few changes for the preview: statuses are written at
// once, and there are no decisions just to make sure.
func (m *Model) policies() (*Policy, *machineset.Policy) {
	policy, sets := *m.Policy.WithDefaults(), *m.SetPolicy.WithDefaults()
	p, s := &policy, &sets
	p.FailedSummaries, p.RolloutMarks = object.Off, machine.RolloutMarks{}
	p.Resync = m.limit() + time.Hour
	s.Resync = p.Resync
	p.StatusInterval, p.ProgressInterval, p.Gather, s.StatusInterval = object.Off, 0, 0, s.Resync
	p.Names, s.SettleWithin = 0, 0 // they save writes, which do not count here
	return p, s
}

// fails reports whether the n-th creation fails, n counting from 1.
func (m *Model) fails(n int64) bool { return among(n, m.Fail) }

// among reports whether the n-th, n counting from 1, is one of those meant.
func among(n int64, meant rollout.IntOrPercent) bool {
	share := int64(meant.Value)
	if !meant.Percent {
		return n <= share
	}
	return n*share/100 > (n-1)*share/100
}

// hopeless reports whether every creation fails.
func (m *Model) hopeless() bool { return m.Fail.Percent && m.Fail.Value >= 100 }

// failAfter returns how long after its creation a machine is Failed.
func (m *Model) failAfter(c *machine.Configuration) time.Duration {
	switch {
	case m.FailAfter > 0:
		return m.FailAfter
	case c.CreationTimeout > 0:
		return c.CreationTimeout
	}
	return machine.DefaultPolicy().CreationTimeout
}

// healthAfter returns how long an unhealthy machine has until it is Failed. Zero: no limit.
func healthAfter(c *machine.Configuration) time.Duration {
	switch {
	case c.DisableHealthTimeout:
		return 0
	case c.HealthTimeout > 0:
		return c.HealthTimeout
	}
	return machine.DefaultPolicy().HealthTimeout
}

// plausible reports whether t may be a real time, and not so far off that nothing can be added to
// it.
func plausible(t time.Time) bool { return t.Unix() >= 0 && t.Year() <= 9999 }

// start returns the present.
func (m *Model) start(d *Deployment, sets []Children) time.Time {
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
