package manager_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// fastFleet is a world in which nothing lags and nothing is lost: the reconcilers of a manager, stores in memory,
// a provider that answers at once, and virtual time. One goroutine makes one pass after the other. The ledger
// checks every change before anything else happens.
type fastFleet struct {
	now   time.Time
	works map[manager.Kind]manager.Reconciler
	wakes map[manager.Kind][]manager.Wake
	items map[fastPlace]*fastItem
	due   []*fastItem // first in, first out
	head  int

	machines    *tap[*machine.Machine]
	sets        *tap[*machineset.Set]
	deployments *tap[*deployment.Deployment]
	classes     store.Collection[*machine.Class]
	nodes       *tap[*machine.Node]

	passing fastPlace // the object of the present pass; zero: the world itself changes something
	ledger  *ledger
	err     error // the first broken rule

	decisions int // that led to a write, an effect or orders
	passes    int
	writes    int // of the manager
}

type fastPlace struct {
	kind manager.Kind
	key  object.Key
}

type fastItem struct {
	fastPlace
	queued bool
	at     time.Time // when it is looked at even if nothing changes; zero: never
}

// tap is a collection that shows each change to the world at once.
type tap[T object.Object[T]] struct {
	*store.Memory[T]
	w    *fastFleet
	kind manager.Kind
}

func newTap[T object.Object[T]](w *fastFleet, kind manager.Kind, indexes map[store.Index]func(T) []string) *tap[T] {
	return &tap[T]{store.NewMemory(func() time.Time { return w.now }, indexes), w, kind}
}

func (t *tap[T]) Create(ctx context.Context, o T) (T, error) {
	stored, err := t.Memory.Create(ctx, o)
	if err == nil {
		var none T
		t.show(none, stored)
	}
	return stored, err
}

func (t *tap[T]) Update(ctx context.Context, o T) (T, error) {
	before, _ := t.Get(ctx, o.ObjectMeta().Key)
	stored, err := t.Memory.Update(ctx, o)
	if err == nil {
		left := stored
		if meta := stored.ObjectMeta(); meta.Deleted() && len(meta.Finalizers) == 0 {
			var none T
			left = none
		}
		t.show(before, left)
	}
	return stored, err
}

func (t *tap[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	before, _ := t.Get(ctx, o.ObjectMeta().Key)
	stored, err := t.Memory.UpdateStatus(ctx, o)
	if err == nil {
		t.show(before, stored)
	}
	return stored, err
}

func (t *tap[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	before, _ := t.Get(ctx, k)
	err := t.Memory.Delete(ctx, k, uid)
	if err == nil {
		left, _ := t.Get(ctx, k)
		t.show(before, left)
	}
	return err
}

// Live counts the passes that read live: such a decision is neither a write nor an effect. Each of these passes
// reads its own object live once.
func (t *tap[T]) Live() store.Reader[T] {
	if t.kind == t.w.passing.kind && t.kind != manager.KindMachine {
		t.w.decisions--
	}
	return t.Memory
}

// show shows a change to the ledger, and wakes the objects that it concerns.
func (t *tap[T]) show(before, after T) {
	w := t.w
	var none T
	var old, new any
	if before != none {
		old = before
	}
	if after != none {
		new = after
	}
	if w.passing.kind != "" {
		w.writes++
		if new == nil && t.kind == w.passing.kind {
			w.decisions++ // a pass does not count the step that ends its object
		}
	}
	w.ledger.look(old, new)
	for _, wake := range w.wakes[t.kind] {
		for _, key := range wake.Keys(context.Background(), old, new) {
			if wake.Settle > 0 {
				w.later(w.item(fastPlace{wake.To, key}), w.now.Add(wake.Settle))
				continue
			}
			w.add(w.item(fastPlace{wake.To, key}))
		}
	}
}

func newFastFleet() (*fastFleet, error) {
	w := &fastFleet{
		now: time.Date(2027, 2, 1, 6, 0, 0, 0, time.UTC), works: map[manager.Kind]manager.Reconciler{},
		wakes: map[manager.Kind][]manager.Wake{}, items: map[fastPlace]*fastItem{},
	}
	w.ledger = newLedger(w)
	o := manager.InMemory(func() time.Time { return w.now })
	w.machines = newTap(w, manager.KindMachine, manager.MachineIndexes())
	w.sets = newTap(w, manager.KindSet, manager.SetIndexes())
	w.deployments = newTap(w, manager.KindDeployment, manager.DeploymentIndexes())
	w.nodes = newTap(w, manager.KindNode, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
	w.classes = o.Store.Classes
	o.Store.Machines, o.Store.Sets, o.Store.Deployments, o.Cluster = w.machines, w.sets, w.deployments, nodes{w.nodes}
	o.Driver = &fastDriver{w: w, vms: map[string]string{}}
	o.Runtime.Jitter = testkit.NoJitter
	o.Runtime.Each = testkit.InOrder
	o.Hooks.Pass = func(_ manager.Kind, _ object.Key, steps int, _ manager.Result, _ error) { w.decisions += steps }
	o.Policies.Safety = safety.Off()
	m, err := manager.New(o)
	if err != nil {
		return nil, err
	}
	for _, r := range m.Reconcilers() {
		w.works[r.Kind()] = r
	}
	for _, wake := range m.Wakes() {
		w.wakes[wake.From] = append(w.wakes[wake.From], wake)
	}
	return w, w.furnish(o)
}

// furnish stores two classes and their secret.
func (w *fastFleet) furnish(o manager.Options) error {
	ctx := context.Background()
	boot := &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}}}
	boot.Data = map[string][]byte{machine.UserData: []byte("join")}
	_, err := o.Store.Secrets.Create(ctx, boot)
	for _, name := range []string{"small", "large"} {
		class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: name}}, SecretRef: &object.Key{Name: "boot"}}
		_, failed := o.Store.Classes.Create(ctx, class)
		err = errors.Join(err, failed)
	}
	return err
}

