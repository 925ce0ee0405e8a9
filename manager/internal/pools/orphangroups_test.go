package pools_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// herd is a pool world whose managers look for orphans; told are the events.
type herd struct {
	*poolWorld
	process *manager.Manager
	told    []string
}

func newHerd(t testing.TB) *herd {
	h := &herd{poolWorld: newPoolWorld(t)}
	h.safety = safety.DefaultPolicy()
	h.hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
		h.told = append(h.told, reason+": "+why)
	}
	h.process = h.start(&testkit.Fuse{})
	return h
}

// stray makes a group as a create does that came in late.
func (h *herd) stray(cluster, name string) string {
	class := h.provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: cluster, Size: "small"})
	a, err := h.provider.CreatePool(h.t.Context(), &pooldriver.CreatePoolRequest{Replicas: 2, Request: pooldriver.Request{
		Pool: &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}, Class: class,
		Secret: h.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"}),
	}})
	require.NoError(h.t, err)
	return a.GroupID
}

// add stores a pool that nothing is done about, with that group recorded.
func (h *herd) add(name, group string) *machinepool.Pool {
	p, err := h.pools.Create(h.t.Context(), &machinepool.Pool{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}},
		Spec: machinepool.Spec{Template: machinepool.Template{Class: machine.ClassRef{Name: "small"}}},
	})
	require.NoError(h.t, err)
	p = p.Clone()
	p.Status.GroupID = group
	p, err = h.pools.UpdateStatus(h.t.Context(), p)
	require.NoError(h.t, err)
	return p
}

