package main

import (
	"context"
	"io"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/examples/quickstart/stage"
)

// TestStrategies rolls the fleet to another version by each strategy, and counts processes
// meanwhile.
func TestStrategies(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some ten seconds")
	}
	t.Parallel()
	one := rollout.IntOrPercent{Value: 1}
	for name, c := range map[string]struct {
		strategy       deployment.Strategy
		floor, ceiling int // of processes
		creates        int
	}{
		"rolling, two missing": {deployment.Strategy{MaxUnavailable: rollout.IntOrPercent{Value: 2}}, replicas - 2, replicas, replicas},
		"rolling, two more and one missing": {
			deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}, MaxUnavailable: one}, replicas - 1, replicas + 2, replicas,
		},
		"recreate": {deployment.Strategy{Kind: deployment.Recreate}, 0, replicas, replicas},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := startFleet(t, c.strategy)
			before := p.created(t)
			p.census.Begin()
			require.NoError(t, p.edit(t.Context(), useClass("v2")))
			require.NoError(t, p.settled(t.Context(), replicas, "v2"))
			require.NoError(t, p.checkCensus(c.floor, c.ceiling))
			require.Equal(t, c.creates, p.created(t)-before)
			if c.strategy.Kind == deployment.Recreate {
				counts, err := p.census.Counts()
				require.NoError(t, err)
				require.Zero(t, counts.Least.Serving, "nobody serves between the old machines and the new ones")
			}
		})
	}
}

// startFleet returns a play without acts whose fleet runs the first version. When the test ends
// everything is deleted, and the ledgers have to agree.
func startFleet(t *testing.T, strategy deployment.Strategy) *play {
	t.Helper()
	return startFleetWith(t, strategy, func(*play) {})
}

// startFleetWith is startFleet. It calls prepare before anything runs.
func startFleetWith(t *testing.T, strategy deployment.Strategy, prepare func(*play)) *play {
	t.Helper()
	p, err := newPlay(io.Discard, "")
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx := context.Background() // the test's own has ended
		var failed error
		if !t.Failed() {
			failed = p.remove(ctx)
		}
		require.NoError(t, p.close(ctx, failed))
	})
	p.health.HealthTimeout = stage.Patience // a process that comes late on a busy machine is not lost
	prepare(p)
	require.NoError(t, p.begin())
	require.NoError(t, p.deploy(t.Context(), p.token, strategy))
	require.NoError(t, p.settled(t.Context(), replicas, "v1"))
	return p
}

// created returns how many processes there have been.
func (p *play) created(t *testing.T) int {
	t.Helper()
	account, err := p.Book.Account()
	require.NoError(t, err)
	return account.Created
}
