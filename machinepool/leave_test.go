package machinepool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// shrinking returns the observation of a pool of five instances that is to have n. Its group was read in
// this pass, and its status is up to date. change may change the group.
func shrinking(t *testing.T, n int32, change func(*machinepool.Group)) (*world, *machinepool.Observation) {
	t.Helper()
	w, s := running(t, 5)
	w.scaleTo(n)
	o := s.observe()
	o.Looked, o.Bootstrap = true, nil
	g := *w.observed()
	if change != nil {
		change(&g)
	}
	o.Group = &g
	return w, reported(t, w, o)
}

// reported carries out writes of spec and status until there are none, and returns the resulting
// observation.
func reported(t *testing.T, w *world, o *machinepool.Observation) *machinepool.Observation {
	t.Helper()
	for decisions := 0; ; decisions++ {
		require.Less(t, decisions, 100, "the status is written without end")
		plan := decide(t, w, o)
		switch u := plan.Write.(type) {
		case *machinepool.UpdateStatus:
			if plan.Why.Reason != machinepool.ReasonStatus {
				return o
			}
			o = edited(o, func(p *machinepool.Pool) { p.Status = u.Status })
		case *machinepool.Update:
			o = edited(o, func(p *machinepool.Pool) { p.Spec = u.Pool.Spec })
		default:
			return o
		}
	}
}

// chosen returns the IDs that a plan chooses to leave.
func chosen(t *testing.T, plan machinepool.Plan) []string {
	t.Helper()
	var ids []string
	for _, l := range status(t, plan).Leaving {
		ids = append(ids, l.ProviderID)
	}
	return ids
}

// withLeaving returns the observation with another list of leaving instances.
func withLeaving(o *machinepool.Observation, list ...machinepool.Leaving) *machinepool.Observation {
	return edited(o, func(p *machinepool.Pool) { p.Status.Leaving = list })
}

// leaving returns an entry for an instance that a scale-down removes.
func leaving(id string, at time.Time) machinepool.Leaving {
	return machinepool.Leaving{ProviderID: id, Exit: machinepool.ExitScaleDown, Since: at}
}

// Instances without a node are removed first, then those that are not ready, then the oldest, then by ID.
func TestRemovalOrder(t *testing.T) {
	w, o := shrinking(t, 1, nil)
	ids := w.ids()
	nodes := map[string]*machine.Node{}
	for i, id := range ids {
		n := w.nodes[id].Clone()
		n.CreatedAt = start.Add(time.Duration(10-i) * time.Minute) // the last is the oldest
		nodes[id] = n
	}
	nodes[ids[0]].CreatedAt = nodes[ids[4]].CreatedAt
	delete(nodes, ids[2])
	nodes[ids[1]].Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.False, Since: start}}
	o.Nodes = nodes
	o = reported(t, w, o)
	assert.Equal(t, []string{ids[2], ids[1], ids[0], ids[4]}, chosen(t, decide(t, w, o)))
}

// No more instances are chosen than the surplus, which includes those that the provider is removing already.
func TestRemovalCount(t *testing.T) {
	w, o := shrinking(t, 2, nil)
	assert.Len(t, chosen(t, decide(t, w, o)), 3)
	w, o = shrinking(t, 2, func(g *machinepool.Group) { g.Target = 3 })
	assert.Len(t, chosen(t, decide(t, w, o)), 1, "the provider removes two already")
	w, o = shrinking(t, 2, func(g *machinepool.Group) {
		g.Target = 3
		g.Instances[0].Terminating = true
		g.Instances[1].Terminating = true
	})
	assert.Equal(t, w.ids()[2:3], chosen(t, decide(t, w, o)), "the two that are being removed are not chosen")
	w, o = shrinking(t, 2, func(g *machinepool.Group) { g.Instances[0].Terminating = true })
	assert.Len(t, chosen(t, decide(t, w, o)), 2, "the provider replaces the one it is removing, until the target is lowered")
	w, o = shrinking(t, 2, nil)
	o.Looked = false
	assert.Equal(t, machinepool.GetGroup{}, decide(t, w, o).Effect, "the group is read before instances are chosen")
	o.Features = machinepool.Features{}
	o.Looked = true
	assert.Equal(t, machinepool.ReasonAnnounce, decide(t, w, o).Why.Reason, "the provider chooses")
}

