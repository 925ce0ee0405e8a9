package replacement_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/test/safetytest"
)

// TestPausedMachinesAreNotInReplacement: they take no place in the budget in any phase, unless they
// are being deleted, or were given up so recently that this may still be on its way.
// Invariants: P24
func TestPausedMachinesAreNotInReplacement(t *testing.T) {
	for _, phase := range []machine.Phase{
		machine.PhaseFailed, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseNew, machine.PhaseUnknown,
	} {
		for _, paused := range []string{"true", "false"} {
			d := &deployment.Deployment{Spec: deployment.Spec{Replicas: 2}}
			slots := func(at time.Time) map[string]string {
				return map[string]string{safety.DefaultPolicy().Keys.Slots: "m-2~" + at.Format(time.RFC3339)}
			}
			d.Annotations = slots(safetytest.Noon)
			o := &replacement.Observation{
				Machine: safetytest.Member("m-1", machine.PhaseUnknown, ""), Deployment: d, Set: &machineset.Set{}, Read: decision.Freshness{Began: safetytest.Epoch},
			}
			o.Fleet = []*machine.Machine{o.Machine, safetytest.Member("m-2", phase, paused)}
			plan, err := replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "its slot is fresh")
			if paused == "true" {
				d.Annotations = slots(safetytest.Noon.Add(-time.Hour))
			}
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Equal(t, paused == "true", plan.Write != nil, "%s, paused %s: %s", phase, paused, plan.Why)
			o.Fleet[1].DeletedAt = safetytest.Noon
			plan, err = replacement.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
			require.NoError(t, err)
			require.Nil(t, plan.Write, "it is missing")
		}
	}
}
