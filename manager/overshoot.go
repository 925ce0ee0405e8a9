package manager

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// bound freezes a deployment and its sets that have too many machines, or lets
// them thaw, one write at a time; busy: there was one. It is decided from what
// the deployment's own pass has read.
func (p *deploymentPass) bound(ctx context.Context) (busy bool, err error) {
	if p.SafetyPolicy == nil {
		return false, nil
	}
	o := &safety.OvershootObservation{Deployment: p.o.Deployment, Sets: p.o.Sets}
	plan, err := safety.DecideOvershoot(o, p.SafetyPolicy, p.Now())
	if err != nil || plan.Write == nil {
		p.bounded(ctx, &plan)
		return false, err
	}
	because(ctx, p.shell, plan.Why)
	switch w := plan.Write.(type) {
	case *safety.LabelDeployment:
		after, err := p.Deployments.Update(ctx, w.Deployment)
		if err != nil {
			return false, itself(err)
		}
		p.o.Deployment = after
	case *safety.LabelSet:
		after, err := p.Sets.Update(ctx, w.Set)
		if err != nil {
			return false, elsewhere(err)
		}
		p.o.Sets = withSet(p.o.Sets, after)
	case *safety.TellDeployment:
		changed := *p.o.Deployment
		changed.Status = w.Status
		after, err := p.Deployments.UpdateStatus(ctx, &changed)
		if err != nil {
			return false, itself(err)
		}
		p.o.Deployment = after
	default:
		return false, fmt.Errorf("unknown write %T", w)
	}
	p.bounded(ctx, &plan)
	return true, nil
}

// bound is the same for a set that nobody owns: any other follows its deployment.
func (p *setPass) bound(ctx context.Context) (busy bool, err error) {
	if p.SafetyPolicy == nil || p.o.Set.Owner != nil {
		return false, nil
	}
	o := &safety.OvershootObservation{Sets: []deployment.Children{{Set: p.o.Set, Machines: p.o.Machines}}}
	plan, err := safety.DecideOvershoot(o, p.SafetyPolicy, p.Now())
	if err != nil || plan.Write == nil {
		p.bounded(ctx, &plan)
		return false, err
	}
	because(ctx, p.shell, plan.Why)
	w, ok := plan.Write.(*safety.LabelSet)
	if !ok {
		return false, fmt.Errorf("unknown write %T", plan.Write)
	}
	after, err := p.Sets.Update(ctx, w.Set)
	if err != nil {
		return false, itself(err)
	}
	p.o.Set = after
	p.bounded(ctx, &plan)
	return true, nil
}

// bounded tells of a freeze and of a thaw, and of one that the owner forbids.
func (p *parent) bounded(ctx context.Context, plan *safety.OvershootPlan) {
	if plan.Warn != (decision.Why{}) {
		p.warn(ctx, plan.Warn)
	}
	if plan.Write == nil {
		return
	}
	switch plan.Why.Reason {
	case safety.ReasonFreeze:
		p.tell(ctx, nil, p.kind, p.key, Warning, plan.Why)
	case safety.ReasonThaw, safety.ReasonUnfreeze, safety.ReasonUnfreezeDone:
		p.told(ctx, plan.Why)
	}
}

// withSet puts a set that was written in its place.
func withSet(sets []deployment.Children, after *machineset.Set) []deployment.Children {
	out := make([]deployment.Children, len(sets))
	for i, c := range sets {
		out[i] = c
		if c.Set.Key == after.Key {
			out[i].Set = after
		}
	}
	return out
}

// elsewhere is an error about another object than the pass's own: one that is
// gone begins the pass anew.
func elsewhere(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return fmt.Errorf("%w: %w", store.ErrConflict, err)
	}
	return err
}
