package controllers_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/safety"
)

// failingDriver fails all creations of VMs with long errors.
type failingDriver struct {
	driver.Driver
	mu     sync.Mutex
	failed map[string]bool // machines
}

func (d *failingDriver) CreateMachine(_ context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	d.mu.Lock()
	d.failed[req.Machine.Name] = true
	d.mu.Unlock()
	return nil, codes.New(codes.Internal, req.Machine.Name+strings.Repeat(" <html>", 3000))
}

func (d *failingDriver) failing() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.failed)
}

// failingEnv is the environment variable with the number of machines of TestLongErrors. The default is
// 100, or 30 with -short.
const failingEnv = "MILLWRIGHT_FAILING"

// TestLongErrors: if a provider's errors have 20 KB, the status of a set still fits into the store,
// for any number of failed machines, and the set can be scaled.
// Invariants: P42
func TestLongErrors(t *testing.T) {
	t.Parallel()
	n := int32(100)
	if testing.Short() {
		n = 30 // the status names 10 of them
	}
	if text := os.Getenv(failingEnv); text != "" {
		parsed, err := strconv.ParseInt(text, 10, 32)
		require.NoError(t, err)
		n = int32(parsed)
	}
	w := newWorld(t, quick)
	w.log = discard
	d := &failingDriver{Driver: w.provider, failed: map[string]bool{}}
	w.manage(func(o *controllers.Options) { o.Driver = d })
	w.class("small", "s")
	web := w.deployment("web", "small", n)
	w.long("all machines to fail", func() bool { return d.failing() >= int(n) })
	w.long("the status to name the newest", func() bool {
		s := w.sets()[0].Status
		return s.Replicas == n && s.FailedMachines != nil && len(*s.FailedMachines) == 10
	})
	w.eventually("the deployment to count them", func() bool {
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(web), web))
		return web.Status.Replicas == n && len(web.Status.FailedMachines) == 10
	})
	for _, m := range *w.sets()[0].Status.FailedMachines {
		assert.Less(t, len(m.LastOperation.Description), codes.MaxMessage+100)
		assert.Contains(t, m.LastOperation.Description, "(cut)")
	}
	w.scale(web, n, n/10)
	w.long("the set to be scaled down", func() bool { return w.sets()[0].Status.Replicas == n/10 })
	w.long("the other machines to be gone", func() bool { return len(w.machines()) == int(n/10) })
}

// TestScaleDownFreezesNothing: while an autoscaler removes most of a fleet, nothing is frozen:
// there is no event, no label, no condition.
// Invariants: P25
func TestScaleDownFreezesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, quick)
	e := &eventLog{}
	w.manage(func(o *controllers.Options) { o.SafetyPolicy, o.Hooks = safety.DefaultPolicy(), e.hooks() })
	w.class("small", "s")
	web := w.deployment("web", "small", 10)
	lone := w.machineSet("lone", "small", 10)
	w.eventually("twenty machines", func() bool { return w.settled("web", 10)() && w.setSettled(lone, 10)() })
	w.scale(web, 10, 3)
	w.scale(lone, 10, 3)
	w.eventually("six machines", func() bool {
		d := &v1alpha1.MachineDeployment{}
		require.NoError(t, w.client.Get(t.Context(), client.ObjectKeyFromObject(web), d))
		assert.NotContains(t, d.Labels, safety.DefaultPolicy().Keys.Freeze)
		for _, c := range d.Status.Conditions {
			assert.NotEqual(t, machineset.ConditionFrozen, string(c.Type))
		}
		return w.settled("web", 3)() && w.setSettled(lone, 3)()
	})
	for _, event := range []string{"deployment Overshoot", "set Overshoot", "deployment OvershootOver", "set OvershootOver"} {
		assert.False(t, e.seen(event)(), event)
	}
}
