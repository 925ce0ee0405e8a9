package deployments

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/bounds"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// decideBound freezes a deployment and its sets that have too many machines, or thaws them, one write
// at a time. It decides from what the deployment's own pass has read.
func (p *pass) decideBound(ctx context.Context) (bounded bool, err error) {
	p.bound = overshoot.Plan{}
	if p.Safety == nil {
		return false, nil
	}
	o := &overshoot.Observation{Deployment: p.o.Deployment, Sets: p.o.Sets}
	p.bound, err = overshoot.Decide(o, p.Safety, p.Now())
	if p.bound.Write == nil {
		p.warnBound(ctx)
	}
	return p.bound.Write != nil, err
}

func (p *pass) warnBound(ctx context.Context) {
	if p.bound.Warn != (decision.Why{}) {
		p.EmitOnce(ctx, engine.Warning, p.bound.Warn)
	}
}

func (p *pass) executeBound(ctx context.Context) error {
	switch w := p.bound.Write.(type) {
	case *overshoot.LabelDeployment:
		after, err := p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: p.o.Deployment, After: w.Deployment})
		if err != nil {
			return engine.OwnNotFound(err)
		}
		p.o.Deployment = after
	case *overshoot.LabelSet:
		after, err := p.setsBatch().Change(setsOf(p.o.Sets))(ctx, w.Set)
		if err != nil {
			return engine.OtherNotFound(err)
		}
		p.o.Sets = withSet(p.o.Sets, after)
	case *overshoot.TellDeployment:
		changed := *p.o.Deployment
		changed.Status = w.Status
		after, err := p.Deployments.Write(ctx, &engine.Write[*deployment.Deployment]{Before: p.o.Deployment, After: &changed, Status: true})
		if err != nil {
			return engine.OwnNotFound(err)
		}
		p.o.Deployment = after
	default:
		return fmt.Errorf("unknown write %T", w)
	}
	p.warnBound(ctx)
	bounds.Emit(ctx, p.Pass, &p.bound)
	return nil
}

// boundChange returns the change that the write makes.
func (p *pass) boundChange() engine.Change {
	switch w := p.bound.Write.(type) {
	case *overshoot.LabelSet:
		return engine.Change{What: "update set " + w.Set.Key.String()}
	case *overshoot.TellDeployment:
		return engine.Change{What: "update status of deployment " + p.Key.String()}
	case *overshoot.LabelDeployment:
	}
	return engine.Change{What: "update deployment " + p.Key.String()}
}

// withSet returns the children with a set as it was written.
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
