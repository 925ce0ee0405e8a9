package sim_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
)

// TestUnreadableClass: machines whose class somebody has made unreadable come once it is mended, also
// where nothing but a change ends the wait after such an error, and those that run stay.
func TestUnreadableClass(t *testing.T) {
	for name, policy := range map[string]*machine.Policy{"tried again": nil, "waiting for a change": {WaitForChange: true}} {
		t.Run(name, func(t *testing.T) {
			five := sim.Property{Name: "five", Check: func(w *sim.World) error {
				if w.Made() > 5 {
					return errors.New("a machine was replaced")
				}
				return nil
			}}
			s := &sim.Scenario{
				Options:     sim.Options{Manager: manager.Options{Policies: manager.Policies{Machine: policy}}, Properties: []sim.Property{five}},
				Deployments: []*deployment.Deployment{fleet(3, deployment.Strategy{})},
				Steps: []sim.Step{
					{After: time.Hour, Do: sim.SpoilClass, Class: "small", For: 5 * time.Minute},
					{After: time.Minute, Do: sim.Scale, Name: "web", N: 5},
				},
			}
			r := play(t, s)
			require.NoError(t, errorOf(r.Violation))
			require.True(t, r.Left.None(), "%s", r.Left)
			require.Equal(t, 1, r.Stats.Actions[sim.SpoilClass])
		})
	}
}
