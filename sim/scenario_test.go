package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/sim"
	"github.com/millwright-go/millwright/store"
)

func play(t tb, s *sim.Scenario) sim.Result {
	t.Helper()
	r, err := sim.Play(s)
	require.NoError(t, err)
	return r
}

// TestPropertiesAreHeld: the world checks a user's property after every effect, and its error is
// the violation.
func TestPropertiesAreHeld(t *testing.T) {
	broken := errors.New("three machines are too many")
	s := &sim.Scenario{
		Options: sim.Options{Manager: off.Manager, Properties: []sim.Property{{Name: "few", Check: func(w *sim.World) error {
			if machines, _ := w.Machines().List(ctx, store.Query{}); len(machines) >= 3 {
				return broken
			}
			return nil
		}}}},
		Deployments: []*deployment.Deployment{sim.Fleet("web", 2, deployment.Strategy{})},
	}
	require.Nil(t, play(t, s).Violation)
	s.Steps = []sim.Step{{After: time.Hour, Do: sim.Scale, Name: "web", N: 3}}
	found := play(t, s).Violation
	require.NotNil(t, found)
	require.Equal(t, "few", found.Rule)
	require.Equal(t, broken.Error(), found.What)
}
