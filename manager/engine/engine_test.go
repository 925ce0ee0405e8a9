package engine_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

var key = object.Key{Namespace: "house", Name: "a"}

// recorder records what hooks are called with.
type recorder struct {
	mu sync.Mutex // guards what the goroutines of a batch report: effects and panics

	events, effects, withheld, panics []string
	steps                             []int
	errs                              []error
}

func (t *recorder) hooks() engine.Hooks {
	return engine.Hooks{
		Event: func(kind string, key object.Key, typ engine.EventType, reason, why string) {
			t.events = append(t.events, fmt.Sprint(kind, " ", key, " ", typ, " ", reason, ": ", why))
		},
		Effect: func(kind string, key object.Key, name string, took time.Duration, err error) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.effects = append(t.effects, fmt.Sprint(name, " ", took, " ", err))
		},
		DryRun: func(kind string, key object.Key, what, reason, why string) {
			t.withheld = append(t.withheld, fmt.Sprint(kind, " ", key, ": ", what, ": ", reason, ": ", why))
		},
		Panic: func(_ string, key object.Key, in, what string) {
			t.mu.Lock()
			defer t.mu.Unlock()
			t.panics = append(t.panics, fmt.Sprint(key, " ", in, " ", what))
		},
		Pass: func(_ string, _ object.Key, steps int, _ engine.Result, err error) {
			t.steps, t.errs = append(t.steps, steps), append(t.errs, err)
		},
	}
}

// house returns a store with one lamp that is to be lit, a stale cache of it, and a reconciler of lamps.
func house(t *testing.T, o engine.Options) (*lamps, *stale, *engine.Reconciler) {
	t.Helper()
	s := &stale{Memory: store.NewMemory[*lamp](nil, nil)}
	_, err := s.Create(t.Context(), &lamp{Meta: object.Meta{Key: key}, On: true})
	require.NoError(t, err)
	k := &lamps{lamps: s}
	return k, s, engine.New(o).Reconciler(k.kind())
}

// TestAPass: a pass reads, decides and executes until a plan waits, and calls the hooks.
func TestAPass(t *testing.T) {
	var rec recorder
	now, _ := clock()
	k, s, r := house(t, engine.Options{Hooks: rec.hooks(), Now: now, Jitter: func(d time.Duration) time.Duration { return d }})
	k.edit = func(h *engine.Step) {
		require.Empty(t, k.left, "Release was called before the end of the pass")
		if h.Verb == engine.Mutate {
			h.Name = "Light"
		}
	}
	result, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, engine.Result{At: start.Add(10 * time.Minute), Why: decision.Why{Reason: reasonFine}}, result)
	require.Equal(t, 1, s.writes)
	require.Equal(t, []string{"lamp house/a Normal Switch: it is lit"}, rec.events)
	require.Equal(t, []string{"Light 0s <nil>"}, rec.effects)
	require.Equal(t, []int{1}, rec.steps)
	require.Equal(t, []bool{false}, k.reads)
	require.Equal(t, []object.Key{key}, k.left)

	k.edit = nil
	require.NoError(t, s.Delete(t.Context(), key, ""))
	result, err = r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "it is gone", result.Why.String())
	require.Zero(t, result.At)
	require.Equal(t, []object.Key{key}, k.forgotten)
}

// TestAPassIsBounded: a pass that does not come to an end is ended after the 64th plan, and continued at once. If
// a plan comes again that must not, the pass fails.
func TestAPassIsBounded(t *testing.T) {
	now, _ := clock()
	var rec recorder
	k, _, r := house(t, engine.Options{Now: now, Hooks: rec.hooks()})
	executed := 0
	k.instead = func(context.Context, *engine.Pass) error { executed++; return nil }
	result, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 64, executed)
	require.Equal(t, []int{64}, rec.steps)
	require.Equal(t, start, result.At)

	executed = 0
	k.edit = func(h *engine.Step) { h.Key = executed % 3 }
	_, err = r.Reconcile(t.Context(), key)
	require.ErrorContains(t, err, "lamp house/a: 0 was decided twice in one pass")
	require.Equal(t, 3, executed)
	require.Equal(t, []object.Key{key, key}, k.left)
}

