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

// process is one process of the manager, with what concerns its calls to stores, provider and cluster.
type process struct {
	*base
	*apis
	*counters
	manager     *manager.Manager
	began       time.Time
	calls       int     // number of calls so far
	killAt      int     // the number of the call at which the process dies; 0: none
	killOutcome outcome // how that call ends
	dead        bool
	patience    time.Duration                // how long a caller waits for a call of the driver
	limit       time.Duration                // time until the deadline of that call; zero: no deadline
	userDriver  bool                         // the driver is that of Options.Driver
	underway    map[callTarget]driver.Method // calls to the driver that have not returned
	restart     func()                       // starts the next process
}

// callTarget is the object of a driver call.
type callTarget struct {
	kind   string
	object object.Key
}

// counters counts what all processes of a world have done.
type counters struct {
	kills         int // planned kills
	passes        int // completed passes
	steps, writes int // steps are calls and deliveries of changes; see Stats.Steps
}

// processStarted: another process of the manager starts.
type processStarted struct{ process *process }

// outcome says whether a process dies at a call, and whether the call is carried out.
type outcome int

const (
	spared outcome = iota
	killedBefore
	killedAfter
	killedLate // the process dies before the call, which is carried out some time later
)

// These are the errors of calls that fail by a fault of the world.
var (
	errDead   = errors.New("sim: the process is dead")
	errOutage = errors.New("sim: the API does not answer")
	errLost   = errors.New("sim: the answer was lost")
)

// call makes one call of a process to a store or the cluster, and simulates what may happen to it. do
// carries the call out.
func (p *process) call(a api, do func() error) error {
	if p.dead {
		return errDead // no caller is alive
	}
	p.clock.Pause(p.latency()) // the call is on its way
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

// later carries out a call some time after its caller has died.
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
	return p.killOutcome
}

// kill ends the process, and starts another after a while.
func (p *process) kill() {
	p.emit(interrupted{})
	p.dead = true
	p.Mark(history.Kill, "manager killed")
	if p.killOutcome == killedAfter {
		p.count(KilledAfter)
	} else {
		p.count(KilledBefore)
	}
	p.After(p.upTo(p.hazards.Restart), p.restart)
}

// managerConfig is what each process of the manager is started with.
type managerConfig struct {
	options    manager.Options // start sets its store, driver, cluster, clock and hooks
	noCluster  bool
	drain      *drain.Policy
	limit      drains.Limit
	driver     func() driver.Driver
	userDriver bool                     // the driver is that of Options.Driver
	poolDriver func() pooldriver.Driver // nil: the manager has no pools
}

// managers starts the processes of the manager, one after another.
type managers struct {
	*base
	*stores
	*counters
	managerConfig
	apis        *apis
	skewedClock *managerClock
	machines    *machineCalls
	calls       *userDriverCalls
	groups      *poolCalls
	apps        *cluster.Cluster
	bootstraps  *bootstrapMaker

	// workload gives a process access to the pods on the nodes. tell reports nodes whose pods have
	// changed. Nil: the pods are those of apps.
	workload func(by *process, tell func(node string)) drains.Workload
}

// start starts a process. Its caches hold what is stored at this moment, and it plans a pass over every
// object.
func (s *managers) start() error {
	p := s.newRunner()
	o := s.options
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler) // Options.Tell gets the same
	}
	if o.Policies.Safety == nil { // see New
		o.Policies.Safety = safety.Off()
	}
	o.Store.Machines, o.Store.Sets, o.Store.Deployments = openPort(p, s.stores.machines), openPort(p, s.sets), openPort(p, s.deployments)
	o.Store.Classes, o.Store.Secrets = openPort(p, s.classes), openPort(p, s.secrets)
	if p.userDriver {
		o.Driver = driver.Intercept(s.driver(), s.calls.interceptor(p.process, s.machines))
	} else {
		o.Driver = driver.Intercept(watchedMachines{s.driver(), s.machines.vms}, p.interceptor(s.machines))
	}
	s.connectPools(p, &o)
	o.Runtime.Now, o.Runtime.Each, o.Runtime.Await, o.Hooks = s.skewedClock.managerNow, p.each, p.await, p.hooks(p.reportNodeDeletions(o.Hooks))
	if err := s.connectCluster(p, &o); err != nil {
		return err
	}
	o.Runtime.Jitter = s.jittered
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
		p.reconcilers[r.Kind()] = r
	}
	m.WakeMachines(func(key object.Key) { p.planPass(queueKey{manager.KindMachine, key}, p.Now()) })
	s.planKill(p.process)
	s.planEverything(p)
	return nil
}

