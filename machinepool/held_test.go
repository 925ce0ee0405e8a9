package machinepool_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// A provider that keeps the size of its group and replaces what is removed costs one instance an
// hour, and not one a look. When it obeys again, or another size is wanted, the pool goes on.
func TestReplacedInstancesAreBounded(t *testing.T) {
	w, s := running(t, 5)
	live := func(d time.Duration) { require.NoError(t, s.until(d, func() { w.supply(); w.join() })) }
	w.repairs = true
	w.scaleTo(4)
	live(10 * time.Hour)
	require.LessOrEqual(t, w.removed, 10)
	require.GreaterOrEqual(t, w.removed, 9, "it is tried again")
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

// A size that is raised by hand after a scale-down is ordered back at the next look: the group was
// seen at its size in between.
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
