package safety_test

import (
	"fmt"

	"github.com/millwright-go/millwright/safety"
)

// A policy begins with the defaults. What it can't mean is an error that names the field.
func ExamplePolicy() {
	p := safety.DefaultPolicy()
	fmt.Println("orphans are looked for every", p.OrphanPeriod)
	p.CheckPeriod = 0
	fmt.Println(p.Validate())
	// Output:
	// orphans are looked for every 15m0s
	// policy.checkPeriod must be at least a second
}
