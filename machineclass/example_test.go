package machineclass_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/object"
)

// A class is kept by a finalizer while machines refer to it, even if a user deletes it.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := &machineclass.Policy{Keep: true}
	o := &machineclass.Observation{
		Key:   object.Key{Namespace: "fleet", Name: "small"},
		Class: &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}},
		Users: machineclass.Users{Machines: 3},
	}
	decide := func() machineclass.Plan {
		plan, err := machineclass.Decide(o, policy, now)
		fmt.Println(plan.Why, err)
		return plan
	}

	plan := decide()
	o.Class = plan.Write.(*machineclass.Update).Class // as the store would answer
	o.Class.DeletedAt = now                           // a user deletes it
	decide()

	o.Users = machineclass.Users{} // the last machine is gone, according to a cache
	decide()
	o.Read = decision.Freshness{Began: now} // and according to a live read
	plan = decide()
	fmt.Println("finalizers:", plan.Write.(*machineclass.Update).Class.Finalizers)
	// Output:
	// class small is used by 3 machines: finalizer added, so that it outlives them <nil>
	// class small is being deleted, and stays while it is used by 3 machines <nil>
	// class small does not seem to be used any longer: reading its users live <nil>
	// class small is no longer used: finalizer removed <nil>
	// finalizers: []
}
