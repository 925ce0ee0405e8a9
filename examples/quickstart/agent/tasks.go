package agent

import (
	"context"
	"errors"
	"os"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/life"
	"github.com/millwright-go/millwright/examples/quickstart/task"
)

// tasksGrace is the grace of tasks when their agent is told to end. It is shorter than the agent's
// own grace.
const tasksGrace = time.Second

// runTasks lets the machine's tasks run until stop is called, which ends them all. An agent that
// ends also ends its tasks, because their input ends.
func (a *agent) runTasks(ctx context.Context) (stop func(), err error) {
	if a.Tasks == "" {
		return func() {}, nil
	}
	syscall.CloseOnExec(PresenceFD) // it is passed on by name
	runner, err := task.NewRunner(task.At(a.Tasks), os.NewFile(PresenceFD, "presence"))
	if err != nil {
		return nil, err
	}
	looking, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() { runner.Run(looking) })
	return func() {
		cancel()
		running.Wait()
		grace := time.Duration(0)
		if errors.Is(context.Cause(ctx), life.ErrTold) {
			grace = tasksGrace
		}
		runner.Stop(grace)
	}, nil
}
