package unmanaged_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/unmanaged"
)

// pass carries plans out until there is nothing more to do for now.
func pass(
	o *unmanaged.Observation, policy *safety.Policy, now func() time.Time,
	read func(*unmanaged.Observation) error, store func([]unmanaged.WriteNode, *unmanaged.Observation) error, wait func(time.Time) error,
) error {
	for {
		plan, err := unmanaged.Decide(o, policy, now())
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.ReadMachines: // a live list of all machines, and o.Read says when
			err = read(o)
		case len(plan.Write) > 0: // update each node under its version
			err = store(plan.Write, o)
		default:
			return wait(plan.At)
		}
		if err != nil { // a shutdown, an error of the store
			return err
		}
	}
}

// A node has been in the cluster for an hour, and no machine owns it. The node gets an annotation that says so.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	o := &unmanaged.Observation{
		Nodes:    []*machine.Node{{Meta: object.Meta{Key: object.Key{Name: "lonely"}, CreatedAt: now.Add(-time.Hour)}, ProviderID: "vm-7"}},
		Machines: []*machine.Machine{},
	}
	read := func(o *unmanaged.Observation) error {
		fmt.Println("reading live")
		o.Read = decision.Freshness{Began: now, Ended: now}
		return nil
	}
	store := func(orders []unmanaged.WriteNode, o *unmanaged.Observation) error {
		for i, w := range orders {
			fmt.Println(w.Why)
			fmt.Println(w.Node.Annotations[policy.Keys.NotManaged])
			o.Nodes[i] = w.Node
		}
		return nil
	}
	wait := func(time.Time) error {
		fmt.Println("nothing more to do")
		return nil
	}
	if err := pass(o, policy, func() time.Time { return now }, read, store, wait); err != nil {
		fmt.Println(err)
	}
	// Output:
	// reading live
	// no machine owns node lonely, which is older than 20m0s
	// 1
	// nothing more to do
}
