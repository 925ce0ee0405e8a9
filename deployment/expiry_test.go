package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

func init() {
	stories["too-old"] = tooOld
	stories["too-old-in-a-rollout"] = tooOldInRollout
}

func aging(d *deployment.Deployment) *deployment.Deployment {
	d.Spec.MaxAge = 24 * time.Hour
	return d
}

func tooOld(t *testing.T) *story {
	s := settled(t, aging(web(3)))
	s.say("a day and a half later")
	s.pass(36 * time.Hour)
	s.decide()
	require.Equal(t, machineset.SurgeAllowance{Surge: 1}, s.sets[0].Instructions.SurgeAllowance)
	s.say("they were replaced")
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) { m.CreatedAt, m.Status.Since = s.second(), s.second() })
	}
	s.pass(time.Minute)
	s.decide()
	s.say("another age is wanted: no machine goes for that")
	s.edit(func(spec *deployment.Spec) { spec.MaxAge = 48 * time.Hour })
	s.decide()
	return s
}

func tooOldInRollout(t *testing.T) *story {
	s := settled(t, aging(web(2)))
	s.edit(class("large"))
	s.decide()
	s.say("a day and a half later the new machines have not come up")
	s.pass(36 * time.Hour)
	s.decide()
	return s
}

// old makes the first n machines of the first set too old.
func old(o *deployment.Observation, n int) {
	for i, m := range o.Sets[0].Machines {
		m.CreatedAt = begin
		if i < n {
			m.CreatedAt = begin.Add(-48 * time.Hour)
		}
	}
	o.Deployment.Spec.MaxAge, o.Sets[0].Set.Spec.MaxAge = 24*time.Hour, 24*time.Hour
}

// TestExpiryNeedsItsTime: the bounds are lent for machines that are available, not paused and not
// being updated, and to sets that are not paused. The next decision comes when the next machine is
// too old.
func TestExpiryNeedsItsTime(t *testing.T) {
	for name, change := range map[string]func(*deployment.Observation){
		"paused deployment": func(o *deployment.Observation) { o.Deployment.Spec.Paused = true },
		"paused set":        func(o *deployment.Observation) { setPause(&o.Sets[0].Set.Meta, true) },
		"paused machine":    func(o *deployment.Observation) { setPause(&o.Sets[0].Machines[0].Meta, true) },
		"not available":     func(o *deployment.Observation) { o.Sets[0].Machines[0].Status.Phase = machine.PhaseUnknown },
		"being updated":     func(o *deployment.Observation) { o.Sets[0].Machines[0].Spec.InPlace = machine.InPlaceSelected },
		"no limit":          func(o *deployment.Observation) { o.Deployment.Spec.MaxAge, o.Sets[0].Set.Spec.MaxAge = 0, 0 },
	} {
		o := settledObservation(t, 3)
		old(o, 1)
		plan := decide(t, o, begin)
		require.Equal(t, deployment.ReasonSurgeAllowed, plan.Why.Reason, name)
		change(o)
		plan = decide(t, o, begin)
		require.NotEqual(t, deployment.ReasonSurgeAllowed, plan.Why.Reason, name)
	}
	o := settledObservation(t, 3)
	old(o, 0)
	next := time.Time{}
	for _, m := range o.Sets[0].Machines {
		if at := machineset.ExpiresAt(m, 24*time.Hour); next.IsZero() || at.Before(next) {
			next = at
		}
	}
	plan := decide(t, o, next.Add(-time.Minute))
	require.Equal(t, next, plan.At)
	require.Empty(t, plan.Push)
	plan = decide(t, o, next)
	require.Equal(t, deployment.ReasonSurgeAllowed, plan.Why.Reason)
	follow(t, o, plan)
	for plan = decide(t, o, next); plan.At.IsZero(); plan = decide(t, o, next) {
		if w, ok := plan.Write.(*deployment.UpdateStatus); ok {
			o.Deployment = o.Deployment.Clone()
			o.Deployment.Status = w.Status
		}
	}
	require.EqualValues(t, 1, o.Deployment.Status.Expired)
	require.Contains(t, plan.Why.String(), "1 too old: they are being replaced")
	require.ErrorContains(t, func() error {
		o.Deployment.Spec.MaxAge = time.Second
		return o.Deployment.Validate(deployment.DefaultPolicy().Keys)
	}(), "maxAge")
}
