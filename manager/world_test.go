package manager_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// tb has the methods that *testing.T and *rapid.T share.
type tb interface {
	require.TestingT
	Helper()
	Fatalf(format string, args ...any)
}

// world is everything outside the manager: stores, a provider, a cluster, and
// a clock. It outlives any number of managers.
type world struct {
	t           tb
	at          time.Time
	machines    *store.Memory[*machine.Machine]
	sets        *store.Memory[*machineset.Set]
	deployments *store.Memory[*deployment.Deployment]
	classes     *store.Memory[*machine.Class]
	secrets     *store.Memory[*machine.Secret]
	nodes       *store.Memory[*machine.Node]
	provider    *drivertest.Memory
	policy      *deployment.Policy // nil: the default

	writes        int  // of all processes
	idle          bool // the last round of until wrote nothing, and no status is due within a second
	written       map[reflect.Type]int
	effects       map[string]int  // that hooks reported
	calls         [8]int          // that reached the provider, by method
	made          map[string]bool // all machines so far
	lost          int             // machines that failed
	unrequested   int             // machines that others made
	bounded       bool            // all machines are the deployment's, within its bounds
	agents        bool            // agents on nodes update machines in place; see update
	failedEffects int             // effects that ended in an error
	events        []string        // all events, for the messages of failures
	warnings      []string        // the warnings among them

	orphanVMs               map[string]bool // IDs of VMs that were not asked for
	controlDown, targetDown bool            // an API server does not answer
	safety                  *safety.Policy  // nil: no budget
	// setOptions changes the options of each manager; nil: it changes none.
	setOptions func(*manager.Options, *testkit.Fuse)
	badDriver  driver.Driver        // in place of the provider; nil: the provider itself
	sick       map[string]bool      // VMs whose nodes are unhealthy
	neverJoins func(vm string) bool // VMs whose nodes never join; nil: none
	mayPanic   bool                 // passes may panic: they are repeated after a pause, as Run does
	panicked   int                  // passes that have panicked
	panics     []string
	current    passID // the pass under way
	pauses     map[passID]time.Duration
	// refuse replaces the provider's answer to a call. If it is nil, or returns nil, the
	// provider answers itself.
	refuse func(driver.CallInfo) error
}

const namespace = "fleet"

var (
	ctx      = context.Background()
	fleetKey = object.Key{Namespace: namespace, Name: "web"}
)

func newWorld(t tb, o drivertest.MemoryOptions) *world {
	w := &world{t: t, at: time.Unix(1_800_000_000, 0).UTC(), made: map[string]bool{}, written: map[reflect.Type]int{}, orphanVMs: map[string]bool{}, effects: map[string]int{}}
	w.machines = store.NewMemory(w.now, manager.MachineIndexes())
	w.sets = store.NewMemory(w.now, manager.SetIndexes())
	w.deployments = store.NewMemory(w.now, manager.DeploymentIndexes())
	w.classes = store.NewMemory(w.now, manager.ClassIndexes())
	w.secrets = store.NewMemory[*machine.Secret](w.now, nil)
	w.nodes = store.NewMemory(w.now, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
	w.provider = drivertest.NewMemory(o)
	class := w.provider.Class(object.Key{Namespace: namespace, Name: "small"}, drivertest.MemorySpec{Cluster: "blue", Size: "s"})
	class.SecretRef = &object.Key{Name: "boot"}
	_, err := w.classes.Create(ctx, class)
	require.NoError(t, err)
	_, err = w.secrets.Create(ctx, w.provider.Secret(object.Key{Namespace: namespace, Name: "boot"}))
	require.NoError(t, err)
	return w
}

func (w *world) now() time.Time { return w.at }

// passID is the kind and key of a pass.
type passID struct {
	kind manager.Kind
	key  object.Key
}

// process is one process of a manager. A test may kill it, and start another.
type process struct {
	*manager.Manager
	fuse *testkit.Fuse
	over bool        // its term is over: a change was refused
	look func() bool // updates its caches; false: some still lag
	sync func()      // updates its caches completely
}

// start begins a new process. The caches of a stale one show changes only after look.
func (w *world) start(f *testkit.Fuse, stale bool) *process {
	p := &process{fuse: f, sync: func() {}}
	p.look = func() bool { p.sync(); return true }
	o := manager.Options{
		Store: manager.Store{
			Machines:    attach(w, p, stale, w.machines, manager.MachineIndexes()),
			Sets:        attach(w, p, stale, w.sets, manager.SetIndexes()),
			Deployments: attach(w, p, stale, w.deployments, manager.DeploymentIndexes()),
			Classes:     attach(w, p, false, w.classes, manager.ClassIndexes()),
			Secrets:     attach(w, p, false, w.secrets, nil),
		},
		Cluster: nodes{p.cluster(w, stale)},
		Driver:  driver.Intercept(w.driver(), w.through(f)),
		Runtime: manager.Runtime{
			Now:    w.now,
			Jitter: testkit.NoJitter,
			Each:   testkit.InOrder,
		}, Policies: manager.Policies{Safety: cmp.Or(w.safety, safety.Off()), Deployment: w.policy},
		Hooks: manager.Hooks{Transition: w.lose, Effect: w.effect, Event: func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
			w.events = append(w.events, fmt.Sprintf("%s call %d: %s %s: %s: %s", w.at.Format("15:04:05"), f.Calls, kind, key, reason, why))
			if typ == manager.Warning {
				w.warnings = append(w.warnings, w.events[len(w.events)-1])
			}
		}},
	}
	if w.setOptions != nil {
		w.setOptions(&o, f)
	}
	m, err := manager.New(o)
	require.NoError(w.t, err)
	p.Manager = m
	p.sync()
	return p
}

