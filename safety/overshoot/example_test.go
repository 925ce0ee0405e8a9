package overshoot_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
)

// A set without a deployment should have two machines, and has six. It is frozen, so that it creates no more.
func ExampleDecide() {
	set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64"}}
	set.Spec.Replicas = 2
	var fleet []*machine.Machine
	for i := range 6 {
		fleet = append(fleet, &machine.Machine{Meta: object.Meta{
			Key:   object.Key{Namespace: "fleet", Name: fmt.Sprint("web-", i+1)},
			Owner: &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID},
		}})
	}
	o := &overshoot.Observation{Sets: []deployment.Children{{Set: set, Machines: fleet}}}
	plan, err := overshoot.Decide(o, safety.DefaultPolicy(), time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC))
	fmt.Println(plan.Why, err)
	// Output:
	// web is frozen: it has 6 machines, 6 or more are too many <nil>
}
