// Package bounds emits events about sets and deployments that are frozen because they have too many
// machines.
package bounds

import (
	"context"

	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// Emit emits an event about a freeze or a thaw whose write is stored.
func Emit(ctx context.Context, p *engine.Pass, plan *overshoot.Plan) {
	switch plan.Why.Reason {
	case overshoot.ReasonFreeze:
		p.Emit(ctx, engine.Warning, plan.Why)
	case overshoot.ReasonThaw, overshoot.ReasonUnfreeze, overshoot.ReasonUnfreezeDone:
		p.Emit(ctx, engine.Normal, plan.Why)
	}
}
