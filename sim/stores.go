package sim

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Namespace is the namespace of a world's classes. Its deployments and pools should be in it, too.
const Namespace = "fleet"

// stores holds all objects of a world, by kind.
type stores struct {
	machines    *trackedStore[*machine.Machine]
	sets        *trackedStore[*machineset.Set]
	deployments *trackedStore[*deployment.Deployment]
	classes     *trackedStore[*machine.Class]
	secrets     *trackedStore[*machine.Secret]
	nodes       *trackedStore[*machine.Node]
	pools       *trackedStore[*machinepool.Pool]
}

func newStores(g *base, keys *machine.Keys) *stores {
	return &stores{
		machines:    newTrackedStore(g, manager.KindMachine, manager.MachineIndexes()),
		sets:        newTrackedStore(g, manager.KindSet, manager.SetIndexes()),
		deployments: newTrackedStore(g, manager.KindDeployment, manager.DeploymentIndexes()),
		classes:     newTrackedStore(g, manager.KindClass, manager.ClassIndexes()),
		secrets:     newTrackedStore[*machine.Secret](g, manager.KindSecret, nil),
		nodes:       newTrackedStore(g, manager.KindNode, manager.NodeIndexes(keys.NodeMachine)),
		pools:       newTrackedStore(g, manager.KindPool, manager.PoolIndexes()),
	}
}

// The following methods return the stored objects of a kind: reads are live, and writes have no faults.

// Machines returns all machines.
func (s *stores) Machines() store.Collection[*machine.Machine] { return s.machines }

// Sets returns all sets.
func (s *stores) Sets() store.Collection[*machineset.Set] { return s.sets }

// Deployments returns all deployments.
func (s *stores) Deployments() store.Collection[*deployment.Deployment] { return s.deployments }

// Classes returns all classes.
func (s *stores) Classes() store.Collection[*machine.Class] { return s.classes }

// Nodes returns all nodes.
func (s *stores) Nodes() store.Collection[*machine.Node] { return s.nodes }

// Pools returns all pools.
func (s *stores) Pools() store.Collection[*machinepool.Pool] { return s.pools }

// pool returns a pool as it is stored, or nil if it is gone.
func (s *stores) pool(k object.Key) *machinepool.Pool {
	p, err := s.pools.Get(context.Background(), k)
	if err != nil {
		return nil
	}
	return p
}

// poolGoneOrDeleting reports whether a pool is gone or being deleted.
func (s *stores) poolGoneOrDeleting(k object.Key) bool {
	p := s.pool(k)
	return p == nil || p.Deleted()
}

// editPool changes a pool as its owner would.
func (s *stores) editPool(name string, change func(*machinepool.Pool)) bool {
	p := s.pool(object.Key{Namespace: Namespace, Name: name})
	if p == nil || p.Deleted() {
		return false
	}
	p = p.Clone()
	change(p)
	_, _ = s.pools.Update(context.Background(), p) // read in the same instant: no conflict
	return true
}

// deployment returns the deployment of that name, in Namespace, or nil.
func (s *stores) deployment(name string) *deployment.Deployment {
	for _, d := range s.deployments.all() {
		if d.Key == (object.Key{Namespace: Namespace, Name: name}) {
			return d
		}
	}
	return nil
}

// wantedBySets returns how many machines the sets of a deployment want.
func (s *stores) wantedBySets(d *deployment.Deployment) (n int32) {
	for _, set := range s.sets.all() {
		if set.OwnedBy(d.UID) {
			n += set.Spec.Replicas
		}
	}
	return n
}

// fleetOf returns the machines of a deployment, including those being deleted.
func (s *stores) fleetOf(d *deployment.Deployment) []*machine.Machine {
	sets := map[string]bool{}
	for _, set := range s.sets.all() {
		if set.OwnedBy(d.UID) {
			sets[set.UID] = true
		}
	}
	var out []*machine.Machine
	for _, m := range s.machines.all() {
		if m.Owner != nil && sets[m.Owner.UID] {
			out = append(out, m)
		}
	}
	return out
}

