package deployment_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
)

// TestAMachineThatDiesOnItsWayKeepsOnePlace: the process dies when the new set has grown for a
// machine and the old one has not shrunk, and the machine is deleted. With any wanted size, there
// are never more machines than are allowed.
func TestAMachineThatDiesOnItsWayKeepsOnePlace(t *testing.T) {
	for name, change := range map[string]func(*deployment.Spec){
		"goes on":  func(*deployment.Spec) {},
		"paused":   func(s *deployment.Spec) { s.Paused = true },
		"reverted": class("small"),
		"rolled":   strategy(deployment.RollingUpdate),
	} {
		for _, gone := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				s := halfMoved(t)
				for _, set := range s.sets {
					for _, m := range set.Instructions.Handover.Arriving {
						s.deleteMachine(m)
					}
				}
				if gone {
					s.liveAll()
				}
				s.edit(change)
				for range 20 {
					s.pass(10 * time.Second)
					for ended := false; !ended; {
						ended = s.shell.step() // a pass fails by itself if it takes no end
						s.obeyAll()            // the sets act between any two steps
						requireAtMost(t, s, 2)
					}
					s.liveAll()
				}
				sizes := int32(0)
				for _, set := range s.sets {
					sizes += set.Spec.Replicas
				}
				require.EqualValues(t, 2, sizes, s.where())
			})
		}
	}
}

// requireAtMost requires no more than n machines that are not being deleted.
func requireAtMost(t *testing.T, s *story, n int) {
	t.Helper()
	alive := 0
	for _, m := range s.machines {
		if !m.Deleted() {
			alive++
		}
	}
	require.LessOrEqual(t, alive, n, s.where())
}
