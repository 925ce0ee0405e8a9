package ownerless_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/ownerless"
)

// A machine names a set that is gone. It is deleted when two live reads, some time apart, have shown
// that.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	orphan := &machine.Machine{Meta: object.Meta{
		Key: object.Key{Namespace: "fleet", Name: "web-1"}, UID: "m-1",
		Owner: &object.Owner{Kind: machineset.OwnerKind, Name: "web", UID: "gone"},
	}}
	var memory []ownerless.Candidate
	for range 6 {
		o := &ownerless.Observation{Machines: []*machine.Machine{orphan}, Candidates: memory}
		plan, err := ownerless.Decide(o, policy, now)
		if err == nil && plan.Read {
			o.Read = decision.Freshness{Began: now, Ended: now}
			o.Candidates = plan.Candidates
			plan, err = ownerless.Decide(o, policy, now)
		}
		if err != nil {
			fmt.Println(err)
			return
		}
		for _, d := range plan.Delete {
			fmt.Println(d.Why)
			return
		}
		memory, now = plan.Candidates, plan.At
	}
	// Output:
	// machine web-1 belongs to set web, which is gone
}
