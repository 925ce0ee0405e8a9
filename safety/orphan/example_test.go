package orphan_test

import (
	"fmt"
	"maps"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
)

// pass carries plans out until there is nothing more to do for now.
func pass(
	o *orphan.Observation, policy *safety.Policy, now func() time.Time,
	list func([]orphan.ListVMs, *orphan.Observation) error, read func(*orphan.Observation) error,
	remove func([]orphan.Delete, *orphan.Observation) error, wait func(time.Time) error,
) error {
	for {
		plan, err := orphan.Decide(o, policy, now())
		if err != nil { // a mistake of the caller
			return err
		}
		o.Candidates, o.Unlisted, o.Spent = plan.Candidates, plan.Unlisted, plan.Spent // kept in memory from pass to pass
		switch {
		case len(plan.List) > 0: // ListMachines for each class; note the times before and after
			err = list(plan.List, o)
		case plan.ReadMachines: // a live list of all machines, and o.Read says when
			err = read(o)
		case len(plan.Delete) > 0: // for each: read the machines of that name live, ask StillOrphan, DeleteMachine
			err = remove(plan.Delete, o)
		default:
			return wait(plan.At)
		}
		if err != nil { // a shutdown, an error of the store
			return err
		}
	}
}

// The provider lists a VM that no machine has. The VM is deleted when two listings, some time apart, have shown that,
// each with a live read of the machines after it.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	class := object.Key{Namespace: "fleet", Name: "small"}
	one := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web-1"}}}
	one.Spec.Class.Name, one.Spec.ProviderID = class.Name, "vm-1"
	vms := map[string]string{"vm-1": "web-1", "vm-2": "web-2"}
	o := &orphan.Observation{Classes: []orphan.Class{{Key: class}}, Machines: []*machine.Machine{one}}
	list := func(_ []orphan.ListVMs, o *orphan.Observation) error {
		fmt.Println("listing:", now.Format(time.TimeOnly))
		o.Classes[0].Asked, o.Classes[0].Code = now, codes.OK
		o.Classes[0].Listing = &orphan.Listing{Outcome: machine.Outcome{Code: codes.OK}, Asked: now, Answered: now, VMs: maps.Clone(vms)}
		o.Read = decision.Freshness{}
		return nil
	}
	read := func(o *orphan.Observation) error {
		now = now.Add(time.Second)
		o.Read = decision.Freshness{Began: now, Ended: now}
		return nil
	}
	remove := func(orders []orphan.Delete, o *orphan.Observation) error {
		o.Deleted = map[string]bool{}
		for _, order := range orders {
			fmt.Println(order.Why)
			delete(vms, order.ProviderID)
			o.Deleted[order.ProviderID] = true
		}
		return nil
	}
	wait := func(at time.Time) error {
		fmt.Println("again after", at.Sub(now).Round(time.Second))
		now = at
		return nil
	}
	for range 3 {
		if err := pass(o, safety.DefaultPolicy(), func() time.Time { return now }, list, read, remove, wait); err != nil {
			fmt.Println(err)
		}
		o.Classes[0].Listing, o.Read, o.Deleted = nil, decision.Freshness{}, nil
	}
	// Output:
	// listing: 08:00:00
	// again after 30s
	// listing: 08:00:31
	// VM vm-2 was made for machine web-2, which is gone
	// again after 29s
	// listing: 08:01:01
	// again after 15m0s
}