func (w *world) driver() driver.Driver {
	if w.badDriver != nil {
		return w.badDriver
	}
	return w.provider
}

// cluster returns the process's view of the nodes.
func (p *process) cluster(w *world, stale bool) *testkit.Port[*machine.Node] {
	nodes := attach(w, p, stale, w.nodes, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
	nodes.Down = &w.targetDown
	return nodes
}

func attach[T object.Object[T]](w *world, p *process, stale bool, c store.Collection[T],
	indexes map[store.Index]func(T) []string,
) *testkit.Port[T] {
	out := &testkit.Port[T]{Collection: c, Fuse: p.fuse, Down: &w.controlDown, Written: func() { w.writes++; w.written[reflect.TypeFor[T]()]++ }}
	if stale {
		seen := testkit.NewCache(c, indexes)
		out.Cache = seen
		before := p.sync
		p.sync = func() { before(); seen.Refresh() }
	}
	return out
}

// through lets a driver call pass the fuse.
func (w *world) through(f *testkit.Fuse) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) (err error) {
		call, _ := s.Method.(codes.Call)
		died := f.Do(func() error {
			w.calls[call]++
			if w.refuse != nil {
				if err = w.refuse(s); err != nil {
					return err
				}
			}
			err = next(ctx)
			return err
		})
		if f.Dead {
			return died
		}
		return err
	}
}

// effect is the hook that counts effects, and those that ended in an error.
func (w *world) effect(_ manager.Kind, _ object.Key, name string, _ time.Duration, err error) {
	w.effects[name]++
	if err != nil {
		w.failedEffects++
	}
}

// lose is the hook that counts machines that fail.
func (w *world) lose(_ object.Key, move machine.Move, _ decision.Why) {
	if move.To == string(machine.PhaseFailed) {
		w.lost++
	}
}

// round makes a pass over every object, and lets the world move on. It returns the earliest time at which an
// object is to be looked at again.
func (w *world) round(p *process) (next time.Time) {
	keys := map[manager.Kind][]object.Key{
		manager.KindDeployment: keysOf(w.deployments), manager.KindSet: keysOf(w.sets), manager.KindMachine: keysOf(w.machines),
		manager.KindReachability: {manager.Fleet}, manager.KindOrphans: {manager.Fleet}, manager.KindUnmanaged: {manager.Fleet}, manager.KindOwnerless: {manager.Fleet},
		manager.KindClass: w.classNames(), manager.KindSecret: keysOf(w.secrets),
	}
	for _, r := range p.Reconcilers() {
		for _, key := range keys[r.Kind()] {
			w.current = passID{r.Kind(), key}
			result, err := w.pass(r, key)
			p.over = errors.Is(err, store.ErrFenced)
			if p.fuse.Dead || p.over {
				return time.Time{}
			}
			if err != nil && (w.controlDown || w.targetDown) {
				require.ErrorIs(w.t, err, testkit.ErrOutage)
				result.At = w.at.Add(15 * time.Second)
				err = nil
			}
			if w.mayPanic && errors.Is(err, manager.ErrPanicked) {
				result.At, err = w.at.Add(w.pause()), nil
			}
			require.NoError(w.t, err)
			w.check()
			if !result.At.IsZero() && (next.IsZero() || result.At.Before(next)) {
				next = result.At
			}
		}
	}
	return next
}

