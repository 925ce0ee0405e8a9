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

// errBlocked is what every change is answered with that a twin wants to make.
var errBlocked = errors.New("blocked")

// twin is a manager whose ports note what it would change, and change nothing.
// One only observes, so that none of its changes should get as far; the other
// is an ordinary one.
type twin struct {
	*manager.Manager
	deeds []string // that reached a port
	told  []string // by the hook
	whys  []string // of what was told
}

func (p *twin) did(format string, args ...any) error {
	p.deeds = append(p.deeds, fmt.Sprintf(format, args...))
	return errBlocked
}

// twins makes an observing and an ordinary manager of the world.
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
	if w.classed != nil {
		w.classed(&o, &testkit.Fuse{})
	}
	if o.Cluster != nil {
		o.Cluster, o.Drainer = nodes{blockAll(p, "node", o.Cluster.Nodes())}, blockedDrainer{p}
	}
	if o.Classes.Foreign != nil {
		o.Classes.Foreign = blockedAttic{o.Classes.Foreign, p}
	}
	o.Policies.Safety, o.Policies.Deployment, o.Classes.Keep, o.DryRun = cmp.Or(w.safety, safety.Off()), w.policy, true, observe
	o.Hooks.DryRun = func(_ manager.Kind, _ object.Key, what, reason, why string) {
		require.NotEmpty(w.t, reason, what)
		require.NotEmpty(w.t, why, what)
		p.told, p.whys = append(p.told, what), append(p.whys, reason+": "+why)
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

// blockAll is a collection that can be read.
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

type blockedAttic struct {
	manager.ForeignClasses
	twin *twin
}

func (d blockedAttic) MarkMigrated(_ context.Context, ref machine.ClassRef, key object.Key, _ string) error {
	return d.twin.did("mark class %s of kind %s as migrated", key, ref.GroupKind())
}

// look makes one pass, after one that says that the API servers answer.
func (p *twin) look(kind manager.Kind, key object.Key) (result manager.Result, err error) {
	for _, r := range p.Reconcilers() {
		if r.Kind() == manager.KindReachability && kind != r.Kind() {
			_, _ = r.Reconcile(ctx, manager.Fleet)
		}
	}
	p.deeds, p.told, p.whys = nil, nil, nil
	for _, r := range p.Reconcilers() {
		if r.Kind() == kind {
			result, err = r.Reconcile(ctx, key)
		}
	}
	return result, err
}

// compare has every object looked at by twins, and requires that the observer
// touches nothing and tells just what the other began with. What was told is
// returned, by its first words.
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
				for _, what := range observer.told {
					seen[string(kind)+": "+what[:strings.LastIndexByte(what, ' ')]] = true
				}
				if len(real.deeds) > 0 {
					break // its memory is another from here on
				}
			}
			w.at = now
		}
	}
	require.Equal(w.t, before, w.contents(), "observing changes nothing")
	return seen
}

func (w *world) compareOnce(kind manager.Kind, key object.Key, observer, real *twin) {
	story := len(w.story)
	result, err := observer.look(kind, key)
	require.NoError(w.t, err)
	require.Empty(w.t, observer.deeds, "the observer's changes")
	require.NotContains(w.t, strings.Join(w.story[story:], "\n"), "withheld", "nothing is concluded")
	_, _ = real.look(kind, key) // it ends as it may: it was blocked
	n := min(len(observer.told), len(real.deeds))
	require.Equal(w.t, real.deeds[:n], observer.told, "%s %s: the first of %v\n%v", kind, key, real.deeds, w.dump)
	if n == 0 {
		require.Empty(w.t, real.deeds, "%s %s: nothing was told", kind, key)
		return
	}
	require.Contains(w.t, result.Why.String(), observer.told[0])
	require.GreaterOrEqual(w.t, result.At.Sub(w.at), 10*time.Second, "no hot loop")
	again, err := observer.look(kind, key)
	require.NoError(w.t, err)
	require.True(w.t, again.At.After(w.at))
	require.Empty(w.t, observer.told, "it was told already")
	observer.told = real.deeds[:n]
}

// everything are the keys of all kinds.
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

// contents is all that a manager could change.
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

// sorted are the names in a set.
func sorted(set map[string]bool) []string { return slices.Sorted(maps.Keys(set)) }