// A chosen instance stays chosen. An entry is dropped if its instance is gone, or if it is a repetition.
func TestLeavingListIsKept(t *testing.T) {
	w, o := shrinking(t, 3, nil)
	ids := w.ids()
	o = withLeaving(o, leaving(ids[4], w.now), leaving(ids[4], w.now), leaving("gone", w.now), leaving(ids[3], w.now))
	assert.Equal(t, []string{ids[4], ids[3]}, chosen(t, decide(t, w, o)))
	o = withLeaving(o, leaving(ids[4], w.now.Add(time.Hour)), leaving(ids[3], w.now))
	got := status(t, decide(t, w, o)).Leaving
	assert.Equal(t, w.now.Truncate(time.Second), got[0].Since, "a time in the future is replaced by now")
	o.Group.Instances[4].Terminating = true
	o = withLeaving(o, leaving(ids[4], w.now), leaving(ids[3], w.now))
	got = status(t, decide(t, w, o)).Leaving
	assert.Equal(t, []machinepool.Leaving{leaving(ids[3], w.now)}, got, "the provider is removing the other one already")
}

// The nodes of instances that stay after all are uncordoned first, after a live read of the pool. The node
// of an instance that leaves for another reason is not.
func TestUncordonIfInstancesStay(t *testing.T) {
	w, o := shrinking(t, 5, nil)
	ids := w.ids()
	o = withLeaving(o, leaving(ids[0], w.now), leaving(ids[1], w.now))
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
	o.Fresh = true
	assert.Equal(t, &machinepool.KeepNodes{ProviderIDs: ids[:2]}, decide(t, w, o).Effect)
	o.Kept = &machine.Outcome{Code: 14, Message: "no"}
	plan := decide(t, w, o)
	assert.Equal(t, machinepool.ReasonUncordonFailed, plan.Why.Reason)
	assert.Equal(t, w.now.Add(15*time.Second), plan.At)
	o.Kept = &machine.Outcome{}
	assert.Empty(t, chosen(t, decide(t, w, o)))
	o.Kept, o.NoDrain = nil, true
	assert.Empty(t, chosen(t, decide(t, w, o)), "without a drainer")
	o.NoDrain = false
	o.Group.Instances[0].AwaitsDrain = true
	o = withLeaving(o, leaving(ids[0], w.now))
	plan = decide(t, w, o)
	got := status(t, plan).Leaving
	require.Len(t, got, 1)
	assert.Equal(t, machinepool.ExitProvider, got[0].Exit, "the provider takes it out: its node stays as it is")
}

// An instance whose node asks for it is replaced if the driver can do so: one at a time, and only while
// all others are ready.
func TestReplacement(t *testing.T) {
	w, s := running(t, 3)
	for _, id := range w.ids()[:2] {
		n := w.nodes[id].Clone()
		n.Annotations = map[string]string{"millwright-go/replace": "true"}
		w.nodes[id] = n
	}
	o := s.observe()
	o.Looked = true
	assert.Equal(t, w.ids()[:1], chosen(t, decide(t, w, o)))
	cannot := *o
	cannot.Features = machinepool.Features{}
	assert.Equal(t, machinepool.ReasonRunning, decide(t, w, &cannot).Why.Reason)
	off := *w.policy
	off.Keys.Replace = ""
	plan, err := machinepool.Decide(o, &off, w.now)
	require.NoError(t, err)
	assert.Equal(t, machinepool.ReasonRunning, plan.Why.Reason)
	w.ready(w.ids()[2], object.False)
	sick := s.observe()
	sick.Looked, sick.Bootstrap = true, nil
	assert.Equal(t, machinepool.ReasonWaiting, decide(t, w, reported(t, w, sick)).Why.Reason, "no instance is replaced while another is missing")
	w.ready(w.ids()[2], object.True)
	o.Group.Instances[2].AwaitsDrain = true
	assert.Equal(t, w.ids()[2:], chosen(t, decide(t, w, o)), "no instance is replaced while another is removed")
	o = withLeaving(o, machinepool.Leaving{ProviderID: w.ids()[0], Exit: machinepool.ExitReplace, Since: w.now})
	assert.Equal(t, []string{w.ids()[0], w.ids()[2]}, chosen(t, decide(t, w, o)))
	withdrawn := withLeaving(o, machinepool.Leaving{ProviderID: w.ids()[2], Exit: machinepool.ExitReplace, Since: w.now})
	withdrawn.NoDrain, withdrawn.Group = true, w.observed()
	assert.Equal(t, w.ids()[:1], chosen(t, decide(t, w, withdrawn)), "only the instance whose node still asks is replaced")
}

