package sim

import (
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/sim/internal/cluster"
	"github.com/millwright-go/millwright/store"
)

// program is what each life of the manager is made from.
type program struct {
	options    manager.Options // its ports, clock and hooks are the world's
	noCluster  bool
	drain      *drain.Policy
	limit      drains.Limit
	driver     func() driver.Driver
	own        bool                     // the driver is a user's
	poolDriver func() pooldriver.Driver // nil: the manager knows of no pools
}

// managers are the lives of the manager, one after another.
type managers struct {
	*ground
	*stores
	*effort
	program
	apis       *apis
	shown      *managerClock
	machines   *machineCalls
	calls      *ownCalls
	groups     *poolCalls
	apps       *cluster.Cluster
	bootstraps *bootstrapMaker

	// workload opens what runs on the nodes for a process, which is told of nodes whose pods have
	// changed. Nil: apps.
	workload func(by *process, tell func(node string)) drains.Workload
}

// start begins a process. The process sees what is stored at this moment, and looks at everything.
func (s *managers) start() error {
	p := s.newRunner()
	o := s.options
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler) // Options.Tell is this world's
	}
	if o.Policies.Safety == nil { // see New
		o.Policies.Safety = safety.Off()
	}
	o.Store.Machines, o.Store.Sets, o.Store.Deployments = openPort(p, s.stores.machines), openPort(p, s.sets), openPort(p, s.deployments)
	o.Store.Classes, o.Store.Secrets = openPort(p, s.classes), openPort(p, s.secrets)
	if p.own {
		o.Driver = driver.Intercept(s.driver(), s.calls.through(p.process, s.machines))
	} else {
		o.Driver = driver.Intercept(watchedMachines{s.driver(), s.machines.vms}, p.through(s.machines))
	}
	s.keepPools(p, &o)
	o.Runtime.Now, o.Runtime.Each, o.Runtime.Await, o.Hooks = s.shown.managerNow, p.each, p.await, p.hooks(p.follows(o.Hooks))
	if err := s.join(p, &o); err != nil {
		return err
	}
	o.Runtime.Jitter = func(d time.Duration) time.Duration { return d + s.upTo(d/10) }
	m, err := manager.New(o)
	if err != nil {
		return err
	}
	p.manager = m
	s.emit(processStarted{p.process})
	for _, wake := range m.Wakes() {
		p.wakes[wake.From] = append(p.wakes[wake.From], wake)
	}
	for _, r := range m.Reconcilers() {
		p.works[r.Kind()] = r
	}
	m.WakeMachines(func(key object.Key) { p.look(queueKey{manager.KindMachine, key}, p.Now()) })
	s.planKill(p.process)
	s.lookAtAll(p)
	return nil
}

func (s *managers) newRunner() *runner {
	p := &runner{
		process: &process{ground: s.ground, apis: s.apis, effort: s.effort, began: s.Now(), restart: s.restart, own: s.own, under: map[callee]driver.Method{}},
		shown:   s.shown, resync: s.options.Tuning.Resync,
		queue: map[queueKey]*item{}, last: map[manager.Kind]time.Time{},
		wakes: map[manager.Kind][]manager.Wake{}, works: map[manager.Kind]manager.Reconciler{},
	}
	if p.resync <= 0 {
		p.resync = 10 * time.Minute
	}
	return p
}

// planKill draws when a process dies, if it is to be killed.
func (s *managers) planKill(p *process) {
	if s.kills >= s.hazards.Kills || s.faultsStopped {
		return
	}
	s.kills++
	p.killAt = 1 + s.chance(max(s.hazards.KillWithin, 1))
	p.end = killedBefore + outcome(s.chance(2))
	if s.happens(s.hazards.Late) {
		p.end = killedLate
	}
}

// lookAtAll plans a pass over everything that is stored.
func (s *managers) lookAtAll(p *runner) {
	for _, r := range p.manager.Reconcilers() {
		if r.Kind().Fleet() {
			p.look(queueKey{r.Kind(), manager.Fleet}, s.Now())
		}
	}
	if p.works[manager.KindClass] != nil {
		lookAll(p, manager.KindClass, s.classes)
		lookAll(p, manager.KindSecret, s.secrets)
	}
	lookAll(p, manager.KindDeployment, s.deployments)
	lookAll(p, manager.KindSet, s.sets)
	lookAll(p, manager.KindMachine, s.stores.machines)
	lookAll(p, manager.KindPool, s.pools)
}

// keepPools makes a process reconcile pools.
func (s *managers) keepPools(p *runner, o *manager.Options) {
	if s.poolDriver == nil {
		return
	}
	o.Store.Pools, o.Pools.Bootstrap = openPort(p, s.pools), bootstrapper{p.process, s.bootstraps, s.shown}
	o.Pools.Driver = pooldriver.Intercept(watchedPools{s.poolDriver(), s.groups}, p.through(s.groups))
}

// join gives a process its view of the cluster.
func (s *managers) join(p *runner, o *manager.Options) (err error) {
	if s.noCluster {
		return nil
	}
	nodes := openPort(p, s.nodes)
	o.Cluster = clusterView{nodes}
	open := s.workload
	if open == nil {
		open = s.openApps
	}
	work := open(p.process, func(node string) {
		p.deliver(manager.KindWorkload, func() { p.wake(manager.KindWorkload, nil, node) })
	})
	o.Drainer, err = drains.New(drains.Options{
		Nodes: nodes, Workload: work, Policy: s.drain, Limit: s.limit, Now: o.Runtime.Now, Each: p.each,
	})
	return err
}

// openApps opens the apps for a process.
func (s *managers) openApps(by *process, tell func(node string)) drains.Workload {
	s.apps.Watch(tell)
	work := workloadPort{by, s.apps}
	return drains.Workload{Pods: work, Budgets: work, Volumes: work}
}

type clusterView struct {
	nodes store.Collection[*machine.Node]
}

// Nodes implements manager.Cluster.
func (c clusterView) Nodes() store.Collection[*machine.Node] { return c.nodes }

// restart begins another process, once both APIs can fill its caches.
func (s *managers) restart() {
	for a := range apiCount {
		if s.apis.down(a) {
			s.After(s.apis.outages[a].ends.Sub(s.Now()), s.restart)
			return
		}
	}
	if err := s.start(); err != nil {
		s.violate(RuleStarted, "a manager does not start again: %v", err)
	}
}