// has are the groups of a cluster, by ID.
func (h *herd) has(cluster string) map[string]object.Key {
	class := h.provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: cluster, Size: "small"})
	a, err := h.provider.ListPools(h.t.Context(), &pooldriver.ListPoolsRequest{Class: class, Secret: h.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"})})
	require.NoError(h.t, err)
	return a.Groups
}

func (h *herd) lookAt(kind manager.Kind) error {
	for _, r := range h.process.Reconcilers() {
		if r.Kind() == kind {
			_, err := r.Reconcile(h.t.Context(), manager.Fleet)
			return err
		}
	}
	h.t.Fatalf("nobody reconciles %s", kind)
	return nil
}

// watch has orphans looked for, for a while.
func (h *herd) watch(d time.Duration) {
	for end := h.now.Add(d); !h.now.After(end); h.now = h.now.Add(5 * time.Second) {
		require.NoError(h.t, h.lookAt(manager.KindReachability))
		require.NoError(h.t, h.lookAt(manager.KindOrphans))
	}
}

func (h *herd) heard(sentence string) (n int) {
	for _, told := range h.told {
		if told == sentence {
			n++
		}
	}
	return n
}

// TestOrphanGroupsAreCollected: of groups that are no pool's, those of this cluster are
// deleted by their ID at the second sighting; no group of a pool is, and none of another
// cluster.
// Invariants: P35
func TestOrphanGroupsAreCollected(t *testing.T) {
	h := newHerd(t)
	own, lost, foreign := h.stray("blue", "web"), h.stray("blue", "lost"), h.stray("red", "other")
	require.NoError(t, h.lookAt(manager.KindReachability))
	require.NoError(t, h.lookAt(manager.KindOrphans))
	h.now = h.now.Add(29 * time.Second)
	require.NoError(t, h.lookAt(manager.KindOrphans))
	require.Equal(t, 1, h.calls[machinepool.ListPools], "too early to look again")
	require.Contains(t, h.has("blue"), lost, "seen once")
	h.now = h.now.Add(time.Second)
	require.NoError(t, h.lookAt(manager.KindOrphans))
	require.Equal(t, []string{lost}, h.deletes)
	require.Equal(t, map[string]object.Key{own: poolKey}, h.has("blue"), "web is a pool, and may be about to adopt it")
	require.Contains(t, h.has("red"), foreign)
	require.Equal(t, 1, h.heard("OrphanGroup: group "+lost+" was made for pool fleet/lost, which is gone"), h.told)
	h.watch(2 * time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
	require.Less(t, h.calls[machinepool.ListPools], 14, "four times an hour")
}

// TestNoGroupOfAPoolIsCollected: a pool keeps the group of its name and the one that it has
// recorded, until it is gone.
// Invariants: P15
func TestNoGroupOfAPoolIsCollected(t *testing.T) {
	h := newHerd(t)
	byName, byID := h.stray("blue", "new"), h.stray("blue", "renamed")
	pools := []*machinepool.Pool{h.add("new", ""), h.add("other", byID)}
	h.watch(2 * time.Hour)
	require.Empty(t, h.deletes)
	for _, p := range pools { // without finalizers they are gone at once
		require.NoError(t, h.pools.Delete(t.Context(), p.Key, p.UID))
	}
	h.watch(time.Hour)
	require.ElementsMatch(t, []string{byName, byID}, h.deletes)
	require.Empty(t, h.has("blue"))
}

// behind are pools of which the cache knows none.
type behind struct {
	store.Collection[*machinepool.Pool]
}

func (behind) List(context.Context, store.Query) ([]*machinepool.Pool, error) { return nil, nil }

// TestOrphanGroupsAreJudgedByALiveRead: a cache that has no pools yet costs no group.
func TestOrphanGroupsAreJudgedByALiveRead(t *testing.T) {
	h := newHerd(t)
	h.cached = func(c store.Collection[*machinepool.Pool]) store.Collection[*machinepool.Pool] { return behind{c} }
	h.process = h.start(&testkit.Fuse{})
	h.stray("blue", "web")
	byID, lost := h.stray("blue", "renamed"), h.stray("blue", "lost")
	h.add("other", byID)
	h.watch(2 * time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
}

// unlistable are pools of which no live list succeeds.
type unlistable struct {
	store.Collection[*machinepool.Pool]
}

func (u unlistable) Live() store.Reader[*machinepool.Pool] { return unlisted{u.Collection.Live()} }

var errUnlisted = errors.New("the store does not list")

type unlisted struct {
	store.Reader[*machinepool.Pool]
}

func (unlisted) List(context.Context, store.Query) ([]*machinepool.Pool, error) {
	return nil, errUnlisted
}

// TestOrphanGroupsAreNotJudgedWithoutARead: pools that can't be listed are not gone. The pass
// fails, though the rest of the store answers.
func TestOrphanGroupsAreNotJudgedWithoutARead(t *testing.T) {
	h := newHerd(t)
	h.cached = func(c store.Collection[*machinepool.Pool]) store.Collection[*machinepool.Pool] { return unlistable{c} }
	var reads []error
	h.hooks.Effect = func(_ manager.Kind, _ object.Key, effect string, _ time.Duration, err error) {
		if effect == "ReadPools" {
			reads = append(reads, err)
		}
	}
	h.process = h.start(&testkit.Fuse{})
	h.stray("blue", "lost")
	_, err := h.machines.Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m"}}})
	require.NoError(t, err)
	require.NoError(t, h.lookAt(manager.KindReachability))
	require.ErrorIs(t, h.lookAt(manager.KindOrphans), errUnlisted)
	require.Equal(t, []error{errUnlisted}, reads)
	require.Empty(t, h.deletes)
}

// TestOrphanGroupIsLookedAtJustBefore: a pool that is created between the last live read of
// all and the delete keeps its group.
// Invariants: P15
func TestOrphanGroupIsLookedAtJustBefore(t *testing.T) {
	for _, name := range []string{"lost", "other"} {
		h := newHerd(t)
		f, reads := &testkit.Fuse{}, 0
		h.hooks.Effect = func(_ manager.Kind, _ object.Key, effect string, _ time.Duration, _ error) {
			if effect == "ReadPools" {
				reads++
			}
		}
		h.process = h.start(f)
		lost := h.stray("blue", "lost")
		f.Before = func(int) {
			if reads == 2 {
				f.Before = nil
				h.add(name, map[string]string{"other": lost}[name])
			}
		}
		h.watch(time.Hour)
		require.GreaterOrEqual(t, reads, 2)
		require.Empty(t, h.deletes, name)
	}
}

// TestOrphanGroupsAreBraked: of many groups without a pool three go in a period.
func TestOrphanGroupsAreBraked(t *testing.T) {
	h := newHerd(t)
	h.safety.BrakeShare = object.Off
	h.process = h.start(&testkit.Fuse{})
	for i := range 7 {
		h.stray("blue", fmt.Sprint("lost-", i))
	}
	h.watch(h.safety.OrphanPeriod - time.Minute)
	require.Len(t, h.deletes, 3)
	require.Len(t, h.has("blue"), 4)
	h.watch(3 * h.safety.OrphanPeriod)
	require.Empty(t, h.has("blue"))
}

// TestOrphanGroupsOfAnEmptyStore: where nothing is stored, no group goes; a machine is
// something.
func TestOrphanGroupsOfAnEmptyStore(t *testing.T) {
	h := newHerd(t)
	lost := h.stray("blue", "lost")
	require.NoError(t, h.pools.Delete(t.Context(), poolKey, h.pool().UID))
	h.watch(time.Hour)
	require.Empty(t, h.deletes)
	require.Equal(t, 1, h.heard("StoreIsEmptyForGroups: 1 groups have no pool, but the store holds no pool, machine, set or deployment: "+
		"none is deleted; if the store is the right one, set OrphansOfEmptyStore in the policy"), h.told)
	_, err := h.machines.Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m"}}})
	require.NoError(t, err)
	h.watch(time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
}

// TestOrphanGroupThatTakesItsTime: a group that is being deleted is no failure; one that
// can't be deleted is told of, and tried again.
func TestOrphanGroupThatTakesItsTime(t *testing.T) {
	h := newHerd(t)
	lost := h.stray("blue", "lost")
	h.provider.FailPoolNext(machinepool.DeletePool, codes.New(codes.Aborted, "it is going"))
	h.provider.FailPoolNext(machinepool.DeletePool, codes.New(codes.Unavailable, "not now"))
	h.watch(time.Hour)
	require.Equal(t, []string{lost, lost, lost}, h.deletes)
	require.Equal(t, 2, h.heard("OrphanGroup: group "+lost+" was made for pool fleet/lost, which is gone"), "as it begins and at its end: %s", h.told)
	require.Equal(t, 1, h.heard("OrphanGroupDeleteFailed: orphan group "+lost+" could not be deleted: UNAVAILABLE: not now"), h.told)
	require.Empty(t, h.has("blue"))
}

// TestOrphanGroupsKilledAnywhere: killed at any call of a collection, and followed by a fresh
// process, the group without a pool goes, and no other does.
// Invariants: P15
func TestOrphanGroupsKilledAnywhere(t *testing.T) {
	collect := func(f *testkit.Fuse) (calls int) {
		h := newHerd(t)
		own, lost := h.stray("blue", "web"), h.stray("blue", "lost")
		h.process = h.start(f)
		for end := h.now.Add(time.Minute); h.now.Before(end) && !f.Dead; h.now = h.now.Add(5 * time.Second) {
			_ = h.lookAt(manager.KindReachability)
			_ = h.lookAt(manager.KindOrphans)
		}
		calls = f.Calls
		h.process = h.start(&testkit.Fuse{})
		h.watch(time.Hour)
		require.Equal(t, map[string]object.Key{own: poolKey}, h.has("blue"))
		require.Contains(t, h.deletes, lost)
		return calls
	}
	for n := range testkit.EveryCall(collect(&testkit.Fuse{}), 3) {
		collect(&testkit.Fuse{BlowAt: n})
		collect(&testkit.Fuse{BlowAt: n, BlowAfter: true})
	}
}

// TestDryRunOfOrphanGroups: in a dry run a group is listed and not deleted, and it
// is told what would be.
func TestDryRunOfOrphanGroups(t *testing.T) {
	h := newHerd(t)
	var observed []string
	h.observe, h.hooks.DryRun = true, func(_ manager.Kind, _ object.Key, what, _, why string) { observed = append(observed, what+": "+why) }
	h.process = h.start(&testkit.Fuse{})
	lost := h.stray("blue", "lost")
	h.watch(time.Hour)
	require.Empty(t, h.deletes)
	require.Equal(t, []string{"call DeletePool for pool fleet/lost: group " + lost + " was made for pool fleet/lost, which is gone"}, observed)
}

// plainPools is a driver that names no groups.
type plainPools struct{ pooldriver.Driver }

// TestGroupsThatNobodyLists: without a lister nothing is asked and nothing told.
func TestGroupsThatNobodyLists(t *testing.T) {
	h := newHerd(t)
	m, err := manager.New(manager.Options{
		Store:  manager.Store{Machines: h.machines, Classes: h.classes, Secrets: h.secrets, Pools: h.pools},
		Driver: drivertest.NewMemory(drivertest.MemoryOptions{}),
		Pools: manager.PoolOptions{Driver: pooldriver.Intercept(plainPools{h.provider}, func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
			h.calls[s.Method]++
			return next(ctx)
		})},
		Runtime:  manager.Runtime{Now: func() time.Time { return h.now }},
		Policies: manager.Policies{Safety: cmp.Or(h.safety, safety.Off())}, Hooks: h.hooks,
	})
	require.NoError(t, err)
	h.process = m
	h.stray("blue", "lost")
	h.watch(time.Hour)
	require.Empty(t, h.calls)
	require.Empty(t, h.told)
}

// TestDeletedPoolFindsTheGroupMadeAgain: the ID of a group that was lost does not hide the
// one that was made in its place, whose answer was lost, from the pool's deletion.
// Invariants: P35
func TestDeletedPoolFindsTheGroupMadeAgain(t *testing.T) {
	l := undying(newPoolWorld(t))
	l.live(4 * time.Minute)
	l.settled(3)
	class, err := l.classes.Get(t.Context(), object.Key{Namespace: "fleet", Name: "small"})
	require.NoError(t, err)
	_, err = l.provider.DeletePool(t.Context(), &pooldriver.DeletePoolRequest{Request: pooldriver.Request{
		Pool: &machinepool.Pool{Meta: object.Meta{Key: poolKey}}, Class: class, Secret: l.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"}),
	}})
	require.NoError(t, err)
	l.provider.FailPoolAfter(machinepool.CreatePool, codes.New(codes.ResourceExhausted, "the answer was lost"))
	for end := l.now.Add(10 * time.Minute); l.provider.Groups() == 0; {
		require.True(t, l.now.Before(end))
		l.live(time.Second)
	}
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.live(2 * time.Minute)
	require.Nil(t, l.pool())
	require.Zero(t, l.provider.Groups())
}