// An empty instance is removed, by the call for its reason to leave. The others wait, until the timeout.
func TestRemovalAfterDrain(t *testing.T) {
	w, o := shrinking(t, 3, nil)
	ids := w.ids()
	o = withLeaving(o, leaving(ids[0], w.now.Truncate(time.Second)), leaving(ids[1], w.now.Truncate(time.Second)))
	o.Fresh = true
	require.IsType(t, &machinepool.DrainNodes{}, decide(t, w, o).Effect)
	stale := *o
	stale.Fresh = false
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, &stale).Effect)
	o.Drain = &machinepool.DrainAnswer{At: w.now.Add(3 * time.Second)}
	assert.Equal(t, w.now.Add(3*time.Second), decide(t, w, o).At)
	o.Drain = &machinepool.DrainAnswer{Done: ids[1:2]}
	ready := edited(o, func(p *machinepool.Pool) {
		p.Status.LastOperation = machinepool.Operation{Call: machinepool.DeleteInstances, State: machine.StateProcessing, Replicas: 3}
	})
	ready.Announced = true
	assert.Equal(t, &machinepool.RemoveInstances{ProviderIDs: ids[1:2]}, decide(t, w, ready).Effect)
	blind := *ready
	blind.Looked = false
	assert.Equal(t, machinepool.GetGroup{}, decide(t, w, &blind).Effect)
	due := ready.Pool.Status.Leaving[0].Since.Add(2*time.Hour + time.Second)
	ready.Drain = &machinepool.DrainAnswer{}
	w.now = due.Add(-time.Second)
	ready.Group.At = w.now
	assert.Equal(t, due, decide(t, w, ready).At)
	w.now = due
	assert.Equal(t, &machinepool.RemoveInstances{ProviderIDs: ids[:2]}, decide(t, w, ready).Effect)
	nobody := *ready
	nobody.Drain, nobody.NoDrain = nil, true
	w.now = start.Add(3 * time.Minute)
	assert.Equal(t, &machinepool.RemoveInstances{ProviderIDs: ids[:2]}, decide(t, w, &nobody).Effect, "without a drainer")
	nobody.NoDrain, nobody.Drain, nobody.Nodes = false, &machinepool.DrainAnswer{}, nil
	assert.Nil(t, decide(t, w, &nobody).Effect, "unknown nodes do not count as empty")
}

// If a provider keeps the size of its group and replaces removed instances, one instance an hour is
// removed, not one after each read of the group. The scale-down goes on when the provider obeys again, or
// another size is wanted.
func TestReplacedInstancesAreBounded(t *testing.T) {
	w, s := running(t, 5)
	live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
	w.repairs = true
	w.scaleTo(4)
	live(10 * time.Hour)
	require.LessOrEqual(t, w.removed, 10)
	require.GreaterOrEqual(t, w.removed, 9, "the call is tried again")
	held := object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionScaleDownHeld)
	require.NotNil(t, held)
	require.Equal(t, object.True, held.Status)

	before := w.removed
	w.scaleTo(3)
	live(5 * time.Minute)
	require.Equal(t, before+2, w.removed, "another size is wanted")
	w.repairs = false
	live(2 * time.Hour)
	require.True(t, w.settled(), "%+v", w.pool().Status)
	require.Nil(t, object.FindCondition(w.pool().Status.Conditions, machinepool.ConditionScaleDownHeld))
}

