package machinepool_test

import (
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// A pool is recorded as one that never had a group only if nothing indicates a group.
func TestNeverCreated(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*machinepool.Pool)
		never  bool
	}{
		"nothing":      {func(*machinepool.Pool) {}, true},
		"announced":    {func(p *machinepool.Pool) { p.Status.LastOperation.Call = machinepool.CreatePool }, false},
		"ID":           {func(p *machinepool.Pool) { p.Status.GroupID = "g" }, false},
		"counted":      {func(p *machinepool.Pool) { p.Status.Replicas = 1 }, false},
		"ready":        {func(p *machinepool.Pool) { p.Status.InfrastructureReady = true }, false},
		"provider IDs": {func(p *machinepool.Pool) { p.Spec.ProviderIDs = []string{"a"} }, false},
	} {
		w := newWorld()
		p := w.pool()
		p.AddFinalizer(machinepool.Finalizer)
		p.DeletedAt = w.now
		c.change(p)
		assert.Equal(t, c.never, status(t, decide(t, w, &machinepool.Observation{Pool: p})).NeverCreated, name)
	}
}

// A deletion needs the class until the group is gone, and not after that.
func TestClassRemovedDuringDeletion(t *testing.T) {
	w := newWorld()
	p := w.pool()
	p.AddFinalizer(machinepool.Finalizer)
	p.DeletedAt, p.Status.Phase = w.now, machinepool.PhaseDeleting
	o := &machinepool.Observation{Pool: p, GroupDeleted: &machinepool.Group{}, Fresh: true}
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect)
	o.GroupDeleted.Code = codes.NotFound
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect, "there was no group")
	o.GroupDeleted = nil
	assert.Equal(t, machinepool.ReasonClassGone, decide(t, w, o).Why.Reason)
}

// A group is deleted only after a live read of the pool: the group that a stale record names may now belong
// to another pool of that name.
// Invariants: P35
func TestNothingIsDeletedByAnOldRecord(t *testing.T) {
	w := newWorld()
	p := w.pool()
	p.AddFinalizer(machinepool.Finalizer)
	p.DeletedAt, p.Status.Phase = w.now, machinepool.PhaseDeleting
	o := &machinepool.Observation{Pool: p, Class: w.class}
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
	o.Fresh = true
	assert.Equal(t, machinepool.DeleteGroup{}, decide(t, w, o).Effect)
	p.Status.NeverCreated = true
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect)
	o.Fresh = false
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
}

// An instance without a node needs no drain. An instance that the provider no longer wants to remove stays.
func TestInstancesWithoutNodesNeedNoDrain(t *testing.T) {
	w, o := shrinking(t, 3, nil)
	ids := w.ids()
	o.Fresh, o.Announced, o.Drain = true, true, &machinepool.DrainAnswer{}
	o.Nodes = map[string]*machine.Node{ids[1]: w.nodes[ids[1]]}
	o = reported(t, w, withLeaving(o, leaving(ids[0], w.now), leaving(ids[1], w.now)))
	o = edited(o, func(p *machinepool.Pool) {
		p.Status.LastOperation = machinepool.Operation{Call: machinepool.DeleteInstances, State: machine.StateProcessing, Replicas: 3}
	})
	assert.Equal(t, &machinepool.RemoveInstances{ProviderIDs: ids[:1]}, decide(t, w, o).Effect)
	w, o = shrinking(t, 5, nil)
	o.Fresh = true
	o = withLeaving(o, machinepool.Leaving{ProviderID: ids[2], Exit: machinepool.ExitProvider, Since: w.now})
	assert.Equal(t, &machinepool.KeepNodes{ProviderIDs: ids[2:3]}, decide(t, w, o).Effect)
}

