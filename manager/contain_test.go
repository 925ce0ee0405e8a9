package manager

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/object"
)

// faulty is a pass whose decision ends as its object's name says.
type faulty struct {
	name string
	list []int
}

func (p *faulty) observe(context.Context, bool) error { return nil }

func (p *faulty) step(context.Context) (Result, bool, error) {
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
	return Result{}, true, nil
}

type hushed[T any] struct{}

// faults is the reconciler of such passes.
type faults struct {
	*shell
	memo memo
}

func (r *faults) Kind() Kind { return KindMachine }

func (r *faults) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindMachine, key, &r.memo, func() pass { return &faulty{name: key.Name} })
}

// TestDecisionPanics: what panics in a decision is that object's failure. It is an error, an event
// and a stack in the log once, a count each time, and all of it anew after a success; the value of
// a panic is nowhere, unless it is the runtime's.
func TestDecisionPanics(t *testing.T) {
	var log bytes.Buffer
	var events, counts []string
	failed := 0
	hooks := Hooks{
		Event: func(_ Kind, key object.Key, typ EventType, reason, why string) {
			events = append(events, strings.Join([]string{key.Name, string(typ), reason, why}, " "))
		},
		Panicked: func(_ Kind, key object.Key, in, _ string) { counts = append(counts, key.Name+" "+in) },
		Pass: func(_ Kind, _ object.Key, _ int, _ Result, err error) {
			if err != nil {
				failed++
			}
		},
	}
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	c := newContainment(slog.New(slog.NewTextHandler(&log, nil)), hooks, reads(&now))
	o := &Options{Hooks: c.contain(hooks), Log: c.log}
	r := contained{&faults{shell: &shell{Options: o}}, c, o}
	const at = " in manager.(*faulty).step"
	for name, what := range map[string]string{
		"index":  "runtime error: index out of range [5] with length 0" + at,
		"value":  "panic with a value of type *errors.errorString" + at,
		"long":   "panic with a value of type manager.hushed[string]" + at,
		"goexit": "runtime.Goexit was called" + at,
		"fine":   "",
	} {
		log.Reset()
		events, counts, failed = nil, nil, 0
		key := object.Key{Name: name}
		for range 3 {
			_, err := r.Reconcile(context.Background(), key)
			if what == "" {
				require.NoError(t, err)
				continue
			}
			require.ErrorIs(t, err, ErrPanicked)
			require.EqualError(t, err, "machine "+key.String()+": the pass panicked: "+what)
		}
		if what == "" {
			require.Empty(t, events)
			continue
		}
		require.Equal(t, []string{name + " Warning Panicked a pass panicked: " + what + "; the log has the stack; it is tried again"}, events)
		require.Equal(t, []string{name + " pass", name + " pass", name + " pass"}, counts)
		require.Equal(t, 3, failed)
		require.Equal(t, 1, strings.Count(log.String(), "stack="))
		require.Contains(t, log.String(), "contain_test.go")
		require.NotContains(t, log.String(), "hush-7391")

		c.succeeded(KindMachine, key)
		_, err := r.Reconcile(context.Background(), key)
		require.Error(t, err)
		require.Len(t, events, 2, "told again")
	}
}

func reads(now *time.Time) func() time.Time { return func() time.Time { return *now } }

// TestPanicsAreToldAgain: the same panic of the same object is told once in ten minutes, wherever it
// was and however many texts take turns.
func TestPanicsAreToldAgain(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	var events, counts int
	c := newContainment(slog.New(slog.DiscardHandler), Hooks{
		Event:    func(Kind, object.Key, EventType, string, string) { events++ },
		Panicked: func(Kind, object.Key, string, string) { counts++ },
	}, reads(&now))
	for i, in := range []string{inPass, inHook, inWake, inWatch, inDriver} {
		events, counts = 0, 0
		at := place{in, KindMachine, object.Key{Name: "a"}}
		for second := range 1800 {
			now = now.Add(time.Second)
			c.tell(context.Background(), at, &caught{what: "one"})
			c.tell(context.Background(), at, &caught{what: "another"})
			require.LessOrEqual(t, events, 2*(1+second/600), in)
		}
		require.Equal(t, 2*3, events, in)
		require.Equal(t, 2*1800, counts, in)
		require.Len(t, c.told, i+1)
	}
	now = now.Add(-time.Hour)
	events = 0
	c.tell(context.Background(), place{inHook, KindMachine, object.Key{Name: "a"}}, &caught{what: "one"})
	require.Equal(t, 1, events, "a clock that went back keeps nothing quiet")
}

// TestPanicsToldAreBounded: what was told is forgotten, the oldest first, before it grows too large.
func TestPanicsToldAreBounded(t *testing.T) {
	now := time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)
	c := newContainment(slog.New(slog.DiscardHandler), Hooks{}, reads(&now))
	at := func(i int) place { return place{inDriver, KindMachine, object.Key{Name: strconv.Itoa(i)}} }
	for i := range placesTold {
		require.True(t, c.first(at(i), "one"))
	}
	now = now.Add(toldAgain / 2)
	require.False(t, c.first(at(0), "one"))
	require.True(t, c.first(at(1), "another"), "of a place that is known")
	now = now.Add(toldAgain / 2)
	require.True(t, c.first(at(placesTold), "one"))
	require.Len(t, c.told, 2, "the others may be told again")
	require.False(t, c.first(at(1), "another"))
	for i := range 3 * placesTold {
		c.first(at(i), "one")
		require.LessOrEqual(t, len(c.told), placesTold)
	}
	for i := range 100 {
		c.first(at(0), strconv.Itoa(i))
		require.LessOrEqual(t, len(c.told[at(0)]), textsTold)
	}
}

// TestCaughtIsBounded: a type's name is another's text.
func TestCaughtIsBounded(t *testing.T) {
	require.Equal(t, longestWhat+len("…"), len(bounded(strings.Repeat("a", longestWhat+1))))
	require.Equal(t, "short", bounded("short"))
}

// TestEachCarriesPanics: all orders are carried out, and the first panic ends the pass that gave
// them, with the stack that it had.
func TestEachCarriesPanics(t *testing.T) {
	done := make([]bool, 40)
	end := catch(func() {
		carrying(each)(context.Background(), len(done), func(i int) {
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
	require.Contains(t, string(end.stack), "TestEachCarriesPanics.func1.1")
}
