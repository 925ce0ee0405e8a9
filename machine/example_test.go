package machine_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Deciding alone: the caller brings what is known, and carries the plan out.
func ExampleDecide() {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "worker-1"}, CreatedAt: now}}
	m.Spec.Class.Name = "small"
	m.AddFinalizer(machine.Finalizer)

	o := &machine.Observation{Machine: m, Class: &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}}}
	plan, err := machine.Decide(o, machine.DefaultPolicy(), now)
	fmt.Printf("%T: %s (%v)\n", plan.Effect, plan.Why, err)

	o.VM = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}} // what the provider answered
	plan, _ = machine.Decide(o, machine.DefaultPolicy(), now)
	fmt.Printf("%T: %s\n", plan.Write, plan.Why)

	// Output:
	// machine.GetVM: asking the provider whether the VM exists (<nil>)
	// *machine.UpdateStatus: about to create the VM
}