// Changes of a clone don't change the original.
func TestCloneSharesNothing(t *testing.T) {
	w, _ := running(t, 2)
	w.edit(func(p *machinepool.Pool) {
		p.Spec.FailureDomains = []string{"a"}
		p.Spec.RollingUpdate = surging(1)
		p.Status.Leaving = []machinepool.Leaving{leaving("x", w.now)}
	})
	p := w.pool()
	kept, c := p.Clone(), p.Clone()
	assert.True(t, p.SpecEqual(c))
	assert.True(t, p.Status.Equal(&c.Status))
	*c.Spec.Replicas, *c.Spec.Template.Bootstrap.DataSecret = 9, "another"
	c.Spec.ProviderIDs[0], c.Spec.FailureDomains[0] = "blot", "blot"
	*c.Spec.RollingUpdate = *surging(2)
	c.Status.Leaving[0].ProviderID, c.Status.NodeRefs[0].Name = "blot", "blot"
	assert.Equal(t, kept, p)
	assert.Equal(t, []string{"blue:///1", "blue:///2", "a", "x"},
		append(p.Spec.ProviderIDs, p.Spec.FailureDomains[0], p.Status.Leaving[0].ProviderID))
	assert.False(t, p.SpecEqual(c))
	assert.False(t, p.Status.Equal(&c.Status))
}

// Different values are not equal.
func TestEqual(t *testing.T) {
	a := machinepool.Applied{ClassUID: "u", FailureDomains: []string{"a"}}
	for _, b := range []machinepool.Applied{{ClassUID: "v", FailureDomains: []string{"a"}}, {ClassUID: "u"}, {ClassUID: "u", FailureDomains: []string{"a"}, ClassGeneration: 1}, {ClassUID: "u", FailureDomains: []string{"a"}, RollingUpdate: surging(1)}} {
		assert.False(t, a.Equal(&b), "%+v", b)
	}
	p := newWorld().pool()
	for _, spoil := range []func(*machinepool.Spec){
		func(s *machinepool.Spec) { s.MinReady = 1 }, func(s *machinepool.Spec) { s.ClusterName = "" }, func(s *machinepool.Spec) { s.Replicas = nil },
		func(s *machinepool.Spec) { s.ProviderIDs = []string{"a"} }, func(s *machinepool.Spec) { s.Template.Class.Name = "" },
		func(s *machinepool.Spec) { s.RollingUpdate = &machinepool.RollingUpdate{} },
	} {
		c := p.Clone()
		spoil(&c.Spec)
		assert.False(t, p.SpecEqual(c), "%+v", c.Spec)
	}
}

// TestStatusCloneSharesNothing: a change of a copy's lists leaves the status as it is.
func TestStatusCloneSharesNothing(t *testing.T) {
	s := machinepool.Status{
		NodeRefs:   []machinepool.NodeRef{{Name: "n"}},
		Conditions: []object.Condition{{Type: "Ready"}},
		Leaving:    []machinepool.Leaving{{ProviderID: "i"}},
		Applied:    machinepool.Applied{FailureDomains: []string{"a"}, RollingUpdate: surging(1)},
	}
	c := s.Clone()
	require.Equal(t, s, c)
	c.NodeRefs[0].Name, c.Conditions[0].Type = "other", "other"
	c.Leaving[0].ProviderID, c.Applied.FailureDomains[0] = "other", "other"
	*c.Applied.RollingUpdate = *surging(2)
	require.Equal(t, machinepool.Status{
		NodeRefs:   []machinepool.NodeRef{{Name: "n"}},
		Conditions: []object.Condition{{Type: "Ready"}},
		Leaving:    []machinepool.Leaving{{ProviderID: "i"}},
		Applied:    machinepool.Applied{FailureDomains: []string{"a"}, RollingUpdate: surging(1)},
	}, s)
}

// distort makes an answer about a group wrong, as a lagging replica of the provider's database may give it:
// the group is not found, or some or all of its instances are missing.
func distort(t *rapid.T, g *machinepool.Group) {
	switch rapid.IntRange(0, 3).Draw(t, "lie") {
	case 0:
		*g = machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound}, At: g.At}
	case 1:
		g.Instances = nil
	default:
		g.Instances = slices.DeleteFunc(g.Instances, func(machinepool.Instance) bool { return rapid.Bool().Draw(t, "left out") })
	}
}

