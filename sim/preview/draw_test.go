package preview_test

import (
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/internal/testkit/rollouts"
)

var (
	begin       = rollouts.Begin
	web         = rollouts.Web
	class       = rollouts.Class
	stored      = rollouts.Stored
	ownSet      = rollouts.OwnSet
	drawGarbage = rollouts.Garbage
	copyOf      = rollouts.Copy
)

const (
	namespace = rollouts.Namespace
	hashLabel = rollouts.HashLabel
)

func ptr(n int32) *int32 { return &n }

// drawStrategy also draws whether a rollout stops on its way.
func drawStrategy(t *rapid.T) deployment.Strategy {
	s := rollouts.Strategy(t)
	if rapid.Bool().Draw(t, "stops") {
		s.StopAfter = rollouts.Strategy(t).MaxSurge
	}
	return s
}

func drawLive(t *rapid.T) *deployment.Observation {
	o := rollouts.Any(t)
	o.Deployment.Spec.Strategy = drawStrategy(t)
	return o
}
