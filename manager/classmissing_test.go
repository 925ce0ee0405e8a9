package manager_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestMissingClassIsACondition: a deployment says that its class does not exist, and no longer once the
// class is there.
func TestMissingClassIsACondition(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	key := object.Key{Namespace: namespace, Name: "small"}
	class, err := w.classes.Get(ctx, key)
	require.NoError(t, err)
	require.NoError(t, w.classes.Delete(ctx, key, ""))
	w.fleet()
	told := func() *object.Condition { return w.condition(fleetKey.Name, deployment.ConditionClassMissing) }
	p := w.until(w.start(&testkit.Fuse{}, false), func() bool { return told() != nil }, unexpected(t))
	require.Equal(t, object.True, told().Status)
	require.Equal(t, "class small does not exist; no VM is created until it does", told().Message)
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(t, err)
	require.Contains(t, deployment.Missing(d), "class small does not exist")

	_, err = w.classes.Create(ctx, class)
	require.NoError(t, err)
	w.until(p, func() bool { return w.settled(3)() && told() == nil }, unexpected(t))
	machines, err := w.machines.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Len(t, machines, 3)
}
