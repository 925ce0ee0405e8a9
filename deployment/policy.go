package deployment

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Policy is how deployments are to be treated. The zero Policy is invalid:
// start from DefaultPolicy.
type Policy struct {
	// StatusInterval is the least time between two writes of one
	// deployment's status. Zero: no limit; default 1 s.
	StatusInterval time.Duration
	// Resync is after what time a deployment is looked at again at the
	// latest. At least a second; default 10 min.
	Resync time.Duration
	// Retry is how long orders wait after one was refused: the class's period,
	// longer with each failure. A class that waits; default codes.Short, 5 s.
	Retry codes.RetryClass
	// FailedSummaries is how many failed machines a status lists at most, the
	// first ones by name. Not negative; default 100, as sets do.
	FailedSummaries int
	// RolloutMarks says which marks nodes get while a rollout lasts: Avoid
	// those of the old sets, Keep those of all sets. Default: Avoid alone.
	RolloutMarks machine.RolloutMarks
	// StrictQuota has machines that are being deleted count: a rollout never
	// has more than R + S machines at a provider, and waits for those to be
	// gone. The policy of the sets must have it too. Default: no.
	StrictQuota bool
	Keys        Keys
}

// Keys are the names under which this library and others leave marks on sets
// and machines. An empty key switches its feature off, where that is possible.
type Keys struct {
	// TemplateHash is the label that tells a deployment's sets apart. It must
	// not be empty.
	TemplateHash string
	// DesiredReplicas and MaxReplicas are annotations on sets: R and R + S as
	// of a set's last resizing. They are kept for other programs that take a
	// fleet over; nothing here reads them.
	DesiredReplicas string
	MaxReplicas     string
	// Victims is the annotation on a deployment by which a scaler says which
	// machines should go with the replicas that it takes away: see ScaleDown.
	Victims string
	// Replace is the annotation on a machine that asks for its replacement. It
	// must be that of the sets' policy.
	Replace string
	// InPlaceTarget is the annotation on a machine that is being updated in
	// place: the name of the set whose template it is updated to. Without it,
	// a template that changes meanwhile is taken for that of the update.
	InPlaceTarget string
}

// DefaultPolicy returns the established settings.
func DefaultPolicy() *Policy {
	return &Policy{
		StatusInterval:  time.Second,
		Resync:          10 * time.Minute,
		Retry:           codes.Short,
		FailedSummaries: 100,
		RolloutMarks:    machine.RolloutMarks{Avoid: true},
		Keys: Keys{
			TemplateHash:    "machine-template-hash",
			DesiredReplicas: "deployment.kubernetes.io/desired-replicas",
			MaxReplicas:     "deployment.kubernetes.io/max-replicas",
			Replace:         "millwright-go/replace",
			Victims:         "node.machine.sapcloud.io/trigger-deletion-by-mcm",
			InPlaceTarget:   "machine.sapcloud.io/in-place-update-target",
		},
	}
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	switch {
	case p.StatusInterval < 0:
		return object.Invalid("policy.statusInterval", "must not be negative")
	case p.Resync < time.Second:
		return object.Invalid("policy.resync", "must be at least a second")
	case p.Retry.Period(0) <= 0:
		return object.Invalid("policy.retry", "must be a class that waits")
	case p.FailedSummaries < 0:
		return object.Invalid("policy.failedSummaries", "must not be negative")
	case p.Keys.TemplateHash == "":
		return object.Invalid("policy.keys.templateHash", "must not be empty")
	}
	return nil
}
