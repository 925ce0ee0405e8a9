package machinepool_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
)

// These are the decisions about a pool of two, from the first to the call that creates its group. Each plan
// is one write, whose answer replaces the pool, or one effect, whose answer goes into the observation.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	two, nothing := int32(2), ""
	pool := &machinepool.Pool{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "batch"}, UID: "9d21"}}
	pool.Spec.ClusterName, pool.Spec.Replicas = "blue", &two
	pool.Spec.Template.Class.Name = "small"
	pool.Spec.Template.Bootstrap.DataSecret = &nothing

	o := &machinepool.Observation{Pool: pool, Class: &machine.Class{}, NoCluster: true}
	for range 6 {
		plan, err := machinepool.Decide(o, machinepool.DefaultPolicy(), now)
		if err != nil {
			fmt.Println(err)
			return
		}
		switch write := plan.Write.(type) {
		case *machinepool.Update:
			fmt.Println("update:", plan.Why)
			o.Pool, o.Fresh = write.Pool, true
		case *machinepool.UpdateStatus:
			fmt.Println("status:", plan.Why)
			o.Pool = o.Pool.Clone()
			o.Pool.Status, o.Fresh, o.Announced = write.Status, true, o.Announced || plan.Announces
		}
		switch effect := plan.Effect.(type) {
		case machinepool.GetGroup:
			fmt.Println("GetGroup:", plan.Why)
			o.Group, o.Looked = &machinepool.Group{Outcome: machine.Outcome{Code: codes.NotFound}, At: now}, true
		case machinepool.CreateGroup:
			fmt.Printf("CreateGroup of %d: %s\n", effect.Replicas, plan.Why)
			o.Created = &machinepool.Group{ID: "group-1", Target: effect.Replicas, At: now}
		}
	}
	// Output:
	// update: finalizer added, so that the pool outlives its group
	// status: Pending: 0 of 2 nodes are ready
	// status: Provisioning: 0 of 2 nodes are ready
	// GetGroup: reading the state of the group from the provider
	// status: checking that this record of the pool is current before CreatePool
	// CreateGroup of 2: creating the group with 2 instances
}
