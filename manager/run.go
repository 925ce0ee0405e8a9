package manager

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

const (
	// watchPause is how long to wait before a watch that broke is begun again.
	watchPause = time.Second
	// settleBacklog is how many machines that wait for a worker make changes
	// settle for another Options.Tuning.Settle, up to longestSettle.
	settleBacklog = 100
	longestSettle = 500 * time.Millisecond
)

// Run reconciles until ctx ends. It then cancels what is under way, waits for it, and returns nil.
// Nothing is left that a new Run does not finish. It waits for Tuning.CallGrace and a second: if a call
// of a driver or something else does not end by then, Run returns a *LeftError that names it. End the
// process then, or call Run again: a machine is not called while a call about it is left.
//
// Any other error says that Run could not begin: a collection lacks an index (ErrOptions), or panicked
// when it was asked. Run may be called once at a time.
func (m *Manager) Run(ctx context.Context) error {
	m.watched.forget()
	m.calls.Forget()
	r := &runner{Manager: m, queues: make(map[Kind]*engine.Queue), wakes: make(map[Kind][]Wake)}
	checked := make(chan error, 1)
	r.running.Go(func() { checked <- m.check(ctx) })
	select {
	case err := <-checked:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return r.left()
	}
	for _, reconciler := range m.reconcilers {
		r.queues[reconciler.Kind()] = engine.NewQueue(m.options.Runtime.Now)
	}
	for _, wake := range m.Wakes() {
		r.wakes[wake.From] = append(r.wakes[wake.From], wake)
	}
	m.WakeMachines(func(key object.Key) {
		if m.options.ours(KindMachine, key) {
			r.queues[KindMachine].Add(key)
		}
	})
	r.running.Go(func() { r.begin(ctx) })
	<-ctx.Done()
	for _, q := range r.queues {
		q.Close()
	}
	defer m.watched.forget()
	return r.left()
}

