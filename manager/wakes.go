package manager

import (
	"context"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/orphan"
)

// Wakes returns which change is a reason to reconcile which objects. Every key is found in
// the caches; one that can't be found there wakes nothing.
func (m *Manager) Wakes() []Wake {
	o := &m.options
	wakes := []Wake{
		{From: KindMachine, To: KindMachine, Keys: self[*machine.Machine]},
		{From: KindClass, To: KindMachine, Keys: o.machinesOfClass},
	}
	if o.Store.Secrets != nil {
		wakes = append(wakes, Wake{From: KindSecret, To: KindMachine, Keys: o.machinesOfSecret})
	}
	if o.Cluster != nil {
		wakes = append(wakes, Wake{From: KindNode, To: KindMachine, Keys: o.machinesOfNode})
	}
	if o.Drainer != nil {
		wakes = append(wakes, Wake{From: KindWorkload, To: KindMachine, Keys: o.machinesOfWorkload, Settle: o.Tuning.Settle})
	}
	if o.Store.Sets != nil {
		wakes = append(wakes,
			Wake{From: KindSet, To: KindSet, Keys: self[*machineset.Set]},
			Wake{From: KindMachine, To: KindSet, Keys: o.setsOfMachine, Settle: o.Tuning.Settle},
			Wake{From: KindClass, To: KindSet, Keys: o.setsOfClass, Settle: o.Tuning.Settle})
	}
	if o.Store.Deployments != nil {
		wakes = append(wakes,
			Wake{From: KindDeployment, To: KindDeployment, Keys: self[*deployment.Deployment]},
			Wake{From: KindSet, To: KindDeployment, Keys: o.deploymentsOfSet, Settle: o.Tuning.Settle},
			Wake{From: KindMachine, To: KindDeployment, Keys: o.deploymentsOfMachine, Settle: o.Tuning.Settle})
		if len(driver.UpdatableFields(o.Driver)) > 0 {
			wakes = append(wakes, Wake{From: KindClass, To: KindDeployment, Keys: o.deploymentsOfClass, Settle: o.Tuning.Settle})
		}
	}
	if o.Policies.Safety != nil {
		wakes = append(wakes,
			Wake{From: KindMachine, To: KindOrphans, Keys: m.orphansOfMachine, Settle: o.Tuning.Settle},
			Wake{From: KindClass, To: KindOrphans, Keys: newClass, Settle: o.Tuning.Settle})
		wakes = append(wakes, o.ownerlessWakes()...)
	}
	wakes = append(wakes, o.poolWakes()...)
	return append(wakes, o.classWakes()...)
}

// WakeMachines sets who has machines looked at whose VMs a listing misses or calls unhealthy, which no
// change says. It is for programs that drive the reconcilers by themselves, without a cluster: without
// it such a machine is looked at in its time. Run sets its own. wake must not block, nor call the manager.
func (m *Manager) WakeMachines(wake func(key object.Key)) { m.missing.wakes(wake) }

// orphansOfMachine has VMs looked through when a machine has disappeared, whose
// class is noted, or was found to have several VMs.
func (m *Manager) orphansOfMachine(_ context.Context, old, new any) []object.Key {
	a, b := both[*machine.Machine](old, new)
	switch {
	case b == nil && a != nil:
		m.hints.add(orphan.Hint{Class: classKey(a), At: m.options.Runtime.Now()})
	case b == nil || b.Status.LastOperation.Code != codes.OutOfRange || a != nil && a.Status.LastOperation == b.Status.LastOperation:
		return nil
	}
	return []object.Key{Fleet}
}

// newClass has the VMs of a class listed that is seen first.
func newClass(_ context.Context, old, _ any) []object.Key {
	if old != nil {
		return nil
	}
	return []object.Key{Fleet}
}
