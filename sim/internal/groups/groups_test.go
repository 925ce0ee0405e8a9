package groups_test

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machinepool/pooldriver/pooldrivertest"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/clock"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// world is a cluster whose nodes are ready once they have joined. Only the order of timers is random: each
// random time is the longest possible.
type world struct {
	*clock.Clock
	chance      func(int) int
	nodes       map[string]bool // whether a node is ready, by provider ID
	back        time.Time       // when the outage of the zone ends
	noBoots     bool
	clusterDown bool
	faults      groups.Faults
	counts      map[groups.Fault]int
	gone        []object.Key
}

func newWorld() *world {
	chance := rand.New(rand.NewPCG(1, 1)).IntN
	return &world{
		Clock:  clock.New(time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC), chance),
		chance: chance, nodes: map[string]bool{}, counts: map[groups.Fault]int{},
	}
}

func (w *world) Chance(n int) int                   { return w.chance(n) }
func (w *world) UpTo(d time.Duration) time.Duration { return d }
func (w *world) Happens(p float64) bool             { return p > 0 }
func (w *world) Faults() groups.Faults              { return w.faults }
func (w *world) Stopped() bool                      { return false }
func (w *world) Count(f groups.Fault)               { w.counts[f]++ }
func (w *world) Emit(event any)                     { w.gone = append(w.gone, event.(groups.Gone).Pool) }
func (w *world) Changed()                           {}
func (w *world) ZoneBack(string) time.Time          { return w.back }
func (w *world) CanBoot(object.Key) bool            { return !w.noBoots }
func (w *world) Placed(string, string)              {}
func (w *world) Removed(_, id string)               { delete(w.nodes, id) }
func (w *world) Boot() time.Duration                { return time.Minute }
func (w *world) NoCluster() bool                    { return false }
func (w *world) Join(_, id string)                  { w.nodes[id] = true }
func (w *world) Ready(_, id string) bool            { return w.nodes[id] }
func (w *world) ClusterAnswers() bool               { return !w.clusterDown }
func (w *world) MarkNotReady(string, string)        {}
func (w *world) Recover(_, id string)               { w.nodes[id] = true }
func (w *world) Delete(string)                      {}

// pass lets time pass.
func (w *world) pass(d time.Duration) {
	for until := w.Now().Add(d); w.Step(until); {
	}
}

var account = drivertest.NewMemory(drivertest.MemoryOptions{Token: "a-token-of-some-length"})

func class(name string) *machine.Class {
	return account.Class(object.Key{Namespace: "fleet", Name: name}, drivertest.MemorySpec{Cluster: "blue", Size: name})
}

func secret(name string) *machine.Secret {
	return account.Secret(object.Key{Namespace: "fleet", Name: name})
}

var allFeatures = machinepool.Features{DeleteInstances: true, ReplaceInstance: true, RollingUpdate: true}

// serial returns a driver that makes one call at a time, as a simulation does, and none while mu is held.
func serial(p *groups.Provider, mu *sync.Mutex) pooldriver.Driver {
	return pooldriver.Intercept(p, func(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) error {
		mu.Lock()
		defer mu.Unlock()
		return next(ctx)
	})
}

// TestConforms: the simulated provider passes the tests of package pooldrivertest.
func TestConforms(t *testing.T) {
	pooldrivertest.Run(t, pooldrivertest.Suite{New: func(*testing.T) pooldrivertest.Setup {
		w := newWorld()
		p := groups.New(w, account, groups.Options{Features: allFeatures})
		var mu sync.Mutex
		d := serial(p, &mu)
		return pooldrivertest.Setup{
			Driver: d, Again: func() pooldriver.Driver { return d }, Class: class("small"), Changed: class("large"), Secret: secret("cloud"), Bootstrap: secret("boot"),
			Invalid: account.Class(object.Key{Namespace: "fleet", Name: "none"}, drivertest.MemorySpec{Cluster: "blue"}),
			Settle: func(context.Context) { // is called by several goroutines at once
				mu.Lock()
				defer mu.Unlock()
				w.pass(10 * time.Minute)
			},
			Leftovers: func() []string { return slices.Collect(maps.Keys(w.nodes)) },
			Count: func() (n int) {
				for _, g := range p.All() {
					n += len(g.Instances)
				}
				return n
			},
			AskDrain: func(id string) {
				if _, i := p.Instance(id); i != nil {
					p.AskDrain(i)
				}
			},
		}
	}})
}

// site is a provider with the group of one pool.
type site struct {
	*world
	*groups.Provider
	t    *testing.T
	pool *machinepool.Pool
}

func newSite(t *testing.T, n int32, o groups.Options, faults groups.Faults) *site {
	t.Helper()
	w := newWorld()
	w.faults = faults
	s := &site{w, groups.New(w, account, o), t, &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "herd"}}}}
	_, err := s.CreatePool(t.Context(), &pooldriver.CreatePoolRequest{Request: s.request("small"), Replicas: n})
	require.NoError(t, err)
	s.pass(5 * time.Minute)
	return s
}

func (s *site) request(of string) pooldriver.Request {
	return pooldriver.Request{Pool: s.pool, Class: class(of), Secret: secret("cloud")}
}

func (s *site) ids() (ids []string) {
	for _, i := range s.Of(s.pool.Key).Instances {
		ids = append(ids, i.ProviderID)
	}
	return ids
}

