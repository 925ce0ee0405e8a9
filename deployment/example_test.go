package deployment_test

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A new deployment of three: its set is created without machines, and then gets its size. Orders need a live read, so
// the first plan asks for one.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	web := &deployment.Deployment{Meta: object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64", Finalizers: []string{deployment.Finalizer},
	}}
	web.Spec.Replicas = 3
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = machineset.Template{Labels: web.Spec.Selector.Labels}
	web.Spec.Template.Spec.Class.Name = "small"

	o := &deployment.Observation{Deployment: web}
	for range 3 {
		plan, err := deployment.Decide(o, deployment.DefaultPolicy(), now)
		if err != nil {
			fmt.Println(err)
			return
		}
		switch {
		case plan.ReadLive: // read all of it live
			fmt.Println("read live")
			o.Read = decision.Freshness{Began: now}
		case len(plan.Create) > 0: // what the store returns
			fmt.Println("create:", plan.Why)
			o.Sets = append(o.Sets, deployment.Children{Set: plan.Create[0].Set})
		case len(plan.Scale) > 0:
			fmt.Println("scale:", plan.Why)
			o.Sets[0].Set = plan.Scale[0].Set
		}
	}
	// Output:
	// read live
	// create: no set has the wanted template: creating web-s6vfvz2m2l
	// scale: set web-s6vfvz2m2l from 0 to 3: 0 machines ordered or still there, ceiling is 4: 3 new machines may come
}

// pass carries plans out until there is nothing more to do for now.
func pass(
	o *deployment.Observation, policy *deployment.Policy, now func() time.Time,
	store func(deployment.Write, *deployment.Observation) error, read func(*deployment.Observation) error,
	orders func(*deployment.Plan) bool, carryOut func(*deployment.Plan, *deployment.Observation) error, wait func(time.Time) error,
) error {
	for {
		plan, err := deployment.Decide(o, policy, now())
		o.Gathering = plan.Gathering
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.Write != nil: // store it under its version; the answer replaces o.Deployment
			err = store(plan.Write, o)
		case plan.ReadLive: // read all of it live: deployment, sets, machines; o.Read says when
			err = read(o)
		case orders(&plan): // those of the one slice that is filled, from first to last
			err = carryOut(&plan, o)
		default: // decide again at plan.At, or when something changes
			return wait(plan.At)
		}
		if err != nil { // a conflict, a shutdown: a new pass; or the deployment is gone
			return err
		}
	}
}

// The first pass over a new deployment of three, until it waits for the machines of its set. Only two kinds of orders
// occur, so carryOut handles no others.
func Example_pass() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	web := &deployment.Deployment{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64"}}
	web.Spec.Replicas = 3
	web.Spec.Selector.Labels = map[string]string{"app": "web"}
	web.Spec.Template = machineset.Template{Labels: web.Spec.Selector.Labels}
	web.Spec.Template.Spec.Class.Name = "small"

	store := func(w deployment.Write, o *deployment.Observation) error {
		fmt.Printf("store: %T\n", w)
		next := *o.Deployment
		switch w := w.(type) {
		case *deployment.Update:
			next = *w.Deployment
		case *deployment.UpdateStatus:
			next.Status, o.StatusWritten = w.Status, now
		}
		o.Deployment = &next
		return nil
	}
	read := func(o *deployment.Observation) error {
		fmt.Println("read live")
		o.Read = decision.Freshness{Began: now, Ended: now}
		return nil
	}
	orders := func(plan *deployment.Plan) bool { return len(plan.Create)+len(plan.Scale)+len(plan.Push) > 0 }
	carryOut := func(plan *deployment.Plan, o *deployment.Observation) error {
		fmt.Println("order:", plan.Why)
		for _, order := range plan.Create {
			o.Sets = append(o.Sets, deployment.Children{Set: order.Set})
		}
		for _, order := range slices.Concat(plan.Scale, plan.Push) {
			o.Sets[0].Set = order.Set
		}
		return nil
	}
	wait := func(at time.Time) error {
		fmt.Println("again after", at.Sub(now))
		return nil
	}
	err := pass(&deployment.Observation{Deployment: web}, deployment.DefaultPolicy(), func() time.Time { return now }, store, read, orders, carryOut, wait)
	fmt.Println(err)
	// Output:
	// store: *deployment.Update
	// read live
	// order: no set has the wanted template: creating web-s6vfvz2m2l
	// order: set web-s6vfvz2m2l from 0 to 3: 0 machines ordered or still there, ceiling is 4: 3 new machines may come
	// store: *deployment.UpdateStatus
	// again after 10m0s
	// <nil>
}
