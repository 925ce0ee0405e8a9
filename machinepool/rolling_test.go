package machinepool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

func surging(n int32) *machinepool.RollingUpdate {
	return &machinepool.RollingUpdate{MaxSurge: rollout.IntOrPercent{Value: n}}
}

// TestRollingUpdate: a group is made with the bounds of its updates, and told of others by an update, once.
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

// TestRollingUpdateNeedsADriver: a driver that can't keep to bounds is not asked to update without them.
func TestRollingUpdateNeedsADriver(t *testing.T) {
	w, s := running(t, 2)
	w.edit(func(p *machinepool.Pool) {
		p.Spec.RollingUpdate, p.Spec.Template.Class.Name = surging(1), "large"
	})
	o := s.observe()
	o.Pool, o.Features, o.Fenced, o.Looked = w.pool(), machinepool.Features{DeleteInstances: true}, true, true
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

// TestBoundsOfAnUpdate: surge is rounded up, unavailable down, and never are both zero.
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
