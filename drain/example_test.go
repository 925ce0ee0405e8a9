package drain_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// A node with one pod: first the node is cordoned and the record is written, then the pod is evicted. Then the
// drain waits.
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
	// cordoning node worker-1, so that no new pods are scheduled
	// evicting shop/web
	// waiting for pods on node worker-1: 1 left
	// look again after 1m0s
}

// pass carries plans out until there is nothing more to do for now.
func pass(
	o drain.Observation, policy *drain.Policy, now func() time.Time,
	look func(*drain.Observation) error, store func(*machine.Node) (*machine.Node, error),
	evict, remove func(drain.Order) drain.Answer, end func(drain.Plan) error,
) error {
	o.Memory.See(o.Pods, o.Complete, now()) // after each read of pods
	for {
		plan, err := drain.Decide(&o, policy, now())
		switch {
		case err != nil: // a mistake of the caller
			return err
		case plan.Look: // read node, pods and the rest live, without Cached and PodsCached; then See
			err = look(&o)
		case plan.Write != nil: // store it under its version
			o.Node, err = store(plan.Write)
			o.Cached = false
			if err == nil && plan.Begins {
				o.Memory.Begun()
			}
		case len(plan.Evict) > 0: // each is one eviction, with the UID as precondition
			for _, order := range plan.Evict {
				o.Memory.Begin(order)
				o.Memory.Note(order.UID, evict(order))
			}
		case len(plan.Delete) > 0: // order.Now: with grace 0; else without a grace in the call
			for _, order := range plan.Delete {
				o.Memory.Begin(order)
				o.Memory.Note(order.UID, remove(order))
			}
		default: // Done, or decide again at plan.At, or when something changes
			return end(plan)
		}
		if err != nil { // a conflict, a shutdown
			return err
		}
	}
}

// A drain from beginning to end, in passes that begin with what caches show. What the caller provides is as small
// as possible here, and so is the cluster: a pod is gone when its grace is over, and its volume is detached at
// the same time.
func Example_pass() {
	now := time.Date(2026, 5, 4, 6, 30, 0, 0, time.UTC)
	node := &machine.Node{Meta: object.Meta{Key: object.Key{Name: "worker-1"}}}
	pods := []*drain.Pod{{Key: object.Key{Namespace: "shop", Name: "db"}, UID: "7c1e", Grace: 30 * time.Second, Claims: []string{"data"}}}
	volume := &drain.Volume{Name: "vol-1", Claim: object.Key{Namespace: "shop", Name: "data"}}
	memory := drain.NewMemory(now)
	attached := map[bool][]*drain.Attachment{ // true: while the pod exists
		true:  {{Name: "a", Volume: "vol-1", Node: "worker-1", Attached: true}},
		false: {{Name: "b", Volume: "vol-1", Node: "worker-2", Attached: true}},
	}
	read := func() drain.Observation {
		return drain.Observation{
			Node: node, Cached: true, Pods: pods, PodsCached: true, Volumes: []*drain.Volume{volume}, Attachments: attached[len(pods) > 0],
			Complete: true, Memory: memory,
		}
	}
	look := func(o *drain.Observation) error {
		fmt.Println("reading live")
		*o = read()
		o.Cached, o.PodsCached = false, false
		o.Memory.See(o.Pods, true, now)
		return nil
	}
	store := func(n *machine.Node) (*machine.Node, error) {
		fmt.Println("storing node and record")
		node = n
		return n, nil
	}
	terminate := func(order drain.Order) drain.Answer {
		fmt.Println(order.Why)
		terminating := *pods[0]
		terminating.GraceEnds = now.Add(terminating.Grace)
		pods = []*drain.Pod{&terminating}
		return drain.Answer{Kind: drain.Evicted, Result: drain.Accepted, At: now}
	}
	for done := false; !done; {
		err := pass(read(), drain.DefaultPolicy(), func() time.Time { return now }, look, store, terminate, terminate, func(plan drain.Plan) error {
			fmt.Println(plan.Why)
			if done = plan.Done; !done { // something has changed, or it is time to decide again
				now = plan.At
			}
			return nil
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		if len(pods) > 0 && !pods[0].GraceEnds.IsZero() && now.After(pods[0].GraceEnds) {
			pods = nil
		}
	}
	// Output:
	// storing node and record
	// evicting shop/db, next of the pods with volumes (priority 0)
	// storing node and record
	// volume vol-1 of shop/db is still attached here; waiting at most 2m30s
	// reading live
	// node worker-1 is drained
}

// A forecast shows what a drain would do, before it begins.
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
	// +0s   cordon  -         cordoning node worker-1, so that no new pods are scheduled
	// +0s   evict   shop/web  evicting shop/web
	// +30s  end     -         node worker-1 is drained
}
