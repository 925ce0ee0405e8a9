package controllers_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// changing returns the calls that write something other than events.
func (c *calls) changing() (all []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for call := range c.paths {
		if !strings.HasPrefix(call, "GET ") && !strings.Contains(call, "/events") {
			all = append(all, call)
		}
	}
	return all
}

// quiet reports whether 5 s have passed without a writing call. It clears the recorded calls.
func (w *world) quiet() func() bool {
	const period = 5 * time.Second
	next := time.Now().Add(period)
	return func() bool {
		if time.Now().Before(next) {
			return false
		}
		writes := w.calls.changing()
		w.calls.forget()
		next = time.Now().Add(period)
		return len(writes) == 0
	}
}

func (c *calls) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.paths)
}

// TestFiveThousandMachines: a manager that starts with a fleet of 5,000 converged machines makes a
// pass over each of them and writes nothing. Then the fleet can be scaled up by one.
func TestFiveThousandMachines(t *testing.T) {
	if testing.Short() {
		t.Skip("takes minutes")
	}
	const machines = 5000
	w := newWorld(t, quick)
	w.class("small", "s")
	d := w.deployment("web", "small", 1)
	stop := w.manage()
	w.eventually("a machine", w.settled("web", 1))
	stop()
	w.multiply(machines)
	replicas := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, machines))
	require.NoError(t, w.client.Patch(t.Context(), &w.sets()[0], replicas))
	require.NoError(t, w.client.Patch(t.Context(), d, replicas))
	stop = w.manage()
	w.long("the fleet", w.settled("web", machines))
	w.long("the fleet to be at rest", w.quiet())
	stop()

	w.calls.forget()
	e := &eventLog{}
	hooks := e.hooks()
	seen := sync.Map{}
	pass := hooks.Pass
	hooks.Pass = func(kind manager.Kind, key object.Key, steps int, result manager.Result, err error) {
		pass(kind, key, steps, result, err)
		if kind == manager.KindMachine {
			seen.Store(key, true)
		}
	}
	w.manage(func(o *controllers.Options) { o.Hooks = hooks })
	w.long("a pass over each machine", func() bool {
		n := 0
		seen.Range(func(any, any) bool { n++; return true })
		return n == machines && e.passCount(manager.KindDeployment) > 0 && e.passCount(manager.KindSet) > 0 && e.passCount(manager.KindOrphans) > 0
	})
	require.Empty(t, w.calls.changing())

	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, machines+1))))
	w.eventually("one more machine", w.settled("web", machines+1))
	require.Equal(t, map[string]int{"s": machines + 1}, w.vms())
}
