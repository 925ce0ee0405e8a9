package controllers_test

import (
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// eventLog counts the events and passes that the hooks report.
type eventLog struct {
	mu     sync.Mutex
	events map[string]int // by kind and reason
	passes map[manager.Kind]int
}

func (e *eventLog) hooks() manager.Hooks {
	e.events, e.passes = map[string]int{}, map[manager.Kind]int{}
	return manager.Hooks{
		Event: func(kind manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.events[string(kind)+" "+reason]++
		},
		Pass: func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, _ error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.passes[kind]++
		},
	}
}

func (e *eventLog) seen(event string) func() bool { return func() bool { return e.count(event) > 0 } }

// another reports whether there was an event after the call of another.
func (e *eventLog) another(event string) func() bool {
	before := e.count(event)
	return func() bool { return e.count(event) > before }
}

func (e *eventLog) count(event string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.events[event]
}

// passCount returns how many passes there were over objects of a kind.
func (e *eventLog) passCount(kind manager.Kind) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.passes[kind]
}

// TestFrozenWhileTheTargetIsAway: objects are on one server, and nodes on another, which stops
// answering. While it does not answer, the manager changes nothing. When it answers again, the
// deployment is scaled as desired.
func TestFrozenWhileTheTargetIsAway(t *testing.T) {
	t.Parallel()
	target, err := lab.Start()
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, target.Stop()) })
	core, err := kubernetes.NewForConfig(target.Config)
	require.NoError(t, err)
	w := newWorldOn(t, quick, core)
	policy := safety.DefaultPolicy()
	policy.CheckPeriod, policy.CheckDown, policy.DownTimeout, policy.SettleTime = time.Second, time.Second, 2*time.Second, time.Second
	e := &eventLog{}
	hooks := e.hooks()
	w.manage(func(o *controllers.Options) {
		o.Target, o.SafetyPolicy, o.Hooks = target.Config, policy, hooks
	})
	w.class("small", "s")
	d := w.deployment("web", "small", 3)
	w.eventually("three machines", w.settled("web", 3))
	require.Equal(t, 3, w.nodes())

	frozen := e.another("reachability " + reachability.ReasonUnreachable.String())
	require.NoError(t, target.Suspend())
	resume := sync.OnceFunc(func() { require.NoError(t, target.Resume()) })
	t.Cleanup(resume)
	w.eventually("the freeze", frozen)
	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
	before := e.passCount(manager.KindReachability)
	w.eventually("a few more reachability checks", func() bool { return e.passCount(manager.KindReachability) > before+2 })
	require.Equal(t, map[string]int{"s": 3}, w.vms())
	require.Len(t, w.machines(), 3)

	resume()
	w.eventually("five machines", w.settled("web", 5))
	require.Equal(t, map[string]int{"s": 5}, w.vms())
	require.Equal(t, 5, w.nodes())
}
