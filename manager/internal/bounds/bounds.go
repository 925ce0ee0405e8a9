// Package bounds tells of sets and deployments that are frozen because they have too many machines.
package bounds

import (
	"context"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/safety"
)

// Tell tells of a freeze and of a thaw whose write is stored.
func Tell(ctx context.Context, p *engine.Pass, plan *safety.OvershootPlan) {
	switch plan.Why.Reason {
	case safety.ReasonFreeze:
		p.Tell(ctx, engine.Warning, plan.Why)
	case safety.ReasonThaw, safety.ReasonUnfreeze, safety.ReasonUnfreezeDone:
		p.Tell(ctx, engine.Normal, plan.Why)
	}
}
