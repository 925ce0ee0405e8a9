package manager

import (
	"context"
	"errors"
	"iter"
	"reflect"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// reached are the calls that got through to a port.
type reached struct {
	mu    sync.Mutex
	calls []string
}

func (r *reached) note(call string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, call)
}

// take returns the calls since it was called last.
func (r *reached) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	calls := r.calls
	r.calls = nil
	return calls
}

// These are ports that note their calls.
type (
	notedCollection[T object.Object[T]] struct {
		store.Collection[T]
		*reached
	}
	notedCluster struct {
		*reached
		nodes store.Collection[*machine.Node]
	}
	notedDrainer   struct{ *reached }
	notedTokens    struct{ *reached }
	notedForeign   struct{ *reached }
	notedBootstrap struct{ *reached }
)

func (c notedCollection[T]) Create(ctx context.Context, o T) (T, error) {
	c.note("Create")
	return c.Collection.Create(ctx, o)
}

func (c notedCollection[T]) Update(ctx context.Context, o T) (T, error) {
	c.note("Update")
	return c.Collection.Update(ctx, o)
}

func (c notedCollection[T]) UpdateStatus(ctx context.Context, o T) (T, error) {
	c.note("UpdateStatus")
	return c.Collection.UpdateStatus(ctx, o)
}

func (c notedCollection[T]) Delete(ctx context.Context, k object.Key, uid string) error {
	c.note("Delete")
	return c.Collection.Delete(ctx, k, uid)
}

func (c notedCluster) Nodes() store.Collection[*machine.Node] { return c.nodes }

func (d notedDrainer) Drain(context.Context, *machine.Machine, *machine.DrainNode) (machine.DrainAnswer, error) {
	d.note("Drain")
	return machine.DrainAnswer{}, nil
}

func (d notedDrainer) Detach(context.Context, *machine.Machine, *machine.DetachVolumes) (machine.DrainAnswer, error) {
	d.note("Detach")
	return machine.DrainAnswer{}, nil
}

func (d notedDrainer) Keep(context.Context, *machine.Node) (bool, error) {
	d.note("Keep")
	return true, nil
}

func (d notedDrainer) Watch(context.Context) iter.Seq2[string, error] {
	d.note("Watch")
	return func(func(string, error) bool) {}
}

func (n notedTokens) Ensure(context.Context, TokenOwner, time.Time) (Token, error) {
	n.note("Ensure")
	return "", nil
}

func (n notedTokens) Renew(context.Context, TokenOwner, time.Time) (Token, error) {
	n.note("Renew")
	return "", nil
}

func (n notedTokens) Delete(context.Context, TokenOwner) error {
	n.note("Delete")
	return nil
}

func (f notedForeign) Get(context.Context, machine.ClassRef, object.Key) (*ForeignClass, error) {
	f.note("Get")
	return nil, store.ErrNotFound
}

func (f notedForeign) MarkMigrated(context.Context, machine.ClassRef, object.Key, string) error {
	f.note("MarkMigrated")
	return nil
}

func (b notedBootstrap) State(context.Context, *machinepool.Pool) (machinepool.BootstrapAnswer, error) {
	b.note("State")
	return machinepool.BootstrapAnswer{}, nil
}

func (b notedBootstrap) Data(context.Context, *machinepool.Pool) (*machine.Secret, error) {
	b.note("Data")
	return nil, store.ErrNotFound
}

func (b notedBootstrap) Renew(context.Context, *machinepool.Pool, time.Time) error {
	b.note("Renew")
	return nil
}

func (b notedBootstrap) Delete(context.Context, *machinepool.Pool) error {
	b.note("Delete")
	return nil
}

