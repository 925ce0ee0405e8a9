package drain_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A node with one pod: first comes the cordon with the record, then the eviction. Then there is
// nothing to do but wait.
func ExampleDecide() {
	now := time.Date(2026, 5, 4, 6, 30, 0, 0, time.UTC)
	o := &drain.Observation{
		Node:     &machine.Node{Meta: object.Meta{Key: object.Key{Name: "worker-1"}}},
		Pods:     []*drain.Pod{{Key: object.Key{Namespace: "shop", Name: "web"}, UID: "7c1e", Grace: 30 * time.Second}},
		Complete: true, Asked: now, Memory: drain.NewMemory(now),
	}
	for range 3 {
		plan, err := drain.Decide(o, drain.DefaultPolicy(), now)
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(plan.Why)
		if plan.Write != nil {
			o.Node = plan.Write
		}
		if plan.Begins {
			o.Memory.Begun()
		}
		for _, order := range plan.Evict {
			o.Memory.Note(order.UID, drain.Answer{Kind: drain.Evicted, Result: drain.Accepted, At: now})
		}
		if !plan.At.IsZero() {
			fmt.Println("look again after", plan.At.Sub(now))
		}
	}
	// Output:
	// cordoning node worker-1, so that no pod comes any more
	// evicting shop/web
	// waiting for pods on node worker-1: 1 left
	// look again after 1m0s
}

// This forecast tells what a drain would do, before it begins.
func ExampleExplain() {
	now := time.Date(2026, 5, 4, 6, 30, 0, 0, time.UTC)
	o := &drain.Observation{
		Node:     &machine.Node{Meta: object.Meta{Key: object.Key{Name: "worker-1"}}},
		Pods:     []*drain.Pod{{Key: object.Key{Namespace: "shop", Name: "web"}, UID: "7c1e", Grace: 30 * time.Second}},
		Complete: true,
	}
	forecast, err := drain.Predict(o, drain.DefaultPolicy(), drain.Assumptions{}, now)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(drain.Explain(forecast))
	// Output:
	// node worker-1: 1 pod, 1 evicted; ends after 30s
	//
	// WHEN  WHAT    POD       WHY
	// +0s   cordon  -         cordoning node worker-1, so that no pod comes any more
	// +0s   evict   shop/web  evicting shop/web
	// +30s  end     -         node worker-1 is drained
}
