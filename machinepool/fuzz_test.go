package machinepool_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of pools. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: start, Words: []string{
	"", "fleet", "web", "u1", "blue", "boot", "small", "a", "b", "c", "d", machinepool.Finalizer, machine.NodeFinalizer,
	machine.NodeReady, "True", "False", "Unknown",
}}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machinepool.Observation, *machinepool.Policy, machinepool.Plan]{
		Form: form, Policy: machinepool.DefaultPolicy, Decide: machinepool.Decide,
		Whole: func(o *machinepool.Observation) {
			if o.Pool == nil {
				o.Pool = newWorld().pool()
			}
		},
		Check: func(t testing.TB, _ *machinepool.Observation, plan machinepool.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.False(t, plan.Write != nil && plan.Effect != nil)
			if plan.Write == nil && plan.Effect == nil {
				require.True(t, plan.At.IsZero() || plan.At.After(start), "a wait that is over: %v", plan.At)
			}
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machinepool.Observation, *machinepool.Policy) {
		return anyObservation(t), machinepool.DefaultPolicy()
	})...)
}
