package fsm_test

import (
	"context"
	"fmt"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

// The moves of a plan are fired before its write. A move that no table allows is an error, and so is
// a change of state without a move.
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

// A state machine of a type of your own needs a table, the place of the state in an object and, if a move
// depends on something, a guard.
func ExampleNew() {
	type job struct{ state string }
	table := machine.NewTable("job", "Queued", []string{"Done"}, []machine.Edge{
		{From: "Queued", On: "start", To: "Running", Why: "a worker is free"},
		{From: "Running", On: "finish", To: "Done", Why: "no task is left"},
	})
	tasksLeft := decision.NewReason("TasksLeft", "{count|task|tasks} left")
	states, err := fsm.New(fsm.State[job]{
		Table: table,
		Get:   func(j *job) string { return j.state },
		Set:   func(j *job, to string) { j.state = to },
		Guard: func(e machine.Edge) fsm.Guard {
			if e.On != "finish" {
				return nil
			}
			return func(seen any) (why decision.Why) {
				if tasks, ok := seen.(int); !ok || tasks > 0 {
					why = decision.Why{Reason: tasksLeft, Count: int64(tasks)}
				}
				return why
			}
		},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	finish := machine.Move{Table: "job", From: "Running", On: "finish", To: "Done"}
	fmt.Println(states.Fire(context.Background(), &job{"Running"}, &job{"Done"}, 2, finish))
	fmt.Println(states.Fire(context.Background(), &job{"Running"}, &job{"Done"}, 0, finish))
	fmt.Print(fsm.Mermaid(table))
	// Output:
	// job: Running on finish to Done: 2 tasks left
	// <nil>
	// stateDiagram-v2
	//     [*] --> Queued
	//     Queued --> Running : start
	//     Running --> Done : finish
	//     Done --> [*]
}
