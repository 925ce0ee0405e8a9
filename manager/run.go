package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

const (
	// watchPause is how long to wait before a watch that broke is begun again.
	watchPause = time.Second
	// For each settleBacklog machines that wait for a worker, changes settle for another
	// Options.Tuning.Settle, up to longestSettle.
	settleBacklog = 100
	longestSettle = 500 * time.Millisecond
	// drainSettle is how long changes of pods settle before the drain of their node goes on: most pods of a node
	// end together.
	drainSettle = 200 * time.Millisecond
)

// Run reconciles until ctx ends. It then cancels what is under way, waits for it, and returns nil.
// Nothing is left that a new Run does not finish. It waits for Tuning.CallGrace and a second: if a call
// of a driver or something else does not end by then, Run returns a *LeftError that names it. End the
// process then, or call Run again: no call about a machine is made while an earlier one is left.
//
// Run also ends with Options.Term, or when the store refuses a write because another process leads
// (store.ErrFenced). The error says so, unless it is a *LeftError, or ctx has ended as well.
//
// Any other error says that Run could not begin: a collection lacks an index (ErrOptions), or panicked
// when it was asked. Run may be called once at a time.
func (m *Manager) Run(ctx context.Context) error {
	within, end := context.WithCancelCause(ctx)
	defer end(nil)
	if term := m.options.Term; term != nil {
		defer context.AfterFunc(term.Context(), func() { end(term.Err()) })()
	}
	err := m.run(within, end)
	over := context.Cause(within)
	lost := errors.Is(over, lead.ErrLost) || errors.Is(over, store.ErrFenced) // ctx may be that of the term
	if err == nil && (ctx.Err() == nil || lost) {
		return fmt.Errorf("the manager may not act any more: %w", over)
	}
	return err
}

// run is Run. It calls fenced when the store has refused a write because another process leads.
func (m *Manager) run(ctx context.Context, fenced func(error)) error {
	m.watched.forget()
	m.calls.Forget()
	r := &runner{Manager: m, fenced: fenced, queues: make(map[Kind]*engine.Queue), wakes: make(map[Kind][]Wake)}
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
	m.activities.run(Place{In: inIndexes}, m.options.Runtime.Now(), func() {
		end = engine.Isolate(func() { err = m.options.probe(ctx) })
	})
	switch {
	case end != nil:
		return fmt.Errorf("a look at the indexes: %w: %s", ErrPanicked, end.What)
	case ctx.Err() != nil:
		return nil
	}
	return err
}

// begin checks the API servers, then starts the watches and the workers.
func (r *runner) begin(ctx context.Context) {
	r.running.Go(func() { r.beat(ctx) })
	r.activities.run(place(engine.InPass, KindReachability, Fleet), r.options.Runtime.Now(), func() { r.first(ctx) })
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

// unwind is how long passes have to end after their calls have become overdue.
const unwind = time.Second

// left waits for all that Run has started, for CallGrace and unwind. The error says what has not ended.
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
		left.Places = r.activities.places(func(Place, time.Time) bool { return true })
		if len(left.Places) == 0 {
			left.Places = []Place{{In: engine.InHook}} // everything else is recorded in activities
		}
	}
	if left.Calls = r.calls.Overdue(); len(left.Calls)+len(left.Places) > 0 {
		return left
	}
	return nil
}

// first makes the first pass of KindReachability, because those of machines, sets and pools wait for that.
// If it fails, it is repeated from the queue.
func (m *Manager) first(ctx context.Context) {
	for _, reconciler := range m.reconcilers {
		if reconciler.Kind() == KindReachability {
			engine.Isolate(func() { _, _ = reconciler.Reconcile(ctx, Fleet) })
		}
	}
}

