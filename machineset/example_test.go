package machineset_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A set of three has two machines, read live. Names are given out first, in a
// write that fails if anybody else has changed the set; then comes the create.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	labels := map[string]string{"pool": "web"}
	set := &machineset.Set{
		Meta: object.Meta{
			Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64",
			Finalizers: []string{machineset.Finalizer},
		},
		Instructions: machineset.Instructions{
			Reservation: machineset.Reservation{Settled: 2, Reserved: 2, At: now.Add(-time.Hour)},
		},
		Spec: machineset.Spec{
			Replicas: 3, Selector: object.Selector{Labels: labels},
			Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
		},
	}
	owner := &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: now}}
	for ordinal := range int64(2) {
		o.Machines = append(o.Machines, &machine.Machine{
			Meta: object.Meta{
				Key: object.Key{Namespace: "fleet", Name: set.MachineName(ordinal + 1)}, Labels: labels, Owner: owner,
			},
			Spec: set.Spec.Template.Spec, Status: machine.Status{Phase: machine.PhaseRunning},
		})
	}

	policy := machineset.DefaultPolicy()
	plan, _ := machineset.Decide(o, policy, now)
	fmt.Println("update:", plan.Why)

	o.Set = plan.Write.(*machineset.Update).Set // as the store would answer
	plan, _ = machineset.Decide(o, policy, now)
	for _, order := range plan.Create {
		fmt.Printf("create %s: %s\n", order.Machine.Name, order.Why)
	}
	// Output:
	// update: 2 of 3 machines: reserving 1 names, up to number 3
	// create web-h958x-3: 2 of 3 machines: creating 1
}
