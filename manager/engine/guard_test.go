package engine

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
)

// faulty are steps whose decision fails as the name of the object says.
type faulty struct {
	name string
	list []int
}

func (p *faulty) Read(context.Context, bool) error { return nil }

func (p *faulty) Decide(context.Context) (Step, error) {
	switch p.name {
	case "index":
		p.list[len(p.name)]++
	case "value":
		panic(errors.New("hush-7391"))
	case "long":
		panic(hushed[string]{})
	case "goexit":
		runtime.Goexit()
	}
	return Step{}, nil
}

func (p *faulty) Execute(context.Context) error { return nil }

func (p *faulty) Changes() []Change { return nil }

type hushed[T any] struct{}

// TestDecisionPanics: a panic in a decision is a failure of that object. It causes an error, an event and a stack
// in the log once, and a count each time. After a success all of that is repeated. The value of a panic is
// nowhere, unless it is the runtime's.
// Invariants: P11
func TestDecisionPanics(t *testing.T) {
	var log bytes.Buffer
	var events, counts []string
	var last error
	failed := 0
	hooks := Hooks{
		Event: func(_ string, key object.Key, typ EventType, reason, why string) {
			events = append(events, strings.Join([]string{key.Name, string(typ), reason, why}, " "))
		},
		Panic: func(_ string, key object.Key, in, _ string) { counts = append(counts, key.Name+" "+in) },
		Pass: func(_ string, _ object.Key, _ int, _ Result, err error) {
			if last = err; err != nil {
				failed++
			}
		},
	}
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	e := New(Options{Log: slog.New(slog.NewTextHandler(&log, nil)), Hooks: hooks, Now: reads(&now)})
	r := e.Reconciler(Kind{Name: "toy", Begin: func(p *Pass) Steps { return &faulty{name: p.Key.Name} }})
	const at = " in engine.(*faulty).Decide"
	for name, what := range map[string]string{
		"index":  "runtime error: index out of range [5] with length 0" + at,
		"value":  "panic with a value of type *errors.errorString" + at,
		"long":   "panic with a value of type engine.hushed[string]" + at,
		"goexit": "runtime.Goexit was called" + at,
		"fine":   "",
	} {
		log.Reset()
		events, counts, failed = nil, nil, 0
		key := object.Key{Name: name}
		for range 3 {
			Isolate(func() {
				_, err := r.Reconcile(context.Background(), key)
				assert.Equal(t, last, err)
			})
			if what == "" {
				require.NoError(t, last)
				continue
			}
			require.ErrorIs(t, last, ErrPanicked)
			require.EqualError(t, last, "toy "+key.String()+": the pass panicked: "+what)
		}
		if what == "" {
			require.Empty(t, events)
			continue
		}
		require.Equal(t, []string{name + " Warning Panicked a pass panicked: " + what + "; the log has the stack; it is tried again"}, events)
		require.Equal(t, []string{name + " pass", name + " pass", name + " pass"}, counts)
		require.Equal(t, 3, failed)
		require.Equal(t, 1, strings.Count(log.String(), "stack="))
		require.Contains(t, log.String(), "guard_test.go")
		require.NotContains(t, log.String(), "hush-7391")

		e.Guard.succeeded(Place{InPass, "toy", key})
		Isolate(func() { _, _ = r.Reconcile(context.Background(), key) })
		require.Len(t, events, 2, "the panic is reported again after a success")
	}
}

// failing is a worker whose first pass ends its goroutine, and whose second pass panics.
type failing struct {
	passes int
	end    func()
}

func (*failing) Name() string { return "toy" }

func (f *failing) Reconcile(context.Context, object.Key) (Result, error) {
	switch f.passes++; f.passes {
	case 1:
		runtime.Goexit()
	case 2:
		panic("hush-7391")
	}
	f.end()
	return Result{}, nil
}