// allPorts returns options that have every port.
func allPorts(r *reached) Options {
	o := InMemory(time.Now)
	note := func(_ context.Context, c driver.CallInfo, _ func(context.Context) error) error {
		r.note(c.Method.String())
		return nil
	}
	o.Store.Machines = notedCollection[*machine.Machine]{o.Store.Machines, r}
	o.Store.Classes = notedCollection[*machine.Class]{o.Store.Classes, r}
	o.Store.Secrets = notedCollection[*machine.Secret]{o.Store.Secrets, r}
	o.Store.Sets = notedCollection[*machineset.Set]{o.Store.Sets, r}
	o.Store.Deployments = notedCollection[*deployment.Deployment]{o.Store.Deployments, r}
	o.Store.Pools = notedCollection[*machinepool.Pool]{o.Store.Pools, r}
	o.Driver = driver.Intercept(drivertest.NewMemory(drivertest.MemoryOptions{}), note)
	o.Cluster = notedCluster{r, notedCollection[*machine.Node]{store.NewMemory[*machine.Node](nil, nil), r}}
	o.Drainer, o.Tokens, o.Classes.Foreign = notedDrainer{r}, notedTokens{r}, notedForeign{r}
	o.Pools.Driver = pooldriver.Intercept(pooldriver.UnimplementedPools{}, note)
	o.Pools.Bootstrap = notedBootstrap{r}
	return o
}

// readOnlyCalls are the methods of ports that change nothing, by port.
var readOnlyCalls = map[string][]string{
	"Machines": storeReads, "Classes": storeReads, "Secrets": storeReads, "Sets": storeReads,
	"Deployments": storeReads, "Pools": storeReads, "Nodes": storeReads,
	"Driver": {
		"GetMachineStatus", "ListMachines", "GetVolumeIDs", "GenerateMachineClassForMigration",
		"GetPoolStatus", "ListPools",
	},
	"Drainer": {"Watch"}, "Foreign": {"Get"}, "Bootstrap": {"State", "Data"},
}

var storeReads = []string{"Get", "List", "Live", "Watch"}

// noPorts are interfaces in Options through which nothing is changed.
var noPorts = []string{"Term"}

// eachPort calls do for each interface in a struct of options, however deep, and for the nodes of the cluster.
func eachPort(t *testing.T, v reflect.Value, do func(name string, port reflect.Value)) {
	for i := range v.NumField() {
		name, field := v.Type().Field(i).Name, v.Field(i)
		switch {
		case slices.Contains(noPorts, name):
		case field.Kind() == reflect.Struct:
			eachPort(t, field, do)
		case field.Kind() == reflect.Interface:
			require.False(t, field.IsNil(), "allPorts has no %s", name)
			if c, ok := field.Interface().(Cluster); ok {
				do("Nodes", reflect.ValueOf(c.Nodes()))
				require.Equal(t, 1, field.Type().NumMethod(), "methods of Cluster beside Nodes")
				continue
			}
			do(name, field.Elem())
		}
	}
}

// TestTermGuardsEveryPort walks Options, and calls every method of every port there. One that is not known to change
// nothing gets through while the term lasts, and is refused afterwards. A port or a method that somebody adds is found.
// Invariants: P67
func TestTermGuardsEveryPort(t *testing.T) {
	var r reached
	ctx, end := context.WithCancelCause(t.Context())
	defer end(nil)
	o := allPorts(&r)
	o.guard(during(lead.Of(ctx)))
	for _, over := range []bool{false, true} {
		if over {
			end(lead.ErrLost)
		}
		ports, changes := 0, 0
		eachPort(t, reflect.ValueOf(o), func(name string, port reflect.Value) {
			ports++
			for i := range port.NumMethod() {
				method := port.Type().Method(i).Name
				err, called := callPort(t, port.Method(i))
				if !called {
					continue // it says something about the port
				}
				got := r.take()
				if slices.Contains(readOnlyCalls[name], method) {
					require.NotErrorIs(t, err, store.ErrFenced, "%s.%s", name, method)
					continue
				}
				changes++
				if !over {
					require.NotErrorIs(t, err, store.ErrFenced, "%s.%s", name, method)
					require.Equal(t, []string{method}, got, "%s.%s", name, method)
					continue
				}
				require.ErrorIs(t, err, store.ErrFenced, "%s.%s", name, method)
				require.ErrorIs(t, err, lead.ErrLost, "%s.%s says why", name, method)
				require.Empty(t, got, "%s.%s", name, method)
			}
		})
		require.Equal(t, 13, ports)
		require.Greater(t, changes, 40)
	}
}

