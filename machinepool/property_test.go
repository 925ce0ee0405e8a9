package machinepool_test

import (
	"slices"
	"strings"
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

// disturb does one thing that users, providers and nodes do.
func disturb(t *rapid.T, w *world) {
	ids := w.ids()
	switch rapid.IntRange(0, 11).Draw(t, "disturbance") {
	case 0, 1:
		w.scaleTo(int32(rapid.IntRange(0, 5).Draw(t, "replicas")))
	case 2:
		if len(ids) > 0 {
			w.drop(rapid.SampledFrom(ids).Draw(t, "lost"))
		}
	case 3:
		if w.group != nil && w.autoscaled() {
			w.group.target = int32(rapid.IntRange(0, 5).Draw(t, "external"))
		}
	case 4:
		for id := range w.nodes {
			w.ready(id, object.False)
			break
		}
	case 5:
		w.roll(rapid.SampledFrom([]string{"small", "large", "small"}).Draw(t, "class"))
	default:
		disturbMore(t, w, ids)
	}
}

func disturbMore(t *rapid.T, w *world, ids []string) {
	switch rapid.IntRange(5, 12).Draw(t, "other disturbance") {
	case 5:
		c := *w.class
		c.Generation++
		w.class = &c
	case 6:
		if len(ids) > 0 && w.group.instances[ids[0]] != nil {
			w.group.instances[ids[0]].AwaitsDrain = true
		}
	case 7:
		if len(ids) > 0 && w.nodes[ids[0]] != nil {
			n := w.nodes[ids[0]].Clone()
			n.Annotations = map[string]string{"millwright-go/replace": "true"}
			w.nodes[ids[0]] = n
		}
	case 8:
		w.slow = time.Duration(rapid.IntRange(0, 120).Draw(t, "slow")) * time.Second
	case 9:
		w.edit(func(p *machinepool.Pool) {
			p.Annotations = map[string]string{"millwright-go/autoscaled": rapid.SampledFrom([]string{"true", "false"}).Draw(t, "autoscaled")}
		})
	case 10:
		w.group, w.nodes = nil, map[string]*machine.Node{}
	case 11:
		w.supply()
		w.join()
	case 12:
		w.edit(func(p *machinepool.Pool) {
			p.Spec.RollingUpdate = rapid.SampledFrom([]*machinepool.RollingUpdate{nil, {}, surging(1), surging(2)}).Draw(t, "rolling update")
		})
	}
}

// faultyShell returns a shell whose reads may be stale, whose calls may fail, and which may be killed.
func faultyShell(t *rapid.T, w *world) *shell {
	s := &shell{w: w}
	s.cached = func(newest int) int { return newest - rapid.SampledFrom([]int{0, 0, 0, 1, 2, 5}).Draw(t, "staleness") }
	s.kill = func() bool { return rapid.IntRange(0, 15).Draw(t, "kill") == 0 }
	s.fault = func(string) *machine.Outcome {
		if rapid.IntRange(0, 7).Draw(t, "fault") > 0 {
			return nil
		}
		return &machine.Outcome{Code: rapid.SampledFrom([]codes.Code{
			codes.Unavailable, codes.InvalidArgument, codes.ResourceExhausted, codes.Unimplemented, codes.NotFound,
		}).Draw(t, "code"), Message: "no"}
	}
	return s
}

// disturbed makes passes of a faulty shell, with disturbances in between. Then it ends the faults.
func disturbed(t *rapid.T, w *world) *shell {
	s := faultyShell(t, w)
	if !rapid.Bool().Draw(t, "choose") {
		w.choose = machinepool.Features{RollingUpdate: true}
	}
	w.noDrain = rapid.Bool().Draw(t, "no drain")
	if rapid.Bool().Draw(t, "spelled") {
		w.spell, w.matches = anySpelling(t), true
	}
	for range rapid.IntRange(1, 25).Draw(t, "steps") {
		if rapid.Bool().Draw(t, "disturb") {
			disturb(t, w)
		}
		how, err := s.pass()
		require.NoError(t, err)
		require.Empty(t, w.violation)
		if how == died {
			s.restart()
		}
		w.advance(time.Duration(rapid.IntRange(0, 400).Draw(t, "time")) * time.Second)
	}
	s.cached, s.kill, s.fault = nil, nil, nil
	for id, n := range w.nodes {
		if n.ProviderID == "" { // the cluster has learnt it
			known := n.Clone()
			known.ProviderID = id
			w.nodes[id] = known
		}
	}
	if w.spell != nil {
		w.spell = strings.ToUpper
	}
	return s
}

// anySpelling draws how a cluster spells provider IDs. Some nodes have no ID yet.
func anySpelling(t *rapid.T) func(string) string {
	prefix := rapid.SampledFrom([]string{"", "list-", "cloud:///region/"}).Draw(t, "prefix")
	end := rapid.SampledFrom([]string{"", "/"}).Draw(t, "end")
	return func(id string) string {
		switch rapid.IntRange(0, 3).Draw(t, "spelling") {
		case 0:
			return ""
		case 1:
			return id
		}
		return prefix + strings.ToUpper(id) + end
	}
}

// Under faults and disturbances, no order exceeds what is wanted, and no size is ordered while the provider
// owns it. After they have ended, the pool runs, and then makes no more calls or writes.
// Invariants: P30 P31 P34 P36 P37 P44 P48
func TestPoolsUnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		s := disturbed(t, w)
		require.NoError(t, s.until(6*time.Hour, func() { w.supply(); w.join() }))
		require.Empty(t, w.violation)
		require.True(t, heal(w, s, t), "not settled: %+v\n%+v\n%v", w.pool().Status, w.group, s.wait.Why)
		_, err := s.pass() // it may be time for the periodic look
		require.NoError(t, err)
		writes, calls := s.writes, len(s.calls)
		_, err = s.pass()
		require.NoError(t, err)
		require.Equal(t, writes, s.writes, "a settled pool was written")
		require.Equal(t, calls, len(s.calls), "the provider was called for a settled pool")
		require.Equal(t, int(w.group.target), len(w.pool().Status.NodeRefs))
		require.Equal(t, w.pool().Status.Replicas, w.pool().Status.Ready)
	})
}