// P60: if no two consecutive answers of the provider are wrong, no instance, no group and no record of one
// is lost. Instances are removed as without wrong answers: after a drain.
// Invariants: P60
func TestP60OneAnswerIsNotBelieved(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		w.slow = time.Duration(rapid.IntRange(0, 120).Draw(t, "slow")) * time.Second
		s := &shell{w: w}
		live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
		size := rapid.IntRange(1, 6).Draw(t, "size")
		w.scaleTo(int32(size))
		live(3 * time.Minute)
		require.True(t, w.settled(), "%+v", w.pool().Status)
		made, lied := len(w.ids()), false
		s.calls = nil
		s.lie = func(g *machinepool.Group) {
			if lied = !lied && rapid.Bool().Draw(t, "lies"); lied {
				distort(t, g)
			}
			require.Subset(t, w.pool().Spec.ProviderIDs, w.ids(), "an instance was forgotten")
		}
		live(5 * time.Minute)
		w.scaleTo(int32(rapid.IntRange(0, size).Draw(t, "smaller")))
		live(10 * time.Minute)
		s.lie = nil
		live(5 * time.Minute)
		require.Empty(t, w.violation)
		require.True(t, w.settled(), "%+v", w.pool().Status)
		require.NotContains(t, s.calls, "CreateGroup", "the group existed all the time")
		require.NotContains(t, s.calls, "ScaleGroup", "the provider would choose instances to remove, undrained")
		require.Equal(t, made, w.numbers, "another instance was made")
	})
}

// A missing instance or group is given up after a second answer without it, even if errors come between
// the two, and not before the time between them has passed.
// Invariants: P60
func TestGoneAfterSecondAnswer(t *testing.T) {
	w, s := running(t, 3)
	gone := w.ids()[1]
	w.drop(gone)
	look := func(after time.Duration) {
		w.advance(after)
		_, err := s.pass()
		require.NoError(t, err)
	}
	look(time.Minute)
	require.Contains(t, w.pool().Spec.ProviderIDs, gone)
	s.fault = func(string) *machine.Outcome { return &machine.Outcome{Code: codes.Unavailable} }
	look(16 * time.Second)
	require.Contains(t, w.pool().Spec.ProviderIDs, gone)
	s.fault = nil
	look(16 * time.Second)
	require.NotContains(t, w.pool().Spec.ProviderIDs, gone)

	w.group = nil
	for _, after := range []time.Duration{time.Minute, 30 * time.Second, 29 * time.Second} {
		look(after)
		require.Len(t, w.pool().Spec.ProviderIDs, 2)
		require.Nil(t, w.group)
	}
	look(15 * time.Second)
	require.Empty(t, w.pool().Spec.ProviderIDs)
	require.NotNil(t, w.group)
}

// Without a Memory nothing is given up. A new process needs two answers of its own.
// Invariants: P60
func TestNothingIsGivenUpWithoutAMemory(t *testing.T) {
	w, s := running(t, 2)
	w.group.instances = map[string]*machinepool.Instance{}
	for range 5 {
		w.advance(time.Minute)
		s.restart()
		_, err := s.pass()
		require.NoError(t, err)
		require.Len(t, w.pool().Spec.ProviderIDs, 2)
	}
	o := s.observe()
	o.Memory = nil
	require.NotNil(t, s.group)
	plan := decide(t, w, o)
	require.Nil(t, plan.Write)
}

// A Memory keeps what all answers since some time have lacked, and nothing else.
func TestMemory(t *testing.T) {
	var m machinepool.Memory
	pool := &machinepool.Pool{Spec: machinepool.Spec{ProviderIDs: []string{"a", "b"}}}
	group := func(code codes.Code, at time.Duration, ids ...string) *machinepool.Group {
		g := &machinepool.Group{Outcome: machine.Outcome{Code: code}, At: start.Add(at)}
		for _, id := range ids {
			g.Instances = append(g.Instances, machinepool.Instance{ProviderID: id})
		}
		return g
	}
	m.See(pool, group(codes.OK, 0, "b"))
	m.See(pool, group(codes.OK, 1))
	require.Equal(t, map[string]time.Time{"a": start, "b": start.Add(1)}, m.Missed)
	before := m.Missed
	m.See(pool, group(codes.NotFound, 2))
	m.See(pool, group(codes.Unavailable, 3))
	m.See(pool, group(codes.NotFound, 4))
	require.Equal(t, start.Add(2), m.Gone)
	require.Equal(t, before, m.Missed)
	m.See(pool, group(codes.NotFound, -time.Hour))
	require.Equal(t, start.Add(-time.Hour), m.Gone, "after the clock was set back, the count begins again")
	m.See(pool, group(codes.OK, 5, "a", "b", "c"))
	require.Zero(t, m.Gone)
	require.Empty(t, m.Missed)
	require.Len(t, before, 2)
}