// isReady reports whether a VM's node is ready.
func (s *stores) isReady(name, id string) bool {
	n, err := s.nodes.Get(context.Background(), object.Key{Name: name})
	if err != nil || n.ProviderID != id {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status == object.True
}

// edit changes a deployment as its owner would.
func (s *stores) edit(name string, change func(*deployment.Spec)) {
	d := s.deployment(name)
	if d == nil || d.Deleted() {
		return
	}
	d = d.Clone()
	change(&d.Spec)
	_, _ = s.deployments.Update(context.Background(), d) // read in the same instant: no conflict
}

// trackedStore keeps all objects of one kind, and emits an event for every change. Tests and the world
// itself use it directly, without faults.
type trackedStore[T object.Object[T]] struct {
	store.Collection[T]
	g       *base
	kind    manager.Kind
	indexes map[store.Index]func(T) []string
	notify  func(object.Key, T) // delivers a change to the running process; nil: no process has started
}

func newTrackedStore[T object.Object[T]](g *base, kind manager.Kind, indexes map[store.Index]func(T) []string) *trackedStore[T] {
	return &trackedStore[T]{Collection: store.NewMemory(g.Now, indexes), g: g, kind: kind, indexes: indexes}
}

// These are the events of changes of objects.
type (
	// deleting: an object with that UID was deleted, or marked as deleted.
	deleting struct{ uid string }
	// stored: an object was created, changed or deleted. now is the zero T if it is gone.
	stored[T object.Object[T]] struct {
		key object.Key
		now T
	}
)

// Create implements store.Collection.
func (s *trackedStore[T]) Create(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.Create(ctx, o)
	if err == nil {
		s.reportChange(stored.ObjectMeta().Key)
	}
	return stored, err
}

// Update implements store.Collection.
func (s *trackedStore[T]) Update(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.Update(ctx, o)
	if err == nil {
		s.reportChange(stored.ObjectMeta().Key)
	}
	return stored, err
}

// UpdateStatus implements store.Collection.
func (s *trackedStore[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	stored, err := s.Collection.UpdateStatus(ctx, o)
	if err == nil {
		s.reportChange(stored.ObjectMeta().Key)
	}
	return stored, err
}

// Delete implements store.Collection.
func (s *trackedStore[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	before, _ := s.Collection.Get(ctx, k)
	err := s.Collection.Delete(ctx, k, uid)
	if err == nil {
		s.g.emit(deleting{before.ObjectMeta().UID})
		s.reportChange(k)
	}
	return err
}

// reportChange reports the present state of an object to the subscribers and the running process.
func (s *trackedStore[T]) reportChange(k object.Key) {
	now, err := s.Collection.Get(context.Background(), k)
	if err != nil {
		var none T
		now = none
	}
	s.g.changed()
	s.g.emit(stored[T]{k, now})
	if s.notify != nil {
		s.notify(k, now)
	}
}

// load fills a new store with objects that existed before the world began.
func (s *trackedStore[T]) load(objects []T) {
	memory, _ := s.Collection.(*store.Memory[T]) // newTrackedStore made it
	for i, o := range objects {
		o.ObjectMeta().Version = strconv.Itoa(i + 1)
	}
	memory.Load(objects, uint64(len(objects)))
}

func (s *trackedStore[T]) all() []T {
	objects, _ := s.Collection.List(context.Background(), store.Query{}) // a store in memory answers
	return objects
}

// nthOf returns the nth stored object, modulo their number. found is false if there is none.
func nthOf[T object.Object[T]](s *trackedStore[T], n int) (o T, found bool) {
	all, _ := s.List(context.Background(), store.Query{}) // a store in memory answers
	if len(all) == 0 {
		return o, false
	}
	return all[((n%len(all))+len(all))%len(all)], true
}

// port is one process's view of the objects of a kind: reads are cached, writes have faults.
type port[T object.Object[T]] struct {
	p            *process
	trackedStore *trackedStore[T]
	cache        *cache[T]
	undelivered  int // number of changes that have not reached the cache yet
}

// read counts a read that may be answered with stale data.
func (s *port[T]) read() {
	if s.undelivered > 0 {
		s.p.count(StaleRead)
	}
}

// Get implements store.Reader, from the cache.
func (s *port[T]) Get(_ context.Context, k object.Key) (T, error) {
	if s.p.dead {
		var none T
		return none, errDead
	}
	s.read()
	return s.cache.get(k)
}

// List implements store.Reader, from the cache.
func (s *port[T]) List(_ context.Context, q store.Query) ([]T, error) {
	if s.p.dead {
		return nil, errDead
	}
	s.read()
	return s.cache.list(q)
}

// Live implements store.Collection.
func (s *port[T]) Live() store.Reader[T] { return liveReader[T]{s.p, s.trackedStore} }

// Create implements store.Collection.
func (s *port[T]) Create(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Create(ctx, o); return err })
	return out, err
}

// Update implements store.Collection.
func (s *port[T]) Update(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Update(ctx, o); return err })
	return out, err
}

