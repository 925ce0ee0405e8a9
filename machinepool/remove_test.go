package machinepool_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

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

// Once the group is gone its class is not needed any more.
func TestClassGoesAmidADeletion(t *testing.T) {
	w := newWorld()
	p := w.pool()
	p.AddFinalizer(machinepool.Finalizer)
	p.DeletedAt, p.Status.Phase = w.now, machinepool.PhaseDeleting
	o := &machinepool.Observation{Pool: p, GroupDeleted: &machinepool.Group{}, Fenced: true}
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect)
	o.GroupDeleted.Code = codes.NotFound
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect, "there was none")
	o.GroupDeleted = nil
	assert.Equal(t, machinepool.ReasonClassGone, decide(t, w, o).Why.Reason)
}

// The group that an old record names may now be another pool's of that name.
// Invariants: P35
func TestNothingIsDeletedByAnOldRecord(t *testing.T) {
	w := newWorld()
	p := w.pool()
	p.AddFinalizer(machinepool.Finalizer)
	p.DeletedAt, p.Status.Phase = w.now, machinepool.PhaseDeleting
	o := &machinepool.Observation{Pool: p, Class: w.class}
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
	o.Fenced = true
	assert.Equal(t, machinepool.DeleteGroup{}, decide(t, w, o).Effect)
	p.Status.NeverCreated = true
	assert.Equal(t, machinepool.RemoveBootstrap{}, decide(t, w, o).Effect)
	o.Fenced = false
	assert.Equal(t, machinepool.ReadPool{}, decide(t, w, o).Effect)
}

// An instance without a node needs no drain. One that the provider no longer removes stays.
func TestNothingToEmpty(t *testing.T) {
	w, o := shrinking(t, 3, nil)
	ids := w.ids()
	o.Fenced, o.Announced, o.Drain = true, true, &machinepool.DrainAnswer{}
	o.Nodes = map[string]*machine.Node{ids[1]: w.nodes[ids[1]]}
	o = reported(t, w, listed(o, going(ids[0], w.now), going(ids[1], w.now)))
	o = edited(o, func(p *machinepool.Pool) {
		p.Status.LastOperation = machinepool.Operation{Call: machinepool.DeleteInstances, State: machine.StateProcessing, Replicas: 3}
	})
	assert.Equal(t, &machinepool.RemoveInstances{ProviderIDs: ids[:1]}, decide(t, w, o).Effect)
	w, o = shrinking(t, 5, nil)
	o.Fenced = true
	o = listed(o, machinepool.Leaving{ProviderID: ids[2], Exit: machinepool.ExitProvider, Since: w.now})
	assert.Equal(t, &machinepool.KeepNodes{ProviderIDs: ids[2:3]}, decide(t, w, o).Effect)
}

// A copy shares nothing with its origin.
func TestCloneSharesNothing(t *testing.T) {
	w, _ := running(t, 2)
	w.edit(func(p *machinepool.Pool) {
		p.Spec.FailureDomains = []string{"a"}
		p.Spec.RollingUpdate = surging(1)
		p.Status.Leaving = []machinepool.Leaving{going("x", w.now)}
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
