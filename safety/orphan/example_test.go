package orphan_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/orphan"
)

// The provider lists a VM that no machine has. It is deleted when two listings, some time apart, and
// a live read of the machines after each have shown that.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	class := object.Key{Namespace: "fleet", Name: "small"}
	one := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "web-1"}}}
	one.Spec.Class.Name, one.Spec.ProviderID = class.Name, "vm-1"
	o := &orphan.Observation{Classes: []orphan.Class{{Key: class}}, Machines: []*machine.Machine{one}}
	for range 20 {
		plan, err := orphan.Decide(o, policy, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		o.Candidates, o.Spent = plan.Candidates, plan.Spent
		switch {
		case len(plan.List) > 0:
			fmt.Println("listing:", now.Format(time.TimeOnly))
			o.Classes[0].Asked, o.Classes[0].Listing = now, &orphan.Listing{
				Outcome: machine.Outcome{Code: codes.OK}, Asked: now, Answered: now,
				VMs: map[string]string{"vm-1": "web-1", "vm-2": "web-2"},
			}
			o.Read = decision.Freshness{}
		case plan.ReadMachines:
			now = now.Add(time.Second)
			o.Read = decision.Freshness{Began: now, Ended: now}
		case len(plan.Delete) > 0:
			fmt.Println(plan.Delete[0].Why)
			return
		default:
			now = plan.At
			o.Classes[0].Listing, o.Read = nil, decision.Freshness{}
		}
	}
	// Output:
	// listing: 08:00:00
	// listing: 08:00:31
	// VM vm-2 was made for machine web-2, which is gone
}