// TestConflictsBeginAgain: after a conflict the pass begins again and reads live; after four conflicts it waits.
// Another error ends it.
func TestConflictsBeginAgain(t *testing.T) {
	now, _ := clock()
	for n, want := range [][]bool{{false}, {false, true}, {false, true, true}, {false, true, true, true}, {false, true, true, true}} {
		k, _, r := house(t, engine.Options{Now: now})
		left := n
		k.instead = func(context.Context, *engine.Pass) error {
			if left--; left >= 0 {
				return fmt.Errorf("update: %w", store.ErrConflict)
			}
			return errors.New("the store is down")
		}
		result, err := r.Reconcile(t.Context(), key)
		require.Equal(t, want, k.reads)
		require.Equal(t, []object.Key{key}, k.left)
		if n < 4 {
			require.EqualError(t, err, "lamp house/a: the store is down")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, "others keep writing it", result.Why.String())
		require.False(t, result.At.Before(start.Add(codes.Conflict.Period(0))))
	}
}

// TestRereadIsLive: a plan can ask for a live read, and the pass goes on from there.
func TestRereadIsLive(t *testing.T) {
	k, s, r := house(t, engine.Options{})
	s.cached = &lamp{Meta: object.Meta{Key: key, Version: "old"}, On: true}
	k.edit = func(h *engine.Step) {
		if len(k.reads) == 1 {
			*h = engine.Step{Verb: engine.Reread}
		}
	}
	_, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []bool{false, true}, k.reads)
	require.Equal(t, 1, s.writes)
}

// TestDryRun: changes are reported once and never made. Before a change is reported, it is decided again from live
// reads.
func TestDryRun(t *testing.T) {
	now, forward := clock()
	var rec recorder
	k, s, r := house(t, engine.Options{Now: now, Hooks: rec.hooks(), DryRun: true})
	for range 3 {
		result, err := r.Reconcile(t.Context(), key)
		require.NoError(t, err)
		require.Equal(t, "not done in a dry run: update status of lamp house/a", result.Why.String())
		require.False(t, result.At.Before(now().Add(10*time.Minute)))
		forward(10 * time.Minute)
	}
	require.Zero(t, s.writes)
	require.Equal(t, []string{"lamp house/a: update status of lamp house/a: Switch: it is on"}, rec.withheld)
	require.Empty(t, rec.events)
	require.Equal(t, []bool{false, true, false, true, false, true}, k.reads)

	k.reads = nil
	k.edit = func(h *engine.Step) { h.Live = true }
	_, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, []bool{false}, k.reads, "the plan rests on live reads already")

	rec = recorder{}
	k, s, r = house(t, engine.Options{Now: now, Hooks: rec.hooks(), DryRun: true})
	s.cached = &lamp{Meta: object.Meta{Key: key}, On: true}
	stored, err := s.Memory.Get(t.Context(), key)
	require.NoError(t, err)
	stored = stored.Clone()
	stored.Lit = true
	_, err = s.Memory.UpdateStatus(t.Context(), stored)
	require.NoError(t, err)
	result, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, "it is as it should be", result.Why.String())
	require.Empty(t, rec.withheld, "the cache was stale")
	require.Equal(t, []bool{false, true}, k.reads)

	k, _, r = house(t, engine.Options{Now: now, Hooks: rec.hooks(), DryRun: true})
	looked := 0
	k.edit = func(h *engine.Step) {
		if looked == 0 {
			h.Verb = engine.Read
		}
	}
	k.instead = func(context.Context, *engine.Pass) error { looked++; return nil }
	_, err = r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, looked, "what changes nothing is done")

	k, s, r = house(t, engine.Options{Now: now, DryRun: true})
	k.unnamed = true
	_, err = r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Zero(t, s.writes, "a kind that can't say what it would change does not change it")
}

// TestWaits: the jitter makes a wait longer and never shorter.
func TestWaits(t *testing.T) {
	now, _ := clock()
	var asked []time.Duration
	jitter := func(d time.Duration) time.Duration {
		asked = append(asked, d)
		return d / 2
	}
	e := engine.New(engine.Options{Now: now, Jitter: jitter, Resync: time.Hour})
	require.Equal(t, start.Add(time.Minute), e.Wait(start.Add(time.Minute), decision.Why{}).At, "the jitter must not shorten a wait")
	require.Equal(t, start.Add(time.Hour), e.Wait(time.Time{}, decision.Why{}).At)
	require.Equal(t, start.Add(-time.Minute), e.Wait(start.Add(-time.Minute), decision.Why{}).At, "at once")
	require.Equal(t, []time.Duration{time.Minute, time.Hour}, asked)
	for range 100 {
		require.GreaterOrEqual(t, engine.Spread(time.Second), time.Second)
		require.LessOrEqual(t, engine.Spread(time.Second), 1100*time.Millisecond)
	}
	longer := func(d time.Duration) time.Duration { return d + time.Second }
	require.Equal(t, start.Add(time.Minute+time.Second),
		engine.New(engine.Options{Now: now, Jitter: longer}).Wait(start.Add(time.Minute), decision.Why{}).At)
}

