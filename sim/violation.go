package sim

import (
	"fmt"
	"time"
)

// Violation is a rule that was broken, or something that did not become true in its time.
type Violation struct {
	// Rule is what was broken: an invariant by its number, a Property by its
	// name, or one of the rules below.
	Rule string
	Seed uint64    // of the world
	At   time.Time // in the world's time
	What string    // for people
}

// These rules are neither an invariant nor a property.
const (
	// RuleSettled: when faults have stopped, all converges, and is gone once it is deleted.
	RuleSettled = "settled"
	// RuleStarted: a manager begins again with anything that is stored.
	RuleStarted = "started"
	// RulePanicked: no pass panics.
	RulePanicked = "panicked"
	// RuleDriverPanicked: no call of a driver of Options.Driver panics.
	RuleDriverPanicked = "driver panicked"
	// RuleContext: no call of such a driver goes on long after its context has ended.
	RuleContext = "context"
)

// Error returns what was broken, where and when.
func (v *Violation) Error() string {
	return fmt.Sprintf("sim: seed %d, at %s: %s: %s", v.Seed, v.At.Format(time.RFC3339), v.Rule, v.What)
}
