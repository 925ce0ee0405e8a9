package sim

import (
	"errors"
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
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/sim/internal/cluster"
	"github.com/millwright-go/millwright/store"
)

// process is one life of a manager, as its calls to the outside see it.
type process struct {
	*base
	*apis
	*counters
	manager  *manager.Manager
	began    time.Time
	calls    int // to the outside
	killAt   int // the call at which it dies, or 0
	end      outcome
	dead     bool
	patience time.Duration                // how long a caller waits for a call
	limit    time.Duration                // until the deadline of a call; zero: no deadline
	own      bool                         // the driver is a user's
	under    map[callTarget]driver.Method // calls to the driver that have not returned
	restart  func()                       // begins the next one
}

// callTarget is the object of a driver call.
type callTarget struct {
	kind   string
	object object.Key
}

// counters count what all processes of a world have done.
type counters struct {
	// kills are those that were planned, steps are calls and deliveries.
	kills, passes, steps, writes int
}

// processStarted: another process begins.
type processStarted struct{ process *process }

type outcome int

const (
	spared outcome = iota
	killedBefore
	killedAfter
	killedLate // before the call, which is carried out nevertheless when time has passed
)

// These are the answers to calls that the world disturbs.
var (
	errDead   = errors.New("sim: the process is dead")
	errOutage = errors.New("sim: the API does not answer")
	errLost   = errors.New("sim: the answer was lost")
)

// call takes one call of a process to the outside through everything that may happen to it. do
// carries it out.
func (p *process) call(a api, do func() error) error {
	if p.dead {
		return errDead // no caller is alive
	}
	p.clock.Pause(p.latency()) // on its way
	if p.dead {
		if p.happens(p.hazards.Late) {
			p.later(do)
		}
		return errDead
	}
	p.calls++
	p.steps++
	if p.down(a) {
		return errOutage
	}
	outcome := p.outcome()
	switch outcome {
	case killedLate:
		p.later(do)
		fallthrough
	case killedBefore:
		p.kill()
		return errDead
	}
	p.acting = true
	err := do()
	p.acting = false
	p.check()
	if errors.Is(err, store.ErrConflict) {
		p.count(ConflictAnswered)
	}
	switch {
	case outcome == killedAfter:
		p.kill()
		return errDead
	case p.happens(p.hazards.LostAnswer):
		p.count(StoreAnswerLost)
		return errLost
	}
	p.clock.Pause(p.latency()) // the answer is on its way
	if p.dead {
		return errDead
	}
	return err
}

// write is a call that changes what is stored.
func (p *process) write(a api, do func() error) error {
	p.writes++
	return p.call(a, do)
}

// later carries out a call whose caller is dead.
func (p *process) later(do func() error) {
	p.After(p.upTo(p.hazards.LateBy), func() {
		p.count(CallLate)
		p.acting, p.belated = true, true
		_ = do() // no caller gets the answer
		p.acting = false
		p.check()
		p.belated = false
	})
}

func (p *process) outcome() outcome {
	if p.killAt == 0 || p.calls != p.killAt {
		return spared
	}
	return p.end
}

// kill ends the process, and starts another after a while.
func (p *process) kill() {
	p.emit(interrupted{})
	p.dead = true
	p.Mark(history.Kill, "manager killed")
	if p.end == killedAfter {
		p.count(KilledAfter)
	} else {
		p.count(KilledBefore)
	}
	p.After(p.upTo(p.hazards.Restart), p.restart)
}

// managerConfig is what each process of the manager is started with.
type managerConfig struct {
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
	*base
	*stores
	*counters
	managerConfig
	apis       *apis
	shown      *managerClock
	machines   *machineCalls
	calls      *userDriverCalls
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
	o.Runtime.Jitter = s.spread
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
		process: &process{base: s.base, apis: s.apis, counters: s.counters, began: s.Now(), restart: s.restart, own: s.own, under: map[callTarget]driver.Method{}},
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

// managerClock is the clock of the manager. It jumps.
type managerClock struct {
	*apis
	skew   time.Duration // how far it is ahead of the world's
	skewed time.Duration // the same before it jumped
	jumped time.Time     // when it jumped last, or zero
}

// JumpClock sets the manager's clock ahead of the world's by d, or behind it if d is negative.
// Earlier jumps don't matter.
func (c *managerClock) JumpClock(d time.Duration) {
	c.count(ClockJump)
	c.setClock(d)
}

func (c *managerClock) setClock(skew time.Duration) {
	c.skewed, c.jumped = c.skew, c.Now()
	c.skew = skew
}

// managerNow is the time that the manager's clock shows.
func (c *managerClock) managerNow() time.Time { return c.managerTime(c.Now()) }

// managerTime is an instant of the world as the manager's clock would have it: times that the manager
// wrote are compared with that. After a jump it is wrong for earlier instants.
func (c *managerClock) managerTime(then time.Time) time.Time { return then.Add(c.skew) }

// latest returns the latest time that the manager's clock may have shown for orders that are
// carried out now.
func (c *managerClock) latest() time.Time {
	skew := c.skew
	if !c.jumped.IsZero() && c.underWay(c.jumped) {
		skew = max(skew, c.skewed)
	}
	return c.Now().Add(skew)
}
