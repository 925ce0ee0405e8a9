package decision_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// A package declares its reasons once, each with its sentence. A plan carries the numbers.
func ExampleWhy() {
	var (
		create = decision.NewReason("Create", "{have} of {want} machines: creating {count}")
		retry  = decision.NewReason("Retry", "{name} failed[: again in {for}|: waiting for a change]")
	)
	why := decision.Why{Reason: create, Have: 3, Want: 5, Count: 2}
	fmt.Println(why.Reason, "-", why)
	fmt.Println(decision.Why{Reason: retry, Name: "web-1", For: 10 * time.Second})
	fmt.Println(decision.Why{Reason: retry, Name: "web-1"})
	fmt.Println(why == decision.Why{Reason: create, Have: 3, Want: 5, Count: 2})
	for name, figure := range why.Figures() {
		fmt.Println(name, figure)
	}
	// Output:
	// Create - 3 of 5 machines: creating 2
	// web-1 failed: again in 10s
	// web-1 failed: waiting for a change
	// true
	// have 3
	// want 5
	// count 2
}

// A read covers what was stored before it began. Its age counts from its end.
func ExampleFreshness() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	read := decision.Freshness{Began: noon, Ended: noon.Add(4 * time.Second)}
	fmt.Println("covers a write of 11:59:", read.Covers(noon.Add(-time.Minute)))
	fmt.Println("covers a write of 12:00:02:", read.Covers(noon.Add(2*time.Second)))
	fmt.Println("fresh at 12:00:13:", read.Within(10*time.Second, noon.Add(13*time.Second)))
	fmt.Println("fresh at 12:00:14:", read.Within(10*time.Second, noon.Add(14*time.Second)))
	fmt.Println("a cache is live:", decision.Freshness{}.Live())
	// Output:
	// covers a write of 11:59: true
	// covers a write of 12:00:02: false
	// fresh at 12:00:13: true
	// fresh at 12:00:14: false
	// a cache is live: false
}

// The first step that has something to do makes the plan. The steps after it are not called.
func ExampleFirstOf() {
	type node struct{ cordoned, empty bool }
	cordon := func(n node) (string, bool) { return "cordon the node", !n.cordoned }
	evict := func(n node) (string, bool) { return "evict its pods", !n.empty }
	for _, n := range []node{{}, {cordoned: true}, {cordoned: true, empty: true}} {
		plan, found := decision.FirstOf(n, cordon, evict)
		fmt.Printf("%q %v\n", plan, found)
	}
	// Output:
	// "cordon the node" true
	// "evict its pods" true
	// "" false
}
