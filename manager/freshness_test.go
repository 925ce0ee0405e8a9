package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/store"
)

// sluggish is a store of sets that takes its time for each update, and says when it is read live.
type sluggish struct {
	store.Collection[*machineset.Set]
	update, read func()
}

func (c sluggish) Update(ctx context.Context, s *machineset.Set) (*machineset.Set, error) {
	after, err := c.Collection.Update(ctx, s)
	c.update()
	return after, err
}

func (c sluggish) Live() store.Reader[*machineset.Set] {
	c.read()
	return c.Collection.Live()
}

// TestSlowResizesReadLiveAgain: a deployment whose first resize takes longer than its live read is
// good for reads live again before the second.
func TestSlowResizesReadLiveAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.change(func(d *deployment.Deployment) {
		d.Spec.Template.Annotations = map[string]string{"version": "2"}
		d.Spec.Strategy.MaxSurge.Value, d.Spec.Strategy.MaxUnavailable.Value = 1, 1
	})
	updates, unread, reads := 0, 0, 0
	m, err := manager.New(manager.Options{
		Store: manager.Store{
			Deployments: w.deployments, Classes: w.classes, Secrets: w.secrets,
			Machines: w.machines,
			Sets: sluggish{w.sets, func() {
				w.at = w.at.Add(machineset.DeleteWithin + time.Second)
				if updates++; reads == 0 {
					unread++
				}
				reads = 0
			}, func() { reads++ }},
		}, Driver: w.provider, Runtime: manager.Runtime{Now: w.now},
		Policies: manager.Policies{Machine: machine.DefaultPolicy()},
	})
	require.NoError(t, err)
	for _, r := range m.Reconcilers() {
		if r.Kind() == manager.KindDeployment {
			_, err := r.Reconcile(ctx, fleetKey)
			require.NoError(t, err)
		}
	}
	require.Greater(t, updates, 1)
	require.Zero(t, unread, "of %d updates", updates)
}
