package deployment_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A new deployment of three: its set is created without machines, then it grows. Orders rest on a
// live read, so the plan asks for one first.
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
