package overshoot_test

import (
	"testing"

	"github.com/millwright-go/millwright/safety"
)

// TestFreezesAtTheUpperBoundOnly: a set freezes at replicas + surge + SafetyUp machines and not
// before. It thaws SafetyDown below that and not before.
// Invariants: P25
func TestFreezesAtTheUpperBoundOnly(t *testing.T) {
	h := newHerd(t, 3, 3)
	h.policy = safety.DefaultPolicy()
	h.policy.SafetyUp, h.policy.SafetyDown = 4, 3
	for _, step := range []struct {
		size   int
		frozen bool
	}{{5, false}, {7, false}, {8, true}, {7, true}, {6, true}, {5, false}, {7, false}} {
		h.sizes[0] = step.size
		h.pass()
		h.agreed(step.frozen)
	}
}
