package manager

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// TestDryRunDriver: only calls that change nothing reach the driver.
// Invariants: P40
func TestDryRunDriver(t *testing.T) {
	var made []driver.Method
	d := driver.Intercept(drivertest.NewMemory(drivertest.MemoryOptions{}), func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		made = append(made, s.Method)
		return next(ctx)
	})
	o := Options{Driver: d}
	o.guard(readOnly())
	ctx := t.Context()
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "a"}}}
	class := &machine.Class{}
	errs := make([]error, 8)
	_, errs[0] = o.Driver.CreateMachine(ctx, &driver.CreateMachineRequest{Machine: m, Class: class})
	_, errs[1] = o.Driver.InitializeMachine(ctx, &driver.InitializeMachineRequest{Machine: m, Class: class})
	_, errs[2] = o.Driver.DeleteMachine(ctx, &driver.DeleteMachineRequest{Machine: m, Class: class})
	_, errs[3] = o.Driver.UpdateMachine(ctx, &driver.UpdateMachineRequest{Machine: m, Class: class})
	_, errs[4] = o.Driver.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: m, Class: class})
	_, errs[5] = o.Driver.ListMachines(ctx, &driver.ListMachinesRequest{Class: class})
	_, errs[6] = o.Driver.GetVolumeIDs(ctx, &driver.GetVolumeIDsRequest{})
	_, errs[7] = o.Driver.GenerateMachineClassForMigration(ctx, &driver.GenerateMachineClassForMigrationRequest{Class: class})
	for i, err := range errs {
		if i < 4 {
			require.ErrorIs(t, err, store.ErrReadOnly, i)
		} else {
			require.NotErrorIs(t, err, store.ErrReadOnly, i)
		}
	}
	require.Equal(t, []driver.Method{codes.GetMachineStatus, codes.ListMachines, codes.GetVolumeIDs, codes.GenerateMachineClassForMigration}, made)
	require.ErrorContains(t, errs[0], "call CreateMachine for machine fleet/a")
	require.Error(t, readOnly().call(ctx, driver.CallInfo{Method: codes.Call(99)}, func(context.Context) error { return nil }), "an unknown call")
}

// busy is a drainer and a store of older classes that fails its test when called.
type busy struct{ t *testing.T }

func (b busy) Drain(context.Context, *machine.Machine, *machine.DrainNode) (machine.DrainAnswer, error) {
	b.t.Fatal("it drains")
	return machine.DrainAnswer{}, nil
}

func (b busy) Detach(context.Context, *machine.Machine, *machine.DetachVolumes) (machine.DrainAnswer, error) {
	b.t.Fatal("it detaches")
	return machine.DrainAnswer{}, nil
}

func (b busy) Get(context.Context, machine.ClassRef, object.Key) (*ForeignClass, error) {
	return &ForeignClass{Version: "7"}, nil
}

func (b busy) MarkMigrated(context.Context, machine.ClassRef, object.Key, string) error {
	b.t.Fatal("it marks")
	return nil
}

// alert is a busy drainer that also watches the workload.
type alert struct{ busy }

func (alert) Watch(context.Context) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) { yield("node", nil) }
}

// keeper and alertKeeper are drainers that also take nodes into service again.
type (
	keeper      struct{ busy }
	alertKeeper struct{ alert }
)

func (k keeper) Keep(context.Context, *machine.Node) (bool, error) {
	k.t.Fatal("it uncordons")
	return false, nil
}

func (k alertKeeper) Keep(ctx context.Context, n *machine.Node) (bool, error) {
	return keeper{k.busy}.Keep(ctx, n)
}

