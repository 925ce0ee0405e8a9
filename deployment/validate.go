package deployment

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Validate returns an *object.FieldError that names the first field which
// can't be acted upon, or else the first entry of the node template that no API
// server accepts. With such an entry no machine is made and nothing is rolled
// out. More than 100 %, and neither surge nor unavailable, are tolerated.
func (d *Deployment) Validate(keys Keys) error {
	err := d.invalidField(keys)
	if err == nil {
		err = d.Spec.Template.InvalidEntry()
	}
	if err == nil {
		return nil
	}
	return err.Of("deployment", d.Key)
}

func (d *Deployment) invalidField(keys Keys) *object.FieldError {
	// The deployment's own set must follow the same rules, under the same names.
	set := machineset.Set{Meta: d.Meta, Spec: machineset.Spec{
		Replicas: d.Spec.Replicas, Selector: d.Spec.Selector, Template: d.Spec.Template, MinReady: d.Spec.MinReady,
		MaxAge: d.Spec.MaxAge,
	}}
	set.Spec.Template.Spec.NodeTemplate = machine.NodeTemplate{} // it holds back creations alone
	var bad *object.FieldError
	if errors.As(set.Validate(), &bad) {
		return bad.Of("", object.Key{})
	}
	if bad := selectsByHash(&d.Spec.Selector, keys.TemplateHash); bad != nil {
		return bad
	}
	switch limit := d.Spec.RevisionHistoryLimit; {
	case limit != nil && *limit < 0:
		return object.Invalid("spec.revisionHistoryLimit", "must not be negative")
	case d.Spec.AutoPreserve < 0:
		return object.Invalid("spec.autoPreserve", "must not be negative")
	case d.Spec.ProgressDeadline < 0:
		return object.Invalid("spec.progressDeadline", "must not be negative")
	case d.Spec.ProgressDeadline > 0 && d.Spec.ProgressDeadline < time.Second:
		return object.Invalid("spec.progressDeadline", "must be at least a second")
	}
	return d.Spec.Strategy.invalidField()
}

// selectsByHash rejects a selector that uses the hash label. The label's value differs in each set,
// so a deployment would release sets that it has just created.
func selectsByHash(s *object.Selector, label string) *object.FieldError {
	_, found := s.Labels[label]
	if !found && !slices.ContainsFunc(s.Requirements, func(r object.Requirement) bool { return r.Key == label }) {
		return nil
	}
	return object.Invalid("spec.selector", fmt.Sprintf("must not select by %q, which tells the deployment's own sets apart", label))
}

func (s *Strategy) invalidField() *object.FieldError {
	switch s.Kind {
	case RollingUpdate, Recreate, InPlaceUpdate, "":
	default:
		return object.Invalid("spec.strategy.kind", fmt.Sprintf("%q is unknown", string(s.Kind)))
	}
	switch {
	case s.Orchestration != Automatic && s.Orchestration != Manual:
		return object.Invalid("spec.strategy.orchestration", fmt.Sprintf("%q is unknown", string(s.Orchestration)))
	case s.MaxSurge.Problem() != "":
		return object.Invalid("spec.strategy.maxSurge", s.MaxSurge.Problem())
	case s.MaxUnavailable.Problem() != "":
		return object.Invalid("spec.strategy.maxUnavailable", s.MaxUnavailable.Problem())
	case s.StopAfter.Problem() != "":
		return object.Invalid("spec.strategy.stopAfter", s.StopAfter.Problem())
	}
	return nil
}

// tolerated returns what is odd about a strategy but works. Zero: nothing.
func (s *Strategy) tolerated() decision.Why {
	const surge, unavailable = "spec.strategy.maxSurge", "spec.strategy.maxUnavailable"
	switch {
	case s.Kind == Recreate:
	case s.MaxSurge.Over100() && s.MaxUnavailable.Over100():
		return decision.Why{
			Reason: reasonOver100, Name: surge + " and " + unavailable,
			Detail: s.MaxSurge.String() + " and " + s.MaxUnavailable.String(),
		}
	case s.MaxSurge.Over100():
		return decision.Why{Reason: reasonOver100, Name: surge, Detail: s.MaxSurge.String()}
	case s.MaxUnavailable.Over100():
		return decision.Why{Reason: reasonOver100, Name: unavailable, Detail: s.MaxUnavailable.String()}
	case !s.unset() && s.MaxSurge.Value == 0 && s.MaxUnavailable.Value == 0:
		return decision.Why{Reason: reasonBothZero}
	}
	return decision.Why{}
}

// DefaultStrategy returns what a strategy that is not set means.
func DefaultStrategy() Strategy {
	quarter := rollout.IntOrPercent{Value: 25, Percent: true}
	return Strategy{Kind: RollingUpdate, MaxSurge: quarter, MaxUnavailable: quarter}
}

// Rolling returns the rolling update with exactly these bounds, also if both are zero. A Strategy with
// both bounds zero and nothing else set means DefaultStrategy.
func Rolling(maxSurge, maxUnavailable rollout.IntOrPercent) Strategy {
	return Strategy{Kind: RollingUpdate, MaxSurge: maxSurge, MaxUnavailable: maxUnavailable}
}

// unset reports whether nothing of the strategy is set.
func (s *Strategy) unset() bool { return *s == Strategy{} }

// Bounds returns the strategy's surge and unavailable for a number of replicas, in machines.
func (s *Strategy) Bounds(replicas int32) rollout.Bounds {
	switch {
	case s.Kind == Recreate:
		return rollout.Bounds{Unavailable: max(replicas, 0)}
	case s.unset():
		d := DefaultStrategy()
		return d.Bounds(replicas)
	}
	return rollout.Fenceposts(s.MaxSurge, s.MaxUnavailable, replicas)
}

// bounds returns the strategy's surge and unavailable, in machines.
func (s *Spec) bounds() rollout.Bounds { return s.Strategy.Bounds(s.Replicas) }