// TestPanicInABatch: all orders are carried out, the pass ends with an error, and the permits of the object are
// set aside. The value of the panic is nowhere.
func TestPanicInABatch(t *testing.T) {
	for _, end := range []func(){func() { panic("hush-7391") }, runtime.Goexit} {
		var rec recorder
		k, s, r := house(t, engine.Options{Hooks: rec.hooks()})
		var more []*lamp
		for i := range 20 {
			more = append(more, &lamp{Meta: object.Meta{Key: object.Key{Namespace: "house", Name: fmt.Sprint(i)}}})
		}
		k.instead = func(ctx context.Context, p *engine.Pass) error {
			b := &engine.Batch[*lamp]{Pass: p, Objects: engine.NewObjects(p.Engine, "lamp", s, nil)}
			b.All(ctx, "Create", more, func(ctx context.Context, l *lamp) (*lamp, error) {
				if l.Name == "7" {
					end()
				}
				return s.Create(ctx, l)
			})
			return nil
		}
		_, err := r.Reconcile(t.Context(), key)
		require.ErrorIs(t, err, engine.ErrPanicked)
		require.NotContains(t, err.Error(), "hush")
		require.Len(t, rec.panics, 1)
		require.Equal(t, []object.Key{key}, k.left)
		require.Equal(t, []object.Key{key}, k.panicked)
		all, err := s.List(t.Context(), store.Query{})
		require.NoError(t, err)
		require.Len(t, all, 1+20-1)
	}
}

// TestHoldComesFirst: nothing is read while Delay holds passes back.
func TestHoldComesFirst(t *testing.T) {
	k, s, _ := house(t, engine.Options{})
	kind := k.kind()
	wait := true
	kind.Delay = func() (engine.Result, bool) { return engine.Result{At: start}, wait }
	r := engine.New(engine.Options{}).Reconciler(kind)
	result, err := r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, start, result.At)
	require.Empty(t, k.reads)
	wait = false
	_, err = r.Reconcile(t.Context(), key)
	require.NoError(t, err)
	require.Equal(t, 1, s.writes)
}

// TestMemory: an event is emitted once until the object has succeeded, and failures of one step in a row are
// counted.
func TestMemory(t *testing.T) {
	var rec recorder
	k, _, r := house(t, engine.Options{Hooks: rec.hooks()})
	refused := true
	var before []int
	k.instead = func(ctx context.Context, p *engine.Pass) error {
		p.EmitOnce(ctx, engine.Warning, decision.Why{Reason: reasonSwitch, Detail: "stuck"})
		p.Ordered(refused)
		p.Ordered(refused)
		before = append(before, p.Failures())
		require.Equal(t, !refused, p.ClearFailures())
		return errors.New("enough")
	}
	for range 3 {
		_, err := r.Reconcile(t.Context(), key)
		require.Error(t, err)
	}
	require.Equal(t, []int{0, 1, 2}, before)
	require.Len(t, rec.events, 1)
	refused = false
	for range 2 {
		_, err := r.Reconcile(t.Context(), key)
		require.Error(t, err)
	}
	require.Equal(t, []int{0, 1, 2, 3, 0}, before)
	require.Len(t, rec.events, 2)

	var m engine.Memory
	require.Equal(t, 1, m.Failed(key, "a"))
	require.Equal(t, 2, m.Failed(key, "a"))
	require.Equal(t, 1, m.Failed(key, "b"), "failures of another step count separately")
	m.Succeeded(key)
	require.Zero(t, m.Failures(key))
	require.Equal(t, 1, m.Failed(key, "b"))
	m.Forget(key)
	require.Zero(t, m.Failures(key))

	var n engine.Notes[int]
	n.Change(key, func(n *int) { *n += 2 })
	n.Change(key, func(n *int) { *n *= 2 })
	require.Equal(t, 4, n.Of(key))
	n.Forget(key)
	require.Zero(t, n.Of(key))
}

// TestSub: a pass within a pass goes on until it waits. In a dry run its first change is reported, and ends the
// outer pass.
func TestSub(t *testing.T) {
	for _, dry := range []bool{false, true} {
		var rec recorder
		k, s, r := house(t, engine.Options{Hooks: rec.hooks(), DryRun: dry})
		within := &lamps{lamps: s}
		k.edit = func(h *engine.Step) {
			if h.Verb == engine.Mutate {
				h.Verb, h.Name = engine.Read, "Ask"
			}
		}
		k.instead = func(ctx context.Context, p *engine.Pass) error {
			sub := &lampPass{Pass: p, lamps: within}
			if err := sub.Read(ctx, true); err != nil {
				return err
			}
			if err := p.Sub(ctx, sub); err != nil {
				return err
			}
			return errors.New("the outer pass went on")
		}
		_, err := r.Reconcile(t.Context(), key)
		require.Equal(t, !dry, err != nil)
		if dry {
			require.Zero(t, s.writes)
			require.Equal(t, []string{"lamp house/a: update status of lamp house/a: Switch: it is on"}, rec.withheld)
			require.Empty(t, rec.effects, "the inner pass carried nothing out")
			continue
		}
		require.ErrorContains(t, err, "the outer pass went on")
		require.Equal(t, 1, s.writes)
		require.Len(t, rec.effects, 1)
	}
}

