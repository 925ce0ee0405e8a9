package manager_test

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// swift is a world in which nothing lags and nothing is lost: the reconcilers
// of a manager, stores in memory, a provider that answers at once, virtual
// time. One pass is made after the other by one goroutine. Every change is
// looked at by the book before anything else happens.
type swift struct {
	now   time.Time
	works map[manager.Kind]manager.Reconciler
	wakes map[manager.Kind][]manager.Wake
	items map[swiftPlace]*swiftItem
	due   []*swiftItem // first in, first out
	head  int

	machines    *tap[*machine.Machine]
	sets        *tap[*machineset.Set]
	deployments *tap[*deployment.Deployment]
	classes     store.Collection[*machine.Class]
	nodes       *tap[*machine.Node]

	passing swiftPlace // what is looked at; the zero place: the world itself acts
	book    *book
	err     error // the first thing that must never be

	decisions int // that came to a write, an effect or orders
	passes    int
	writes    int // of the manager
}

type swiftPlace struct {
	kind manager.Kind
	key  object.Key
}

type swiftItem struct {
	swiftPlace
	queued bool
	at     time.Time // when it is looked at though nothing has changed; zero: never
}

// tap is a collection that shows each change to the world at once.
type tap[T object.Object[T]] struct {
	*store.Memory[T]
	w    *swift
	kind manager.Kind
}

func newTap[T object.Object[T]](w *swift, kind manager.Kind, indexes map[store.Index]func(T) []string) *tap[T] {
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

// Live counts the passes that read live: such a decision is neither a write nor
// an effect. Each of them reads its own object once by this way.
func (t *tap[T]) Live() store.Reader[T] {
	if t.kind == t.w.passing.kind && t.kind != manager.KindMachine {
		t.w.decisions--
	}
	return t.Memory
}

// show has the book look at a change, and wakes who is concerned.
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
	w.book.look(old, new)
	for _, wake := range w.wakes[t.kind] {
		for _, key := range wake.Keys(context.Background(), old, new) {
			if wake.Settle > 0 {
				w.later(w.item(swiftPlace{wake.To, key}), w.now.Add(wake.Settle))
				continue
			}
			w.add(w.item(swiftPlace{wake.To, key}))
		}
	}
}

func newSwift() (*swift, error) {
	w := &swift{
		now: time.Date(2027, 2, 1, 6, 0, 0, 0, time.UTC), works: map[manager.Kind]manager.Reconciler{},
		wakes: map[manager.Kind][]manager.Wake{}, items: map[swiftPlace]*swiftItem{},
	}
	w.book = newBook(w)
	o := manager.InMemory(func() time.Time { return w.now })
	w.machines = newTap(w, manager.KindMachine, manager.MachineIndexes())
	w.sets = newTap(w, manager.KindSet, manager.SetIndexes())
	w.deployments = newTap(w, manager.KindDeployment, manager.DeploymentIndexes())
	w.nodes = newTap(w, manager.KindNode, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))
	w.classes = o.Store.Classes
	o.Store.Machines, o.Store.Sets, o.Store.Deployments, o.Cluster = w.machines, w.sets, w.deployments, nodes{w.nodes}
	o.Driver = &swiftDriver{w: w, vms: map[string]string{}}
	o.Runtime.Jitter = func(d time.Duration) time.Duration { return d }
	o.Runtime.Each = func(_ context.Context, n int, do func(int)) {
		for i := range n {
			do(i)
		}
	}
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
func (w *swift) furnish(o manager.Options) error {
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

func (w *swift) item(at swiftPlace) *swiftItem {
	it := w.items[at]
	if it == nil {
		it = &swiftItem{swiftPlace: at}
		w.items[at] = it
	}
	return it
}

// add has an object looked at as soon as all before it have been.
func (w *swift) add(it *swiftItem) {
	if it.queued {
		return
	}
	it.queued, it.at = true, time.Time{}
	w.due = append(w.due, it)
}

func (w *swift) later(it *swiftItem, at time.Time) {
	if !it.queued && (it.at.IsZero() || at.Before(it.at)) {
		it.at = at
	}
}

// step makes the next pass; where none is due, time passes first. False:
// nothing is due any more, or something went wrong.
func (w *swift) step() bool {
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
	w.passing = it.swiftPlace
	w.book.begin()
	result, err := w.works[it.kind].Reconcile(context.Background(), it.key)
	w.passing = swiftPlace{}
	switch {
	case err != nil:
		w.fail(err)
	case !result.At.IsZero():
		w.later(it, result.At)
	}
	return w.err == nil
}

// pass lets time pass until the next object is due.
func (w *swift) pass() bool {
	var next time.Time
	for place, it := range w.items {
		switch {
		case w.book.gone(place):
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

func (w *swift) fail(err error) {
	if w.err == nil {
		w.err = err
	}
}