// runner is one call of Run.
type runner struct {
	*Manager
	fenced  func(error) // called when another process leads
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

// watcher calls changed with each change, until its context ends or it breaks.
type watcher func(ctx context.Context, changed func(key object.Key, old, new any)) error

// follow watches a kind, and begins a new watch whenever one ends. Each starts with all objects that
// exist. Objects that were removed in between are noticed when those that depend on them are looked at
// again, see Options.Tuning.Resync.
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

// watchOnce makes one watch, and reports whether all wake-ups succeeded. If one panicked, the watch is
// ended after the given delay, so that the next watch repeats the wake-up. Until then other changes are
// handled.
func (r *runner) watchOnce(ctx context.Context, kind Kind, w watcher, delay time.Duration) bool {
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
				alarm = time.AfterFunc(delay, end)
			}
		})
		if err != nil && within.Err() == nil {
			r.options.Log.LogAttrs(ctx, slog.LevelWarn, "watch broke and begins again",
				slog.String("kind", string(kind)), slog.String("error", err.Error()))
		}
	}
	r.activities.run(at, r.options.Runtime.Now(), func() {
		if end := engine.Isolate(look); end != nil {
			r.engine.Guard.Report(ctx, at, end)
		}
	})
	return alarm == nil
}

// ours reports whether Run reconciles an object, see Options.Only. Without a cluster, each manager
// reconciles KindOrphans: one that deletes no orphans still checks that the VMs of its machines exist.
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

// wake queues the objects that a change concerns, and reports whether finding them succeeded.
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
		switch {
		case wake.Urgent:
			q.AddUrgent(key)
		case wake.Settle > 0:
			q.AddAt(key, r.options.Runtime.Now().Add(r.settle(wake)))
		default:
			q.Add(key)
		}
	}
}

// settle returns how long a wake-up waits for others to join it. The more machines wait for a worker,
// the longer it is: a pass over a set or deployment looks at all of its machines, and is wasted while
// many of them are about to change.
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

// worker makes an engine.Worker of a Reconciler. It records each pass in activities while that lasts.
type worker struct {
	Reconciler
	of *runner
}

// Name implements engine.Worker.
func (w worker) Name() string { return string(w.Kind()) }

// Reconcile implements engine.Worker.
func (w worker) Reconcile(ctx context.Context, key object.Key) (result Result, err error) {
	w.of.activities.run(place(engine.InPass, w.Kind(), key), w.of.options.Runtime.Now(), func() {
		result, err = w.Reconciler.Reconcile(ctx, key)
	})
	if errors.Is(err, store.ErrFenced) {
		w.of.fenced(err)
	}
	return result, err
}

// beat calls watched.beat regularly until ctx ends. It does nothing if the policy has no grace.
func (m *Manager) beat(ctx context.Context) {
	grace := m.options.Policies.Machine.Grace
	for grace > 0 && ctx.Err() == nil {
		m.watched.beat(m.options.Runtime.Now(), grace)
		pause(ctx, grace/beatsOfGrace)
	}
}

// Place is a part of a manager's work: what is done, as Hooks.Panic names it, and the kind and the key of
// the object that it is done for.
type Place = engine.Place

// LeftError is the error of Run if something that it began has not returned within Tuning.CallGrace
// after the end of its context. That goes on in goroutines of the process, until it returns.
type LeftError struct {
	// Calls of drivers that have not returned, the oldest first.
	Calls []driver.OverdueCall
	// Places are passes and watches that have not returned, because another port or a hook has not, and
	// hooks that were called from elsewhere.
	Places []Place
}

// mostNamed is how many calls and places a sentence names.
const mostNamed = 5

// Error names what was left.
func (e *LeftError) Error() string {
	var all []string
	for i := range e.Calls {
		c := &e.Calls[i]
		about := c.Kind + " " + c.Object.String()
		if c.Object == (object.Key{}) {
			about = "class " + c.Class.String()
		}
		all = append(all, c.Method.String()+" for "+about)
	}
	for _, p := range e.Places {
		of := ""
		if p.Kind != "" {
			of = strings.TrimSuffix(" of "+p.Kind+" "+p.Key.String(), " ")
		}
		all = append(all, "a "+p.In+of)
	}
	more := ""
	if len(all) > mostNamed {
		more, all = fmt.Sprintf(", and %d more", len(all)-mostNamed), all[:mostNamed]
	}
	return "what does not end with its context was left: " + strings.Join(all, ", ") + more
}

// activities are what Run does at present, and since when. The zero value has none.
type activities struct {
	mu  sync.Mutex
	all map[*Place]time.Time
}

// run calls do, and records it until it returns.
func (b *activities) run(at Place, now time.Time, do func()) {
	b.mu.Lock()
	if b.all == nil {
		b.all = make(map[*Place]time.Time)
	}
	b.all[&at] = now
	b.mu.Unlock()
	defer func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.all, &at)
	}()
	do()
}

