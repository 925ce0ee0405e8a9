package sim

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Namespace holds a world's classes, and should hold its fleets.
const Namespace = "fleet"

// stores hold all objects of a world, by kind.
type stores struct {
	machines    *trackedStore[*machine.Machine]
	sets        *trackedStore[*machineset.Set]
	deployments *trackedStore[*deployment.Deployment]
	classes     *trackedStore[*machine.Class]
	secrets     *trackedStore[*machine.Secret]
	nodes       *trackedStore[*machine.Node]
	pools       *trackedStore[*machinepool.Pool]
}

func newStores(g *ground, keys *machine.Keys) *stores {
	return &stores{
		machines:    newTrackedStore(g, manager.KindMachine, manager.MachineIndexes()),
		sets:        newTrackedStore(g, manager.KindSet, manager.SetIndexes()),
		deployments: newTrackedStore(g, manager.KindDeployment, manager.DeploymentIndexes()),
		classes:     newTrackedStore(g, manager.KindClass, manager.ClassIndexes()),
		secrets:     newTrackedStore[*machine.Secret](g, manager.KindSecret, nil),
		nodes:       newTrackedStore(g, manager.KindNode, manager.NodeIndexes(keys.NodeMachine)),
		pools:       newTrackedStore(g, manager.KindPool, manager.PoolIndexes()),
	}
}

// These are the kinds, as they are stored: reads are live, and writes succeed unless the caller
// makes a mistake.

// Machines returns all machines.
func (s *stores) Machines() store.Collection[*machine.Machine] { return s.machines }

// Sets returns all sets.
func (s *stores) Sets() store.Collection[*machineset.Set] { return s.sets }

// Deployments returns all deployments.
func (s *stores) Deployments() store.Collection[*deployment.Deployment] { return s.deployments }

// Classes returns all classes.
func (s *stores) Classes() store.Collection[*machine.Class] { return s.classes }

// Nodes returns all nodes.
func (s *stores) Nodes() store.Collection[*machine.Node] { return s.nodes }

// Pools returns all pools.
func (s *stores) Pools() store.Collection[*machinepool.Pool] { return s.pools }

// pool returns a pool as it is stored, or nil if it is gone.
func (s *stores) pool(k object.Key) *machinepool.Pool {
	p, err := s.pools.Get(context.Background(), k)
	if err != nil {
		return nil
	}
	return p
}

// goingPool reports whether a pool is gone or being deleted.
func (s *stores) goingPool(k object.Key) bool {
	p := s.pool(k)
	return p == nil || p.Deleted()
}

// editPool changes a pool as its owner would.
func (s *stores) editPool(name string, change func(*machinepool.Pool)) bool {
	p := s.pool(object.Key{Namespace: Namespace, Name: name})
	if p == nil || p.Deleted() {
		return false
	}
	p = p.Clone()
	change(p)
	_, _ = s.pools.Update(context.Background(), p) // read in the same instant: no conflict
	return true
}

// deployment returns the deployment of that name, in Namespace, or nil.
func (s *stores) deployment(name string) *deployment.Deployment {
	for _, d := range s.deployments.all() {
		if d.Key == (object.Key{Namespace: Namespace, Name: name}) {
			return d
		}
	}
	return nil
}

// pledged returns how many machines the sets of a deployment want.
func (s *stores) pledged(d *deployment.Deployment) (n int32) {
	for _, set := range s.sets.all() {
		if set.OwnedBy(d.UID) {
			n += set.Spec.Replicas
		}
	}
	return n
}

// fleetOf returns the machines of a deployment, including those being deleted.
func (s *stores) fleetOf(d *deployment.Deployment) []*machine.Machine {
	sets := map[string]bool{}
	for _, set := range s.sets.all() {
		if set.OwnedBy(d.UID) {
			sets[set.UID] = true
		}
	}
	var out []*machine.Machine
	for _, m := range s.machines.all() {
		if m.Owner != nil && sets[m.Owner.UID] {
			out = append(out, m)
		}
	}
	return out
}

// isReady reports whether a VM's node is ready.
func (s *stores) isReady(name, id string) bool {
	n, err := s.nodes.Get(context.Background(), object.Key{Name: name})
	if err != nil || n.ProviderID != id {
		return false
	}
	c := object.FindCondition(n.Conditions, machine.NodeReady)
	return c != nil && c.Status == object.True
}

// edit changes a deployment as its owner would.
func (s *stores) edit(name string, change func(*deployment.Spec)) {
	d := s.deployment(name)
	if d == nil || d.Deleted() {
		return
	}
	d = d.Clone()
	change(&d.Spec)
	_, _ = s.deployments.Update(context.Background(), d) // read in the same instant: no conflict
}
