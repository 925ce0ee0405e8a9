package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// BenchmarkDecideSettled: the new set has 5,000 machines, two old sets are empty, and there is nothing to do.
func BenchmarkDecideSettled(b *testing.B) {
	o := settledObservation(b, 5000)
	for _, name := range []string{"web-old", "web-older"} {
		old := ownSet(o.Deployment, name, 0)
		old.Set.Revision = 0
		old.Set.Spec.Template.Spec.Class.Name = name
		o.Sets = append(o.Sets, old)
	}
	measure(b, o, begin, func(p *deployment.Plan) bool { return p.At.Equal(begin.Add(10 * time.Minute)) })
}

// BenchmarkDecideRolling: in the middle of a rollout there are 5,000 machines in three sets. Reservations are open, a
// fifth of the machines is not available, and sets are to be resized.
func BenchmarkDecideRolling(b *testing.B) {
	d := stored(4500)
	d.Spec.MinReady = time.Minute
	d.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 25, Percent: true}
	o := &deployment.Observation{Deployment: d, Read: live}
	for i, name := range []string{"web-old", "web-older", "web-new"} {
		child := ownSet(d, name, []int{2000, 1000, 2000}[i])
		if i < 2 {
			child.Set.Spec.Template.Spec.Class.Name = name
			child.Set.Instructions.Reservation.Reserved = 100
		}
		for j, m := range child.Machines {
			if j%5 == 0 {
				m.Status.Phase, m.Status.LastOperation = machine.PhaseUnknown, failed("gone")
			}
		}
		o.Sets = append(o.Sets, child)
	}
	measure(b, o, begin.Add(time.Hour), func(p *deployment.Plan) bool { return len(p.Scale) > 0 })
}

// BenchmarkDecideInPlace: in the middle of an update in place there are 5,000 machines in three sets. All candidates
// are marked, 250 are being updated, and 500 more may be selected.
func BenchmarkDecideInPlace(b *testing.B) {
	d := stored(5000)
	d.Spec.Strategy = inPlace(5000, 0, 750).Spec.Strategy
	o := &deployment.Observation{Deployment: d, Read: live}
	for i, name := range []string{"web-old", "web-older", "web-new"} {
		child := ownSet(d, name, []int{2000, 1000, 2000}[i])
		if i < 2 {
			child.Set.Spec.Template.Spec.Class.Name, child.Set.Instructions.Handover.Closed = name, true
			for j, m := range child.Machines {
				m.Spec.InPlace = machine.InPlaceWaiting
				if j%12 == 0 {
					m.Spec.InPlace, m.Status.Phase = machine.InPlaceSelected, machine.PhaseInPlaceUpdating
					m.Annotations = map[string]string{deployment.DefaultPolicy().Keys.InPlaceTarget: "web-new"}
				}
			}
		}
		o.Sets = append(o.Sets, child)
	}
	measure(b, o, begin.Add(time.Hour), func(p *deployment.Plan) bool { return len(p.Mark) == 100 })
}

func measure(b *testing.B, o *deployment.Observation, now time.Time, as func(*deployment.Plan) bool) {
	p := deployment.DefaultPolicy()
	plan, err := deployment.Decide(o, p, now)
	require.NoError(b, err)
	require.True(b, as(&plan), "%s", plan.Why)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := deployment.Decide(o, p, now); err != nil {
			b.Fatal(err)
		}
	}
}
