package manager_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestStoppedProcessGivesTime: a process is stopped with its cluster, for longer than a health timeout that was running,
// and goes on. No machine is marked failed: the nodes have a grace to come back. Hours in which there was nothing to do are not
// taken for a stop: machines that fall ill then are marked failed at the end of the timeout.
func TestStoppedProcessGivesTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stopped atomic.Int64 // for how long altogether
		now := func() time.Time { return time.Now().Add(time.Duration(stopped.Load())) }
		o := manager.InMemory(now)
		nodesOf := store.NewMemory(now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
		w := newWorld(t, drivertest.MemoryOptions{})
		w.deployments, w.machines = o.Store.Deployments.(*store.Memory[*deployment.Deployment]), o.Store.Machines.(*store.Memory[*machine.Machine])
		w.sets = o.Store.Sets.(*store.Memory[*machineset.Set])
		class, err := w.classes.Get(ctx, smallKey)
		require.NoError(t, err)
		_, err = o.Store.Classes.Create(ctx, &machine.Class{Meta: object.Meta{Key: smallKey}, SecretRef: class.SecretRef})
		require.NoError(t, err)
		_, err = o.Store.Secrets.Create(ctx, &machine.Secret{Meta: object.Meta{Key: bootKey}, Data: map[string][]byte{"userData": []byte("join")}})
		require.NoError(t, err)
		w.fleet()
		o.Cluster, o.Driver = nodes{nodesOf}, &instant{nodes: nodesOf}
		o.Runtime.Jitter = func(d time.Duration) time.Duration { return d }
		var lost atomic.Int32
		o.Hooks.Transition = func(_ object.Key, move machine.Move, _ decision.Why) {
			if move.To == string(machine.PhaseFailed) {
				lost.Add(1)
			}
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		run, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- m.Run(run) }()
		ready := func(status object.ConditionStatus) {
			list, err := nodesOf.List(ctx, store.Query{})
			require.NoError(t, err)
			for _, node := range list {
				node = node.Clone()
				node.Conditions = []object.Condition{{Type: machine.NodeReady, Status: status}}
				_, err := nodesOf.UpdateStatus(ctx, node)
				require.NoError(t, err)
			}
		}
		<-time.After(3 * time.Hour) // of the bubble's clock
		require.True(t, w.serves(fleetKey), w.dump())

		ready(object.Unknown)
		<-time.After(time.Minute)
		stopped.Add(int64(40 * time.Minute))
		ready(object.False) // something wakes the machines
		<-time.After(30 * time.Second)
		require.Zero(t, lost.Load(), "given up for a time that nobody watched")
		ready(object.True)
		<-time.After(3 * time.Hour)
		require.True(t, w.serves(fleetKey))
		require.Zero(t, lost.Load())

		ready(object.Unknown)
		<-time.After(machine.DefaultPolicy().HealthTimeout - time.Second)
		require.Zero(t, lost.Load())
		<-time.After(30 * time.Second)
		require.Positive(t, lost.Load(), "an idle process is watching")
		cancel()
		require.NoError(t, <-ended)
	})
}
