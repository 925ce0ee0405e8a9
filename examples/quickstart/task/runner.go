package task

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// interval is the time between an agent's looks at its desk.
const interval = 25 * time.Millisecond

// Runner starts the tasks on a desk, as their only parent, and ends those that are to end.
// NewRunner makes it.
type Runner struct {
	desk    *Desk
	program string
	// presence is passed on to tasks, which do nothing with it: the holder of the other end sees
	// when all processes that hold it have ended. It may be nil.
	presence *os.File
	waiting  sync.WaitGroup

	children map[string]*child // by UID; including those that have ended, while their order exists
}

// child is a task that was started, or will never be (then it counts as ended).
type child struct {
	cmd    *exec.Cmd
	killAt time.Time // zero if it was not told to end
	done   chan struct{}
}

func (c *child) ended() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// NewRunner returns a runner without tasks. They run the running program, which calls Ordered first
// of all.
func NewRunner(desk *Desk, presence *os.File) (*Runner, error) {
	program, err := os.Executable()
	return &Runner{desk: desk, program: program, presence: presence, children: make(map[string]*child)}, err
}

// Run looks at the desk again and again until ctx ends. Tasks go on until Stop.
func (r *Runner) Run(ctx context.Context) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		r.look(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
	}
}

// look does what the orders say. What can't be read or done now is tried again with the next look.
func (r *Runner) look(now time.Time) {
	orders, err := r.desk.Orders()
	if err != nil {
		return
	}
	for uid, letter := range orders {
		c := r.children[uid]
		switch {
		case c == nil && letter.Told:
			r.refuse(uid, "told to end before it was started")
		case c == nil:
			r.begin(letter)
		case letter.Told && !c.ended():
			c.tell(letter.Grace, now)
		}
	}
	for uid, c := range r.children {
		if _, there := orders[uid]; there {
			continue
		}
		if !c.ended() {
			c.tell(0, now) // it is no longer wanted
			continue
		}
		delete(r.children, uid)
	}
}

// tell ends a task, by a request or by force.
func (c *child) tell(grace time.Duration, now time.Time) {
	if end := now.Add(grace); c.killAt.IsZero() || end.Before(c.killAt) {
		if c.killAt.IsZero() && grace > 0 {
			_ = c.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
		}
		c.killAt = end
	}
	if !now.Before(c.killAt) {
		_ = c.cmd.Process.Kill()
	}
}

// refuse reports that a task will never run.
func (r *Runner) refuse(uid, why string) {
	c := &child{done: make(chan struct{})}
	close(c.done)
	if r.desk.Report(uid, Report{State: Ended, Note: why}) == nil {
		r.children[uid] = c
	}
}

// begin starts a task and a goroutine that waits for it.
func (r *Runner) begin(letter Letter) {
	c, report, err := r.spawn(letter.Order)
	if err != nil {
		r.refuse(letter.UID, err.Error())
		return
	}
	r.children[letter.UID] = c
	r.waiting.Go(func() {
		defer close(c.done)
		r.attend(letter.Order, c, report)
	})
}

func (r *Runner) spawn(o Order) (c *child, report *os.File, err error) {
	report, theirs, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd := exec.Command(r.program)
	cmd.Args = []string{"task " + o.Name}
	cmd.Env = o.Environ()
	cmd.ExtraFiles = []*os.File{theirs}
	if r.presence != nil {
		cmd.ExtraFiles = append(cmd.ExtraFiles, r.presence)
	}
	// Its input says nothing and ends with this process. Waiting closes it.
	_, err = cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, nil, errors.Join(err, report.Close())
	}
	return &child{cmd: cmd, done: make(chan struct{})}, report, nil
}

// attend reports when a task serves, and when it has ended.
func (r *Runner) attend(o Order, c *child, report *os.File) {
	pid := c.cmd.Process.Pid
	id, err := procid.Of(pid) // a child has its PID until it was waited for
	if err != nil {
		id = procid.ID{PID: pid}
	}
	line, _ := bufio.NewReader(report).ReadString('\n')
	_ = report.Close()
	if strings.TrimSpace(line) == reportServing {
		_ = r.desk.Report(o.UID, Report{State: Serving, PID: pid})
	}
	_ = c.cmd.Wait() // the state says how it ended
	how := c.cmd.ProcessState.String()
	if o.Ledger != "" {
		_ = ledger.Append(o.Ledger, ledger.Entry{
			Event: ledger.Ended, Machine: o.Name, Instance: o.UID, ID: id, At: time.Now(), Note: how,
		})
	}
	if err := r.desk.Report(o.UID, Report{State: Ended, PID: pid, Note: how}); err != nil && !errors.Is(err, os.ErrNotExist) {
		fmt.Fprintf(os.Stderr, "the end of task %s can't be reported: %v\n", o.Name, err)
	}
}

// Stop tells all tasks to end, kills those that have not after their grace, and
// waits for all. Run must have returned.
func (r *Runner) Stop(grace time.Duration) {
	all := make(chan struct{})
	go func() {
		r.waiting.Wait()
		close(all)
	}()
	for _, c := range r.children {
		if !c.ended() {
			c.tell(grace, time.Now())
		}
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-all:
		return
	case <-timer.C:
	}
	for _, c := range r.children {
		if !c.ended() {
			c.tell(0, time.Now())
		}
	}
	<-all
}
