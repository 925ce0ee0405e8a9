package fsm_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

// The moves of a plan are fired before its write. One that no table allows is an error.
func Example() {
	checker, err := fsm.NewChecker(machine.PhaseTable())
	if err != nil {
		fmt.Println(err)
		return
	}
	table := machine.PhaseTable().Name
	joined := machine.Move{Table: table, From: string(machine.PhasePending), On: machine.EventJoined, To: string(machine.PhaseRunning)}
	fmt.Println(checker.Fire(context.Background(), joined))
	joined.From = string(machine.PhaseFailed)
	fmt.Println(checker.Fire(context.Background(), joined))
	// Output:
	// <nil>
	// phase: Failed on joined to Running: the event leads nowhere from there
}
