package reachability_test

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/reachability"
)

// The API server of the nodes stops answering. The fleet works once both servers have answered, and freezes when one
// of them has not answered for some time.
func ExampleDecide() {
	now := time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)
	policy := safety.DefaultPolicy()
	var state reachability.State
	for _, code := range []codes.Code{codes.OK, codes.Unavailable, codes.Unavailable} {
		o := &reachability.Observation{
			State: state, Machines: []*machine.Machine{},
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
