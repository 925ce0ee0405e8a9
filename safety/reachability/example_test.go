package reachability_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
)

// Control is the API server with the machines, Target the one with the nodes. Target stops answering. The
// fleet freezes when DownTimeout has passed since the first check that failed: at the third check, not at the
// second.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	var state reachability.State
	for _, code := range []codes.Code{codes.OK, codes.Unavailable, codes.Unavailable} {
		o := &reachability.Observation{
			State: state, Machines: []*machine.Machine{}, // read, and there are none
			Control: &machine.Outcome{Code: codes.OK}, Target: &machine.Outcome{Code: code},
		}
		plan, err := reachability.Decide(o, policy, now)
		if err != nil {
			fmt.Println(err)
			return
		}
		state = plan.State
		fmt.Println(code, "- frozen:", state.Stage.Frozen())
		now = now.Add(policy.DownTimeout + time.Second)
	}
	// Output:
	// OK - frozen: false
	// Unavailable - frozen: false
	// Unavailable - frozen: true
}
