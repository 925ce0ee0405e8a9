package procdriver

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// Host starts processes and waits for each of them, as their only parent. It outlives drivers. When
// its program ends, in any way, its processes notice and end too, unless they are to outlive it.
// Then another host adopts them. NewHost makes it. It is safe for concurrent use.
type Host struct {
	options HostOptions
	running sync.WaitGroup
	// Agents and their tasks hold one end, so that the other end closes with the last of them. The
	// host knows nothing else of tasks.
	presence, absence *os.File

	mu       sync.Mutex
	children map[string]*child // by instance; those not waited for yet
	known    map[string]bool   // by instance; those there were
	closed   bool
}

// HostOptions say what a Host starts.
type HostOptions struct {
	// Program is the path of a program that calls agent.Ordered first of all. If it is empty, it is
	// the running program.
	Program string
	// Env is added to the environment of agents, which is empty otherwise.
	Env []string
	// Ledger is the path of the ledger that processes are entered in. If it is empty, none is kept.
	Ledger string
	// Tasks is where agents find their tasks, each in a directory of the machine's name. If it is
	// empty, they run none.
	Tasks string
	// Outlived says that processes go on when the program of their host is gone, for
	// agent.Abandonment, or for Alone if that is not zero.
	Outlived bool
	Alone    time.Duration
}

// absencePatience is how long tasks may take to notice that their agents are
// gone.
const absencePatience = 10 * time.Second

// NewHost returns a host without processes.
func NewHost(o HostOptions) (*Host, error) {
	if o.Program == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Program = program
	}
	absence, presence, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	return &Host{
		options: o, presence: presence, absence: absence,
		children: make(map[string]*child), known: make(map[string]bool),
	}, nil
}

// child is a process that was started or adopted, and has not ended yet.
type child struct {
	order agent.Order
	cmd   *exec.Cmd // nil if it was adopted
	id    procid.ID
	input *os.File      // open as long as the process is to live
	done  chan struct{} // closed once it was waited for
}

// start starts an agent and returns once it has its seat.
func (h *Host) start(ctx context.Context, o agent.Order, userData []byte) error {
	if err := ctx.Err(); err != nil {
		return failure(err, "the process was not started")
	}
	o.Ledger, o.Outlives, o.Alone = h.options.Ledger, h.options.Outlived, h.options.Alone
	if h.options.Tasks != "" {
		o.Tasks = filepath.Join(h.options.Tasks, o.Machine)
	}
	c, report, err := h.spawn(o)
	if err != nil {
		return failure(err, "the process can't be started")
	}
	defer func() { _ = report.Close() }()
	stop := context.AfterFunc(ctx, func() {
		_ = c.input.SetWriteDeadline(time.Unix(0, 1))
		_ = report.SetReadDeadline(time.Unix(0, 1))
	})
	defer stop()
	sent := agent.Send(c.input, userData)
	if sent != nil {
		_ = c.input.Close() // a process that knows too little must not wait for more
	}
	line, err := bufio.NewReader(report).ReadString('\n')
	switch {
	case ctx.Err() != nil:
		return failure(ctx.Err(), "the process was started and is not up yet")
	case strings.TrimSpace(line) == agent.ReportSeated && sent == nil:
		return nil
	case strings.TrimSpace(line) == agent.ReportTurned:
		return codes.New(codes.Aborted, "another process of this machine was faster")
	}
	return failure(errors.Join(sent, err), "the process ended before it was up")
}

// spawn starts a process and a goroutine that waits for it.
func (h *Host) spawn(o agent.Order) (c *child, report *os.File, err error) {
	theirInput, input, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	report, theirReport, err := os.Pipe()
	if err != nil {
		return nil, nil, errors.Join(err, theirInput.Close(), input.Close())
	}
	defer func() { _, _ = theirInput.Close(), theirReport.Close() }()
	cmd := exec.Command(h.options.Program)
	cmd.Args = []string{"machine " + o.Machine}
	cmd.Env = append(o.Environ(), h.options.Env...)
	cmd.Stdin = theirInput
	cmd.ExtraFiles = []*os.File{theirReport, h.presence} // agent.ReportFD, agent.PresenceFD
	// It gets a process group of its own, because terminal input is not for it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	h.mu.Lock() // it enters itself, and nothing may adopt it before it is known here
	defer h.mu.Unlock()
	if err := cmd.Start(); err != nil {
		return nil, nil, errors.Join(err, input.Close(), report.Close())
	}
	c = &child{order: o, cmd: cmd, input: input, done: make(chan struct{})}
	c.id, err = procid.Of(cmd.Process.Pid)
	if err != nil {
		c.id = procid.ID{PID: cmd.Process.Pid} // its instance is known nevertheless
	}
	h.take(c)
	h.running.Go(func() { h.reap(c) })
	return c, report, nil
}

// reap waits for a child and enters its end.
func (h *Host) reap(c *child) {
	_ = c.cmd.Wait() // the state says how it ended
	_ = c.input.Close()
	h.bury(c, c.cmd.ProcessState.String())
}

// bury enters a process's end and forgets it.
func (h *Host) bury(c *child, how string) {
	// A missing entry makes the account fail, which is what the account is for.
	_ = ledger.Hand{Path: c.order.Ledger, Machine: c.order.Machine, Instance: c.order.Instance, ID: c.id}.Enter(ledger.Ended, how)
	h.mu.Lock()
	delete(h.children, c.order.Instance)
	h.mu.Unlock()
	close(c.done)
}

// await waits until the end of an instance's process was entered, if this host has started or
// adopted it. The parent of another process waits for that one.
func (h *Host) await(ctx context.Context, instance string) error {
	h.mu.Lock()
	c := h.children[instance]
	h.mu.Unlock()
	if c == nil {
		return nil
	}
	select {
	case <-c.done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close kills the processes that still run, waits for all and for the tasks of those it has
// started, and returns the instances that it had to kill. No driver may use the host any more.
func (h *Host) Close() []string {
	h.mu.Lock()
	h.closed = true
	var killed []string
	for instance, c := range h.children {
		if c.kill() == nil {
			killed = append(killed, instance)
		}
	}
	h.mu.Unlock()
	h.running.Wait()
	_ = h.presence.Close()
	_ = h.absence.SetReadDeadline(time.Now().Add(absencePatience))
	_, _ = h.absence.Read(make([]byte, 1)) // nothing writes to it: it ends with the last task
	_ = h.absence.Close()
	return killed
}
