package sim_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/sim"
)

// TestIllnessUnderAnotherClock: a process that has seen a machine become ill gives it up by the health
// timeout alone, also if its clock says that this was before the process began (P25).
// Invariants: P25
func TestIllnessUnderAnotherClock(t *testing.T) {
	for _, skew := range []time.Duration{-50 * time.Minute, 0, 50 * time.Minute} {
		r := &run{t: t}
		policy := machine.DefaultPolicy()
		policy.HealthTimeout, policy.Grace = 2*time.Minute, 5*time.Hour
		r.open(sim.Options{
			Faults:  sim.Faults{Flap: 1, FlapForGood: 1, Skew: skew},
			Manager: manager.Options{Policies: manager.Policies{Machine: policy}},
		}, fleet(3, deployment.Strategy{}))
		require.NoError(t, r.w.Until(func() bool { return r.w.Made() > 3 }, time.Hour), "a machine is replaced with skew %s", skew)
		r.w.Close()
	}
}
