package deployment_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

func init() { scenarios["replace-on-request"] = replaceOnRequest }

const replaceKey = "millwright-go/replace"

func (w *world) request(name, value string) {
	w.changeMachine(name, func(m *machine.Machine) { m.Annotations = map[string]string{replaceKey: value} })
}

func replaceOnRequest(t *testing.T) *scenario {
	s := settled(t, web(3))
	s.comment("the second is to be replaced")
	s.request(s.running(1), "true")
	s.decide()
	require.Equal(t, machineset.SurgeAllowance{Surge: 1}, s.sets[0].Instructions.SurgeAllowance)
	s.comment("another class is wanted meanwhile")
	s.edit(class("large"))
	s.decide()
	require.Equal(t, machineset.SurgeAllowance{}, s.sets[0].Instructions.SurgeAllowance)
	return s
}

// TestSurgeAllowanceCountsAsMachines: when a rollout begins, the machines that the old set may create beyond its size
// count as existing, until its surge allowance is revoked.
func TestSurgeAllowanceCountsAsMachines(t *testing.T) {
	d := stored(3)
	d.Spec.Strategy.MaxSurge.Value = 1
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
		another(d, "large", 0, 3), ownSet(d, "web-a", 0),
	}}
	o.Sets[0].Set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Surge: 1}
	plan := decide(t, o, begin)
	require.Empty(t, plan.Scale, "one more of the old set may be on its way: %s", plan.Why)
	require.Len(t, plan.Push, 1)
	require.Equal(t, machineset.SurgeAllowance{}, plan.Push[0].Set.Instructions.SurgeAllowance)
	follow(t, o, plan)
	plan = decide(t, o, begin)
	require.Len(t, plan.Scale, 1)
	require.EqualValues(t, 1, plan.Scale[0].Set.Spec.Replicas)
}

// TestSurgeAllowanceOfAnEmptySet: the surge allowance of a set that has become empty is revoked. Otherwise a rollout
// with 0 replicas would wait for it for ever.
func TestSurgeAllowanceOfAnEmptySet(t *testing.T) {
	d := stored(0)
	o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{
		another(d, "large", 0, 0), ownSet(d, "web-a", 0),
	}}
	o.Sets[0].Set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Surge: 1, Unavailable: 2}
	plan := decide(t, o, begin)
	require.Equal(t, deployment.ReasonSurgeRevoked, plan.Why.Reason)
	require.Len(t, plan.Push, 1)
	require.Equal(t, machineset.SurgeAllowance{}, plan.Push[0].Set.Instructions.SurgeAllowance)
	follow(t, o, plan)
	plan = decide(t, o, begin)
	require.Empty(t, plan.Push)
	progressing := object.FindCondition(statusOf(t, plan).Conditions, deployment.ConditionProgressing)
	require.Equal(t, deployment.ProgressAvailable, progressing.Reason)
}

// TestSurgeAllowanceWhileMachinesAreMissing: a rollout has removed the old set's last machine, and the order for
// the new set's last one waits for others to join it. The missing machine counts as unavailable in the surge
// allowance.
func TestSurgeAllowanceWhileMachinesAreMissing(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.Gather = time.Minute
	for unavailable, want := range map[int32]int32{1: 0, 2: 1, 3: 2} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: unavailable}
		c := &o.Sets[0]
		c.Set.Spec.Replicas, c.Machines = 2, c.Machines[:2]
		c.Machines[0].Annotations = map[string]string{replaceKey: "true"}
		c.Machines[1].Status.Phase = machine.PhasePending
		for decisions := 0; ; decisions++ {
			require.Less(t, decisions, mostDecisions)
			plan, err := deployment.Decide(o, p, begin)
			require.NoError(t, err)
			require.Empty(t, plan.Scale)
			if len(plan.Push) == 0 {
				break
			}
			follow(t, o, plan)
		}
		require.Equal(t, want, o.Sets[0].Set.Instructions.SurgeAllowance.Unavailable, "unavailable: %d", unavailable)
	}
}

// TestRequestsWait: replace requests wait while the deployment is paused. If they are withdrawn, the surge allowance is
// revoked.
func TestRequestsWait(t *testing.T) {
	o := settledObservation(t, 3)
	m := o.Sets[0].Machines[0]
	m.Annotations = map[string]string{replaceKey: "true"}
	o.Deployment.Spec.Paused = true
	require.Empty(t, decide(t, o, begin).Push)
	o.Deployment.Spec.Paused = false
	plan := decide(t, o, begin)
	require.Len(t, plan.Push, 1)
	require.Equal(t, deployment.ReasonSurgeAllowed, plan.Why.Reason)
	follow(t, o, plan)
	require.Empty(t, decide(t, o, begin).Push)
	m.Annotations = nil
	plan = decide(t, o, begin.Add(time.Minute))
	require.Equal(t, deployment.ReasonSurgeRevoked, plan.Why.Reason)
	require.Equal(t, machineset.SurgeAllowance{}, plan.Push[0].Set.Instructions.SurgeAllowance)
}