// If somebody raises the group's size at the provider after a scale-down, it is lowered again at the next
// read: the group had the wanted size in between, so the provider did not undo the scale-down.
func TestSizeRaisedByHandIsNotHeld(t *testing.T) {
	w, s := running(t, 5)
	live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
	w.scaleTo(4)
	live(2 * time.Minute)
	for range 3 {
		require.True(t, w.settled(), "%+v", w.pool().Status)
		require.Equal(t, machinepool.DeleteInstances, w.pool().Status.LastOperation.Call)
		require.Equal(t, machine.StateSuccessful, w.pool().Status.LastOperation.State)
		w.group.target++
		w.supply()
		live(2 * time.Minute)
	}
	require.True(t, w.settled(), "%+v", w.pool().Status)
}

func surging(n int32) *machinepool.RollingUpdate {
	return &machinepool.RollingUpdate{MaxSurge: rollout.IntOrPercent{Value: n}}
}

// TestRollingUpdate: a group is created with the bounds of its updates. When they change, one update passes
// them on.
func TestRollingUpdate(t *testing.T) {
	w := newWorld()
	w.edit(func(p *machinepool.Pool) { p.Spec.RollingUpdate = surging(1) })
	s := &shell{w: w}
	live := func() { require.NoError(t, s.until(5*time.Minute, func() { w.supply(); w.join() })) }
	live()
	require.True(t, w.settled())
	require.Equal(t, surging(1), w.group.made.RollingUpdate)
	require.Equal(t, surging(1), w.pool().Status.Applied.RollingUpdate)
	for updates, want := range []*machinepool.RollingUpdate{surging(1), {}, nil, surging(2)} {
		w.edit(func(p *machinepool.Pool) { p.Spec.RollingUpdate = want })
		live()
		require.True(t, w.settled())
		require.Equal(t, want, w.group.made.RollingUpdate)
		require.Equal(t, updates, w.group.updates)
	}
}

// TestRollingUpdateNeedsADriver: a pool with bounds is invalid if its driver does not support them, and is
// not updated.
func TestRollingUpdateNeedsADriver(t *testing.T) {
	w, s := running(t, 2)
	w.edit(func(p *machinepool.Pool) {
		p.Spec.RollingUpdate, p.Spec.Template.Class.Name = surging(1), "large"
	})
	o := s.observe()
	o.Pool, o.Features, o.Fresh, o.Looked = w.pool(), machinepool.Features{DeleteInstances: true}, true, true
	plan := decide(t, w, o)
	status := plan.Write.(*machinepool.UpdateStatus).Status
	bad := object.FindCondition(status.Conditions, machinepool.ConditionSpecValid)
	require.NotNil(t, bad)
	assert.Equal(t, object.False, bad.Status)
	assert.Contains(t, bad.Message, "spec.rollingUpdate must not be set")
	assert.Equal(t, machinepool.FailureSpec, status.FailureReason)
	w.edit(func(p *machinepool.Pool) { p.Status = status })
	o.Pool = w.pool()
	plan = decide(t, w, o)
	assert.Nil(t, plan.Write)
	assert.Nil(t, plan.Effect)
	w.remove()
	w.edit(func(p *machinepool.Pool) { p.Status.Phase = machinepool.PhaseDeleting })
	o.Pool = w.pool()
	assert.Equal(t, machinepool.DeleteGroup{}, decide(t, w, o).Effect)
}

// TestBoundsOfAnUpdate: surge is rounded up, unavailable down, and the two are never both zero.
func TestBoundsOfAnUpdate(t *testing.T) {
	percent := func(surge, unavailable int32) *machinepool.RollingUpdate {
		return &machinepool.RollingUpdate{
			MaxSurge: rollout.IntOrPercent{Value: surge, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: unavailable, Percent: true},
		}
	}
	for _, c := range []struct {
		of     *machinepool.RollingUpdate
		target int32
		want   rollout.Bounds
	}{
		{surging(2), 5, rollout.Bounds{Surge: 2}},
		{percent(25, 25), 5, rollout.Bounds{Surge: 2, Unavailable: 1}},
		{percent(0, 10), 5, rollout.Bounds{Unavailable: 1}},
		{&machinepool.RollingUpdate{}, 0, rollout.Bounds{Unavailable: 1}},
	} {
		assert.Equal(t, c.want, c.of.Bounds(c.target))
	}
}
