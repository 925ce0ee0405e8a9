package manager_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// errBlocked is the answer to every change that a twin tries to make.
var errBlocked = errors.New("blocked")

// twin is a manager whose ports record what it tries to change, and change nothing.
// One twin only observes, so no change of it should reach a port; the other is an
// ordinary manager.
type twin struct {
	*manager.Manager
	changes  []string // the changes that reached a port
	reported []string // the changes that the hook was called with
	reasons  []string // the reasons of these
}

func (p *twin) did(format string, args ...any) error {
	p.changes = append(p.changes, fmt.Sprintf(format, args...))
	return errBlocked
}

// twins returns an observing and an ordinary manager of the world.
func (w *world) twins() (observer, real *twin) {
	return w.twin(true), w.twin(false)
}

func (w *world) twin(observe bool) *twin {
	p := &twin{}
	o := w.options()
	o.Store.Machines, o.Store.Sets = blockAll(p, "machine", o.Store.Machines), blockAll(p, "set", o.Store.Sets)
	o.Store.Deployments, o.Store.Classes = blockAll(p, "deployment", o.Store.Deployments), blockAll(p, "class", o.Store.Classes)
	o.Store.Secrets = blockAll(p, "secret", o.Store.Secrets)
	o.Driver = driver.Intercept(w.provider, p.call)
	if w.setOptions != nil {
		w.setOptions(&o, &testkit.Fuse{})
	}
	if o.Cluster != nil {
		o.Cluster, o.Drainer = nodes{blockAll(p, "node", o.Cluster.Nodes())}, blockedDrainer{p}
	}
	if o.Classes.Foreign != nil {
		o.Classes.Foreign = blockedOlderClass{o.Classes.Foreign, p}
	}
	o.Policies.Safety, o.Policies.Deployment, o.Classes.Keep, o.DryRun = cmp.Or(w.safety, safety.Off()), w.policy, true, observe
	o.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, reason, why string) {
		require.NotEmpty(w.t, reason, what)
		require.NotEmpty(w.t, why, what)
		p.reported, p.reasons = append(p.reported, what), append(p.reasons, reason+": "+why)
	}
	o.Hooks.Effect = func(_ manager.Kind, _ object.Key, name string, _ time.Duration, err error) {
		require.NotErrorIs(w.t, err, store.ErrReadOnly, "%s never was", name)
	}
	m, err := manager.New(o)
	require.NoError(w.t, err)
	p.Manager = m
	return p
}

func (p *twin) call(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
	switch s.Method {
	case codes.CreateMachine, codes.InitializeMachine, codes.DeleteMachine, codes.UpdateMachine:
		return p.did("call %s for machine %s", s.Method, s.Object)
	}
	return next(ctx)
}

// blockAll returns a collection that can only be read.
func blockAll[T object.Object[T]](p *twin, kind string, c store.Collection[T]) store.Collection[T] {
	return &blocked[T]{c, p, kind}
}

type blocked[T object.Object[T]] struct {
	store.Collection[T]
	twin *twin
	kind string
}

func (c *blocked[T]) Create(_ context.Context, o T) (none T, err error) {
	return none, c.twin.did("create %s %s", c.kind, o.ObjectMeta().Key)
}

func (c *blocked[T]) Update(_ context.Context, o T) (none T, err error) {
	return none, c.twin.did("update %s %s", c.kind, o.ObjectMeta().Key)
}

func (c *blocked[T]) UpdateStatus(_ context.Context, o T) (none T, err error) {
	return none, c.twin.did("update status of %s %s", c.kind, o.ObjectMeta().Key)
}

func (c *blocked[T]) Delete(_ context.Context, k object.Key, _ string) error {
	return c.twin.did("delete %s %s", c.kind, k)
}

type blockedDrainer struct{ *twin }

func (d blockedDrainer) Drain(_ context.Context, _ *machine.Machine, e *machine.DrainNode) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, d.did("drain node %s", e.Node.Name)
}

func (d blockedDrainer) Detach(_ context.Context, _ *machine.Machine, e *machine.DetachVolumes) (machine.DrainAnswer, error) {
	return machine.DrainAnswer{}, d.did("detach the volumes of node %s", e.Node.Name)
}

type blockedOlderClass struct {
	manager.ForeignClasses
	twin *twin
}

