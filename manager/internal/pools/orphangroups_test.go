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

// orphanWorld is a world of pools whose managers delete orphans; reported are the events.
type orphanWorld struct {
	*poolWorld
	process  *manager.Manager
	reported []string
}

func newOrphanWorld(t testing.TB) *orphanWorld {
	h := &orphanWorld{poolWorld: newPoolWorld(t)}
	h.safety = safety.DefaultPolicy()
	h.hooks.Event = func(_ manager.Kind, _ object.Key, _ manager.EventType, reason, why string) {
		h.reported = append(h.reported, reason+": "+why)
	}
	h.process = h.start(&testkit.Fuse{})
	return h
}

// addOrphanGroup makes a group as a late create does.
func (h *orphanWorld) addOrphanGroup(cluster, name string) string {
	class := h.provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: cluster, Size: "small"})
	a, err := h.provider.CreatePool(h.t.Context(), &pooldriver.CreatePoolRequest{Replicas: 2, Request: pooldriver.Request{
		Pool: &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}}, Class: class,
		Secret: h.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"}),
	}})
	require.NoError(h.t, err)
	return a.GroupID
}

// add stores a pool that no pass works on, with a group recorded.
func (h *orphanWorld) add(name, group string) *machinepool.Pool {
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

// has returns the groups of a cluster, by ID.
func (h *orphanWorld) has(cluster string) map[string]object.Key {
	class := h.provider.Class(object.Key{Namespace: "fleet", Name: "small"}, drivertest.MemorySpec{Cluster: cluster, Size: "small"})
	a, err := h.provider.ListPools(h.t.Context(), &pooldriver.ListPoolsRequest{Class: class, Secret: h.provider.Secret(object.Key{Namespace: "fleet", Name: "cloud"})})
	require.NoError(h.t, err)
	return a.Groups
}

func (h *orphanWorld) lookAt(kind manager.Kind) error {
	for _, r := range h.process.Reconcilers() {
		if r.Kind() == kind {
			_, err := r.Reconcile(h.t.Context(), manager.Fleet)
			return err
		}
	}
	h.t.Fatalf("nobody reconciles %s", kind)
	return nil
}

// watch looks for orphans for a while.
func (h *orphanWorld) watch(d time.Duration) {
	for end := h.now.Add(d); !h.now.After(end); h.now = h.now.Add(5 * time.Second) {
		require.NoError(h.t, h.lookAt(manager.KindReachability))
		require.NoError(h.t, h.lookAt(manager.KindOrphans))
	}
}

func (h *orphanWorld) countReported(sentence string) (n int) {
	for _, reported := range h.reported {
		if reported == sentence {
			n++
		}
	}
	return n
}

// TestOrphanGroupsAreCollected: groups of this cluster that belong to no pool are deleted by their ID when they
// are seen a second time. Groups of pools and of other clusters stay.
// Invariants: P35
func TestOrphanGroupsAreCollected(t *testing.T) {
	h := newOrphanWorld(t)
	own, lost, foreign := h.addOrphanGroup("blue", "web"), h.addOrphanGroup("blue", "lost"), h.addOrphanGroup("red", "other")
	require.NoError(t, h.lookAt(manager.KindReachability))
	require.NoError(t, h.lookAt(manager.KindOrphans))
	h.now = h.now.Add(29 * time.Second)
	require.NoError(t, h.lookAt(manager.KindOrphans))
	require.Equal(t, 1, h.calls[machinepool.ListPools], "too early to look again")
	require.Contains(t, h.has("blue"), lost, "a group that was seen once is not deleted")
	h.now = h.now.Add(time.Second)
	require.NoError(t, h.lookAt(manager.KindOrphans))
	require.Equal(t, []string{lost}, h.deletes)
	require.Equal(t, map[string]object.Key{own: poolKey}, h.has("blue"), "web is a pool, and may be about to adopt it")
	require.Contains(t, h.has("red"), foreign)
	require.Equal(t, 1, h.countReported("OrphanGroup: group "+lost+" was made for pool fleet/lost, which is gone"), h.reported)
	h.watch(2 * time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
	require.Less(t, h.calls[machinepool.ListPools], 14, "groups are listed four times an hour")
}

// TestNoGroupOfAPoolIsCollected: until a pool is gone, the group of its name and the group that it has recorded
// stay.
// Invariants: P15
func TestNoGroupOfAPoolIsCollected(t *testing.T) {
	h := newOrphanWorld(t)
	byName, byID := h.addOrphanGroup("blue", "new"), h.addOrphanGroup("blue", "renamed")
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

// behind is a collection of pools whose cache shows none.
type behind struct {
	store.Collection[*machinepool.Pool]
}

func (behind) List(context.Context, store.Query) ([]*machinepool.Pool, error) { return nil, nil }

// TestOrphanGroupsAreJudgedByALiveRead: no group is deleted because a cache shows no pools yet.
func TestOrphanGroupsAreJudgedByALiveRead(t *testing.T) {
	h := newOrphanWorld(t)
	h.cached = func(c store.Collection[*machinepool.Pool]) store.Collection[*machinepool.Pool] { return behind{c} }
	h.process = h.start(&testkit.Fuse{})
	h.addOrphanGroup("blue", "web")
	byID, lost := h.addOrphanGroup("blue", "renamed"), h.addOrphanGroup("blue", "lost")
	h.add("other", byID)
	h.watch(2 * time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
}

// unlistable is a collection of pools whose live lists fail.
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

// TestOrphanGroupsAreNotJudgedWithoutARead: if pools can't be listed, the pass fails, and no group is deleted,
// although the rest of the store answers.
func TestOrphanGroupsAreNotJudgedWithoutARead(t *testing.T) {
	h := newOrphanWorld(t)
	h.cached = func(c store.Collection[*machinepool.Pool]) store.Collection[*machinepool.Pool] { return unlistable{c} }
	var reads []error
	h.hooks.Effect = func(_ manager.Kind, _ object.Key, effect string, _ time.Duration, err error) {
		if effect == "ReadPools" {
			reads = append(reads, err)
		}
	}
	h.process = h.start(&testkit.Fuse{})
	h.addOrphanGroup("blue", "lost")
	_, err := h.machines.Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m"}}})
	require.NoError(t, err)
	require.NoError(t, h.lookAt(manager.KindReachability))
	require.ErrorIs(t, h.lookAt(manager.KindOrphans), errUnlisted)
	require.Equal(t, []error{errUnlisted}, reads)
	require.Empty(t, h.deletes)
}

// TestOrphanGroupIsLookedAtJustBefore: a pool that is created between the last live list and the delete keeps its
// group.
// Invariants: P15
func TestOrphanGroupIsLookedAtJustBefore(t *testing.T) {
	for _, name := range []string{"lost", "other"} {
		h := newOrphanWorld(t)
		f, reads := &testkit.Fuse{}, 0
		h.hooks.Effect = func(_ manager.Kind, _ object.Key, effect string, _ time.Duration, _ error) {
			if effect == "ReadPools" {
				reads++
			}
		}
		h.process = h.start(f)
		lost := h.addOrphanGroup("blue", "lost")
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

// TestOrphanGroupsAreBraked: of many groups without a pool, three are deleted per period.
func TestOrphanGroupsAreBraked(t *testing.T) {
	h := newOrphanWorld(t)
	h.safety.BrakeShare = object.Off
	h.process = h.start(&testkit.Fuse{})
	for i := range 7 {
		h.addOrphanGroup("blue", fmt.Sprint("lost-", i))
	}
	h.watch(h.safety.OrphanPeriod - time.Minute)
	require.Len(t, h.deletes, 3)
	require.Len(t, h.has("blue"), 4)
	h.watch(3 * h.safety.OrphanPeriod)
	require.Empty(t, h.has("blue"))
}

// TestOrphanGroupsOfAnEmptyStore: if nothing is stored, no group is deleted. One machine is enough.
func TestOrphanGroupsOfAnEmptyStore(t *testing.T) {
	h := newOrphanWorld(t)
	lost := h.addOrphanGroup("blue", "lost")
	require.NoError(t, h.pools.Delete(t.Context(), poolKey, h.pool().UID))
	h.watch(time.Hour)
	require.Empty(t, h.deletes)
	require.Equal(t, 1, h.countReported("StoreIsEmptyForGroups: 1 groups have no pool, but the store holds no pool, machine, set or deployment: "+
		"none is deleted; if the store is the right one, set OrphansOfEmptyStore in the policy"), h.reported)
	_, err := h.machines.Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m"}}})
	require.NoError(t, err)
	h.watch(time.Hour)
	require.Equal(t, []string{lost}, h.deletes)
}

// TestOrphanGroupThatTakesItsTime: a deletion that takes long is no failure. A group that can't be deleted is
// reported, and tried again.
func TestOrphanGroupThatTakesItsTime(t *testing.T) {
	h := newOrphanWorld(t)
	lost := h.addOrphanGroup("blue", "lost")
	h.provider.FailPoolNext(machinepool.DeletePool, codes.New(codes.Aborted, "it is going"))
	h.provider.FailPoolNext(machinepool.DeletePool, codes.New(codes.Unavailable, "not now"))
	h.watch(time.Hour)
	require.Equal(t, []string{lost, lost, lost}, h.deletes)
	require.Equal(t, 2, h.countReported("OrphanGroup: group "+lost+" was made for pool fleet/lost, which is gone"), "as it begins and at its end: %s", h.reported)
	require.Equal(t, 1, h.countReported("OrphanGroupDeleteFailed: orphan group "+lost+" could not be deleted: UNAVAILABLE: not now"), h.reported)
	require.Empty(t, h.has("blue"))
}

// TestOrphanGroupsKilledAnywhere: the process is killed at any call while it deletes orphans, and a new one
// follows. The group without a pool is deleted, and no other.
// Invariants: P15
func TestOrphanGroupsKilledAnywhere(t *testing.T) {
	collect := func(f *testkit.Fuse) (calls int) {
		h := newOrphanWorld(t)
		own, lost := h.addOrphanGroup("blue", "web"), h.addOrphanGroup("blue", "lost")
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

// TestDryRunOfOrphanGroups: a dry run lists a group and reports its deletion, but does not delete it.
func TestDryRunOfOrphanGroups(t *testing.T) {
	h := newOrphanWorld(t)
	var observed []string
	h.observe, h.hooks.DryRun = true, func(_ manager.Kind, _ object.Key, what, _, why string) { observed = append(observed, what+": "+why) }
	h.process = h.start(&testkit.Fuse{})
	lost := h.addOrphanGroup("blue", "lost")
	h.watch(time.Hour)
	require.Empty(t, h.deletes)
	require.Equal(t, []string{"call DeletePool for pool fleet/lost: group " + lost + " was made for pool fleet/lost, which is gone"}, observed)
}

// plainPools is a driver that lists no groups.
type plainPools struct{ pooldriver.Driver }

// TestGroupsThatNobodyLists: if the driver can't list groups, nothing is called or reported.
func TestGroupsThatNobodyLists(t *testing.T) {
	h := newOrphanWorld(t)
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
	h.addOrphanGroup("blue", "lost")
	h.watch(time.Hour)
	require.Empty(t, h.calls)
	require.Empty(t, h.reported)
}

// TestDeletedPoolFindsTheGroupMadeAgain: a group was lost, and the answer of the create that replaced it, too.
// Although the pool has recorded the old ID, its deletion finds the new group.
// Invariants: P35
func TestDeletedPoolFindsTheGroupMadeAgain(t *testing.T) {
	l := startUnkilled(newPoolWorld(t))
	l.runFor(4 * time.Minute)
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
		l.runFor(time.Second)
	}
	require.NoError(t, l.pools.Delete(t.Context(), poolKey, l.pool().UID))
	l.runFor(2 * time.Minute)
	require.Nil(t, l.pool())
	require.Zero(t, l.provider.Groups())
}