// TestUnhealthyInstancesAreReplaced: an instance whose node is not ready for 20 min is replaced. While the API of
// the cluster does not answer, none is.
func TestUnhealthyInstancesAreReplaced(t *testing.T) {
	s := newSite(t, 2, groups.Options{}, groups.Faults{})
	unhealthy := s.ids()[0]
	s.nodes[unhealthy] = false
	s.clusterDown = true
	s.pass(2 * time.Hour)
	require.Contains(t, s.ids(), unhealthy)
	s.clusterDown = false
	s.pass(15 * time.Minute)
	require.Contains(t, s.ids(), unhealthy)
	s.pass(20 * time.Minute)
	require.NotContains(t, s.ids(), unhealthy)
	require.Len(t, s.ids(), 2)
}

// TestDrainsAreWaitedFor: a provider that requests drains replaces an outdated instance when it is reported
// as drained, or after an hour.
func TestDrainsAreWaitedFor(t *testing.T) {
	s := newSite(t, 1, groups.Options{Asks: 1}, groups.Faults{})
	first := s.ids()[0]
	_, err := s.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: s.request("large")})
	require.NoError(t, err)
	s.pass(50 * time.Minute)
	require.Equal(t, []string{first}, s.ids())
	require.True(t, s.Of(s.pool.Key).Instances[0].AwaitsDrain)
	_, err = s.InstancesDrained(t.Context(), &pooldriver.InstancesDrainedRequest{Request: s.request("large"), ProviderIDs: s.ids()})
	require.NoError(t, err)
	s.pass(5 * time.Minute)
	second := s.ids()
	require.NotEqual(t, []string{first}, second)
	require.True(t, s.AskDrain(s.Of(s.pool.Key).Instances[0]))
	require.False(t, s.AskDrain(s.Of(s.pool.Key).Instances[0]))
	s.pass(70 * time.Minute)
	require.NotEqual(t, second, s.ids())
}

// TestUpdatesKeepToTheirBounds: during an update of n instances there are at most n plus surge instances,
// and at least n minus unavailable of them are ready. In the end all are new.
func TestUpdatesKeepToTheirBounds(t *testing.T) {
	account := class("large")
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.Int32Range(1, 6).Draw(rt, "size")
		bound := func(name string) rollout.IntOrPercent {
			return rollout.IntOrPercent{Value: rapid.Int32Range(0, 5).Draw(rt, name) * rapid.SampledFrom([]int32{1, 20}).Draw(rt, "times"), Percent: rapid.Bool().Draw(rt, "percent")}
		}
		s := newSite(t, n, groups.Options{Features: allFeatures, Asks: rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(rt, "asks")}, groups.Faults{})
		s.pool.Spec.RollingUpdate = &machinepool.RollingUpdate{MaxSurge: bound("surge"), MaxUnavailable: bound("unavailable")}
		request := pooldriver.Request{Pool: s.pool, Class: account, Secret: secret("cloud")}
		before, may := s.ids(), s.pool.Spec.RollingUpdate.Bounds(n)
		_, err := s.UpdatePool(t.Context(), &pooldriver.UpdatePoolRequest{Request: request})
		require.NoError(rt, err)
		for until := s.Now().Add(12 * time.Hour); s.Step(until); {
			g, atWork := s.Of(s.pool.Key), int32(0)
			for _, i := range g.Instances {
				if s.nodes[i.ProviderID] {
					atWork++
				}
			}
			require.LessOrEqual(rt, int32(len(g.Instances)), n+may.Surge)
			require.GreaterOrEqual(rt, atWork, n-may.Unavailable)
		}
		require.Len(rt, s.ids(), int(n))
		for _, id := range s.ids() {
			require.NotContains(rt, before, id)
		}
	})
}

// TestInstancesWait: new instances wait for capacity, for the end of a zone's outage, and for a bootstrap
// token.
func TestInstancesWait(t *testing.T) {
	s := newSite(t, 3, groups.Options{}, groups.Faults{Capacity: 2})
	require.Len(t, s.ids(), 2)
	require.Positive(t, s.world.counts[groups.CapacityOut])
	s.faults.Capacity, s.noBoots = 0, true
	s.pass(5 * time.Minute)
	require.Len(t, s.ids(), 3)
	require.Len(t, s.nodes, 2)
	s.noBoots = false
	s.pass(time.Minute)
	require.Len(t, s.nodes, 3)

	s.back = s.Now().Add(time.Hour)
	_, err := s.ScalePool(t.Context(), &pooldriver.ScalePoolRequest{Request: s.request("small"), To: 4})
	require.NoError(t, err)
	s.pass(50 * time.Minute)
	require.Len(t, s.ids(), 3)
	s.pass(15 * time.Minute)
	require.Len(t, s.ids(), 4)
}

// TestLosses: a lost instance is replaced, a lost group is not.
func TestLosses(t *testing.T) {
	s := newSite(t, 2, groups.Options{}, groups.Faults{})
	g, lost := s.Of(s.pool.Key), s.ids()[1]
	s.LoseInstance(lost)
	require.Len(t, s.ids(), 1)
	s.pass(5 * time.Minute)
	require.Len(t, s.ids(), 2)
	require.NotContains(t, s.ids(), lost)
	s.Fail(g, time.Hour)
	a, err := s.GetPoolStatus(t.Context(), &pooldriver.GetPoolStatusRequest{Request: s.request("small")})
	require.NoError(t, err)
	require.False(t, a.Ready)
	require.NotEmpty(t, a.Failure)
	s.Lose(g)
	require.Nil(t, s.Of(s.pool.Key))
	require.Equal(t, []object.Key{s.pool.Key}, s.gone)
	s.pass(2 * time.Hour)
	require.Zero(t, s.Provider.Count())
}
