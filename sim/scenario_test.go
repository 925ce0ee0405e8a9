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

// TestPropertiesHoldInTheEnd: what a property asks for once all is deleted is waited for, and a
// violation if it does not come. A scenario that keeps its deployments does not ask.
func TestPropertiesHoldInTheEnd(t *testing.T) {
	var since time.Time // when all was gone first
	late := func(after time.Duration) *sim.Scenario {
		since = time.Time{}
		return &sim.Scenario{
			Options: sim.Options{Manager: off.Manager, Properties: []sim.Property{{Name: "disks", Finally: func(w *sim.World) error {
				if since.IsZero() {
					since = w.Now()
				}
				if w.Now().Sub(since) < after {
					return errors.New("disk d-1 is left")
				}
				return nil
			}}}},
			Deployments: []*deployment.Deployment{sim.Fleet("web", 2, deployment.Strategy{})},
			Limit:       6 * time.Hour,
		}
	}
	require.Nil(t, play(t, late(5*time.Hour)).Violation)
	found := play(t, late(7*time.Hour)).Violation
	require.NotNil(t, found)
	require.Equal(t, "disks", found.Rule)
	require.Equal(t, "disk d-1 is left, 6h0m0s after all is deleted", found.What)
	kept := late(7 * time.Hour)
	kept.Keep = true
	require.Nil(t, play(t, kept).Violation)
}
