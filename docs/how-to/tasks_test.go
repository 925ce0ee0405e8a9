// Package howto_test has the code of the pages in this directory.
package howto_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// key is the name of the deployment.
var key = object.Key{Name: "web"}

// startFleet runs a manager with a deployment of three machines until the test ends.
func startFleet(t *testing.T) (context.Context, manager.Options, *manager.Manager) {
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	o := manager.InMemory(time.Now)
	o.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	o.Log = slog.New(slog.DiscardHandler)
	m, err := manager.New(o)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- m.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		require.NoError(t, <-ended)
	})
	for _, size := range []string{"small", "large"} {
		class := &machine.Class{Meta: object.Meta{Key: object.Key{Name: size}}, Provider: drivertest.MemoryProvider}
		class.ProviderSpec = drivertest.MemorySpec{Cluster: "blue", Size: size}.Encode()
		_, err = o.Store.Classes.Create(ctx, class)
		require.NoError(t, err)
	}
	web := &deployment.Deployment{Meta: object.Meta{Key: key}}
	web.Spec.Replicas = 3
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template.Labels, web.Spec.Template.Spec.Class.Name = web.Spec.Selector.Labels, "small"
	_, err = o.Store.Deployments.Create(ctx, web)
	require.NoError(t, err)
	_, err = store.Await(ctx, o.Store.Deployments, key, deployment.Missing)
	require.NoError(t, err)
	return ctx, o, m
}

// classes returns the number of machines of each class.
func classes(ctx context.Context, t *testing.T, o manager.Options) map[string]int {
	machines, err := o.Store.Machines.Live().List(ctx, store.Query{})
	require.NoError(t, err)
	count := map[string]int{}
	for _, m := range machines {
		count[m.Spec.Class.Name]++
	}
	return count
}

// change rolls a deployment to another class.
func change(ctx context.Context, o manager.Options, key object.Key) error {
	_, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		d.Spec.Template.Spec.Class.Name = "large"
		return nil
	})
	if err != nil {
		return err
	}
	_, err = store.Await(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) string {
		missing := deployment.Missing(d)
		fmt.Println(missing) // such as "1 of 3 machines are updated"
		return missing
	})
	return err
}

// limit limits a rollout.
func limit(ctx context.Context, o manager.Options, key object.Key) error {
	_, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		d.Spec.Strategy = deployment.Rolling(
			rollout.IntOrPercent{Value: 20, Percent: true}, // surge: how many more machines may exist
			rollout.IntOrPercent{Value: 1},                 // how many machines may be unavailable
		)
		d.Spec.Strategy.StopAfter = rollout.IntOrPercent{Value: 3} // the rollout stops after 3 failed new machines
		d.Spec.ProgressDeadline = 30 * time.Minute
		return nil
	})
	return err
}

func TestChange(t *testing.T) {
	ctx, o, _ := startFleet(t)
	require.NoError(t, limit(ctx, o, key))
	require.NoError(t, change(ctx, o, key))
	require.Equal(t, map[string]int{"large": 3}, classes(ctx, t, o))
}

// pause pauses a rollout, or continues it.
func pause(ctx context.Context, o manager.Options, key object.Key, paused bool) error {
	_, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		d.Spec.Paused = paused
		return nil
	})
	return err
}

// undo returns to the previous template.
func undo(ctx context.Context, o manager.Options, key object.Key) error {
	_, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		d.Spec.RollbackTo = &deployment.Rollback{} // to another revision: set Revision
		return nil
	})
	return err
}

func TestPauseAndUndo(t *testing.T) {
	ctx, o, _ := startFleet(t)
	require.NoError(t, pause(ctx, o, key, true))
	d, err := store.Edit(ctx, o.Store.Deployments, key, func(d *deployment.Deployment) error {
		d.Spec.Template.Spec.Class.Name = "large"
		return nil
	})
	require.NoError(t, err)
	_, err = store.Await(ctx, o.Store.Deployments, key, func(now *deployment.Deployment) string {
		if now.Status.ObservedGeneration < d.Generation {
			return "that the manager sees the change"
		}
		return ""
	})
	require.NoError(t, err)
	require.Equal(t, map[string]int{"small": 3}, classes(ctx, t, o))

	require.NoError(t, pause(ctx, o, key, false))
	_, err = store.Await(ctx, o.Store.Deployments, key, deployment.Missing)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"large": 3}, classes(ctx, t, o))

	require.NoError(t, undo(ctx, o, key))
	_, err = store.Await(ctx, o.Store.Deployments, key, deployment.Missing)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"small": 3}, classes(ctx, t, o))
}

