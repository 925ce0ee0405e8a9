package machine_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// pass carries plans out until there is nothing more to do for now.
func pass(
	o machine.Observation, policy *machine.Policy, now func() time.Time,
	store func(machine.Write) (*machine.Machine, error),
	call func(machine.Effect, *machine.Observation) error,
	wait func(time.Time) error,
) error {
	for {
		plan, err := machine.Decide(&o, policy, now())
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.Write != nil: // store it; the answer is the machine from here on
			o.Machine, err = store(plan.Write)
			o.Fresh = true
		case plan.Effect != nil: // make the call; put its answer into the observation
			err = call(plan.Effect, &o)
		default: // done; decide again at plan.At, or when something changes
			return wait(plan.At)
		}
		if err != nil || o.Machine == nil { // a conflict, a shutdown: a new pass; or it is gone
			return err
		}
	}
}

// A pass for a new machine without a cluster. The caller provides the store and
// makes the calls, here in the simplest way.
func Example_pass() {
	now := time.Date(2026, 3, 1, 9, 0, 0, 0, time.UTC)
	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: "worker-1"}, CreatedAt: now}}
	m.Spec.Class.Name = "small"
	m.AddFinalizer(machine.Finalizer)

	store := func(w machine.Write) (*machine.Machine, error) {
		m = m.Clone()
		switch w := w.(type) {
		case *machine.Update:
			m.Spec = w.Machine.Spec
		case *machine.UpdateStatus:
			m.Status = w.Status
		case *machine.Delete:
		}
		fmt.Printf("stored: phase %q, provider ID %q\n", m.Status.Phase, m.Spec.ProviderID)
		return m, nil
	}
	call := func(e machine.Effect, o *machine.Observation) error {
		fmt.Printf("called: %T\n", e)
		switch e.(type) {
		case machine.GetVM:
			o.VM = &machine.VM{Outcome: machine.Outcome{Code: codes.NotFound}}
		case machine.CreateVM:
			o.Created = &machine.VM{ProviderID: "cloud://1"}
		case machine.InitializeVM:
			o.Initialized = &machine.VM{Outcome: machine.Outcome{Code: codes.Unimplemented}}
		case machine.DeleteVM, machine.FindNode, *machine.SyncNode, *machine.MarkNode, machine.DeleteNode,
			*machine.DrainNode, *machine.DetachVolumes, machine.AskGrant, machine.AskCreate:
		}
		return nil
	}
	wait := func(at time.Time) error {
		fmt.Println("nothing more to do, forever:", at.IsZero())
		return nil
	}
	o := machine.Observation{Machine: m, Class: &machine.Class{Meta: object.Meta{Key: object.Key{Name: "small"}}}, NoCluster: true}
	_ = pass(o, machine.DefaultPolicy(), func() time.Time { return now }, store, call, wait)

	// Output:
	// called: machine.GetVM
	// stored: phase "Pending", provider ID ""
	// called: machine.CreateVM
	// stored: phase "Pending", provider ID "cloud://1"
	// called: machine.InitializeVM
	// stored: phase "Available", provider ID "cloud://1"
	// nothing more to do, forever: true
}

// A decision alone: the caller provides the observation, and would carry the plan out.
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
	// *machine.UpdateStatus: recording that the VM is about to be created
}