func (d blockedOlderClass) MarkMigrated(_ context.Context, ref machine.ClassRef, key object.Key, _ string) error {
	return d.twin.did("mark class %s of kind %s as migrated", key, ref.GroupKind())
}

// look makes one pass, after a pass that finds that the API servers answer.
func (p *twin) look(kind manager.Kind, key object.Key) (result manager.Result, err error) {
	for _, r := range p.Reconcilers() {
		if r.Kind() == manager.KindReachability && kind != r.Kind() {
			_, _ = r.Reconcile(ctx, manager.Fleet)
		}
	}
	p.changes, p.reported, p.reasons = nil, nil, nil
	for _, r := range p.Reconcilers() {
		if r.Kind() == kind {
			result, err = r.Reconcile(ctx, key)
		}
	}
	return result, err
}

// compare makes passes of twins over every object. The observer must change nothing, and report just what the
// other begins with. It returns the reports, by their first words.
func (w *world) compare() map[string]bool {
	seen := map[string]bool{}
	before, now := w.contents(), w.at
	for kind, keys := range w.everything() {
		looks := []time.Duration{0}
		if kind.Fleet() {
			looks = []time.Duration{0, 40 * time.Second, 3 * time.Minute, 16 * time.Minute, 20 * time.Minute}
		}
		for _, key := range keys {
			observer, real := w.twins()
			for _, after := range looks {
				w.at = now.Add(after)
				w.compareOnce(kind, key, observer, real)
				for _, what := range observer.reported {
					seen[string(kind)+": "+what[:strings.LastIndexByte(what, ' ')]] = true
				}
				if len(real.changes) > 0 {
					break // from here on, the twins remember different things
				}
			}
			w.at = now
		}
	}
	require.Equal(w.t, before, w.contents(), "observing changes nothing")
	return seen
}

func (w *world) compareOnce(kind manager.Kind, key object.Key, observer, real *twin) {
	story := len(w.events)
	result, err := observer.look(kind, key)
	require.NoError(w.t, err)
	require.Empty(w.t, observer.changes, "the observer's changes")
	require.NotContains(w.t, strings.Join(w.events[story:], "\n"), "withheld", "nothing is concluded from a withheld step")
	_, _ = real.look(kind, key) // its error does not matter: its changes are blocked
	n := min(len(observer.reported), len(real.changes))
	require.Equal(w.t, real.changes[:n], observer.reported, "%s %s: the first of %v\n%v", kind, key, real.changes, w.dump)
	if n == 0 {
		require.Empty(w.t, real.changes, "%s %s: nothing was reported", kind, key)
		return
	}
	require.Contains(w.t, result.Why.String(), observer.reported[0])
	require.GreaterOrEqual(w.t, result.At.Sub(w.at), 10*time.Second, "the pass is repeated too soon")
	again, err := observer.look(kind, key)
	require.NoError(w.t, err)
	require.True(w.t, again.At.After(w.at))
	require.Empty(w.t, observer.reported, "the same change is reported twice")
	observer.reported = real.changes[:n]
}

// everything returns the keys of all kinds.
func (w *world) everything() map[manager.Kind][]object.Key {
	keys := map[manager.Kind][]object.Key{
		manager.KindDeployment: keysOf(w.deployments), manager.KindSet: keysOf(w.sets), manager.KindMachine: keysOf(w.machines),
		manager.KindClass: w.classNames(), manager.KindSecret: keysOf(w.secrets),
	}
	if w.safety != nil {
		for _, kind := range []manager.Kind{manager.KindReachability, manager.KindOrphans, manager.KindUnmanaged, manager.KindOwnerless} {
			keys[kind] = []object.Key{manager.Fleet}
		}
	}
	return keys
}

// contents returns everything that a manager could change.
func (w *world) contents() map[string]any {
	all := map[string]any{"VMs": w.provider.VMs()}
	copyAll(w, all, w.machines)
	copyAll(w, all, w.sets)
	copyAll(w, all, w.deployments)
	copyAll(w, all, w.classes)
	copyAll(w, all, w.secrets)
	copyAll(w, all, w.nodes)
	return all
}

func copyAll[T object.Object[T]](w *world, into map[string]any, c store.Collection[T]) {
	list, err := c.List(ctx, store.Query{})
	require.NoError(w.t, err)
	for _, o := range list {
		into[fmt.Sprintf("%T %s", o, o.ObjectMeta().Key)] = o.Clone()
	}
}

// sorted returns the names in a set.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
