package reachability_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/test/safetytest"
)

// TestP25PausedClocksAreLeftAlone: clocks of paused machines are left alone after an outage, and
// restart when the pause ends.
// Invariants: P25
func TestP25PausedClocksAreLeftAlone(t *testing.T) {
	fine := &machine.Outcome{}
	o := &reachability.Observation{
		State: reachability.State{Stage: reachability.Lost}, Control: fine, Target: fine,
		Machines: []*machine.Machine{safetytest.Member("m-1", machine.PhaseUnknown, "true"), safetytest.Member("m-2", machine.PhaseUnknown, "no")},
	}
	plan, err := reachability.Decide(o, safety.DefaultPolicy(), safetytest.Noon)
	require.NoError(t, err)
	require.Len(t, plan.Restart, 1)
	require.Equal(t, "m-2", plan.Restart[0].Machine.Name)
}
