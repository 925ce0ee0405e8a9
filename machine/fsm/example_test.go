package fsm_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

// The moves of a plan are fired before its write. One that no table allows is an error, and so is a
// change that no move explains.
func Example() {
	states, err := fsm.New(fsm.Machines(nil)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	before, after := new(machine.Machine), new(machine.Machine)
	before.Status.Phase, after.Status.Phase = machine.PhasePending, machine.PhaseRunning
	joined := machine.Move{
		Table: machine.PhaseTable().Name, From: string(machine.PhasePending), On: machine.EventJoined, To: string(machine.PhaseRunning),
	}
	fmt.Println(states.Fire(context.Background(), before, after, nil, joined))
	fmt.Println(states.Fire(context.Background(), before, after, nil))
	before.Status.Phase, joined.From = machine.PhaseFailed, string(machine.PhaseFailed)
	fmt.Println(states.Fire(context.Background(), before, after, nil, joined))
	// Output:
	// <nil>
	// phase: the moves lead to Pending, and it is to be Running
	// phase: Failed on joined to Running: the event leads nowhere from there
}