// UpdateStatus implements store.Collection.
func (s *port[T]) UpdateStatus(ctx context.Context, o T) (out T, err error) {
	err = s.p.write(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.UpdateStatus(ctx, o); return err })
	return out, err
}

// Delete implements store.Collection.
func (s *port[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	return s.p.write(apiOf(s.trackedStore.kind), func() error { return s.trackedStore.Delete(ctx, k, uid) })
}

// Watch implements store.Collection. It yields nothing, because the world wakes the reconcilers itself.
func (s *port[T]) Watch(context.Context) iter.Seq2[store.Change[T], error] {
	return func(func(store.Change[T], error) bool) {}
}

// liveReader reads the stored objects of a kind for one process, with faults.
type liveReader[T object.Object[T]] struct {
	p            *process
	trackedStore *trackedStore[T]
}

// Get implements store.Reader.
func (s liveReader[T]) Get(ctx context.Context, k object.Key) (out T, err error) {
	err = s.p.call(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.Get(ctx, k); return err })
	return out, err
}

// List implements store.Reader.
func (s liveReader[T]) List(ctx context.Context, q store.Query) (out []T, err error) {
	err = s.p.call(apiOf(s.trackedStore.kind), func() (err error) { out, err = s.trackedStore.List(ctx, q); return err })
	return out, err
}

// cache holds what one process knows of the objects of a kind: all changes delivered so far.
type cache[T object.Object[T]] struct {
	objects map[object.Key]T
	indexes map[store.Index]func(T) []string
	places  map[store.Query][]T // the answer to each query, sorted by key
}

func newCache[T object.Object[T]](indexes map[store.Index]func(T) []string, objects []T) *cache[T] {
	c := &cache[T]{objects: map[object.Key]T{}, indexes: indexes, places: map[store.Query][]T{}}
	for _, o := range objects {
		c.put(o.ObjectMeta().Key, o)
	}
	return c
}

// put stores a change, and returns the object before it. The zero T means that the object does not
// exist.
func (c *cache[T]) put(k object.Key, o T) (before T) {
	var none T
	before = c.objects[k]
	if before != none {
		c.place(before, func(at []T, i int) []T { return slices.Delete(at, i, i+1) })
		delete(c.objects, k)
	}
	if o != none {
		c.objects[k] = o
		c.place(o, func(at []T, i int) []T { return slices.Insert(at, i, o) })
	}
	return before
}