// TestWorkOutlivesItsPasses: a key whose pass panics or ends its goroutine is handed out again.
func TestWorkOutlivesItsPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		panics := 0
		e := New(Options{Hooks: Hooks{Panic: func(string, object.Key, string, string) { panics++ }}})
		q := NewQueue(time.Now)
		w := &failing{end: q.Close}
		q.Add(object.Key{Name: "a"})
		taken := 0
		e.Work(t.Context(), q, w, func(int) { taken++ })
		require.Equal(t, []int{3, 3, 1}, []int{w.passes, taken, panics}) // a Reconciler reports Goexit itself
		require.Zero(t, q.Depth())
	})
}

func reads(now *time.Time) func() time.Time { return func() time.Time { return *now } }

// TestPanicsAreReportedAgain: the same panic of the same object is reported once in ten minutes, wherever it occurs
// and however many texts alternate.
func TestPanicsAreReportedAgain(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	var events, counts int
	c := newGuard(slog.New(slog.DiscardHandler), Hooks{
		Event: func(string, object.Key, EventType, string, string) { events++ },
		Panic: func(string, object.Key, string, string) { counts++ },
	}, reads(&now))
	for i, in := range []string{InPass, InHook, "wake", "watch", "driver"} {
		events, counts = 0, 0
		at := Place{in, "toy", object.Key{Name: "a"}}
		for second := range 1800 {
			now = now.Add(time.Second)
			c.Report(context.Background(), at, &Caught{What: "one"})
			c.Report(context.Background(), at, &Caught{What: "another"})
			require.LessOrEqual(t, events, 2*(1+second/600), in)
		}
		require.Equal(t, 2*3, events, in)
		require.Equal(t, 2*1800, counts, in)
		require.Len(t, c.reported, i+1)
	}
	now = now.Add(-time.Hour)
	events = 0
	c.Report(context.Background(), Place{InHook, "toy", object.Key{Name: "a"}}, &Caught{What: "one"})
	require.Equal(t, 1, events, "a clock that went back keeps nothing quiet")
}

// TestReportedPanicsAreBounded: the memory of reported panics is bounded: the oldest are forgotten first.
func TestReportedPanicsAreBounded(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	c := newGuard(slog.New(slog.DiscardHandler), Hooks{}, reads(&now))
	at := func(i int) Place { return Place{"driver", "toy", object.Key{Name: strconv.Itoa(i)}} }
	for i := range placesReported {
		require.True(t, c.first(at(i), "one"))
	}
	now = now.Add(reportedAgain / 2)
	require.False(t, c.first(at(0), "one"))
	require.True(t, c.first(at(1), "another"), "a new text of a known place is remembered")
	now = now.Add(reportedAgain / 2)
	require.True(t, c.first(at(placesReported), "one"))
	require.Len(t, c.reported, 2, "the other places may be reported again")
	require.False(t, c.first(at(1), "another"))
	for i := range 3 * placesReported {
		c.first(at(i), "one")
		require.LessOrEqual(t, len(c.reported), placesReported)
	}
	for i := range 100 {
		c.first(at(0), strconv.Itoa(i))
		require.LessOrEqual(t, len(c.reported[at(0)]), textsReported)
	}
}

// TestCaughtIsBounded: the name of a panic's type is cut, because others choose it.
func TestCaughtIsBounded(t *testing.T) {
	require.Equal(t, longestWhat+len("…"), len(bounded(strings.Repeat("a", longestWhat+1))))
	require.Equal(t, "short", bounded("short"))
}

// TestEachCarriesPanics: all orders are carried out, and the first panic ends the pass that gave them, with its
// own stack.
func TestEachCarriesPanics(t *testing.T) {
	done := make([]bool, 40)
	end := Catch(func() {
		Contain(Parallel)(context.Background(), len(done), func(i int) {
			done[i] = true
			switch {
			case i == 7:
				runtime.Goexit()
			case i%3 == 0:
				panic(i)
			}
		})
	})
	require.NotContains(t, done, false)
	require.NotNil(t, end)
	require.Contains(t, string(end.Stack), "TestEachCarriesPanics.func1.1")
}
