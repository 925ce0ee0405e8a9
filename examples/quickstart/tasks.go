package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/home"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/workload"
)

// These run on the machines: tasks that serve, with a budget that allows at most maxUnavailable to
// be missing at a time, and one that has a volume.
const (
	tasks          = 12
	maxUnavailable = 3

	frontApp = "front"
	dataApp  = "db"
	dataTask = dataApp + "-0"
)

// taskBoot is how long a task takes until it serves. taskLinger is how long one takes to end,
// without serving. Another one usually serves in its place then; otherwise the budget holds back
// the next eviction. taskReport is how long a task that has ended still exists as a finished one.
const (
	taskBoot   = 100 * time.Millisecond
	taskLinger = 400 * time.Millisecond
	taskGrace  = 1500 * time.Millisecond
	taskReport = 150 * time.Millisecond
)

// setTasks asks for so many tasks of each app.
func (f *fleet) setTasks(front, data int) error {
	app := workload.App{
		Name: frontApp, Replicas: front, MaxUnavailable: maxUnavailable,
		Boot: taskBoot, Linger: taskLinger, Grace: taskGrace, Report: f.report,
	}
	withVolume := app
	withVolume.Name, withVolume.Replicas, withVolume.MaxUnavailable, withVolume.Volume = dataApp, data, 1, true
	return errors.Join(f.workload.Apply(app), f.workload.Apply(withVolume))
}

// startTasks starts all tasks.
func (p *play) startTasks(ctx context.Context) error {
	if err := p.Note(func(done *home.Progress) { done.Tasks = true }); err != nil {
		return err
	}
	if err := p.setTasks(tasks, 1); err != nil {
		return err
	}
	return p.tasksServe(ctx)
}

// tasksServe waits until every task serves, by the cluster and by the processes.
func (p *play) tasksServe(ctx context.Context) error {
	return p.Await(ctx, func() string {
		running, err := p.tasks.book.Alive()
		if err != nil {
			return err.Error()
		}
		n := taskTallyOf(running)
		if n.front != tasks || n.data != 1 || len(running) != tasks+1 {
			return fmt.Sprintf("%d of %d tasks and %d of 1 with a volume serve, %d processes run", n.front, tasks, n.data, len(running))
		}
		if known := p.workload.Serving(frontApp); known != tasks {
			return fmt.Sprintf("the cluster knows %d of %d tasks that serve", known, tasks)
		}
		return ""
	})
}

// stopTasks ends all tasks, as their owner would before the machines are deleted.
func (p *play) stopTasks(ctx context.Context) error {
	if err := p.Note(func(done *home.Progress) { done.Tasks = false }); err != nil {
		return err
	}
	if err := p.setTasks(0, 0); err != nil {
		return err
	}
	return p.Await(ctx, func() string {
		running, err := p.tasks.book.Survivors()
		if left := p.workload.Left(); err != nil || left > 0 || len(running) > 0 {
			return fmt.Sprintf("the end of %d tasks, %d of them processes (%v)", left, len(running), err)
		}
		return ""
	})
}

// taskCensus counts the processes of tasks, by their ledger and the process
// table.
type taskCensus struct {
	*ledger.Counter
	book *ledger.Book
}

// newTaskCensus returns a census. A count of it is not valid if it took so long that a task that was
// read as serving can have ended, and another one can serve in its place.
func newTaskCensus(book *ledger.Book) *taskCensus {
	return &taskCensus{book: book, Counter: ledger.NewCounter(taskLinger/2, func(context.Context) (ledger.Tally, error) {
		running, err := book.Alive()
		return ledger.Tally{Running: len(running), Serving: taskTallyOf(running).front}, err
	})}
}

// taskTally is one count of the processes that run and serve.
type taskTally struct {
	front int
	data  int
}

func taskTallyOf(running []ledger.Life) (t taskTally) {
	for _, life := range running {
		switch {
		case !life.Serving || life.Leaving:
		case strings.HasPrefix(life.Machine, frontApp+"-"):
			t.front++
		case life.Machine == dataTask:
			t.data++
		}
	}
	return t
}

// checkTasks checks the counts against the budget.
func (p *play) checkTasks() error {
	account, err := p.tasks.book.Account()
	if err != nil {
		return err
	}
	counts, err := p.tasks.Counts()
	switch floor := tasks - maxUnavailable; {
	case err != nil:
		return err
	case counts.Least.Serving < floor:
		return fmt.Errorf("only %d of %d tasks were serving at a time, the budget wants %d", counts.Least.Serving, tasks, floor)
	case account.Duplicates > 0:
		return fmt.Errorf("%d tasks ran twice at a time", account.Duplicates)
	default:
		p.Say("tasks counted %d times: never fewer than %d of %d serving (budget: %d)", counts.Number, counts.Least.Serving, tasks, floor)
	}
	return nil
}

// data returns the process that has the volume, or false if there is none.
func (p *play) data() (ledger.Life, bool) {
	running, err := p.tasks.book.Alive()
	i := slices.IndexFunc(running, func(l ledger.Life) bool { return l.Machine == dataTask && l.Serving && !l.Leaving })
	if err != nil || i < 0 {
		return ledger.Life{}, false
	}
	return running[i], true
}

// checkMoved requires that the volume's task is another process than before, on
// another machine, and says how it got there.
func (p *play) checkMoved(before ledger.Life, from string) error {
	now, ok := p.data()
	to := p.workload.Where(dataTask)
	if !ok || now.Instance == before.Instance || to == from {
		return fmt.Errorf("task %s was to move with its volume from machine %s, and is on %s", dataTask, from, to)
	}
	lives, err := p.tasks.book.Lives()
	if err != nil {
		return err
	}
	had := 0
	for _, life := range lives {
		if life.Machine == dataTask && life.Seated {
			had++
		}
	}
	p.Say("task %s and its volume went from machine %s to %s; %d processes have had the volume, one at a time", dataTask, from, to, had)
	return nil
}