func (w *fastFleet) item(at fastPlace) *fastItem {
	it := w.items[at]
	if it == nil {
		it = &fastItem{fastPlace: at}
		w.items[at] = it
	}
	return it
}

// add queues an object behind all others that are due.
func (w *fastFleet) add(it *fastItem) {
	if it.queued {
		return
	}
	it.queued, it.at = true, time.Time{}
	w.due = append(w.due, it)
}

func (w *fastFleet) later(it *fastItem, at time.Time) {
	if !it.queued && (it.at.IsZero() || at.Before(it.at)) {
		it.at = at
	}
}

// step makes the next pass; if none is due, it lets time pass first. False: no pass will be due, or a check has
// failed.
func (w *fastFleet) step() bool {
	if w.head == len(w.due) {
		w.due, w.head = w.due[:0], 0
		if !w.pass() {
			return false
		}
	}
	it := w.due[w.head]
	w.head++
	it.queued = false
	w.passes++
	w.passing = it.fastPlace
	w.ledger.begin()
	result, err := w.works[it.kind].Reconcile(context.Background(), it.key)
	w.passing = fastPlace{}
	switch {
	case err != nil:
		w.fail(err)
	case !result.At.IsZero():
		w.later(it, result.At)
	}
	return w.err == nil
}

// pass lets time pass until the next object is due.
func (w *fastFleet) pass() bool {
	var next time.Time
	for place, it := range w.items {
		switch {
		case w.ledger.gone(place):
			delete(w.items, place)
		case !it.at.IsZero() && (next.IsZero() || it.at.Before(next)):
			next = it.at
		}
	}
	if next.IsZero() {
		return false
	}
	if next.After(w.now) {
		w.now = next
	}
	for _, it := range w.items {
		if !it.at.IsZero() && !it.at.After(w.now) {
			w.add(it)
		}
	}
	return true
}

func (w *fastFleet) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}

// fastDriver is a provider that answers at once, and whose VMs join at once.
type fastDriver struct {
	driver.Unimplemented
	w   *fastFleet
	vms map[string]string // name to provider ID
}

// theirs is a label that another program puts on each node.
const theirs = "others/label"

func (d *fastDriver) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	id, ok := d.vms[req.Machine.Name]
	if !ok {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

func (d *fastDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	w, name := d.w, req.Machine.Name
	_, twice := d.vms[name]
	w.ledger.made(req.Machine, twice)
	id := "fast:///" + name
	d.vms[name] = id
	acting := w.passing
	w.passing = fastPlace{}
	defer func() { w.passing = acting }()
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, Labels: map[string]string{theirs: name}}, ProviderID: id}
	stored, err := w.nodes.Create(ctx, node)
	if err == nil {
		err = w.ready(stored, object.True)
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: name}, err
}

