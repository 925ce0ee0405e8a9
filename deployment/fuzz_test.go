package deployment_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of deployments. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: begin, Words: []string{
	"", namespace, "web", "web-uid", "app", "machine-template-hash", "web-0", "web-1", "set-0", "set-1", "small", "large",
	deployment.OwnerKind, machineset.OwnerKind, deployment.Finalizer, machineset.Finalizer, machine.Finalizer,
	string(deployment.RollingUpdate), string(deployment.Recreate), string(deployment.InPlaceUpdate),
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.PhaseInPlaceUpdateSuccessful), string(machine.PhaseInPlaceUpdateFailed),
	string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	string(machine.InPlaceCandidate), string(machine.InPlaceWaiting), string(machine.InPlaceSelected), deployment.ConditionProgressing,
	"node.machine.sapcloud.io/trigger-deletion-by-mcm", "node.machine.sapcloud.io/preserve", "web-0-1,web-0-2", "now", "when-failed",
}}

func drawn(t *rapid.T) (*deployment.Observation, *deployment.Policy) {
	o := drawGarbage(t)
	if o.Deployment.UID == "" {
		o.Deployment.UID = "web-uid"
	}
	return o, deployment.DefaultPolicy()
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[deployment.Observation, *deployment.Policy, deployment.Plan]{
		Form: form, Policy: deployment.DefaultPolicy, Decide: deployment.Decide,
		Whole: func(o *deployment.Observation) {
			if o.Deployment == nil {
				o.Deployment = web(3)
			}
			if o.Deployment.UID == "" { // no store holds one without
				o.Deployment.UID = "web-uid"
			}
		},
		Check: func(t testing.TB, _ *deployment.Observation, plan deployment.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.True(t, plan.At.IsZero() || plan.At.After(begin), "a wait that is over: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, drawn)...)
}
