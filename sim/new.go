package sim

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// New makes a world with a class "small" and its secret in the namespace
// Namespace, and starts a manager in it. The error is the manager's.
func New(o Options) (*World, error) {
	if o.Boot == 0 {
		o.Boot = time.Minute
	}
	if o.Driver == nil {
		o.Driver = func(w *World) driver.Driver { return w.driver() }
	}
	switch p := o.Manager.SafetyPolicy; {
	case p == nil:
		o.Manager.SafetyPolicy = SafetyPolicy()
	case p.Off:
		o.Manager.SafetyPolicy = nil // in this package, nil is off
	}
	w := &World{
		o: o, vms: map[string]string{}, gone: map[string]bool{}, born: map[string]time.Time{},
		dark: map[string]time.Time{}, zoneOf: map[string]string{}, made: map[string]time.Time{}, lostNodes: map[string]bool{},
		actions: map[Action]int{}, driverCalls: map[codes.Call]int{}, refusals: map[Refusal]int{},
	}
	w.ground = newGround(o.Seed, &w.o.Faults, o.Tell)
	w.policies = &policies{&w.o.Manager, o.Drain}
	w.stores = newStores(w.ground, &w.machinePolicy().Keys)
	w.apis = newAPIs(w.ground)
	w.managerClock = &managerClock{apis: w.apis}
	w.groups, w.bootstraps, w.remade = &groups{w: w, all: map[object.Key]*group{}}, bootstraps{}, map[object.Key]bool{}
	w.poolCalls, w.poolRefusals = map[machinepool.Call]int{}, map[PoolRefusal]int{}
	w.provider = drivertest.NewMemory(drivertest.MemoryOptions{NeedsInitialization: o.NeedsInitialization})
	w.apps = newApps(w.ground, w.nodes)
	w.volumes = w.apps.volumes
	w.subscribe(w.apps.see)
	w.subscribe(newAgents(w.ground, w.nodes, o.Update, w.machinePolicy().Keys.UpdateResult).see)
	orders := &orders{apis: w.apis}
	w.past = newPast(w.ground, w.stores, orders, &force{w.managerClock, w.policies, w.nodes})
	w.subscribe(orders.see)
	w.subscribe(w.past.see)
	hold(w)
	checkProperties(w)
	w.subscribe(w.poolGone)
	if err := errors.Join(w.AddClass("small"), w.start()); err != nil {
		return nil, err
	}
	w.faultWindows()
	return w, nil
}
