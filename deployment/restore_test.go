package deployment_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// raisedFrom is the annotation that records a raise.
var raisedFrom = deployment.DefaultPolicy().Keys.RaisedFrom

// lostAmid returns a fleet of 4 with a surge of 1 and none unavailable. Its old set has three machines and the size 1.
// One of the two machines of the new set has become unhealthy.
func lostAmid() *deployment.Observation {
	d := stored(4)
	d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}}
	old, current := another(d, "large", 1, 4), ownSet(d, "web-a", 2)
	old.Set.Spec.Replicas, old.Set.Generation, old.Set.Status.ObservedGeneration = 1, 5, 4
	old.Set.Finalizers, old.Set.Instructions.Reservation = []string{machineset.Finalizer}, machineset.Reservation{Settled: 4, Reserved: 4}
	old.Machines = old.Machines[:3]
	for _, m := range old.Machines {
		m.Labels, m.Spec = old.Set.Spec.Template.Labels, old.Set.Spec.Template.Spec.Clone()
	}
	current.Set.Revision = 2
	current.Machines[0].Status.Phase = machine.PhaseUnknown
	return &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{old, current}}
}

// requireNoneMade requires that a set's own decision, on a live read, creates no machine.
func requireNoneMade(t *testing.T, c *deployment.Children) {
	t.Helper()
	plan, err := machineset.Decide(&machineset.Observation{Set: c.Set, Machines: c.Machines, Read: live}, machineset.DefaultPolicy(), begin)
	require.NoError(t, err)
	require.Empty(t, plan.Push, "a push would come before a creation")
	require.Empty(t, plan.Create)
	if update, ok := plan.Write.(*machineset.Update); ok {
		require.Equal(t, c.Set.Instructions.Reservation, update.Set.Instructions.Reservation, "%s", plan.Why)
	}
}

// TestRaisedSetCreatesNoMachine: an old set that is raised to keep machines has deleted some of them since they were
// counted. It creates none in their place, neither then nor when it is opened again.
// Invariants: P12
func TestRaisedSetCreatesNoMachine(t *testing.T) {
	for deleted := range 3 {
		t.Run(fmt.Sprint(deleted), func(t *testing.T) {
			o := lostAmid()
			plan := upToScale(t, o)
			require.Len(t, plan.Scale, 1)
			require.Equal(t, rollout.ReasonRestored, deployment.RolloutOf(plan.Scale[0].Why).Reason)
			require.Equal(t, "1 6", plan.Scale[0].Set.Annotations[raisedFrom])
			follow(t, o, plan)
			old := &o.Sets[0]
			require.Equal(t, "web-large", old.Set.Name)
			require.EqualValues(t, 3, old.Set.Spec.Replicas)
			old.Set.Generation++
			for _, m := range old.Machines[:deleted] {
				m.DeletedAt = begin
			}
			for range 3 { // before it has observed the raise, after that, and when it is open again
				requireNoneMade(t, old)
				old.Set = old.Set.Clone()
				if plan := decide(t, o, begin); len(plan.Push) > 0 {
					require.Equal(t, deployment.ReasonOpen, plan.Why.Reason)
					require.Equal(t, old.Set.Generation, old.Set.Status.ObservedGeneration)
					follow(t, o, plan)
					old.Set.Generation++
				}
				old.Set.Status.ObservedGeneration = old.Set.Generation
			}
			require.False(t, old.Set.Instructions.Handover.Closed)
			require.EqualValues(t, 3-deleted, old.Set.Spec.Replicas)
		})
	}
}

// TestNoMachineOfAnOldTemplate: in a rollout in which machines become unhealthy and recover, and none is lost, no old
// set ever creates a machine, even if its controller chooses the machines to delete early and deletes them late, and
// all caches are old.
// Invariants: P3 P12
func TestNoMachineOfAnOldTemplate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.edit(func(s *deployment.Spec) {
			s.Strategy.Kind, s.Strategy.Orchestration = deployment.RollingUpdate, deployment.Automatic
		})
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		c.edit(class("large"))
		c.shell.pass()
		names := map[string]int64{}
		for _, s := range c.sets {
			if s.Spec.Template.Spec.Class.Name != "large" {
				names[s.UID] = s.Instructions.Reservation.Reserved
			}
		}
		moves := []func(){c.shellSteps, c.shellSteps, c.shellSteps, c.setObeys, c.setObeys, c.machineLives, c.machineLives, c.timePasses, c.machineIll}
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			drawOne(t, "actor", moves)()
			for _, s := range c.sets {
				if before, old := names[s.UID]; old {
					require.Equal(t, before, s.Instructions.Reservation.Reserved, "%s makes machines: %s", s.Name, c)
				}
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0, "%s", c)
		requireComplete(t, c.world)
	})
}

