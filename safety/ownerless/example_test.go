package ownerless_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/ownerless"
)

// pass carries plans out until there is nothing more to do for now.
func pass(
	o *ownerless.Observation, policy *safety.Policy, now func() time.Time,
	read func(*ownerless.Observation) error, remove func([]ownerless.Delete, *ownerless.Observation) error, wait func(time.Time) error,
) error {
	for {
		plan, err := ownerless.Decide(o, policy, now())
		if err != nil { // a mistake of the caller
			return err
		}
		o.Candidates, o.Spent = plan.Candidates, plan.Spent // kept in memory from pass to pass
		switch {
		case plan.Read: // live lists: all machines, then all sets, then all deployments
			err = read(o)
		case len(plan.Delete) > 0: // for each: read the object live, then its owner; ask StillOwnerless, delete
			err = remove(plan.Delete, o)
		default:
			return wait(plan.At)
		}
		if err != nil { // a shutdown, an error of the store
			return err
		}
	}
}

// A machine names a set that is gone. The machine is deleted when two live reads, some time apart, have shown that.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	machines := []*machine.Machine{{Meta: object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "web-1"}, UID: "m-1",
		Owner: &object.Owner{Kind: machineset.OwnerKind, Name: "web", UID: "gone"},
	}}}
	o := &ownerless.Observation{}
	read := func(o *ownerless.Observation) error {
		fmt.Println("reading live")
		o.Machines, o.Read, o.Looked = machines, decision.Freshness{Began: now, Ended: now}, now
		return nil
	}
	remove := func(orders []ownerless.Delete, o *ownerless.Observation) error {
		o.Ordered = map[string]bool{}
		for _, order := range orders {
			fmt.Println(order.Why)
			o.Ordered[order.UID] = true
		}
		machines = nil
		return nil
	}
	wait := func(at time.Time) error {
		now = at
		return nil
	}
	for range 3 {
		o.Machines, o.Read, o.Ordered = machines, decision.Freshness{}, nil // from caches
		if err := pass(o, safety.DefaultPolicy(), func() time.Time { return now }, read, remove, wait); err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// reading live
	// reading live
	// machine web-1 belongs to set web, which is gone
}
