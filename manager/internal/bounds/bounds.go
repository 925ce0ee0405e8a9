// Package bounds tells of sets and deployments that are frozen because they have too many machines.
package bounds

import (
	"context"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// Tell tells of a freeze and of a thaw whose write is stored.
func Tell(ctx context.Context, p *engine.Pass, plan *overshoot.Plan) {
	switch plan.Why.Reason {
	case overshoot.ReasonFreeze:
		p.Tell(ctx, engine.Warning, plan.Why)
	case overshoot.ReasonThaw, overshoot.ReasonUnfreeze, overshoot.ReasonUnfreezeDone:
		p.Tell(ctx, engine.Normal, plan.Why)
	}
}