// TestInterrupted: an answer counts even while the process is shutting down. That a call was not made, in a dry run or
// because the term is over, is no answer.
func TestInterrupted(t *testing.T) {
	ctx, end := context.WithCancel(t.Context())
	require.NoError(t, engine.Interrupted(ctx, store.ErrNotFound))
	for _, notMade := range []error{store.ErrReadOnly, store.ErrFenced} {
		wrapped := fmt.Errorf("call CreateMachine: %w", notMade)
		require.Equal(t, wrapped, engine.Interrupted(ctx, wrapped))
	}
	end()
	require.NoError(t, engine.Interrupted(ctx, nil))
	require.ErrorIs(t, engine.Interrupted(ctx, store.ErrNotFound), context.Canceled)
}

// TestBatches: the orders of a batch follow each other as the kind of batch says, and stop where it says.
func TestBatches(t *testing.T) {
	now, forward := clock()
	objects := make([]*lamp, 9)
	for i := range objects {
		objects[i] = &lamp{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint(i)}}}
	}
	inOrder := func(_ context.Context, n int, do func(int)) {
		for i := range n {
			do(i)
		}
	}
	var given []string
	failing := "5"
	do := func(_ context.Context, l *lamp) (*lamp, error) {
		given = append(given, l.Name)
		forward(time.Second)
		if l.Name == failing {
			return nil, codes.New(codes.ResourceExhausted, "no more")
		}
		return l, nil
	}
	e := engine.New(engine.Options{Now: now, Each: inOrder})
	b := &engine.Batch[*lamp]{Pass: &engine.Pass{Engine: e, Kind: "lamp", Key: key}}
	require.Len(t, b.All(t.Context(), "Light", objects, do), 9)
	require.Len(t, given, 9)
	given = nil
	out := b.Slowly(t.Context(), "Light", objects, do)
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5", "6"}, given, "1, 2 and 4")
	answer, err := engine.Refused(t.Context(), out)
	require.NoError(t, err)
	require.Equal(t, codes.ResourceExhausted, answer.Code)
	given = nil
	require.Len(t, b.InOrder(t.Context(), "Light", objects, do), 6)
	require.Equal(t, []string{"0", "1", "2", "3", "4", "5"}, given)
	given = nil
	b.Until = now().Add(3 * time.Second)
	out = b.All(t.Context(), "Light", objects, do)
	require.Equal(t, []string{"0", "1", "2"}, given)
	answer, err = engine.Refused(t.Context(), out)
	require.NoError(t, err)
	require.Nil(t, answer, "what was not issued was not refused")

	for _, c := range []struct {
		err      error
		conflict bool
		code     codes.Code
	}{
		{store.ErrConflict, true, 0},
		{store.ErrNotFound, true, 0},
		{store.ErrInvalid, false, codes.InvalidArgument},
		{errors.New("down"), false, codes.Unavailable},
	} {
		answer, err := engine.Refused(t.Context(), []engine.Outcome[*lamp]{{}, {Err: c.err}})
		require.Equal(t, c.conflict, errors.Is(err, store.ErrConflict))
		if !c.conflict {
			require.Equal(t, c.code, answer.Code)
		}
	}
}

// TestDeletionMarksACopy: an object that is marked as deleted is a copy, because the store's object is shared.
func TestDeletionMarksACopy(t *testing.T) {
	now, forward := clock()
	s := store.NewMemory[*lamp](now, nil)
	before, err := s.Create(t.Context(), &lamp{Meta: object.Meta{Key: key, Finalizers: []string{"x"}}})
	require.NoError(t, err)
	kept := before.Clone()
	e := engine.New(engine.Options{Now: now})
	b := &engine.Batch[*lamp]{Pass: &engine.Pass{Engine: e}, Objects: engine.NewObjects(e, "lamp", s, nil)}
	forward(time.Hour)
	after, err := b.Delete(t.Context(), before)
	require.NoError(t, err)
	require.Equal(t, kept, before)
	kept.DeletedAt = now()
	require.Equal(t, kept, after)
}
