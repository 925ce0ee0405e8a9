package manager

import (
	"context"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
)

// parent is what passes over deployments share with the engine's.
type parent struct {
	*shell
	pass *engine.Pass
	memo *memo
	key  object.Key
}

// warn tells of something that the owner should know.
func (p *parent) warn(ctx context.Context, why decision.Why) { p.pass.Once(ctx, Warning, why) }
