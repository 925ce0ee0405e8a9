package deployment_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// growing is a rolling update of a deployment of five whose new set has three
// machines, and names for them that it has not settled yet. There is room for two.
func growing(t *testing.T) (*deployment.Observation, *deployment.Policy) {
	o, p := settledObservation(t, 3), deployment.DefaultPolicy()
	d := o.Deployment
	o.Read, d.Spec.Replicas, p.Names = live, 5, 100
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 2}
	d.Status.RolloutFailures.Revision = 2 // if it counts them, it has begun
	o.Sets = append(o.Sets, another(d, "large", 1, 1))
	set := o.Sets[0].Set
	set.Instructions.Reservation = machineset.Reservation{Settled: 4, Reserved: 7, At: begin}
	for i, m := range o.Sets[0].Machines {
		m.Name = set.MachineName(int64(5 + i))
	}
	return o, p
}

// TestNamesComeWithTheSize: a growing set gets the names of its new machines, if all earlier names
// became machines and nothing keeps it from creating.
func TestNamesComeWithTheSize(t *testing.T) {
	condition := func(typ string) func(*deployment.Observation, *deployment.Policy) {
		return func(o *deployment.Observation, _ *deployment.Policy) {
			o.Sets[0].Set.Status.Conditions = []object.Condition{{Type: typ, Status: object.True, Reason: "Any"}}
		}
	}
	untouched := machineset.Reservation{Settled: 4, Reserved: 7, At: begin}
	settled := machineset.Reservation{Settled: 7, Reserved: 7, At: begin}
	given := func(n int64) machineset.Reservation {
		return machineset.Reservation{Settled: 7, Reserved: 7 + n, At: later}
	}
	for name, line := range map[string]struct {
		change func(*deployment.Observation, *deployment.Policy)
		want   machineset.Reservation
	}{
		"":     {want: given(2)},
		"one":  {func(_ *deployment.Observation, p *deployment.Policy) { p.Names = 1 }, given(1)},
		"none": {func(_ *deployment.Observation, p *deployment.Policy) { p.Names = 0 }, settled},
		"a set that settled": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Set.Instructions.Reservation.Settled = 7
			}, given(2),
		},
		"a smaller size": {
			func(o *deployment.Observation, _ *deployment.Policy) { o.Deployment.Spec.Replicas = 1 }, settled,
		},
		"a machine is yet to come": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Machines = o.Sets[0].Machines[:2]
			}, untouched,
		},
		"a machine is going": {
			func(o *deployment.Observation, _ *deployment.Policy) { o.Sets[0].Machines[0].DeletedAt = begin }, settled,
		},
		"a reservation that can't be": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Sets[0].Set.Instructions.Reservation.Settled = 8
			},
			machineset.Reservation{Settled: 8, Reserved: 7, At: begin},
		},
		"a strict quota": {func(_ *deployment.Observation, p *deployment.Policy) { p.StrictQuota = true }, settled},
		"in place": {
			func(o *deployment.Observation, _ *deployment.Policy) {
				o.Deployment.Spec.Strategy.Kind, o.Sets[1].Set.Instructions.Handover.Closed = deployment.InPlaceUpdate, true
			}, settled,
		},
		"no rollout":        {func(o *deployment.Observation, _ *deployment.Policy) { o.Sets = o.Sets[:1] }, settled},
		"paused":            {func(o *deployment.Observation, _ *deployment.Policy) { o.Deployment.Spec.Paused = true }, settled},
		"frozen":            {condition(machineset.ConditionFrozen), settled},
		"slow creations":    {condition(deployment.ConditionCreationSlowed), settled},
		"slow replacements": {condition(deployment.ConditionReplacementSlowed), settled},
	} {
		t.Run(name, func(t *testing.T) {
			o, p := growing(t)
			if line.change != nil {
				line.change(o, p)
			}
			plan, err := deployment.Decide(o, p, later)
			require.NoError(t, err)
			i := slices.IndexFunc(plan.Scale, func(order deployment.Order) bool { return order.Set.Name == o.Sets[0].Set.Name })
			require.GreaterOrEqual(t, i, 0, "%s", plan.Why)
			require.Equal(t, line.want, plan.Scale[i].Set.Instructions.Reservation)
		})
	}
}

// TestNamesOfMachinesThatFailed: the set replaces a failed machine under a name that it gives out
// itself.
func TestNamesOfMachinesThatFailed(t *testing.T) {
	o, p := growing(t)
	o.Sets[0].Machines[0].Status.Phase = machine.PhaseFailed
	plan, err := deployment.Decide(o, p, later)
	require.NoError(t, err)
	require.EqualValues(t, 9, plan.Scale[0].Set.Instructions.Reservation.Reserved)
}