// TestRequestsWaitForAnUpdateInPlace: while a machine of the set is still being updated to an earlier template, the set
// gets no surge allowance. The machine could only move when its set has no surplus, and the set would delete none
// before that machine is available, so they would wait for each other.
// Invariants: P5
func TestRequestsWaitForAnUpdateInPlace(t *testing.T) {
	o := settledObservation(t, 3)
	o.Deployment.Spec.Strategy = inPlace(3, 1, 1).Spec.Strategy
	before := another(o.Deployment, "large", 0, 0)
	o.Sets = append(o.Sets, before)
	o.Sets[0].Machines[0].Annotations = map[string]string{replaceKey: "true"}
	updated := o.Sets[0].Machines[1]
	updated.Annotations = map[string]string{deployment.DefaultPolicy().Keys.InPlaceTarget: before.Set.Name}
	updated.Spec.InPlace, updated.Status.Phase = machine.InPlaceSelected, machine.PhaseInPlaceUpdating
	require.Empty(t, decide(t, o, begin).Push)
	updated.Spec.InPlace, updated.Status.Phase = machine.InPlaceNone, machine.PhaseRunning
	plan := decide(t, o, begin)
	require.Equal(t, deployment.ReasonSurgeAllowed, plan.Why.Reason)
	follow(t, o, plan)
	fourth := updated.Clone()
	fourth.Name, fourth.UID = "fourth", "uid-fourth"
	o.Sets[0].Machines = append(o.Sets[0].Machines, fourth)
	updated.Spec.InPlace, updated.Status.Phase = machine.InPlaceSelected, machine.PhaseInPlaceUpdateSuccessful
	plan = decide(t, o, begin)
	require.Equal(t, deployment.ReasonSurgeRevoked, plan.Why.Reason)
	require.Equal(t, machineset.SurgeAllowance{}, plan.Push[0].Set.Instructions.SurgeAllowance)
}

// TestRaiseIsRecordedBeforeMachinesExist: a raise is also recorded if the set does not have more machines than its size
// yet, but may still create some, because of a reservation or of its surge allowance.
// Invariants: P7
func TestRaiseIsRecordedBeforeMachinesExist(t *testing.T) {
	key := deployment.DefaultPolicy().Keys.RaisedFrom
	for what, change := range map[string]func(*deployment.Children){
		"announced": func(c *deployment.Children) {
			c.Machines = c.Machines[:1]
			c.Set.Instructions.Reservation = machineset.Reservation{Settled: 5, Reserved: 8, At: begin}
		},
		"surge allowance": func(c *deployment.Children) {
			c.Set.Instructions.SurgeAllowance = machineset.SurgeAllowance{Surge: 1}
			c.Machines[0].Annotations = map[string]string{replaceKey: "true"}
		},
		"": func(*deployment.Children) {},
	} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Replicas = 4
		change(&o.Sets[0])
		plan := upToScale(t, o)
		require.Len(t, plan.Scale, 1)
		raised := plan.Scale[0].Set
		require.EqualValues(t, 4, raised.Spec.Replicas)
		if what == "" {
			require.NotContains(t, raised.Annotations, key)
			continue
		}
		require.Equal(t, fmt.Sprintf("3 %d", raised.Generation+1), raised.Annotations[key], what)
	}
}

func init() {
	scenarios["too-old"] = tooOld
	scenarios["too-old-in-a-rollout"] = tooOldInRollout
}

func aging(d *deployment.Deployment) *deployment.Deployment {
	d.Spec.MaxAge = 24 * time.Hour
	return d
}

func tooOld(t *testing.T) *scenario {
	s := settled(t, aging(web(3)))
	s.comment("a day and a half later")
	s.pass(36 * time.Hour)
	s.decide()
	require.Equal(t, machineset.SurgeAllowance{Surge: 1}, s.sets[0].Instructions.SurgeAllowance)
	s.comment("they were replaced")
	for _, m := range s.machines {
		s.changeMachine(m.Name, func(m *machine.Machine) { m.CreatedAt, m.Status.Since = s.second(), s.second() })
	}
	s.pass(time.Minute)
	s.decide()
	s.comment("another age is wanted: no machine goes for that")
	s.edit(func(spec *deployment.Spec) { spec.MaxAge = 48 * time.Hour })
	s.decide()
	return s
}

func tooOldInRollout(t *testing.T) *scenario {
	s := settled(t, aging(web(2)))
	s.edit(class("large"))
	s.decide()
	s.comment("a day and a half later the new machines have not come up")
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

// TestSurgeAllowanceForExpiredMachines: a set gets a surge allowance for machines that are too old if they are
// available, not paused and not being updated, and the set is not paused. The next decision is due when the next
// machine is too old.
func TestSurgeAllowanceForExpiredMachines(t *testing.T) {
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