func (d *fastDriver) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.w.ledger.unmade(req.Machine)
	delete(d.vms, req.Machine.Name)
	return &driver.DeleteMachineResponse{}, nil
}

// ready sets whether a node is ready.
func (w *fastFleet) ready(n *machine.Node, status object.ConditionStatus) error {
	changed := n.Clone()
	changed.Conditions = []object.Condition{{Type: machine.NodeReady, Status: status, Since: w.now}}
	_, err := w.nodes.UpdateStatus(context.Background(), changed)
	return err
}

// lookNode checks a change of a node against P17 and P23.
func (b *ledger) lookNode(old, new *machine.Node) {
	if b.w.passing.kind != manager.KindMachine {
		return
	}
	name := b.w.passing.key.Name
	switch {
	case old == nil:
		b.violated("P17", "machine %s makes a node", name)
	case old.Name != name:
		b.violated("P17", "machine %s changes node %s", name, old.Name)
	case new != nil && new.Labels[theirs] != old.Labels[theirs]:
		b.violated("P23", "machine %s changes a label of others: %v", name, maps.Clone(new.Labels))
	}
}

// strategies are used by the fleets in turn.
var strategies = []deployment.Strategy{
	{MaxSurge: rollout.IntOrPercent{Value: 1}},
	{MaxUnavailable: rollout.IntOrPercent{Value: 1}},
	{MaxSurge: rollout.IntOrPercent{Value: 25, Percent: true}, MaxUnavailable: rollout.IntOrPercent{Value: 25, Percent: true}},
	{MaxSurge: rollout.IntOrPercent{Value: 100, Percent: true}},
	{Kind: deployment.Recreate},
}

// fastLife is the nth fleet of a world. It is created, rolled, grown, rolled and shrunk at the same time, loses a
// few of its machines, and is deleted.
type fastLife struct {
	w        *fastFleet
	name     string
	replicas int32
	most     int // the machines that may have been made so far
}

// runFleet runs the nth fleet, which has 3 to 20 machines.
func (w *fastFleet) runFleet(n int) error {
	l := &fastLife{w: w, name: fmt.Sprint("web", n), replicas: int32(3 + n*7%18)}
	w.ledger.everMade = 0
	d := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: l.name}}}
	d.Spec.Replicas, d.Spec.Strategy = l.replicas, strategies[n%len(strategies)]
	d.Spec.Selector.Labels = map[string]string{"app": l.name}
	d.Spec.Template.Labels = d.Spec.Selector.Labels
	d.Spec.Template.Spec.Class.Name = "small"
	d.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a", "zone": "b"}
	if _, err := w.deployments.Create(context.Background(), d); err != nil {
		return err
	}
	l.most = int(l.replicas)
	for _, stage := range []func(*fastLife) error{
		(*fastLife).settle, (*fastLife).roll, (*fastLife).grow, (*fastLife).rollAndShrink, (*fastLife).lose, (*fastLife).end,
	} {
		if err := stage(l); err != nil {
			return fmt.Errorf("life %d, %d of %d machines of %d: %w", n, w.ledger.serving, w.ledger.total, l.replicas, err)
		}
	}
	return nil
}

// settle waits until the fleet is complete. It checks that no unnecessary machine was made (P12), and that nothing
// is done any more (P28).
func (l *fastLife) settle() error {
	w := l.w
	if err := l.until(w.ledger.complete); err != nil {
		return err
	}
	machines, err := w.machines.List(context.Background(), store.Query{})
	if err != nil {
		return err
	}
	if err := w.ledger.recount(machines); err != nil {
		return err
	}
	if w.ledger.everMade > l.most {
		return fmt.Errorf("P12: %d machines were made, %d were missing", w.ledger.everMade, l.most)
	}
	return l.quiet()
}

// fastLimit bounds the passes until a fleet reaches its next goal.
const fastLimit = 5_000

func (l *fastLife) until(goal func() bool) error {
	w := l.w
	for range fastLimit {
		if w.err != nil {
			return w.err
		}
		if goal() {
			return nil
		}
		if !w.step() {
			return errors.Join(w.err, errors.New("nothing is due any more"))
		}
	}
	return fmt.Errorf("P3: no end after %d passes", fastLimit)
}

