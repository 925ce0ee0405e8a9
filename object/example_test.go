package object_test

import (
	"errors"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/object"
)

// A selector picks objects by labels. One without any condition picks none.
func ExampleSelector() {
	web := object.Selector{
		Labels:       map[string]string{"app": "web"},
		Requirements: []object.Requirement{{Key: "zone", Operator: object.In, Values: []string{"a", "b"}}},
	}
	fmt.Println(web.Matches(map[string]string{"app": "web", "zone": "a"}))
	fmt.Println(web.Matches(map[string]string{"app": "web", "zone": "c"}))
	fmt.Println((&object.Selector{}).Matches(map[string]string{"app": "web"}))
	// Output:
	// true
	// false
	// false
}

// A condition keeps its time for as long as its status stays the same.
func ExampleSetCondition() {
	noon := time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)
	conditions := object.SetCondition(nil, object.Condition{
		Type: "Ready", Status: object.False, Reason: "Booting", Since: noon,
	})
	for _, later := range []object.Condition{
		{Type: "Ready", Status: object.False, Reason: "Joining", Since: noon.Add(time.Minute)},
		{Type: "Ready", Status: object.True, Reason: "Joined", Since: noon.Add(2 * time.Minute)},
	} {
		conditions = object.SetCondition(conditions, later)
		ready := object.FindCondition(conditions, "Ready")
		fmt.Println(ready.Status, ready.Reason, "since", ready.Since.Format("15:04"))
	}
	// Output:
	// False Joining since 12:00
	// True Joined since 12:02
}

// An error about a field names the field, and the object if its caller knows it.
func ExampleFieldError() {
	err := object.Invalid("spec.replicas", "must not be negative")
	fmt.Println(err)
	fmt.Println(err.Of("set", object.Key{Namespace: "fleet", Name: "web"}))
	fmt.Println(errors.Is(err, object.ErrInvalid))
	// Output:
	// spec.replicas must not be negative
	// set fleet/web: spec.replicas must not be negative
	// true
}
