package unmanaged_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/unmanaged"
)

// A node has been in the cluster for an hour, and no machine has made it. It gets an annotation that
// says so.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	o := &unmanaged.Observation{
		Nodes:    []*machine.Node{{Meta: object.Meta{Key: object.Key{Name: "lonely"}, CreatedAt: now.Add(-time.Hour)}, ProviderID: "vm-7"}},
		Machines: []*machine.Machine{},
	}
	plan, err := unmanaged.Decide(o, policy, now)
	if err == nil && plan.ReadMachines {
		o.Read = decision.Freshness{Began: now, Ended: now}
		plan, err = unmanaged.Decide(o, policy, now)
	}
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, w := range plan.Write {
		fmt.Println(w.Why)
		fmt.Println(w.Node.Annotations[policy.Keys.NotManaged])
	}
	// Output:
	// no machine owns node lonely, which is older than 20m0s
	// 1
}