// place changes each list that an object is in or belongs in. i is the position of the object.
func (c *cache[T]) place(o T, change func(list []T, i int) []T) {
	places := map[store.Query]bool{{}: true} // a map, because an index may yield a value twice
	for index, values := range c.indexes {
		for _, value := range values(o) {
			places[store.Query{Index: index, Value: value}] = true
		}
	}
	for q := range places {
		i, _ := slices.BinarySearchFunc(c.places[q], o.ObjectMeta().Key, func(other T, k object.Key) int {
			return compareKeys(other.ObjectMeta().Key, k)
		})
		c.places[q] = change(c.places[q], i)
	}
}

func (c *cache[T]) get(k object.Key) (T, error) {
	o, ok := c.objects[k]
	if !ok {
		return o, fmt.Errorf("get %s: %w", k, store.ErrNotFound)
	}
	return o, nil
}

func (c *cache[T]) list(q store.Query) ([]T, error) {
	if _, known := c.indexes[q.Index]; !known && q != (store.Query{}) {
		return nil, fmt.Errorf("list by %s: %w", q.Index, store.ErrInvalid)
	}
	return slices.Clone(c.places[q]), nil
}

func compareKeys(a, b object.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// api is one of the two API servers.
type api int

const (
	controlAPI api = iota // machines, sets, deployments, classes, secrets
	targetAPI             // nodes, pods, budgets
	apiCount
)

// apiOf returns the API server that has objects of a kind.
func apiOf(kind manager.Kind) api {
	if kind == manager.KindNode || kind == manager.KindWorkload {
		return targetAPI
	}
	return controlAPI
}

// downtime is the last period in which an API did not answer.
type downtime struct{ began, ends time.Time }

// apis are the API servers and their outages.
type apis struct {
	*base
	outages  [apiCount]downtime
	noTarget bool          // there is no target cluster, so its API has no outages
	slowest  time.Duration // see longAgo
}

func newAPIs(g *base, noTarget bool) *apis {
	return &apis{base: g, noTarget: noTarget, slowest: slowest(g.hazards)}
}

// interrupted: an outage begins, or the process is about to be killed.
type interrupted struct{}

// stop makes an API refuse every call for a while, and report no change.
func (s *apis) stop(a api, d time.Duration) {
	if a == targetAPI && s.noTarget {
		return
	}
	s.emit(interrupted{})
	end := s.Now().Add(d)
	if !s.down(a) {
		s.outages[a].began = s.Now()
	}
	if end.After(s.outages[a].ends) {
		s.outages[a].ends = end
	}
}

// down reports whether an API does not answer.
func (s *apis) down(a api) bool { return s.Now().Before(s.outages[a].ends) }

// outSince reports whether an API was out since the time then.
func (s *apis) outSince(then time.Time) bool {
	return s.outages[controlAPI].ends.After(then) || s.outages[targetAPI].ends.After(then)
}

// inFlight is the longest time between a decision and its effect. An order that takes effect now may
// have been decided on the state of that long ago.
const inFlight = 30 * time.Second

// underWay reports whether an order from before the time then may still be under way. While an API does
// not answer, orders make no progress.
func (s *apis) underWay(then time.Time) bool { return s.Now().Sub(s.answeringSince(then)) <= inFlight }

// longAgo reports whether no order of the running process from before the time then can still be under
// way. Calls to the provider take longest, and while an API does not answer, nothing makes progress. It
// is false for the zero time.
func (s *apis) longAgo(then time.Time) bool {
	return !then.IsZero() && s.Now().Sub(s.answeringSince(then)) > s.slowest
}

// answeringSince returns the time since which both APIs have answered, or earliest if that is later.
func (s *apis) answeringSince(earliest time.Time) time.Time {
	for a := range apiCount {
		if ends := s.outages[a].ends; ends.After(earliest) {
			earliest = ends
		}
	}
	return earliest
}

// slowest returns how long a pass may take, including the lag of the caches that it reads.
func slowest(f *Faults) time.Duration { return 2*time.Minute + 3*f.CallTime + f.CacheLag }
