package manager_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// instant is a provider that answers at once, and whose machines join at once.
type instant struct {
	driver.Unimplemented
	nodes store.Collection[*machine.Node]
	vms   sync.Map // name to provider ID
}

func (d *instant) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	id, ok := d.vms.Load(req.Machine.Name)
	if !ok {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: id.(string), NodeName: req.Machine.Name}, nil
}

func (d *instant) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	id := "instant:///" + req.Machine.Name
	d.vms.Store(req.Machine.Name, id)
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: req.Machine.Name}}, ProviderID: id}
	made, err := d.nodes.Create(ctx, node)
	if err != nil {
		return nil, err
	}
	up := made.Clone()
	up.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True}}
	if _, err := d.nodes.UpdateStatus(ctx, up); err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

func (d *instant) DeleteMachine(_ context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.vms.Delete(req.Machine.Name)
	return &driver.DeleteMachineResponse{}, nil
}

type nodes struct {
	store.Collection[*machine.Node]
}

func (n nodes) Nodes() store.Collection[*machine.Node] { return n.Collection }

// BenchmarkCreate creates machines to Running, in sets of 1,000, through the
// store in memory and the manager's own queue.
func BenchmarkCreate(b *testing.B) {
	for _, machines := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprint(machines), func(b *testing.B) {
			for b.Loop() {
				createFleet(b, machines)
			}
			perSecond := float64(b.N) * float64(machines) / b.Elapsed().Seconds()
			b.ReportMetric(perSecond, "machines/s")
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(machines), "ns/machine")
		})
	}
}

func createFleet(b *testing.B, machines int) {
	b.StopTimer()
	o := manager.InMemory(nil)
	cluster := nodes{store.NewMemory(nil, manager.NodeIndexes(machine.DefaultPolicy().Keys.NodeMachine))}
	o.Cluster, o.Driver, o.Policies.Safety = cluster, &instant{nodes: cluster.Collection}, safety.Off()
	var mu sync.Mutex
	running, done := 0, make(chan struct{})
	o.Hooks.Transition = func(_ object.Key, move machine.Move, _ decision.Why) {
		if move.On != machine.EventJoined {
			return
		}
		mu.Lock()
		defer mu.Unlock()
		if running++; running == machines {
			close(done)
		}
	}
	m, err := manager.New(o)
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Minute)
	prepare(ctx, b, o, machines)
	runtime.GC()
	b.StartTimer()
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	select {
	case <-done:
	case <-ctx.Done():
		b.Fatalf("%d of %d machines running", running, machines)
	}
	b.StopTimer()
	cancel()
	require.NoError(b, <-ended)
	b.StartTimer()
}

// prepare stores a class and sets of 1,000.
func prepare(ctx context.Context, b *testing.B, o manager.Options, machines int) {
	must := func(err error) {
		if err != nil {
			b.Fatal(err)
		}
	}
	secret := &machine.Secret{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "boot"}}}
	secret.Data = map[string][]byte{machine.UserData: []byte("join <<MACHINE_NAME>>")}
	_, err := o.Store.Secrets.Create(ctx, secret)
	must(err)
	class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}, SecretRef: &object.Key{Name: "boot"}}
	_, err = o.Store.Classes.Create(ctx, class)
	must(err)
	for n := 0; n < machines; n += 1000 {
		set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("set", n/1000)}}}
		labels := map[string]string{"set": set.Name}
		set.Spec.Replicas = int32(min(1000, machines-n))
		set.Spec.Selector.Labels = labels
		set.Spec.Template.Labels = labels
		set.Spec.Template.Spec.Class.Name = "small"
		set.Spec.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": "a", "zone": "b"}
		_, err = o.Store.Sets.Create(ctx, set)
		must(err)
	}
}
