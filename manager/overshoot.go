package manager

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/bounds"
	"github.com/millwright-go/millwright/safety"
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
			return false, engine.Itself(err)
		}
		p.o.Deployment = after
	case *safety.LabelSet:
		after, err := p.Sets.Update(ctx, w.Set)
		if err != nil {
			return false, engine.Elsewhere(err)
		}
		p.o.Sets = withSet(p.o.Sets, after)
	case *safety.TellDeployment:
		changed := *p.o.Deployment
		changed.Status = w.Status
		after, err := p.Deployments.UpdateStatus(ctx, &changed)
		if err != nil {
			return false, engine.Itself(err)
		}
		p.o.Deployment = after
	default:
		return false, fmt.Errorf("unknown write %T", w)
	}
	p.bounded(ctx, &plan)
	return true, nil
}

// bounded tells of a freeze and of a thaw, and of one that the owner forbids.
func (p *parent) bounded(ctx context.Context, plan *safety.OvershootPlan) {
	if plan.Warn != (decision.Why{}) {
		p.warn(ctx, plan.Warn)
	}
	if plan.Write != nil {
		bounds.Tell(ctx, p.pass, plan)
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