func (s *managers) newRunner() *runner {
	p := &runner{
		process:     &process{base: s.base, apis: s.apis, counters: s.counters, began: s.Now(), restart: s.restart, userDriver: s.userDriver, underway: map[callTarget]driver.Method{}},
		skewedClock: s.skewedClock, resync: s.options.Tuning.Resync,
		queue: map[queueKey]*item{}, last: map[manager.Kind]time.Time{},
		wakes: map[manager.Kind][]manager.Wake{}, reconcilers: map[manager.Kind]manager.Reconciler{},
	}
	if p.resync <= 0 {
		p.resync = 10 * time.Minute
	}
	return p
}

// planKill draws the call at which a process dies, if more kills are to come.
func (s *managers) planKill(p *process) {
	if s.kills >= s.hazards.Kills || s.faultsStopped {
		return
	}
	s.kills++
	p.killAt = 1 + s.chance(max(s.hazards.KillWithin, 1))
	p.killOutcome = killedBefore + outcome(s.chance(2))
	if s.happens(s.hazards.Late) {
		p.killOutcome = killedLate
	}
}

// planEverything plans a pass over everything that is stored.
func (s *managers) planEverything(p *runner) {
	for _, r := range p.manager.Reconcilers() {
		if r.Kind().Fleet() {
			p.planPass(queueKey{r.Kind(), manager.Fleet}, s.Now())
		}
	}
	if p.reconcilers[manager.KindClass] != nil {
		planAll(p, manager.KindClass, s.classes)
		planAll(p, manager.KindSecret, s.secrets)
	}
	planAll(p, manager.KindDeployment, s.deployments)
	planAll(p, manager.KindSet, s.sets)
	planAll(p, manager.KindMachine, s.stores.machines)
	planAll(p, manager.KindPool, s.pools)
}

// connectPools makes a process reconcile pools.
func (s *managers) connectPools(p *runner, o *manager.Options) {
	if s.poolDriver == nil {
		return
	}
	o.Store.Pools, o.Pools.Bootstrap = openPort(p, s.pools), bootstrapper{p.process, s.bootstraps, s.skewedClock}
	o.Pools.Driver = pooldriver.Intercept(watchedPools{s.poolDriver(), s.groups}, p.interceptor(s.groups))
}

// connectCluster gives a process its view of the cluster.
func (s *managers) connectCluster(p *runner, o *manager.Options) (err error) {
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

// openApps gives a process access to the pods of the apps.
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

// restart starts another process as soon as both APIs answer, so that it can fill its caches.
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

// managerClock is the clock of the manager. It may be wrong, and may jump.
type managerClock struct {
	*apis
	skew   time.Duration // how far it is ahead of the world's clock
	skewed time.Duration // how far it was ahead before the last jump
	jumped time.Time     // when it last jumped, or zero
}

// JumpClock sets the manager's clock ahead of the world's by d, or behind it if d is negative. Jumps do
// not add up.
func (c *managerClock) JumpClock(d time.Duration) {
	c.count(ClockJump)
	c.setClock(d)
}

func (c *managerClock) setClock(skew time.Duration) {
	c.skewed, c.jumped = c.skew, c.Now()
	c.skew = skew
}

// managerNow returns the time that the manager's clock shows.
func (c *managerClock) managerNow() time.Time { return c.managerTime(c.Now()) }

// managerTime converts an instant of the world to the manager's clock, to compare it with times that the
// manager wrote. After a jump the result is wrong for earlier instants.
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