// check asks each collection for its indexes. When ctx has ended nothing is concluded: no collection
// answers any more.
func (m *Manager) check(ctx context.Context) (err error) {
	var end *engine.Caught
	m.doing.do(Place{In: inIndexes}, m.options.Runtime.Now(), func() {
		end = engine.Catch(func() { err = m.options.probe(ctx) })
	})
	switch {
	case end != nil:
		return fmt.Errorf("a look at the indexes: %w: %s", ErrPanicked, end.What)
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// begin asks the API servers, then starts what watches and what works.
func (r *runner) begin(ctx context.Context) {
	r.running.Go(func() { r.beat(ctx) })
	r.doing.do(place(engine.InPass, KindReachability, Fleet), r.options.Runtime.Now(), func() { r.first(ctx) })
	r.watchAll(ctx)
	for _, reconciler := range r.reconcilers {
		workers := parentWorkers
		switch kind := reconciler.Kind(); {
		case kind == KindMachine:
			workers = r.options.Tuning.Workers
		case kind.Fleet():
			if !r.options.ours(kind, Fleet) {
				continue
			}
			workers = 1
			r.queues[kind].Add(Fleet)
		}
		for range workers {
			r.running.Go(func() { r.work(ctx, reconciler) })
		}
	}
}

// unwind is how long passes whose calls were left have to end.
const unwind = time.Second

// left waits for all that Run has begun, as long as it may. The error says what has not ended.
func (r *runner) left() error {
	ended := make(chan struct{})
	go func() {
		r.running.Wait()
		close(ended)
	}()
	alarm := time.NewTimer(r.options.Tuning.CallGrace + unwind)
	defer alarm.Stop()
	left := &LeftError{}
	select {
	case <-ended:
	case <-alarm.C:
		left.Places = r.doing.places(func(Place, time.Time) bool { return true })
		if len(left.Places) == 0 {
			left.Places = []Place{{In: engine.InHook}} // all else is known
		}
	}
	if left.Calls = r.calls.Overdue(); len(left.Calls)+len(left.Places) > 0 {
		return left
	}
	return nil
}

// first asks the API servers before anything else is looked at: all would have
// to wait for it. What goes wrong is tried again from the queue.
func (m *Manager) first(ctx context.Context) {
	for _, reconciler := range m.reconcilers {
		if reconciler.Kind() == KindReachability {
			_, _ = reconciler.Reconcile(ctx, Fleet)
		}
	}
}

// runner is one call of Run.
type runner struct {
	*Manager
	queues  map[Kind]*engine.Queue
	wakes   map[Kind][]Wake
	running sync.WaitGroup
}

func (r *runner) watchAll(ctx context.Context) {
	o := &r.options
	follow(ctx, r, KindMachine, o.Store.Machines)
	follow(ctx, r, KindClass, o.Store.Classes)
	if o.Store.Secrets != nil {
		follow(ctx, r, KindSecret, o.Store.Secrets)
	}
	if o.Store.Sets != nil {
		follow(ctx, r, KindSet, o.Store.Sets)
	}
	if o.Store.Deployments != nil {
		follow(ctx, r, KindDeployment, o.Store.Deployments)
	}
	if o.managesPools() {
		follow(ctx, r, KindPool, o.Store.Pools)
	}
	if o.Cluster != nil {
		follow[*machine.Node](ctx, r, KindNode, o.Cluster.Nodes())
	}
	if w, ok := o.Drainer.(WorkloadWatcher); ok {
		r.follow(ctx, KindWorkload, func(ctx context.Context, changed func(object.Key, any, any)) error {
			for node, err := range w.Watch(ctx) {
				if err != nil {
					return err
				}
				changed(object.Key{Name: node}, nil, node)
			}
			return nil
		})
	}
}

// follow turns the changes of a collection into wake-ups.
func follow[T object.Object[T]](ctx context.Context, r *runner, kind Kind, c store.Collection[T]) {
	var none T
	r.follow(ctx, kind, func(ctx context.Context, changed func(object.Key, any, any)) error {
		for change, err := range c.Watch(ctx) {
			if err != nil {
				return err
			}
			of := change.New
			if of == none {
				of = change.Old
			}
			changed(of.ObjectMeta().Key, change.Old, change.New)
		}
		return nil
	})
}

// watcher hands changes on as they come, until its context ends or it breaks.
type watcher func(ctx context.Context, changed func(key object.Key, old, new any)) error

// follow begins a watch that ended again: it starts with all there is. What went
// meanwhile is found when the objects that it matters to are looked at again, see
// Options.Tuning.Resync.
func (r *runner) follow(ctx context.Context, kind Kind, w watcher) {
	r.running.Go(func() {
		for failures := 0; ctx.Err() == nil; {
			if r.watchOnce(ctx, kind, w, engine.Backoff(failures+1)) {
				failures = 0
			} else {
				failures++
			}
			pause(ctx, watchPause)
		}
	})
}

// watchOnce makes one watch, and reports whether every change woke whom it
// concerns. A wake-up that panicked is tried again with the next watch, which
// begins after the pause given; other changes wake theirs until then.
func (r *runner) watchOnce(ctx context.Context, kind Kind, w watcher, again time.Duration) bool {
	within, end := context.WithCancel(ctx)
	defer end()
	var alarm *time.Timer
	defer func() {
		if alarm != nil {
			alarm.Stop()
		}
	}()
	at := place(inWatch, kind, object.Key{})
	look := func() {
		err := w(within, func(key object.Key, old, new any) {
			if !r.wake(ctx, kind, key, old, new) && alarm == nil {
				alarm = time.AfterFunc(again, end)
			}
		})
		if err != nil && within.Err() == nil {
			r.options.Log.LogAttrs(ctx, slog.LevelWarn, "watch broke and begins again",
				slog.String("kind", string(kind)), slog.String("error", err.Error()))
		}
	}
	r.doing.do(at, r.options.Runtime.Now(), func() { r.engine.Guard.Run(ctx, at, look) })
	return alarm == nil
}

// ours reports whether Run reconciles an object, see Options.Only. Without a cluster, each manager sees to it
// that the VMs of its machines are there, also one that deletes no orphans.
func (o *Options) ours(kind Kind, key object.Key) bool {
	return o.Only == nil || kind == KindReachability || kind == KindOrphans && o.Cluster == nil || o.Only(kind, key)
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// wake queues what a change is a reason to look at, and reports whether all of it
// was found.
func (r *runner) wake(ctx context.Context, kind Kind, changed object.Key, old, new any) bool {
	all := true
	for i := range r.wakes[kind] {
		wake := &r.wakes[kind][i]
		end := r.engine.Guard.Run(ctx, place(inWake, kind, changed), func() { r.wakeBy(ctx, wake, old, new) })
		all = all && end == nil
	}
	return all
}

func (r *runner) wakeBy(ctx context.Context, wake *Wake, old, new any) {
	q := r.queues[wake.To]
	for _, key := range wake.Keys(ctx, old, new) {
		if !r.options.ours(wake.To, key) {
			continue
		}
		if wake.Settle > 0 {
			q.AddAt(key, r.options.Runtime.Now().Add(r.settle(wake)))
			continue
		}
		q.Add(key)
	}
}

// settle is how long a wake-up waits for others to join it: the longer, the
// more machines wait for a worker. A pass over a set or deployment looks at all
// of its machines, and is in vain while many of them are about to change.
func (r *runner) settle(wake *Wake) time.Duration {
	if wake.From != KindMachine {
		return wake.Settle
	}
	backlog := r.queues[KindMachine].Depth() / settleBacklog
	return max(wake.Settle, min(time.Duration(1+backlog)*wake.Settle, longestSettle))
}

// work reconciles one key after the other until the queue is closed.
func (r *runner) work(ctx context.Context, reconciler Reconciler) {
	kind := reconciler.Kind()
	r.engine.Work(ctx, r.queues[kind], worker{reconciler, r}, func(due int) { r.options.Hooks.queue(kind, due) })
}

// worker is a reconciler under the name of its kind, whose passes are known while they last.
type worker struct {
	Reconciler
	of *runner
}

// Name implements engine.Worker.
func (w worker) Name() string { return string(w.Kind()) }

// Reconcile implements engine.Worker.
func (w worker) Reconcile(ctx context.Context, key object.Key) (result Result, err error) {
	w.of.doing.do(place(engine.InPass, w.Kind(), key), w.of.options.Runtime.Now(), func() {
		result, err = w.Reconciler.Reconcile(ctx, key)
	})
	return result, err
}

// beat runs until ctx ends. Without a grace there is nothing to restart.
func (m *Manager) beat(ctx context.Context) {
	grace := m.options.Policies.Machine.Grace
	for grace > 0 && ctx.Err() == nil {
		m.watched.beat(m.options.Runtime.Now(), grace)
		pause(ctx, grace/beatsOfGrace)
	}
}
