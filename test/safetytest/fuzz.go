package safetytest

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form decodes bytes as observations of fleets. Stored inputs depend on the order of the words.
var form = fuzzing.Form{Now: Epoch.Truncate(time.Second), Words: []string{
	"", "a", "b", "web", "web-1", "m-1", "m-2", "d", "s", "u-a", "u-b", "fleet", "small",
	machineset.OwnerKind, deployment.OwnerKind, machine.Finalizer, machine.NodeFinalizer, machine.NodeReady, "True", "False", "Unknown",
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	safety.DefaultPolicy().Keys.Freeze, safety.DefaultPolicy().Keys.Unfreeze, safety.DefaultPolicy().Keys.Slots,
	safety.DefaultPolicy().Keys.NotManaged, safety.DefaultPolicy().Keys.NodeMachine, "a~2026-03-01T09:00:00Z,b~x", "true",
	string(deployment.RollingUpdate), string(deployment.Recreate), string(deployment.InPlaceUpdate),
}}

// Fuzz is the fuzz target of a decision, see fuzzing.Decision. Its seeds are observations from draw.
func Fuzz[O, R any](f *testing.F, decide Entry[O, R], draw func(*rapid.T) *O, check func(testing.TB, R), whole func(*O)) {
	d := fuzzing.Decision[O, *safety.Policy, R]{
		Form: form, Policy: safety.DefaultPolicy, Decide: decide, Whole: whole,
		Check: func(t testing.TB, _ *O, plan R) { check(t, plan) },
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*O, *safety.Policy) { return draw(t), safety.DefaultPolicy() })...)
}

// Explained requires that the time a plan waits for, if any, is in the future, and that its reasons have a
// text.
func Explained(t testing.TB, at time.Time, whys ...fmt.Stringer) {
	require.True(t, at.IsZero() || at.After(form.Now), "the plan waits for a time that is over: %v", at)
	for _, why := range whys {
		require.NotEmpty(t, why.String())
	}
}
