package manager

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machinepool"
)

// poolTokens makes the tokens of pools.
type poolTokens struct{ tokens Tokens }

func poolOwner(p *machinepool.Pool) TokenOwner { return TokenOwner{Key: p.Key, UID: p.UID, Pool: true} }

// Ensure implements pools.Tokens.
func (t poolTokens) Ensure(ctx context.Context, p *machinepool.Pool, until time.Time) (string, error) {
	token, err := t.tokens.Ensure(ctx, poolOwner(p), until)
	return string(token), err
}

// Known implements pools.Tokens.
func (t poolTokens) Known(ctx context.Context, p *machinepool.Pool) (string, error) {
	token, err := t.tokens.Renew(ctx, poolOwner(p), time.Time{})
	return string(token), err
}

// Delete implements pools.Tokens.
func (t poolTokens) Delete(ctx context.Context, p *machinepool.Pool) error {
	return t.tokens.Delete(ctx, poolOwner(p))
}
