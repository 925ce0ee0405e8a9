package machine_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A creation takes four writes of the machine (the object, the announcement, provider ID and node name,
// Running) and one of its node.
func TestCreationTakesFourWrites(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	(&shell{w: w}).settle(bound)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	assert.Equal(t, 4, w.store.writes)
	assert.Equal(t, 1, w.cluster.writes)
}

// These take one more write each: an initialization, LastKnown or addresses from the driver, and a node that is
// not ready at first (and one write of the node, for its startup taint).
func TestCreationWritesIntermediateStates(t *testing.T) {
	for name, c := range map[string]struct {
		prepare       func(*world)
		machine, node int // writes
	}{
		"initialized": {func(w *world) { w.provider.hasInit = true }, 5, 1},
		"note":        {func(w *world) { w.provider.note = "disk-7" }, 5, 1},
		"addresses": {func(w *world) {
			w.provider.addresses = []machine.Address{{Type: "InternalIP", Value: "10.0.0.7"}}
		}, 5, 1},
		"not ready at first": {func(w *world) { w.cluster.unready = true }, 5, 2},
	} {
		w := newWorld(t)
		w.createMachine()
		c.prepare(w)
		s := &shell{w: w}
		w.runPass(s)
		w.advance(time.Minute)
		w.runPass(s)
		if w.cluster.unready {
			w.cluster.setReady(node, object.True)
			w.runPass(s)
		}
		require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase, name)
		assert.Equal(t, c.machine, w.store.writes, name)
		assert.Equal(t, c.node, w.cluster.writes, name)
	}
}

// A machine that was created without the finalizer takes one more write.
func TestCreationAddsAMissingFinalizer(t *testing.T) {
	w := newWorld(t)
	w.createMachine(func(m *machine.Machine) { m.Finalizers = nil })
	(&shell{w: w}).settle(bound)
	require.True(t, w.store.live().HasFinalizer(machine.Finalizer))
	assert.Equal(t, 5, w.store.writes)
}

// A deletion takes seven writes of the machine (the request, one for each stage except that of volumes, and the
// finalizer), and two of its node.
func TestDeletionTakesSevenWrites(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.store.writes, w.cluster.writes = 0, 0
	w.store.remove()
	(&shell{w: w}).settle(2)
	require.Nil(t, w.store.live())
	assert.Equal(t, 7, w.store.writes)
	assert.Equal(t, 2, w.cluster.writes)
}

// With force it takes one more, for the stage of volumes.
func TestForcedDeletionTakesEightWrites(t *testing.T) {
	w := newWorld(t)
	w.createRunning()
	w.addDrain(0, 0, 1)
	w.edit(func(m *machine.Machine) { m.Labels = map[string]string{"force-deletion": "true"} })
	w.store.writes, w.cluster.writes = 0, 0
	w.store.remove()
	(&shell{w: w}).settle(2)
	require.Nil(t, w.store.live())
	assert.Equal(t, 8, w.store.writes)
	assert.Equal(t, 2, w.cluster.writes)
}

// The deletion of a new machine takes four writes and no call, because stages without work are not written.
func TestDeletionOfANewMachineTakesFourWrites(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	w.store.writes = 0
	w.store.remove()
	(&shell{w: w}).settle(2)
	require.Nil(t, w.store.live())
	assert.Equal(t, 4, w.store.writes)
	assert.Zero(t, w.cluster.writes)
	assert.Empty(t, w.provider.calls)
}

// A retry takes two writes: the announcement and the failure.
func TestRetryTakesTwoWrites(t *testing.T) {
	g := gates[1]
	w, s, plan := g.failOnce(t, codes.Unavailable)
	w.store.writes = 0
	w.now = plan.At
	w.runPass(s)
	assert.Equal(t, 2, w.store.writes)
}

// LastKnown and the addresses that the driver returns are stored, also if its call failed. The node's own
// addresses replace those of the driver.
func TestDriverStateIsStored(t *testing.T) {
	w := newWorld(t)
	w.createMachine()
	w.provider.note = "disk-7"
	w.provider.addresses = []machine.Address{{Type: "InternalIP", Value: "10.0.0.7"}}
	w.provider.faults = func(call codes.Call) fault {
		if call == codes.CreateMachine {
			return fault{code: codes.Unavailable}
		}
		return fault{}
	}
	s := &shell{w: w}
	w.runPass(s)
	require.Equal(t, machine.PhaseCrashLoopBackOff, w.store.live().Status.Phase)
	assert.Equal(t, "disk-7", w.store.live().Status.LastKnown)
	w.provider.note, w.provider.faults = "disk-8", nil
	w.advance(time.Minute)
	w.runPass(s)
	assert.Equal(t, "disk-8", w.store.live().Status.LastKnown)
	assert.Equal(t, w.provider.addresses, w.store.live().Status.Addresses)
	w.advance(time.Minute)
	w.cluster.change(node, func(n *machine.Node) { n.Addresses = []machine.Address{{Type: "Hostname", Value: node}} })
	w.runPass(s)
	require.Equal(t, machine.PhaseRunning, w.store.live().Status.Phase)
	assert.Equal(t, []machine.Address{{Type: "Hostname", Value: node}}, w.store.live().Status.Addresses)
	assert.Equal(t, "disk-8", w.store.live().Status.LastKnown)
}
