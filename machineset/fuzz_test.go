package machineset_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of sets. The corpus counts on the order of the words.
var form = fuzzing.Form{Now: morning, Words: []string{
	"", namespace, "web", "set-1", "pool", "tier", "front", "uid-1", "uid-2", "m-1", "m-2", machineset.OwnerKind,
	machineset.Finalizer, machine.Finalizer, priorityKey, "1", "2", "true", "small",
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.PhaseInPlaceUpdateSuccessful), string(machine.PhaseInPlaceUpdateFailed),
	string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	string(machine.InPlaceCandidate), string(machine.InPlaceSelected),
	"node.machine.sapcloud.io/scale-up-disabled", "node.machine.sapcloud.io/preserve", "now", "when-failed", "auto-preserved",
	string(machineset.OldestFirst), string(machineset.NewestFirst), string(machineset.RandomAge),
}}

func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machineset.Observation, *machineset.Policy, machineset.Plan]{
		Form: form, Policy: machineset.DefaultPolicy, Decide: machineset.Decide,
		Whole: func(o *machineset.Observation) {
			if o.Set == nil {
				o.Set = newSet(3)
			}
		},
		Check: func(t testing.TB, o *machineset.Observation, plan machineset.Plan) {
			require.Empty(t, improper(o, &plan))
			require.NotEmpty(t, plan.Why.String())
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machineset.Observation, *machineset.Policy) { return anyObservation(t), anyPolicy(t) })...)
}
