package deployment

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Policy says how to treat deployments. A setting that is zero means its default, so the zero Policy
// is DefaultPolicy without RolloutMarks.
type Policy struct {
	// StatusInterval is the least time between two writes of one deployment's status. Not negative;
	// default 1 s. object.Off: no limit.
	StatusInterval time.Duration
	// ProgressInterval is the least time between two writes if only the numbers of machines differ,
	// and not all are as wanted. Not negative. It counts as at least StatusInterval. Default 0.
	ProgressInterval time.Duration
	// Gather is how long the orders of a rolling update may wait for others that are about to join
	// them. The longer it is, the fewer writes of sets a wave of new machines takes. Not negative;
	// default 0: they do not wait. At most half of a deployment's progress deadline counts.
	Gather time.Duration
	// Names is the maximum number of machine names that a growing set gets with its new size in a
	// rolling update, which saves a write by the set; see machineset.Reservation. The set gives out
	// further names itself. From 0 to 1,000; default 0. It should not exceed the Burst of the sets'
	// policy; a manager uses the smaller of both.
	Names int32
	// Resync is the longest time between two decisions about a deployment. At least a second;
	// default 10 min.
	Resync time.Duration
	// Retry says how long orders wait after one was refused: the period of the class, longer with each
	// further failure. The period must not be zero; default codes.Short, 5 s.
	Retry codes.RetryClass
	// FailedSummaries is how many failed machines a status lists at most, the newest first. From 1
	// to 100; default 10, as for sets. object.Off: none.
	FailedSummaries int
	// MaxReplicas is the largest size of a deployment. A larger deployment is invalid: its sizes and
	// templates stay as they are, its sets continue with their orders, and its condition SpecValid is
	// False. At least 1; default 10,000, as for sets. object.Off: no limit.
	MaxReplicas int32
	// RolloutMarks says which marks nodes get during a rollout: with Avoid the nodes of the old sets,
	// with Keep those of all sets. The zero value means none; DefaultPolicy has Avoid alone.
	RolloutMarks machine.RolloutMarks
	// UpdateLimit is how many VMs of a deployment, or of a set without one, are updated at a time,
	// as a number or a part of its replicas, rounded up; at least one. A VM whose update fails
	// counts until it succeeds, so that a change that can't work reaches no more VMs than that.
	// Default 10%. 0% means one.
	UpdateLimit rollout.IntOrPercent
	// StrictQuota counts terminating machines toward R + S, see package rollout. A rollout then never has
	// more than R + S machines at a provider, and waits until terminating ones are gone. The policy of the
	// sets must have it too. Default: no.
	StrictQuota bool
	// IgnoreMinReady counts a machine as available as soon as it is ready, whatever Spec.MinReady says.
	// The policy of the sets must have it too. Default: no.
	IgnoreMinReady bool
	Keys           Keys
}

// Keys are the labels and annotations that this library and others set on sets and machines. The
// zero Keys are those of DefaultPolicy. If any key is set, an empty key switches its feature off, if that
// is possible.
type Keys struct {
	// TemplateHash is the label that distinguishes a deployment's sets. It must not be empty.
	TemplateHash string
	// DesiredReplicas and MaxReplicas are annotations on sets: R and R + S at a set's last
	// resizing. They are for other programs that take over a fleet; this library does not read
	// them.
	DesiredReplicas string
	MaxReplicas     string
	// RaisedFrom is the annotation on a set whose size was raised while it was deleting machines. It
	// records the smaller size, to which the set may still be deleting. Empty: the size of such a set is
	// not raised again.
	RaisedFrom string
	// DeletionCandidates is the annotation on a deployment in which a scaler names the machines to be
	// deleted when it lowers replicas: see ScaleDown.
	DeletionCandidates string
	// ScaledAt is the annotation on a deployment in which a scaler says when it changed the number of
	// replicas, by its own clock: an RFC 3339 time. The scaler writes it in the same update as
	// DeletionCandidates.
	ScaledAt string
	// Replace is the annotation on a machine that asks for its replacement. It
	// must be that of the sets' policy.
	Replace string
	// ScaleUpDisabled is the label on a set that keeps it from creating machines. It must be that
	// of the sets' policy. A deployment removes it from its current set: to prevent new machines,
	// pause the set or scale the deployment. Empty: no label is removed.
	ScaleUpDisabled string
	// Paused is the annotation on a set or a machine that pauses it: nothing is done for it. It must be
	// that of the policies of sets and machines.
	Paused string
	// Preserve is the annotation on a machine that asks to keep it for
	// inspection. It must be that of the machines' policy.
	Preserve string
	// InPlaceTarget is the annotation on a machine that is being updated in place: the name of the
	// set whose template it is updated to. Without it, if the template changes meanwhile, the new
	// template counts as that of the update.
	InPlaceTarget string
}

// DefaultPolicy returns the default settings.
func DefaultPolicy() *Policy {
	return &Policy{
		StatusInterval:  time.Second,
		Resync:          10 * time.Minute,
		Retry:           codes.Short,
		FailedSummaries: 10,
		MaxReplicas:     10_000,
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

// defaults are the defaults of single settings. RolloutMarks has none: its zero value is a valid choice.
var defaults = func() *Policy {
	p := DefaultPolicy()
	p.RolloutMarks = machine.RolloutMarks{}
	return p
}()

// WithDefaults returns p with the default in place of each setting that is zero: p itself if there is none, and
// DefaultPolicy if p is nil.
func (p *Policy) WithDefaults() *Policy {
	if p == nil {
		return DefaultPolicy()
	}
	return object.WithDefaults(p, defaults)
}

// Validate returns an *object.FieldError for the first setting out of range.
func (p *Policy) Validate() error {
	p = p.WithDefaults()
	switch {
	case p.StatusInterval != object.Off && p.StatusInterval < 0:
		return object.Invalid("policy.statusInterval", "must not be negative, or off")
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
	case p.FailedSummaries != object.Off && p.FailedSummaries < 0 || p.FailedSummaries > 100:
		return object.Invalid("policy.failedSummaries", "must be from 1 to 100, or off")
	case p.MaxReplicas < 1 && p.MaxReplicas != object.Off:
		return object.Invalid("policy.maxReplicas", "must be at least 1, or off")
	case p.Keys.TemplateHash == "":
		return object.Invalid("policy.keys.templateHash", "must not be empty")
	}
	return nil
}
