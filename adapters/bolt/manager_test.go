package bolt_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/adapters/bolt"
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// instantProvider is a provider whose VMs exist and join the cluster at once.
type instantProvider struct {
	driver.Unimplemented
	mu    sync.Mutex
	made  map[string]int // number of creations, by machine name
	nodes store.Collection[*machine.Node]
}

func (p *instantProvider) GetMachineStatus(_ context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.made[req.Machine.Name] == 0 {
		return nil, codes.New(codes.NotFound, "no such VM")
	}
	return &driver.GetMachineStatusResponse{ProviderID: "vm:///" + req.Machine.Name, NodeName: req.Machine.Name}, nil
}

func (p *instantProvider) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	id := "vm:///" + req.Machine.Name
	p.made[req.Machine.Name]++
	node, err := p.nodes.Create(ctx, &machine.Node{Meta: object.Meta{Key: object.Key{Name: req.Machine.Name}}, ProviderID: id})
	if err != nil {
		return nil, err
	}
	node = node.Clone()
	node.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.True}}
	if _, err := p.nodes.UpdateStatus(ctx, node); err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{ProviderID: id, NodeName: req.Machine.Name}, nil
}

// runUntil runs a manager on db until done returns true for the machines.
func runUntil(t *testing.T, db *bolt.DB, d driver.Driver, done func([]*machine.Machine) bool) {
	t.Helper()
	options := db.ManagerOptions()
	options.Driver, options.Cluster = d, db
	m, err := manager.New(options)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(noContext, 20*time.Second)
	ended := start(func() error { return m.Run(ctx) })
	for range db.Machines().Watch(ctx) {
		listed, err := db.Machines().List(noContext, store.Query{})
		require.NoError(t, err)
		if done(listed) {
			break
		}
	}
	require.NoError(t, ctx.Err(), "not within 20 s")
	cancel()
	require.NoError(t, ended())
}

// allRunning returns a function that reports whether there are n machines, all of them Running.
func allRunning(n int) func([]*machine.Machine) bool {
	return func(machines []*machine.Machine) bool {
		for _, m := range machines {
			if m.Status.Phase != machine.PhaseRunning {
				return false
			}
		}
		return len(machines) == n
	}
}

// TestManagerAfterReopen: a new manager continues with the objects of an earlier one, and creates no VM
// twice.
// Invariants: P26
func TestManagerAfterReopen(t *testing.T) {
	path := newPath(t)
	provider := &instantProvider{made: map[string]int{}}
	reopen := func() *bolt.DB {
		db, err := bolt.Open(path, bolt.Options{})
		require.NoError(t, err)
		provider.nodes = db.Nodes()
		return db
	}
	db := reopen()
	boot := object.Key{Namespace: "fleet", Name: "boot"}
	_, err := db.Secrets().Create(noContext, &machine.Secret{
		Meta: object.Meta{Key: boot}, Data: map[string][]byte{machine.UserData: []byte("#!")},
	})
	require.NoError(t, err)
	_, err = db.Classes().Create(noContext, &machine.Class{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}, SecretRef: &boot,
	})
	require.NoError(t, err)
	labels := map[string]string{"app": "mill"}
	set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "mill"}}}
	set.Spec.Replicas = 3
	set.Spec.Selector.Labels = labels
	set.Spec.Template.Labels = labels
	set.Spec.Template.Spec.Class.Name = "small"
	_, err = db.Sets().Create(noContext, set)
	require.NoError(t, err)
	runUntil(t, db, provider, allRunning(3))
	require.NoError(t, db.Close())

	db = reopen()
	runUntil(t, db, provider, allRunning(3)) // nothing to do
	stored, err := db.Sets().Get(noContext, set.Key)
	require.NoError(t, err)
	stored = stored.Clone()
	stored.Spec.Replicas = 5
	_, err = db.Sets().Update(noContext, stored)
	require.NoError(t, err)
	runUntil(t, db, provider, allRunning(5))
	require.NoError(t, db.Close())
	require.Len(t, provider.made, 5)
	for name, times := range provider.made {
		require.Equal(t, 1, times, name)
	}
}
