package safety_test

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

// form reads bytes as observations of fleets. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: epoch.Truncate(time.Second), Words: []string{
	"", "a", "b", "web", "web-1", "m-1", "m-2", "d", "s", "u-a", "u-b", "fleet", "small",
	machineset.OwnerKind, deployment.OwnerKind, machine.Finalizer, machine.NodeFinalizer, machine.NodeReady, "True", "False", "Unknown",
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	safety.DefaultPolicy().Keys.Freeze, safety.DefaultPolicy().Keys.Unfreeze, safety.DefaultPolicy().Keys.Slots,
	safety.DefaultPolicy().Keys.NotManaged, safety.DefaultPolicy().Keys.NodeMachine, "a~2026-03-01T09:00:00Z,b~x", "true",
	string(deployment.RollingUpdate), string(deployment.Recreate), string(deployment.InPlaceUpdate),
}}

// fuzz runs one of the decisions. at is the place of its observations among those that decisions
// draws.
func fuzz[O, R any](f *testing.F, place int, decide func(*O, *safety.Policy, time.Time) (R, error), check func(testing.TB, R), whole func(*O)) {
	d := fuzzing.Decision[O, *safety.Policy, R]{
		Form: form, Policy: safety.DefaultPolicy, Decide: decide, Whole: whole,
		Check: func(t testing.TB, _ *O, plan R) { check(t, plan) },
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*O, *safety.Policy) {
		about, _, _ := decisions(t, safety.DefaultPolicy())[place]()
		return about.(*O), safety.DefaultPolicy()
	})...)
}

func explained(t testing.TB, at time.Time, whys ...fmt.Stringer) {
	require.True(t, at.IsZero() || at.After(form.Now), "a wait that is over: %v", at)
	for _, why := range whys {
		require.NotEmpty(t, why.String())
	}
}

func FuzzDecideOwnerless(f *testing.F) {
	fuzz(f, 0, safety.DecideOwnerless, func(t testing.TB, p safety.OwnerlessPlan) {
		explained(t, time.Time{}, p.Why) // At counts from the live read, which may have been long ago
	}, nil)
}

func FuzzDecideOrphans(f *testing.F) {
	fuzz(f, 1, safety.DecideOrphans, func(t testing.TB, p safety.OrphanPlan) {
		explained(t, time.Time{}, p.Why) // At counts from the last listing, which may have been long ago
	}, nil)
}

func FuzzDecideOvershoot(f *testing.F) {
	fuzz(f, 2, safety.DecideOvershoot, func(t testing.TB, p safety.OvershootPlan) { explained(t, time.Time{}, p.Why) }, func(o *safety.OvershootObservation) {
		if o.Deployment == nil && len(o.Sets) == 0 {
			o.Deployment = &deployment.Deployment{}
		}
	})
}

func FuzzDecideReachability(f *testing.F) {
	fuzz(f, 3, safety.DecideReachability, func(t testing.TB, p safety.ReachPlan) { explained(t, p.At, p.Why) }, nil)
}

func FuzzDecideGrant(f *testing.F) {
	fuzz(f, 4, safety.DecideGrant, func(t testing.TB, p safety.GrantPlan) { explained(t, time.Time{}, p.Why) }, func(o *safety.GrantObservation) {
		if o.Machine == nil {
			o.Machine = &machine.Machine{}
		}
	})
}

func FuzzDecideNodes(f *testing.F) {
	fuzz(f, 5, safety.DecideNodes, func(t testing.TB, p safety.NodesPlan) { explained(t, p.At, p.Why) }, nil)
}
