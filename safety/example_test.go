package safety_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
)

// In a policy, a zero field has its default, and object.Off turns a limit or period off. A value out of range is an
// error that names the field.
func ExamplePolicy() {
	p := &safety.Policy{ClassBackoffBase: object.Off}
	fmt.Println("orphans are looked for every", p.WithDefaults().OrphanPeriod)
	p.CheckPeriod = time.Millisecond
	fmt.Println(p.Validate())
	// Output:
	// orphans are looked for every 15m0s
	// policy.checkPeriod must be at least a second
}
