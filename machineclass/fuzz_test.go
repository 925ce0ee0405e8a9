package machineclass_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of classes and secrets. The corpus depends on the order of the
// words.
var form = fuzzing.Form{Now: start, Words: []string{
	"", "fleet", "small", machine.ClassKind, blue.Kind, blue.APIGroup, green.Kind, machine.Finalizer, machine.SecretFinalizer,
	machineclass.MigratedFrom, blue.GroupKind(), string(machineclass.HolderDeployment), string(machineclass.HolderSet),
	string(machineclass.HolderMachine),
}}

func policy() *machineclass.Policy { return &machineclass.Policy{Keep: true, Migrate: true} }

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machineclass.Observation, *machineclass.Policy, machineclass.Plan]{
		Form: form, Policy: policy, Decide: machineclass.Decide,
		Whole: func(o *machineclass.Observation) { // a failed Fill is noted before it is decided again
			if o.Filled != nil && o.Filled.Code != codes.OK && o.Failed != nil {
				o.Failed.At = start
			}
		},
		Check: func(t testing.TB, _ *machineclass.Observation, plan machineclass.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.True(t, plan.At.IsZero() || plan.At.After(start), "a wait that is over: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machineclass.Observation, *machineclass.Policy) { return anything(t), policy() })...)
}

// Invariants: P11 P27
func FuzzDecideSecret(f *testing.F) {
	d := fuzzing.Decision[machineclass.SecretObservation, *machineclass.Policy, machineclass.SecretPlan]{
		Form: form, Policy: policy,
		Decide: func(o *machineclass.SecretObservation, p *machineclass.Policy, _ time.Time) (machineclass.SecretPlan, error) {
			return machineclass.DecideSecret(o, p)
		},
		Check: func(t testing.TB, _ *machineclass.SecretObservation, plan machineclass.SecretPlan) {
			require.NotEmpty(t, plan.Why.String())
		},
	}
	secret := &machine.Secret{}
	secret.AddFinalizer(machine.SecretFinalizer)
	var seeds [][]byte
	for _, o := range []machineclass.SecretObservation{{}, {Secret: &machine.Secret{}, Classes: 1}, {Secret: secret}, {Secret: secret, Read: readIf(true)}} {
		seeds = append(seeds, d.Seed(&o, policy(), start))
	}
	d.Fuzz(f, seeds...)
}