// heal makes all nodes ready, and lets the pool settle.
func heal(w *world, s *shell, t *rapid.T) bool {
	for id := range w.nodes {
		w.ready(id, object.True)
		n := w.nodes[id].Clone()
		n.Annotations = nil
		w.nodes[id] = n
	}
	require.NoError(t, s.until(3*time.Hour, func() { w.supply(); w.join() }))
	return w.settled()
}

// From any state, a deletion ends and leaves nothing behind, once the provider answers.
// Invariants: P35
func TestDeletionEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld()
		s := disturbed(t, w)
		w.remove()
		s.cached, s.kill = func(newest int) int { return newest - rapid.IntRange(0, 2).Draw(t, "staleness") }, faultyShell(t, w).kill
		for range rapid.IntRange(0, 10).Draw(t, "passes") {
			how, err := s.pass()
			require.NoError(t, err)
			if how == died {
				s.restart()
			}
			w.advance(time.Second)
		}
		s.cached, s.kill = nil, nil
		require.NoError(t, s.until(2*time.Hour, func() {}))
		require.True(t, w.gone, "%+v", w.pool().Status)
		require.Nil(t, w.group, "the group is left behind")
		if !slices.ContainsFunc(w.history, func(p *machinepool.Pool) bool { return p.HasFinalizer(machinepool.Finalizer) }) {
			return // gone before any process had accepted it
		}
		require.False(t, w.config, "the object that makes the bootstrap data is left behind")
		require.Equal(t, machinepool.PhaseDeleting, w.pool().Status.Phase)
	})
}

