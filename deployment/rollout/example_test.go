package rollout_test

import (
	"encoding/json"
	"fmt"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// This is a controller's loop: decide, carry out the orders, wait for the machines, and read the fleet again.
func Example() {
	surge, _ := rollout.Parse("25%")
	unavailable, _ := rollout.Parse("0")
	fleet := rollout.Fleet{
		Replicas: 4,
		Bounds:   rollout.Fenceposts(surge, unavailable, 4),
		Sets: []rollout.Set{
			{Name: "web-1", Spec: 4, Actual: 4, Available: 4},
			{Name: "web-2", New: true},
		},
	}
	var orders []rollout.Scale
	for range 3 {
		var why rollout.Why
		orders, why = rollout.Step(fleet, orders) // the slice is reused
		if len(orders) == 0 {
			fmt.Println("no order:", why)
		}
		for _, order := range orders {
			fmt.Printf("%s to %d: %s\n", order.Name, order.To, order.Why)
			carryOut(fleet, order)
		}
	}
	fmt.Println("done:", rollout.Done(fleet))
	// Output:
	// web-2 to 1: 4 machines ordered or still there, ceiling is 5: 1 new machine may come
	// web-1 to 3: 5 of 5 machines available, floor is 4: 1 old machine may go
	// web-2 to 2: 4 machines ordered or still there, ceiling is 5: 1 new machine may come
	// done: false
}

// carryOut stands for work that takes minutes in a real fleet: machines are created or removed, and
// become available.
func carryOut(fleet rollout.Fleet, order rollout.Scale) {
	for i := range fleet.Sets {
		if set := &fleet.Sets[i]; set.Name == order.Name {
			set.Spec, set.Actual, set.Available = order.To, order.To, order.To
		}
	}
}

// An earlier step has ordered that web-2 has 4 machines. Two of them are not available yet, so Step orders nothing and
// says what the rollout waits for.
func ExampleStep() {
	fleet := rollout.Fleet{
		Replicas: 5,
		Bounds:   rollout.Bounds{Surge: 1, Unavailable: 1},
		Sets: []rollout.Set{
			{Name: "web-1", Spec: 2, Actual: 2, Available: 2},
			{Name: "web-2", New: true, Spec: 4, Actual: 4, Available: 2},
		},
	}
	orders, why := rollout.Step(fleet, nil)
	fmt.Println(len(orders), why)
	fmt.Println(why.Reason, why.Set, why.Count)
	// Output:
	// 0 4 of 6 machines available, floor is 4: no old machine may go; waiting for 2 machines of new set web-2 to become available
	// Floor web-2 2
}

// A table of the fleet, for the message of a failing test.
func ExampleFleet_String() {
	fmt.Println(rollout.Fleet{
		Replicas: 5,
		Bounds:   rollout.Bounds{Surge: 1, Unavailable: 1},
		Sets: []rollout.Set{
			{Name: "web-1", Spec: 2, Actual: 3, Available: 2, Terminating: 1},
			{Name: "web-2", New: true, Spec: 4, Actual: 4, Available: 2},
		},
		Strict: true,
	})
	// Output:
	// R 5, S 1, U 1: ceiling 6, floor 4, strict
	//   web-1  old  spec  2  actual  3  available  2  terminating  1
	//   web-2  new  spec  4  actual  4  available  2
}

// Check judges the orders of another implementation. The first ones remove a machine of web-2, where Step begins with
// web-1: they are accepted. The next two break a bound. The last ones, none, break no bound, but Step would order
// something: the rollout may be stuck.
func ExampleCheck() {
	fleet := rollout.Fleet{
		Replicas: 10,
		Bounds:   rollout.Bounds{Surge: 2, Unavailable: 1},
		Sets: []rollout.Set{
			{Name: "web-1", Spec: 6, Actual: 6, Available: 6},
			{Name: "web-2", Spec: 4, Actual: 4, Available: 4},
			{Name: "web-3", New: true},
		},
	}
	for _, orders := range [][]rollout.Scale{
		{{Name: "web-2", From: 4, To: 3}, {Name: "web-3", From: 0, To: 2}},
		{{Name: "web-2", From: 4, To: 2}},
		{{Name: "web-3", From: 0, To: 3}},
		{},
	} {
		ours, _ := rollout.Step(fleet, nil)
		fmt.Println(rollout.Check(fleet, orders), "stuck:", len(orders) == 0 && len(ours) > 0)
	}
	// Output:
	// <nil> stuck: false
	// rollout: web-2 from 4 to 2: 8 machines sure to stay available, floor is 9 stuck: false
	// rollout: web-3 from 0 to 3: 13 machines ordered or still there, ceiling is 12 stuck: false
	// <nil> stuck: true
}

// In the middle of a rollout of 14 machines, the deployment is scaled to 8, so 6 have to be removed: those of
// web-1, none of which is available, first. One more is removed for the rollout, because one of the 8 may be missing.
func ExampleStep_scaleDown() {
	fleet := rollout.Fleet{
		Replicas: 8,
		Bounds:   rollout.Bounds{Unavailable: 1},
		Sets: []rollout.Set{
			{Name: "web-1", Spec: 6, Actual: 6, Available: 0},
			{Name: "web-2", Spec: 4, Actual: 4, Available: 4},
			{Name: "web-3", New: true, Spec: 4, Actual: 4, Available: 4},
		},
	}
	orders, _ := rollout.Step(fleet, nil)
	for _, order := range orders {
		fmt.Println(order.Name, order.From, "to", order.To)
	}
	// Output:
	// web-1 6 to 0
	// web-2 4 to 3
}

func ExampleFenceposts() {
	quarter := rollout.IntOrPercent{Value: 25, Percent: true}
	for _, replicas := range []int32{1, 3, 10, 1000} {
		fmt.Printf("%d: %+v\n", replicas, rollout.Fenceposts(quarter, quarter, replicas))
	}
	// No surge, and 25% of 3 is rounded down to 0: nothing could be rolled, so one machine may be missing.
	fmt.Printf("%+v\n", rollout.Fenceposts(rollout.IntOrPercent{}, quarter, 3))
	// Output:
	// 1: {Surge:1 Unavailable:0}
	// 3: {Surge:1 Unavailable:0}
	// 10: {Surge:3 Unavailable:2}
	// 1000: {Surge:250 Unavailable:250}
	// {Surge:0 Unavailable:1}
}

func ExampleParse() {
	for _, s := range []string{"3", "20%", "250%", "-1", "2.5"} {
		v, err := rollout.Parse(s)
		switch {
		case err != nil:
			fmt.Println(err)
		case v.Over100():
			fmt.Println(v, "is more than all machines")
		default:
			fmt.Println(v, v.Ceil(7), v.Floor(7))
		}
	}
	// Output:
	// 3 3 3
	// 20% 2 1
	// 250% is more than all machines
	// rollout: "-1" is negative
	// rollout: "2.5" is neither a whole number of machines nor a percentage such as 20%
}

func ExampleIntOrPercent() {
	var settings struct{ MaxSurge, MaxUnavailable rollout.IntOrPercent }
	err := json.Unmarshal([]byte(`{"MaxSurge": "20%", "MaxUnavailable": 1}`), &settings)
	encoded, _ := json.Marshal(settings)
	fmt.Println(string(encoded), err)
	// Output: {"MaxSurge":"20%","MaxUnavailable":1} <nil>
}

func ExampleShares() {
	fmt.Println(rollout.Shares(6, []int32{10, 5, 15}, nil))
	fmt.Println(rollout.Shares(4, []int32{3, 8, 3}, nil)) // 0, 2, 0 rounded down; the two that are left go to the largest, then to the first
	// Output:
	// [2 1 3]
	// [1 3 0]
}

func ExampleDone() {
	fleet := rollout.Fleet{Replicas: 2, Sets: []rollout.Set{
		{Name: "web-1", Actual: 1}, // no longer ordered, but still there
		{Name: "web-2", New: true, Spec: 2, Actual: 2, Available: 2},
	}}
	fmt.Println(rollout.Done(fleet))
	fleet.Sets[0].Actual = 0
	fmt.Println(rollout.Done(fleet))
	// Output:
	// false
	// true
}