// machineIll makes a running machine unhealthy.
func (c *chaos) machineIll() {
	if len(c.machines) == 0 {
		return
	}
	if m := drawOne(c.t, "ill", c.machines); !m.Deleted() && m.Status.Phase == machine.PhaseRunning {
		c.setPhase(m.Name, machine.PhaseUnknown)
	}
}

// TestNoRoomIsMadeIfNoSetCanBeRaised: if no set can be raised to keep machines, because the fleet is frozen or there is
// no key to record it, no other set is lowered to make room.
// Invariants: P6
func TestNoRoomIsMadeIfNoSetCanBeRaised(t *testing.T) {
	o := lostAmid()
	full := another(o.Deployment, "huge", 1, 2)
	full.Machines[0].Status.Phase = machine.PhaseUnknown
	o.Sets = append(o.Sets, full)
	plan := upToScale(t, o)
	require.Len(t, plan.Scale, 2)
	require.EqualValues(t, 1, plan.Scale[0].Set.Spec.Replicas, "the size of the set that makes room")
	require.EqualValues(t, 2, plan.Scale[1].Set.Spec.Replicas, "the size of the set that keeps one more machine")

	o.Frozen = true
	require.Empty(t, upToScale(t, o).Scale)
	o.Frozen = false
	policy := deployment.DefaultPolicy()
	policy.Keys.RaisedFrom = ""
	plan, err := deployment.Decide(o, policy, begin)
	require.NoError(t, err)
	require.Empty(t, plan.Scale, "%s", plan.Why)
}

// TestRecordedRaise: until the set has observed the recorded raise, its machines count as if it had the smaller size. A
// record that can't be read counts as the size 0. A record of a future generation counts as one of the present
// generation.
// Invariants: P7
func TestRecordedRaise(t *testing.T) {
	for _, line := range []struct {
		name, note string
		observed   int64
		lowered    int32 // by how much the other old set may be lowered
	}{
		{"not observed", "1 6", 5, 0},
		{"observed", "1 6", 6, 1},
		{"observed a later one", "1 4", 5, 1},
		{"none", "", 5, 1},
		{"not to be read", "some", 5, 0},
		{"not to be read, and observed", "some", 6, 1},
		{"of a generation to come", "1 99", 6, 1},
		{"a larger size than it has", "9 6", 5, 1},
		{"a negative size", "-3 6", 5, 0},
	} {
		d := stored(4)
		d.Spec.Strategy = deployment.Strategy{Kind: deployment.RollingUpdate, MaxSurge: rollout.IntOrPercent{Value: 1}}
		other, raised, current := another(d, "huge", 1, 1), another(d, "large", 2, 2), ownSet(d, "web-a", 2)
		current.Set.Revision = 3
		raised.Set.Generation, raised.Set.Status.ObservedGeneration = 6, line.observed
		raised.Set.Annotations = map[string]string{raisedFrom: line.note}
		o := &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{other, raised, current}}
		lowered := int32(0)
		for _, order := range upToScale(t, o).Scale {
			if order.Set.UID == other.Set.UID {
				lowered += int32(order.Why.Have - order.Why.Want)
			}
		}
		require.Equal(t, line.lowered, lowered, line.name)
	}
}

// TestRecordedRaiseIsRemoved: when a set that has observed its raise is resized, the record is removed. Before that it
// stays, with the smallest size.
// Invariants: P7
func TestRecordedRaiseIsRemoved(t *testing.T) {
	for observed, note := range map[int64]string{5: "1 6", 6: ""} {
		o := lostAmid()
		o.Deployment.Spec.Replicas = 1
		raised := o.Sets[0].Set
		raised.Spec.Replicas, raised.Generation, raised.Status.ObservedGeneration = 3, 6, observed
		raised.Annotations = map[string]string{raisedFrom: "1 6"}
		resized := 0
		for _, order := range upToScale(t, o).Scale {
			if order.Set.UID == raised.UID {
				require.Less(t, order.Why.Want, order.Why.Have)
				require.Equal(t, note, order.Set.Annotations[raisedFrom])
				resized++
			}
		}
		require.Equal(t, 1, resized)
	}
}

// TestRaisedTwice: a set that is raised again before it has observed the first raise may still act
// on the smallest size.
// Invariants: P7
func TestRaisedTwice(t *testing.T) {
	o := lostAmid()
	raised := o.Sets[0].Set
	raised.Spec.Replicas, raised.Generation = 2, 6
	raised.Annotations = map[string]string{raisedFrom: "1 6"}
	plan := upToScale(t, o)
	require.Len(t, plan.Scale, 1)
	require.EqualValues(t, 3, plan.Scale[0].Set.Spec.Replicas)
	require.Equal(t, "1 7", plan.Scale[0].Set.Annotations[raisedFrom])
}