// places returns those activities for which wanted returns true, sorted.
func (b *activities) places(wanted func(Place, time.Time) bool) []Place {
	b.mu.Lock()
	defer b.mu.Unlock()
	var out []Place
	for p, since := range b.all {
		if wanted(*p, since) {
			out = append(out, *p)
		}
	}
	slices.SortFunc(out, func(a, b Place) int {
		return cmp.Or(cmp.Compare(a.In, b.In), cmp.Compare(a.Kind, b.Kind), cmp.Compare(a.Key.String(), b.Key.String()))
	})
	return out
}

// Where a panic is contained besides engine.InPass and engine.InHook, in the words of Hooks.Panic.
const (
	inWake   = "wake"
	inWatch  = "watch"
	inDriver = "driver"
	// inIndexes is the Place of the check of indexes with which Run begins, for a LeftError.
	inIndexes = "look at indexes"
)

// ErrPanicked is the error of a pass in which something panicked or called runtime.Goexit: a
// decision, a port, a batch's order. Call Reconcile again after a pause, as after any error.
var ErrPanicked = engine.ErrPanicked

// place returns the engine.Place of an object.
func place(in string, kind Kind, key object.Key) engine.Place {
	return engine.Place{In: in, Kind: string(kind), Key: key}
}

// engineHooks returns the hooks that the engine calls. The engine contains their panics.
func engineHooks(h *Hooks) engine.Hooks {
	var out engine.Hooks
	if event := h.Event; event != nil {
		out.Event = func(kind string, key object.Key, typ EventType, reason, why string) {
			event(Kind(kind), key, typ, reason, why)
		}
	}
	if plan := h.Plan; plan != nil {
		out.Plan = func(kind string, key object.Key, why decision.Why) { plan(Kind(kind), key, why) }
	}
	if transition := h.Transition; transition != nil {
		out.Transition = func(_ string, key object.Key, move machine.Move, why decision.Why) { transition(key, move, why) }
	}
	if effect := h.Effect; effect != nil {
		out.Effect = func(kind string, key object.Key, name string, took time.Duration, err error) {
			effect(Kind(kind), key, name, took, err)
		}
	}
	if observed := h.DryRun; observed != nil {
		out.DryRun = func(kind string, key object.Key, what, reason, why string) {
			observed(Kind(kind), key, what, reason, why)
		}
	}
	if panicked := h.Panic; panicked != nil {
		out.Panic = func(kind string, key object.Key, in, what string) { panicked(Kind(kind), key, in, what) }
	}
	if pass := h.Pass; pass != nil {
		out.Pass = func(kind string, key object.Key, steps int, result Result, err error) {
			pass(Kind(kind), key, steps, result, err)
		}
	}
	return out
}

// contain returns hooks whose panics end nothing: the pass goes on as if the hook had returned. The hooks
// that the engine calls stay as they are, see engineHooks.
func contain(g *engine.Guard, h Hooks) Hooks {
	hook := func(kind Kind, key object.Key, do func()) { g.Hook(string(kind), key, do) }
	if queue := h.Queue; queue != nil {
		h.Queue = func(kind Kind, due int) { hook(kind, Fleet, func() { queue(kind, due) }) }
	}
	if call := h.Call; call != nil {
		h.Call = func(name string, code codes.Code, took time.Duration) {
			hook(KindMachine, Fleet, func() { call(name, code, took) })
		}
	}
	if overdue := h.Overdue; overdue != nil {
		h.Overdue = func(name string, n int) {
			hook(KindMachine, Fleet, func() { overdue(name, n) })
		}
	}
	if lasted := h.Span; lasted != nil {
		h.Span = func(key object.Key, span Span, took time.Duration) {
			hook(KindMachine, key, func() { lasted(key, span, took) })
		}
	}
	if frozen := h.Frozen; frozen != nil {
		h.Frozen = func(server string, is bool) { hook(KindReachability, Fleet, func() { frozen(server, is) }) }
	}
	if permits := h.Permits; permits != nil {
		h.Permits = func(kind Kind, key object.Key, used, limit int) {
			hook(kind, key, func() { permits(kind, key, used, limit) })
		}
	}
	if slowed := h.ClassBackoff; slowed != nil {
		h.ClassBackoff = func(class object.Key, wait time.Duration) {
			hook(KindClass, class, func() { slowed(class, wait) })
		}
	}
	return h
}