// P26: killed between any two calls, the pool ends as without the kill.
// Invariants: P30 P36
func TestKilledAnywhere(t *testing.T) {
	life := func(kill int) (end *world, calls int) {
		w := newWorld()
		w.slow = 20 * time.Second
		s := &shell{w: w}
		s.kill = func() bool { calls++; return calls == kill }
		live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
		live(5 * time.Minute)
		w.scaleTo(5)
		live(5 * time.Minute)
		w.roll("large")
		_, err := s.pass()
		require.NoError(t, err)
		w.roll("small") // perhaps before the result of the first is stored
		w.scaleTo(2)
		live(5 * time.Minute)
		require.True(t, w.settled(), "killed at %d: %+v", kill, w.pool().Status)
		require.Equal(t, 5, w.numbers, "killed at %d: instances made", kill)
		require.Equal(t, 1, w.groups, "killed at %d: groups made", kill)
		w.remove()
		live(5 * time.Minute)
		require.True(t, w.gone && w.group == nil && !w.config, "killed at %d", kill)
		require.Empty(t, w.violation, "killed at %d", kill)
		return w, calls
	}
	_, calls := life(0)
	require.Greater(t, calls, 30)
	for kill := 1; kill <= calls; kill++ {
		life(kill)
	}
	t.Logf("killed at each of %d instants", calls)
}

// P28: until the next read of its group, a settled pool costs neither a call nor an allocation.
// Invariants: P37
func TestSettledCostsNothing(t *testing.T) {
	w := newWorld()
	w.scaleTo(50)
	s := &shell{w: w}
	require.NoError(t, s.until(5*time.Minute, func() { w.supply(); w.join() }))
	require.True(t, w.settled())
	o := s.observe()
	var plan machinepool.Plan
	allocs := testing.AllocsPerRun(100, func() { plan, _ = machinepool.Decide(o, w.policy, w.now) })
	assert.Zero(t, allocs)
	assert.Nil(t, plan.Write)
	if plan.Effect != nil {
		w.now = s.group.At
		allocs = testing.AllocsPerRun(100, func() { plan, _ = machinepool.Decide(o, w.policy, w.now) })
		assert.Zero(t, allocs)
	}
	assert.Nil(t, plan.Effect)
	assert.Equal(t, machinepool.ReasonRunning, plan.Why.Reason)
	assert.Equal(t, s.group.At.Add(time.Minute), plan.At)
}

// The numbers in the status equal those counted by hand.
// Invariants: P33
func TestCounts(t *testing.T) {
	w := newWorld()
	w.scaleTo(6)
	w.edit(func(p *machinepool.Pool) { p.Spec.MinReady = time.Minute })
	s := &shell{w: w}
	_, err := s.pass()
	require.NoError(t, err)
	w.group.ready, w.group.target = true, 5
	w.supply()
	w.group.target = 6
	w.join()
	ids := w.ids()
	delete(w.nodes, ids[0])
	w.ready(ids[1], object.False)
	going := w.nodes[ids[2]].Clone()
	going.DeletedAt = w.now
	w.nodes[ids[2]] = going
	look := func(after time.Duration) {
		w.advance(after)
		_, err = s.pass()
		require.NoError(t, err)
	}
	look(0)
	w.ready(ids[3], object.Unknown)
	look(40 * time.Second)
	w.ready(ids[3], object.True)
	look(0)
	look(21 * time.Second)
	got := w.pool().Status
	assert.Equal(t, []int32{5, 2, 1, 5}, []int32{got.Replicas, got.Ready, got.Available, got.Unavailable})
	require.Len(t, got.NodeRefs, 4)
	assert.Equal(t, machinepool.NodeRef{ProviderID: ids[1], Name: w.nodes[ids[1]].Name, UID: w.nodes[ids[1]].UID}, got.NodeRefs[0])
	assert.Equal(t, ids, w.pool().Spec.ProviderIDs)
}

func BenchmarkSettled(b *testing.B) {
	w := newWorld()
	w.scaleTo(1000)
	s := &shell{w: w}
	if err := s.until(5*time.Minute, func() { w.supply(); w.join() }); err != nil {
		b.Fatal(err)
	}
	w.now = s.group.At
	o := s.observe()
	b.ReportAllocs()
	for b.Loop() {
		if _, err := machinepool.Decide(o, w.policy, w.now); err != nil {
			b.Fatal(err)
		}
	}
}
