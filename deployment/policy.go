package deployment

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Policy is how deployments are to be treated. The zero Policy is invalid:
// start from DefaultPolicy.
type Policy struct {
	// StatusInterval is the least time between two writes of one
	// deployment's status. Zero: no limit; default 1 s.
	StatusInterval time.Duration
	// ProgressInterval is the same for a status that differs in the numbers of
	// machines alone, while not all are as wanted. Not negative; below
	// StatusInterval it is that. Default 0.
	ProgressInterval time.Duration
	// Gather is how long the orders of a rolling update may wait for others that
	// are about to join them: the longer, the fewer writes of sets a wave of new
	// machines takes. Not negative; default 0: they do not wait. No longer than half
	// of a deployment's progress deadline.
	Gather time.Duration
	// Names is how many names of machines at most a set that grows in a rolling
	// update is given in the write that resizes it, which spares it a write of its
	// own; see machineset.Reservation. What a set needs beyond that it gives out
	// itself. From 0 to 1,000; more than the Burst of the sets' policy is that for a
	// manager, and should be avoided without one. Default 0.
	Names int32
	// Resync is after what time a deployment is looked at again at the
	// latest. At least a second; default 10 min.
	Resync time.Duration
	// Retry is how long orders wait after one was refused: the class's period,
	// longer with each failure. A class that waits; default codes.Short, 5 s.
	Retry codes.RetryClass
	// FailedSummaries is how many failed machines a status lists at most, the
	// newest first. From 0 to 100; default 10, as sets do.
	FailedSummaries int
	// MaxReplicas is the largest size of a deployment. One that asks for more is
	// not acted upon: it neither grows nor shrinks nor rolls, its sets go on with
	// what they were ordered, and its condition SpecValid is False. Not negative;
	// zero, the default: no limit.
	MaxReplicas int32
	// RolloutMarks says which marks nodes get while a rollout lasts: Avoid
	// those of the old sets, Keep those of all sets. Default: Avoid alone.
	RolloutMarks machine.RolloutMarks
	// UpdateLimit is how many VMs of a deployment, or of a set without one, are
	// updated at a time, as a number or a part of its replicas, rounded up; at
	// least one. One whose update fails counts until it succeeds, so that a
	// change that can't work reaches no more than that. Default 10%.
	UpdateLimit rollout.IntOrPercent
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
	// RaisedFrom is the annotation on a set that notes a size by which it may still be removing machines after it was
	// raised. Empty: no set is ordered to keep machines that it was ordered to remove.
	RaisedFrom string
	// DeletionCandidates is the annotation on a deployment by which a scaler says which
	// machines should go with the replicas that it takes away: see ScaleDown. Stored
	// policies know it by another name.
	DeletionCandidates string `json:"Victims"`
	// ScaledAt is the annotation on a deployment by which a scaler says, by its
	// own clock, when it changed the number of replicas: an RFC 3339 time. It is
	// written in the same update as DeletionCandidates.
	ScaledAt string
	// Replace is the annotation on a machine that asks for its replacement. It
	// must be that of the sets' policy.
	Replace string
	// ScaleUpDisabled is the label on a set that keeps it from making machines. It
	// must be that of the sets' policy. A deployment takes it off its current set:
	// pause the set or scale the deployment if no machines should be made. Empty: no
	// label is taken off.
	ScaleUpDisabled string
	// Paused is the annotation on a set or a machine that asks for it to be left
	// as it is. It must be that of the policies of both.
	Paused string
	// Preserve is the annotation on a machine that asks to keep it for
	// inspection. It must be that of the machines' policy.
	Preserve string
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
		FailedSummaries: 10,
		UpdateLimit:     rollout.IntOrPercent{Value: 10, Percent: true},
		RolloutMarks:    machine.RolloutMarks{Avoid: true},
		Keys: Keys{
			TemplateHash:       "machine-template-hash",
			DesiredReplicas:    "deployment.kubernetes.io/desired-replicas",
			MaxReplicas:        "deployment.kubernetes.io/max-replicas",
			RaisedFrom:         "millwright-go/raised-from",
			Replace:            "millwright-go/replace",
			DeletionCandidates: "node.machine.sapcloud.io/trigger-deletion-by-mcm",
			ScaledAt:           "machine.sapcloud.io/last-deployment-replica-change-by-scaler-time",
			ScaleUpDisabled:    "node.machine.sapcloud.io/scale-up-disabled",
			Paused:             "millwright-go/paused",
			Preserve:           "node.machine.sapcloud.io/preserve",
			InPlaceTarget:      "millwright-go/in-place-target",
		},
	}
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	switch {
	case p.StatusInterval < 0:
		return object.Invalid("policy.statusInterval", "must not be negative")
	case p.ProgressInterval < 0:
		return object.Invalid("policy.progressInterval", "must not be negative")
	case p.Gather < 0:
		return object.Invalid("policy.gather", "must not be negative")
	case p.Names < 0 || p.Names > manyNames:
		return object.Invalid("policy.names", "must be from 0 to 1000")
	case p.Resync < time.Second:
		return object.Invalid("policy.resync", "must be at least a second")
	case p.Retry.Period(0) <= 0:
		return object.Invalid("policy.retry", "must be a class that waits")
	case p.FailedSummaries < 0 || p.FailedSummaries > 100:
		return object.Invalid("policy.failedSummaries", "must be from 0 to 100")
	case p.MaxReplicas < 0:
		return object.Invalid("policy.maxReplicas", "must not be negative")
	case p.Keys.TemplateHash == "":
		return object.Invalid("policy.keys.templateHash", "must not be empty")
	}
	return nil
}
