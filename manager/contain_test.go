package manager

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"runtime"
	"strings"
	"testing"

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
	c := newContainment(slog.New(slog.NewTextHandler(&log, nil)), hooks)
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
