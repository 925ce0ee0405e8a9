package replacement_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/replacement"
)

// Two of three machines of a set are unhealthy for too long. One of them may be replaced; the other
// one waits until its set is whole again.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	set := &machineset.Set{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web"}, UID: "3fa85f64"}}
	set.Spec.Replicas = 3
	owner := &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
	var fleet []*machine.Machine
	for i, phase := range []machine.Phase{machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseUnknown} {
		fleet = append(fleet, &machine.Machine{
			Meta:   object.Meta{Key: object.Key{Namespace: "fleet", Name: fmt.Sprint("web-", i+1)}, Owner: owner},
			Status: machine.Status{Phase: phase},
		})
	}

	for _, asking := range fleet[1:] {
		o := &replacement.Observation{Machine: asking, Set: set}
		var plan replacement.Plan
		for plan.Grant == nil {
			plan, _ = replacement.Decide(o, safety.DefaultPolicy(), now)
			switch write := plan.Write.(type) {
			case *replacement.TakeFromSet: // compare and swap; the store's answer
				set, o.Set, o.Taken = write.Set, write.Set, true
			default:
				o.Fleet, o.Read = fleet, decision.Freshness{Began: now}
			}
		}
		fmt.Println(plan.Grant.Allowed, "-", plan.Why)
	}
	// Output:
	// true - machine web-2 may be given up: 1 of at most 1 in replacement with it
	// false - machines in replacement: 1 of at most 1
}