// TestDryRunPorts: even outside of a pass, nothing is drained, detached, taken into service or marked. A drainer
// keeps its optional methods. The workload is watched if it can be, and older classes are read.
// Invariants: P40
func TestDryRunPorts(t *testing.T) {
	ctx, m, n := t.Context(), &machine.Machine{}, &machine.Node{}
	for _, d := range []Drainer{busy{t}, alert{busy{t}}, keeper{busy{t}}, alertKeeper{alert{busy{t}}}} {
		o := Options{
			Driver: driver.Unimplemented{}, Drainer: d, Tokens: struct{ Tokens }{}, Classes: ClassOptions{Foreign: busy{t}},
			Pools: PoolOptions{Driver: pooldriver.UnimplementedPools{}, Bootstrap: struct{ PoolBootstrap }{}},
		}
		o.guard(readOnly())
		_, err := o.Drainer.Drain(ctx, m, &machine.DrainNode{Node: n})
		require.ErrorIs(t, err, store.ErrReadOnly)
		_, err = o.Drainer.Detach(ctx, m, &machine.DetachVolumes{Node: n})
		require.ErrorIs(t, err, store.ErrReadOnly)
		_, err = o.Tokens.Ensure(ctx, TokenOwner{}, time.Time{})
		require.ErrorIs(t, err, store.ErrReadOnly)
		_, err = o.Tokens.Renew(ctx, TokenOwner{}, time.Time{})
		require.ErrorIs(t, err, store.ErrReadOnly)
		_, err = o.Pools.Driver.CreatePool(ctx, &pooldriver.CreatePoolRequest{})
		require.ErrorIs(t, err, store.ErrReadOnly)
		_, err = o.Pools.Driver.GetPoolStatus(ctx, &pooldriver.GetPoolStatusRequest{})
		require.Equal(t, codes.Unimplemented, codes.Of(err))
		require.ErrorIs(t, o.Pools.Bootstrap.Renew(ctx, &machinepool.Pool{}, time.Time{}), store.ErrReadOnly)
		require.ErrorIs(t, o.Pools.Bootstrap.Delete(ctx, &machinepool.Pool{}), store.ErrReadOnly)
		require.ErrorIs(t, o.Tokens.Delete(ctx, TokenOwner{}), store.ErrReadOnly)
		require.ErrorIs(t, o.Classes.Foreign.MarkMigrated(ctx, machine.ClassRef{}, m.Key, "7"), store.ErrReadOnly)
		old, err := o.Classes.Foreign.Get(ctx, machine.ClassRef{}, m.Key)
		require.NoError(t, err)
		require.Equal(t, "7", old.Version)
		_, watches := d.(WorkloadWatcher)
		w, still := o.Drainer.(WorkloadWatcher)
		require.Equal(t, watches, still)
		if still {
			for node := range w.Watch(ctx) {
				require.Equal(t, "node", node)
			}
		}
		_, keeps := d.(NodeKeeper)
		k, still := o.Drainer.(NodeKeeper)
		require.Equal(t, keeps, still)
		if still {
			_, err := k.Keep(ctx, n)
			require.ErrorIs(t, err, store.ErrReadOnly)
		}
	}
	o := Options{Driver: driver.Unimplemented{}}
	o.guard(readOnly())
	require.Equal(t, Options{}, Options{
		Store: o.Store, Drainer: o.Drainer, Cluster: o.Cluster, Tokens: o.Tokens, Classes: ClassOptions{Foreign: o.Classes.Foreign},
		Pools: PoolOptions{Driver: o.Pools.Driver, Bootstrap: o.Pools.Bootstrap},
	})
}

// careless are steps that claim to only read, but write.
type careless struct{ *Options }

func (careless) Read(context.Context, bool) error { return nil }

func (careless) Decide(context.Context) (engine.Step, error) {
	return engine.Step{Verb: engine.Read}, nil
}

func (c careless) Execute(ctx context.Context) error {
	return c.Store.Machines.Delete(ctx, object.Key{Name: "a"}, "")
}

func (careless) Changes() []engine.Change { return nil }

// TestDryRunCannotAct: a step that claims to only read, but writes, fails its pass.
func TestDryRunCannotAct(t *testing.T) {
	o := InMemory(nil)
	o.Driver, o.DryRun = driver.Unimplemented{}, true
	machines := o.Store.Machines
	_, err := machines.Create(t.Context(), &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "a"}}})
	require.NoError(t, err)
	m, err := New(o)
	require.NoError(t, err)
	r := m.engine.Reconciler(engine.Kind{Name: "machine", Begin: func(*engine.Pass) engine.Steps { return careless{&m.options} }})
	_, err = r.Reconcile(t.Context(), object.Key{Name: "a"})
	require.ErrorIs(t, err, store.ErrReadOnly)
	kept, err := machines.Get(t.Context(), object.Key{Name: "a"})
	require.NoError(t, err)
	require.False(t, kept.Deleted())
}