// callPort calls a method that takes a context, with empty arguments, and returns its error.
func callPort(t *testing.T, method reflect.Value) (err error, called bool) { //nolint:revive // called is about err
	shape := method.Type()
	if shape.NumIn() == 0 || shape.In(0) != reflect.TypeFor[context.Context]() {
		return nil, false
	}
	args := []reflect.Value{reflect.ValueOf(t.Context())}
	for i := 1; i < shape.NumIn(); i++ {
		arg := reflect.New(shape.In(i)).Elem()
		if arg.Kind() == reflect.Pointer {
			arg.Set(reflect.New(arg.Type().Elem()))
		}
		switch order := arg.Interface().(type) {
		case *machine.DrainNode:
			order.Node = &machine.Node{}
		case *machine.DetachVolumes:
			order.Node = &machine.Node{}
		}
		args = append(args, arg)
	}
	results := method.Call(args)
	err, _ = results[len(results)-1].Interface().(error)
	return err, true
}

// TestTermKeepsOptionalMethods: a drainer is a watcher or a keeper behind the gate if it is one before.
func TestTermKeepsOptionalMethods(t *testing.T) {
	for _, d := range []Drainer{busy{t}, alert{busy{t}}, keeper{busy{t}}, alertKeeper{alert{busy{t}}}} {
		ended, end := context.WithCancel(t.Context())
		end()
		o := Options{Driver: driver.Unimplemented{}, Drainer: d}
		o.guard(during(lead.Of(ended)))
		_, err := o.Drainer.Drain(t.Context(), &machine.Machine{}, &machine.DrainNode{Node: &machine.Node{}})
		require.ErrorIs(t, err, store.ErrFenced)
		_, watches := d.(WorkloadWatcher)
		_, still := o.Drainer.(WorkloadWatcher)
		require.Equal(t, watches, still)
		_, keeps := d.(NodeKeeper)
		k, still := o.Drainer.(NodeKeeper)
		require.Equal(t, keeps, still)
		if still {
			_, err := k.Keep(t.Context(), &machine.Node{})
			require.ErrorIs(t, err, store.ErrFenced)
		}
	}
	o := Options{Driver: driver.Unimplemented{}}
	o.guard(during(lead.Of(t.Context())))
	require.Equal(t, Options{}, Options{
		Store: o.Store, Drainer: o.Drainer, Cluster: o.Cluster, Tokens: o.Tokens, Classes: o.Classes, Pools: o.Pools,
	}, "what is not there is not made up")
}

// TestTermOfNew: New guards the ports of a manager with a term.
func TestTermOfNew(t *testing.T) {
	var r reached
	ctx, end := context.WithCancelCause(t.Context())
	o := allPorts(&r)
	o.Store.Machines = store.NewMemory(nil, MachineIndexes())
	o.Term = lead.Of(ctx)
	m, err := New(o)
	require.NoError(t, err)
	named := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "a"}}}
	_, err = m.options.Store.Machines.Create(t.Context(), named)
	require.NoError(t, err)
	end(errors.New("another leads"))
	err = m.options.Store.Machines.Delete(t.Context(), named.Key, "")
	require.EqualError(t, err, "delete a: fenced: the term of this leader is over: another leads")
	_, err = m.options.Driver.CreateMachine(t.Context(), &driver.CreateMachineRequest{Machine: named, Class: &machine.Class{}})
	require.EqualError(t, err, "call CreateMachine for machine a: fenced: the term of this leader is over: another leads")
	kept, err := o.Store.Machines.Get(t.Context(), named.Key)
	require.NoError(t, err)
	require.False(t, kept.Deleted())
}