// pass reconciles an object. A pass that may call runtime.Goexit runs as a worker runs it.
func (w *world) pass(r manager.Reconciler, key object.Key) (result manager.Result, err error) {
	if !w.mayPanic {
		return r.Reconcile(ctx, key)
	}
	err = manager.ErrPanicked // unless the pass returns
	engine.Isolate(func() { result, err = r.Reconcile(ctx, key) })
	return result, err
}

// pause returns how long after a panic a pass is made again.
func (w *world) pause() time.Duration {
	w.panicked++
	if w.pauses == nil {
		w.pauses = map[passID]time.Duration{}
	}
	w.pauses[w.current] = min(max(2*w.pauses[w.current], time.Second), 3*time.Minute)
	return w.pauses[w.current]
}

// lookAt makes one pass of a kind for the whole fleet.
func (p *process) lookAt(kind manager.Kind) error {
	for _, r := range p.Reconcilers() {
		if r.Kind() == kind {
			_, err := r.Reconcile(ctx, manager.Fleet)
			return err
		}
	}
	return errors.New("there is no reconciler of kind " + string(kind))
}

func keysOf[T object.Object[T]](c store.Collection[T]) []object.Key {
	all, err := c.List(ctx, store.Query{})
	if err != nil {
		panic(err) // a store in memory answers
	}
	keys := make([]object.Key, len(all))
	for i := range all {
		keys[i] = all[i].ObjectMeta().Key
	}
	return keys
}

// join gives every VM a healthy node, and makes the node of a VM that is gone unhealthy.
func (w *world) join() {
	alive := map[string]string{}
	for _, vm := range w.provider.VMs() {
		alive[vm.Name] = vm.ID
		if w.neverJoins != nil && w.neverJoins(vm.Name) {
			continue
		}
		if _, err := w.nodes.Get(ctx, object.Key{Name: vm.Name}); err == nil {
			continue
		}
		node, err := w.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: vm.Name}}, ProviderID: vm.ID})
		require.NoError(w.t, err)
		w.ready(node, object.True)
	}
	for _, key := range keysOf(w.nodes) {
		node, err := w.nodes.Get(ctx, key)
		require.NoError(w.t, err)
		if (alive[key.Name] == "" || w.sick[key.Name]) && !node.Deleted() {
			w.ready(node, object.Unknown)
		}
	}
}

func (w *world) ready(n *machine.Node, status object.ConditionStatus) {
	if c := object.FindCondition(n.Conditions, machine.NodeReady); c != nil && c.Status == status {
		return
	}
	n = n.Clone()
	n.Conditions = object.SetCondition(n.Conditions, object.Condition{Type: machine.NodeReady, Status: status, Since: w.at})
	_, err := w.nodes.UpdateStatus(ctx, n)
	require.NoError(w.t, err)
}

// check fails the test if the world breaks a rule that must hold at every moment.
func (w *world) check() {
	vms := map[string]int{}
	for _, vm := range w.provider.VMs() {
		if w.orphanVMs[vm.ID] {
			continue
		}
		if vms[vm.Name]++; vms[vm.Name] > 1 {
			w.t.Fatalf("P13: machine %s has two VMs", vm.Name)
		}
	}
	machines, _ := w.machines.List(ctx, store.Query{})
	present := map[string]bool{}
	for _, m := range machines {
		present[m.Name] = true
		w.made[m.Name] = true
	}
	for name := range vms {
		if !present[name] {
			w.t.Fatalf("P14: machine %s is gone, and its VM still exists", name)
		}
	}
	w.checkBounds(machines)
}

// checkBounds fails the test if a rollout exceeds its bounds (P7): without terminating machines, the total never
// exceeds R + S.
func (w *world) checkBounds(machines []*machine.Machine) {
	d, err := w.deployments.Get(ctx, fleetKey)
	if err != nil {
		return
	}
	bounds := rollout.Fenceposts(d.Spec.Strategy.MaxSurge, d.Spec.Strategy.MaxUnavailable, d.Spec.Replicas)
	total := 0
	for _, m := range machines {
		if !m.Deleted() || w.policy != nil && w.policy.StrictQuota {
			total++
		}
	}
	if ceiling := int(d.Spec.Replicas + bounds.Surge); total > ceiling && !d.Deleted() && w.bounded {
		w.t.Fatalf("P7: %d machines, ceiling is %d", total, ceiling)
	}
}

