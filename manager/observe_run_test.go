package manager_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/safety/replacement"
	"github.com/millwright-go/millwright/store"
)

// TestObserveRun: Run, only observing, for six hours over a fleet in need:
// nothing changes, each thing is told and logged once, and nothing is looked at
// more often than now and then.
func TestObserveRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, drivertest.MemoryOptions{})
		w.at = time.Now()
		w.fleet()
		w.late("late", machineset.OwnerKind)
		w.stray("blue", "web-lost")
		o := w.options()
		o.Runtime.Now, o.Runtime.Each, o.Observe, o.Policies.Safety, o.Classes.Keep = time.Now, nil, true, safety.DefaultPolicy(), true
		var log bytes.Buffer
		o.Log = slog.New(slog.NewTextHandler(&log, nil))
		var mu sync.Mutex
		var failed []error
		told, passes := map[string]int{}, map[manager.Kind]int{}
		o.Hooks.Event = nil
		o.Hooks.Observed = func(_ manager.Kind, _ object.Key, what, _, _ string) {
			mu.Lock()
			defer mu.Unlock()
			told[what]++
		}
		o.Hooks.Pass = func(kind manager.Kind, _ object.Key, _ int, _ manager.Result, err error) {
			mu.Lock()
			defer mu.Unlock()
			passes[kind]++
			if err != nil && !errors.Is(err, context.DeadlineExceeded) {
				failed = append(failed, err)
			}
		}
		m, err := manager.New(o)
		require.NoError(t, err)
		before := w.contents()
		run, cancel := context.WithTimeout(t.Context(), 6*time.Hour)
		defer cancel()
		require.NoError(t, m.Run(run))
		require.Empty(t, failed)
		require.Equal(t, before, w.contents())
		require.Equal(t, map[string]int{
			"update deployment fleet/web": 1, "update machine fleet/late": 1, "delete machine fleet/late": 1,
			"call DeleteMachine for machine fleet/web-lost": 1, "update class fleet/small": 1, "update secret fleet/boot": 1,
		}, told)
		require.Equal(t, len(told), strings.Count(log.String(), "not done, only observing: "), log.String())
		for kind, n := range passes {
			most := 6*6 + 10 // at the pace of Resync
			if kind.Fleet() {
				most = 6*60 + 10
			}
			require.LessOrEqual(t, n, most, kind)
		}
	})
}

// TestObservingStaleCaches: what would be refused, since somebody was faster,
// is not told; the pass begins again as it would.
func TestObservingStaleCaches(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.fleet()
	var told []string
	w.classed = func(o *manager.Options, _ *testkit.Fuse) {
		o.Observe = true
		o.Hooks.Observed = func(_ manager.Kind, _ object.Key, what, reason, _ string) { told = append(told, reason+" "+what) }
	}
	p := w.start(&testkit.Fuse{}, true) // its caches do not see what follows
	w.classed = nil
	real := w.start(&testkit.Fuse{}, false)
	require.NoError(t, real.pass(manager.KindDeployment, fleetKey))
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	require.Empty(t, told, "the finalizer is there, and the set too")
	require.NoError(t, w.deployments.Delete(ctx, fleetKey, ""))
	require.NoError(t, p.pass(manager.KindDeployment, fleetKey))
	sets, err := w.sets.List(ctx, store.Query{})
	require.NoError(t, err)
	require.Equal(t, []string{"DeleteSet delete set " + sets[0].Key.String()}, told)
}

// TestObservedAgain: what is told of an object is told again of the next one that
// has its name.
func TestObservedAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	p := w.twin(true)
	for range 2 {
		m := w.late("late", machineset.OwnerKind)
		_, err := p.look(manager.KindMachine, m.Key)
		require.NoError(t, err)
		require.Equal(t, []string{"update machine fleet/late"}, p.told)
		require.NoError(t, w.machines.Delete(ctx, m.Key, ""))
		_, err = p.look(manager.KindMachine, m.Key)
		require.NoError(t, err)
		require.Empty(t, p.told)
	}
}

// TestObservedReasons: what is told has the reason of the decision that ordered
// it, and one order of several has its own.
func TestObservedReasons(t *testing.T) {
	w, _ := crowded(t)
	p := w.twin(true)
	_, err := p.look(manager.KindDeployment, fleetKey)
	require.NoError(t, err)
	require.Len(t, p.whys, 1)
	require.Contains(t, p.whys[0], overshoot.ReasonFreeze.String()+": ")

	w, _ = ill(t)
	w.at = w.at.Add(11 * time.Minute)
	p = w.twin(true)
	_, err = p.look(manager.KindMachine, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Empty(t, p.told, "it has only begun to watch")
	w.at = w.at.Add(machine.DefaultPolicy().Grace)
	_, err = p.look(manager.KindMachine, keysOf(w.machines)[0])
	require.NoError(t, err)
	require.Equal(t, []string{"update deployment fleet/web"}, p.told)
	require.Contains(t, p.whys[0], replacement.ReasonTakeSlot.String()+": ")

	w = newWorld(t, drivertest.MemoryOptions{})
	w.loneSet(3)
	running := func() bool { return w.phases()[machine.PhaseRunning] == 3 }
	w.until(w.start(&testkit.Fuse{}, false), running, unexpected(t))
	odd := w.pick(func(*machine.Machine) bool { return true }).Clone()
	odd.Status.Phase = machine.PhaseUnknown
	_, err = w.machines.UpdateStatus(ctx, odd)
	require.NoError(t, err)
	set := w.set().Clone()
	set.Spec.Replicas = 0
	_, err = w.sets.Update(ctx, set)
	require.NoError(t, err)
	p = w.twin(true)
	_, err = p.look(manager.KindSet, set.Key)
	require.NoError(t, err)
	require.Len(t, p.told, 3)
	for i, what := range p.told {
		phase := machine.PhaseRunning
		if what == "delete machine "+odd.Key.String() {
			phase = machine.PhaseUnknown
		}
		require.Contains(t, p.whys[i], string(phase), what)
	}
}

// TestObservedMarks: each machine of a fleet that is to be updated in place is
// told of by its name.
func TestObservedMarks(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	w.inPlaceFleet()
	w.until(w.start(&testkit.Fuse{}, false), w.settled(3), unexpected(t))
	w.change(version("2"))
	most := 0
	for n := range 60 {
		observer := w.twin(true)
		_, err := observer.look(manager.KindDeployment, fleetKey)
		require.NoError(t, err)
		for i, what := range observer.told {
			if name, marked := strings.CutPrefix(what, "update machine "+namespace+"/"); marked {
				require.Contains(t, observer.whys[i], name)
				most = max(most, i+1)
			}
		}
		_ = w.start(&testkit.Fuse{BlowAt: 1 + n/3, BlowAfter: true}, false).pass(manager.KindDeployment, fleetKey)
	}
	require.Equal(t, 3, most)
}