// quiet checks that nothing is done for a settled fleet for some seconds, no matter which object is looked at.
func (l *fastLife) quiet() error {
	w := l.w
	settled := w.now.Add(3 * time.Second) // until then, a status may be written
	if err := l.until(func() bool { return !w.now.Before(settled) || !w.soon(settled) }); err != nil {
		return err
	}
	before := w.writes
	w.now = w.now.Add(3 * time.Second) // a status may be written again
	for _, it := range w.items {
		w.add(it)
	}
	for w.head < len(w.due) && w.err == nil {
		w.step()
	}
	if n := w.writes - before; n > 0 {
		return fmt.Errorf("P28: %d writes, and nothing was to be done", n)
	}
	return w.err
}

// soon reports whether anything is due before a time.
func (w *fastFleet) soon(end time.Time) bool {
	if w.head < len(w.due) {
		return true
	}
	for _, it := range w.items {
		if !it.at.IsZero() && it.at.Before(end) {
			return true
		}
	}
	return false
}

// change changes what is wanted.
func (l *fastLife) change(how func(*deployment.Spec)) error {
	changed := l.w.ledger.fleet.Clone()
	how(&changed.Spec)
	l.replicas = changed.Spec.Replicas
	_, err := l.w.deployments.Update(context.Background(), changed)
	return err
}

func (l *fastLife) roll() error {
	l.most += int(l.replicas)
	return errors.Join(l.change(func(s *deployment.Spec) { s.Template.Spec.Class.Name = "large" }), l.settle())
}

func (l *fastLife) grow() error {
	l.most += 2
	return errors.Join(l.change(func(s *deployment.Spec) { s.Replicas += 2 }), l.settle())
}

// rollAndShrink rolls the fleet and scales it down at the same time.
func (l *fastLife) rollAndShrink() error {
	l.most += int(l.replicas)
	half, before := int(l.replicas)/2, l.w.ledger.everMade
	return errors.Join(
		l.change(func(s *deployment.Spec) { s.Template.Spec.Class.Name = "small" }),
		l.until(func() bool { return l.w.ledger.everMade-before >= half }),
		l.change(func(s *deployment.Spec) { s.Replicas -= 2 }),
		l.settle())
}

// lose makes a fifth of the nodes, at least one, unready for good.
func (l *fastLife) lose() error {
	all, err := l.w.nodes.List(context.Background(), store.Query{})
	lost := 1 + len(all)/5
	for _, n := range all[:lost] {
		err = errors.Join(err, l.w.ready(n, object.False))
	}
	l.most += lost
	return errors.Join(err, l.settle())
}

func (l *fastLife) end() error {
	d := l.w.ledger.fleet
	if err := l.w.deployments.Delete(context.Background(), d.Key, d.UID); err != nil {
		return err
	}
	if err := l.until(func() bool { return l.w.ledger.fleet == nil }); err != nil {
		return err
	}
	left, err := l.w.nodes.List(context.Background(), store.Query{})
	if len(left) > 0 {
		err = errors.Join(err, fmt.Errorf("%d nodes are left", len(left)))
	}
	return err
}

// TestFastFleets creates, changes and deletes small fleets. The ledger checks each write and each call against
// the parts of P4, P7 to P10, P12 to P14, P16 to P18, P23, P28 and P29 that can be seen.
// Invariants: P7 P12 P13 P14 P16 P23 P28
func TestFastFleets(t *testing.T) {
	w, err := newFastFleet()
	require.NoError(t, err)
	for n := range 10 {
		require.NoError(t, w.runFleet(n))
	}
	require.Greater(t, w.decisions, 10*400)
	t.Logf("%d decisions that came to something, %d writes, %d passes", w.decisions, w.writes, w.passes)
}

// BenchmarkDecisions runs small fleets as TestFastFleets does, and reports how many decisions a second of
// processor time lead to a write, an effect or orders. A live read is none of these; orders given together count
// as one. The time includes garbage collection, and all checks after each write and call.
func BenchmarkDecisions(b *testing.B) {
	w, err := newFastFleet()
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	begin, n := read(), 0
	for b.Loop() {
		if err := w.runFleet(n); err != nil {
			b.Fatal(err)
		}
		n++
	}
	end := read()
	b.ReportMetric(float64(w.decisions)/(end.cpu-begin.cpu).Seconds(), "decisions/cpu-s")
	b.ReportMetric(float64(w.decisions)/float64(n), "decisions/life")
	b.ReportMetric(float64(w.writes)/float64(n), "writes/life")
	b.ReportMetric(float64(w.passes)/float64(n), "passes/life")
}
