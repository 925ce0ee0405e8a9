package machineset_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A set of three has two machines, read live. It reserves a name first, in a write that fails if anybody else
// has changed the set. Then it creates the machine.
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
	// update: 2 of 3 machines: reserving 1 name, up to number 3
	// create web-h958x-3: 2 of 3 machines: creating 1
}

// pass carries plans out until there is nothing more to do for now.
func pass(
	o *machineset.Observation, policy *machineset.Policy, now func() time.Time,
	store func(machineset.Write, *machineset.Observation) error, read func(*machineset.Observation) error,
	create, remove, change func(*machineset.Plan, *machineset.Observation) error, wait func(time.Time) error,
) error {
	for {
		plan, err := machineset.Decide(o, policy, now())
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.Write != nil: // store it under its version; the answer replaces o.Set
			err = store(plan.Write, o)
		case plan.ReadLive: // read the set, then its machines, live; o.Read says when
			err = read(o)
		case len(plan.Create) > 0: // in order, in batches of 1, 2, 4, …; none after plan.Until
			err = create(&plan, o)
		case len(plan.Delete) > 0: // none after plan.Until
			err = remove(&plan, o)
		case len(plan.Adopt)+len(plan.Release)+len(plan.Push) > 0: // one of them
			err = change(&plan, o)
		default: // decide again at plan.At, or when something changes
			return wait(plan.At)
		}
		if err != nil { // a conflict, a shutdown: a new pass; or the set is gone
			return err
		}
	}
}

// The first pass over a new set of two: it reads live, reserves two names, and creates the machines. Then it
// waits for them.
func Example_pass() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	labels := map[string]string{"pool": "web"}
	set := &machineset.Set{
		Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64", Finalizers: []string{machineset.Finalizer}},
		Spec: machineset.Spec{
			Replicas: 2, Selector: object.Selector{Labels: labels},
			Template: machineset.Template{Labels: labels, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}},
		},
	}
	store := func(w machineset.Write, o *machineset.Observation) error {
		fmt.Printf("store: %T\n", w)
		next := *o.Set
		switch w := w.(type) {
		case *machineset.Update:
			next = *w.Set
		case *machineset.UpdateStatus:
			next.Status, o.StatusWritten = w.Status, now
		}
		o.Set = &next
		return nil
	}
	read := func(o *machineset.Observation) error {
		fmt.Println("read live")
		o.Read = decision.Freshness{Began: now, Ended: now}
		return nil
	}
	create := func(plan *machineset.Plan, o *machineset.Observation) error {
		for _, order := range plan.Create {
			fmt.Println("create", order.Machine.Name)
			o.Machines, o.Created = append(o.Machines, order.Machine), order.Ordinal
		}
		return nil
	}
	none := func(*machineset.Plan, *machineset.Observation) error { return nil }
	wait := func(at time.Time) error {
		fmt.Println("again after", at.Sub(now))
		return nil
	}
	err := pass(&machineset.Observation{Set: set}, machineset.DefaultPolicy(), func() time.Time { return now }, store, read, create, none, none, wait)
	fmt.Println(err)
	// Output:
	// read live
	// store: *machineset.Update
	// create web-h958x-1
	// create web-h958x-2
	// store: *machineset.Update
	// store: *machineset.UpdateStatus
	// again after 10m0s
	// <nil>
}