// until makes rounds until the goal is reached. If a process dies, died returns the next one.
func (w *world) until(p *process, goal func() bool, died func() *process) *process {
	for range 500 {
		before, now := w.writes, w.at
		next := w.round(p)
		if p.fuse.Dead || p.over {
			p = died()
			continue
		}
		w.join()
		if w.agents {
			w.update()
		}
		fresh := p.look()
		w.idle = fresh && w.writes == before && next.Sub(now) > time.Second
		switch {
		case goal():
			return p
		case w.writes != before:
		case !fresh:
			p.sync() // time does not pass while the process waits only for its cache
		case next.After(now):
			w.at = next
		}
	}
	w.t.Fatalf("the goal was not reached\n%s", w.dump())
	return nil
}

func (w *world) dump() string {
	out := strings.Join(w.events, "\n") + fmt.Sprintln("\nat", w.at)
	for _, key := range keysOf(w.machines) {
		m, _ := w.machines.Get(ctx, key)
		out += fmt.Sprintf("machine %s phase %s op %+v deleted %v\n", key, m.Status.Phase, m.Status.LastOperation, m.DeletedAt)
	}
	for _, key := range keysOf(w.sets) {
		s, _ := w.sets.Get(ctx, key)
		out += fmt.Sprintf("set %s replicas %d reservation %+v status %+v deleted %v\n", key, s.Spec.Replicas, s.Instructions.Reservation, s.Status, s.DeletedAt)
	}
	for _, key := range keysOf(w.deployments) {
		d, _ := w.deployments.Get(ctx, key)
		out += fmt.Sprintf("deployment %s replicas %d status %+v deleted %v\n", key, d.Spec.Replicas, d.Status, d.DeletedAt)
	}
	return out + fmt.Sprintf("VMs %+v\n", w.provider.VMs())
}

// fleet stores a deployment of three machines.
func (w *world) fleet() {
	labels := map[string]string{"app": "web"}
	d := &deployment.Deployment{Meta: object.Meta{Key: fleetKey}}
	d.Spec = deployment.Spec{Replicas: 3, Selector: object.Selector{Labels: labels}}
	d.Spec.Strategy.MaxSurge.Value = 1
	d.Spec.Template = machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}}
	_, err := w.deployments.Create(ctx, d)
	require.NoError(w.t, err)
}

// change updates the deployment as its owner would.
func (w *world) change(how func(*deployment.Deployment)) {
	d, err := w.deployments.Get(ctx, fleetKey)
	require.NoError(w.t, err)
	d = d.Clone()
	how(d)
	_, err = w.deployments.Update(ctx, d)
	require.NoError(w.t, err)
}

// settled returns whether the deployment is complete with n machines, no others exist, and the process is idle.
func (w *world) settled(n int) func() bool {
	return func() bool {
		d, err := w.deployments.Get(ctx, fleetKey)
		if err != nil || int(d.Spec.Replicas) != n || !deployment.Complete(d) || !w.idle {
			return false
		}
		machines, _ := w.machines.List(ctx, store.Query{})
		return len(machines) == n && w.provider.Count() == n && len(keysOf(w.nodes)) == n
	}
}

func (w *world) empty() bool {
	return len(keysOf(w.deployments))+len(keysOf(w.sets))+len(keysOf(w.machines))+len(keysOf(w.nodes))+w.provider.Count() == 0
}

// life creates a fleet, rolls it, scales it down and deletes it.
func (w *world) life(p *process, died func() *process) {
	w.bounded = true
	w.fleet()
	p = w.until(p, w.settled(3), died)
	w.change(func(d *deployment.Deployment) { d.Spec.Template.Annotations = map[string]string{"version": "2"} })
	p = w.until(p, w.settled(3), died)
	w.bounded = false // the bounds do not hold while it is scaled down
	w.change(func(d *deployment.Deployment) { d.Spec.Replicas = 1 })
	p = w.until(p, w.settled(1), died)
	require.NoError(w.t, w.deployments.Delete(ctx, fleetKey, ""))
	w.until(p, w.empty, died)
}

// neverDies is for until where nobody kills the process: its death is a failure of the test.
func neverDies(t tb) func() *process {
	return func() *process { t.Fatalf("nobody killed it"); return nil }
}

func count(w *world, call codes.Call) int { return w.calls[call] }