func TestTakeOneAway(t *testing.T) {
	ctx, o, m := startFleet(t)
	machines, err := o.Store.Machines.List(ctx, store.Query{})
	require.NoError(t, err)
	name := machines[0].Key

	err = m.Replace(ctx, name)
	require.NoError(t, err)

	require.NoError(t, store.AwaitGone(ctx, o.Store.Machines, name))
	_, err = store.Await(ctx, o.Store.Deployments, key, deployment.Missing)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"small": 3}, classes(ctx, t, o))

	name = machines[1].Key
	err = m.ScaleDown(ctx, key, []string{name.Name}, 2)
	require.NoError(t, err)

	require.NoError(t, store.AwaitGone(ctx, o.Store.Machines, name))
	_, err = store.Await(ctx, o.Store.Deployments, key, deployment.Missing)
	require.NoError(t, err)
	require.Equal(t, map[string]int{"small": 2}, classes(ctx, t, o))

	name = machines[2].Key
	_, err = store.Edit(ctx, o.Store.Machines, name, func(m *machine.Machine) error {
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[machine.DefaultPolicy().Keys.Preserve] = "now"
		return nil
	})
	require.NoError(t, err)
	_, err = store.Await(ctx, o.Store.Machines, name, func(m *machine.Machine) string {
		if m.Preserved(time.Now()) {
			return ""
		}
		return "that the machine is preserved"
	})
	require.NoError(t, err)
}

// observe sets hooks that report what a manager does.
func observe(o *manager.Options, counted func(kind manager.Kind, reason string)) {
	o.Hooks = manager.LogHooks(slog.Default())
	o.Hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		counted(kind, reason)
	}
	o.Hooks.Call = func(call string, code codes.Code, took time.Duration) {
		slog.Debug("driver", "call", call, "code", code, "took", took)
	}
}

// dryRun makes a manager decide and report, and change nothing.
func dryRun(o *manager.Options) {
	o.DryRun = true
	o.Hooks.DryRun = func(kind manager.Kind, key object.Key, what, reason, why string) {
		fmt.Println(what, "because", why)
	}
}

func TestDryRun(t *testing.T) {
	_, _, m := startFleet(t)
	require.NoError(t, m.Health())
	ctx, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	o := manager.InMemory(time.Now) // another store: on that of m, the manager m would do the work
	o.Driver = drivertest.NewMemory(drivertest.MemoryOptions{})
	dryRun(&o)
	planned := make(chan string, 1000)
	o.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, _, _ string) {
		select {
		case planned <- what:
		default:
		}
	}
	hook := o.Hooks.DryRun
	observe(&o, func(manager.Kind, string) {})
	o.Hooks.DryRun = hook
	dry, err := manager.New(o)
	require.NoError(t, err)
	ended := make(chan error)
	go func() { ended <- dry.Run(ctx) }()
	web := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "other"}}}
	web.Spec.Selector.Labels = map[string]string{"app": "other"}
	web.Spec.Template.Labels, web.Spec.Template.Spec.Class.Name = web.Spec.Selector.Labels, "small"
	_, err = o.Store.Deployments.Create(ctx, web)
	require.NoError(t, err)
	select {
	case what := <-planned:
		assert.NotEmpty(t, what)
	case <-ctx.Done():
		t.Error("the dry run reported nothing")
	}
	stop()
	require.NoError(t, <-ended)
}

// production changes the defaults that should be different in production.
func production(o *manager.Options, yours driver.Driver) {
	o.Driver = driver.Intercept(yours, driver.Limit(driver.Limits{
		Concurrency: 20, Interval: time.Second / 10, Burst: 10, Now: time.Now, After: time.After,
	}))
	o.Tuning.Workers = 128 // machines reconciled at a time; a slow provider needs more
	o.Tuning.CallTimeout = 5 * time.Minute
	o.Classes.Keep = true // classes and secrets are not deleted while machines need them

	perMachine := machine.DefaultPolicy()
	perMachine.CreationTimeout = 30 * time.Minute
	perMachine.HealthTimeout = 10 * time.Minute
	o.Policies.Machine = perMachine
	wholeFleet := safety.DefaultPolicy()
	wholeFleet.OrphanPrefix = "web-" // only VMs with this prefix are deleted as orphans
	wholeFleet.Replacements = rollout.IntOrPercent{Value: 5, Percent: true}
	o.Policies.Safety = wholeFleet
}

func TestProduction(t *testing.T) {
	o := manager.InMemory(time.Now)
	production(&o, drivertest.NewMemory(drivertest.MemoryOptions{}))
	_, err := manager.New(o)
	require.NoError(t, err)
}
