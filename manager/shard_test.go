package manager_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// TestManagersOfShards divides a fleet between two managers: neither makes a pass over the other's objects, one of
// them does what concerns the whole fleet, and together they do everything.
func TestManagersOfShards(t *testing.T) {
	within, stop := context.WithTimeout(ctx, time.Minute)
	defer stop()
	o := manager.InMemory(nil)
	provider := drivertest.NewMemory(drivertest.MemoryOptions{})
	o.Driver, o.Policies.Safety = provider, safety.DefaultPolicy()
	_, err := o.Store.Classes.Create(ctx, provider.Class(smallKey, drivertest.MemorySpec{Cluster: "blue", Size: "s"}))
	require.NoError(t, err)
	first := func(kind manager.Kind, key object.Key) bool {
		return kind == manager.KindSet || kind == manager.KindMachine && key.Name[len(key.Name)-1]%2 == 0
	}
	var mu sync.Mutex
	passes := map[string]bool{}
	var running sync.WaitGroup
	for _, mine := range []bool{true, false} {
		part := o
		part.Only = func(kind manager.Kind, key object.Key) bool { return first(kind, key) == mine }
		part.Hooks.Pass = func(kind manager.Kind, key object.Key, _ int, _ manager.Result, _ error) {
			mu.Lock()
			defer mu.Unlock()
			passes[fmt.Sprintf("%v of %s", mine, kind)] = true
			if kind != manager.KindReachability && kind != manager.KindOrphans && first(kind, key) != mine {
				passes[fmt.Sprintf("%s %s belongs to the other", kind, key)] = true
			}
		}
		m, err := manager.New(part)
		require.NoError(t, err)
		running.Go(func() { assert.NoError(t, m.Run(within)) })
	}
	d := &deployment.Deployment{Meta: object.Meta{Key: fleetKey}, Spec: deployment.Spec{
		Replicas: 6, Selector: object.Selector{Labels: map[string]string{"app": "web"}},
		Template: machineset.Template{Labels: map[string]string{"app": "web"}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
	}}
	_, err = o.Store.Deployments.Create(ctx, d)
	require.NoError(t, err)
	_, err = store.Await(within, o.Store.Deployments, fleetKey, deployment.Missing)
	require.NoError(t, err)
	require.Equal(t, 6, provider.Count())
	stop()
	running.Wait()
	require.Equal(t, map[string]bool{
		"true of set": true, "true of machine": true, "true of reachability": true,
		"false of machine": true, "false of deployment": true, "false of reachability": true,
		"false of orphans": true, "false of ownerless": true, "true of orphans": true,
	}, passes)
}
