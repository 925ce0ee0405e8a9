package manager

import (
	"context"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// parent is what passes over sets and over deployments have in common.
type parent struct {
	*shell
	memo *memo
	kind Kind
	key  object.Key

	ordered   bool // orders were given in this pass
	struggled bool // one of them was refused
}

// warn tells of something that the owner should know.
func (p *parent) warn(ctx context.Context, why decision.Why) {
	p.tell(ctx, p.memo, p.kind, p.key, Warning, why)
}

// told tells of an order that was carried out.
func (p *parent) told(ctx context.Context, why decision.Why) {
	p.tell(ctx, nil, p.kind, p.key, Normal, why)
}

// refused counts a pass in which an order was refused, once.
func (p *parent) refused() {
	if !p.struggled {
		p.struggled = true
		p.memo.failed(p.key, machine.OperationCreate, machine.StageNone)
	}
}

// ended ends a row of refusals when a pass gave orders and none was refused.
func (p *parent) ended() {
	if p.ordered && !p.struggled {
		p.memo.accepted(p.key)
	}
}
