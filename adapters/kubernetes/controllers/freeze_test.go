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

// ears records what the reconcilers report.
type ears struct {
	mu     sync.Mutex
	told   map[string]int // events, by reason
	passes map[manager.Kind]int
}

func (e *ears) hooks() manager.Hooks {
	e.told, e.passes = map[string]int{}, map[manager.Kind]int{}
	return manager.Hooks{
		Event: func(kind manager.Kind, _ object.Key, _ manager.EventType, reason, _ string) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.told[string(kind)+" "+reason]++
		},
		Pass: func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, _ error) {
			e.mu.Lock()
			defer e.mu.Unlock()
			e.passes[kind]++
		},
	}
}

func (e *ears) heard(event string) func() bool { return func() bool { return e.count(event) > 0 } }

// next reports whether an event has been told of since next was called.
func (e *ears) next(event string) func() bool {
	before := e.count(event)
	return func() bool { return e.count(event) > before }
}

func (e *ears) count(event string) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.told[event]
}

// made returns how many passes there were over a kind.
func (e *ears) made(kind manager.Kind) int {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.passes[kind]
}

// TestFrozenWhileTheTargetIsAway: objects are on one server and nodes on another, which stops
// answering. Then the manager decides nothing, and follows a change of size only when the server
// answers again.
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
	e := &ears{}
	hooks := e.hooks()
	w.manage(func(o *controllers.Options) {
		o.Target, o.SafetyPolicy, o.Hooks = target.Config, policy, hooks
	})
	w.class("small", "s")
	d := w.deployment("web", "small", 3)
	w.eventually("three machines", w.settled("web", 3))
	require.Equal(t, 3, w.nodes())

	frozen := e.next("reachability " + reachability.ReasonUnreachable.String())
	require.NoError(t, target.Suspend())
	resume := sync.OnceFunc(func() { require.NoError(t, target.Resume()) })
	t.Cleanup(resume)
	w.eventually("the freeze", frozen)
	require.NoError(t, w.client.Patch(t.Context(), d, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"replicas":5}}`))))
	before := e.made(manager.KindReachability)
	w.eventually("a few more looks at the server", func() bool { return e.made(manager.KindReachability) > before+2 })
	require.Equal(t, map[string]int{"s": 3}, w.vms())
	require.Len(t, w.machines(), 3)

	resume()
	w.eventually("five machines", w.settled("web", 5))
	require.Equal(t, map[string]int{"s": 5}, w.vms())
	require.Equal(t, 5, w.nodes())
}
