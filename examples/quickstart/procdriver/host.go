package procdriver

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/children"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// Host starts processes and waits for each of them, as their only parent. It outlives drivers. When
// its program ends, in any way, its processes notice and end too, unless they are to outlive it.
// Then another host adopts them. NewHost makes it. It is safe for concurrent use.
type Host struct {
	options  HostOptions
	children *children.Children
	// Agents and their tasks hold one end, so that the other end closes with the last of them. The
	// host knows nothing else of tasks.
	presence, absence *os.File
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
	return &Host{options: o, children: children.New(o.Ledger), presence: presence, absence: absence}, nil
}

// Adopt makes the host follow processes that the ledger knows and whose program has died. It sees
// when they end and enters that, as it does for its children.
func (h *Host) Adopt(lives []ledger.Life) { h.children.Adopt(lives) }

// start starts an agent and returns once it has its seat.
func (h *Host) start(ctx context.Context, o agent.Order, userData []byte) error {
	if err := ctx.Err(); err != nil {
		return failure(err, "the process was not started")
	}
	o.Ledger, o.Outlives, o.Alone = h.options.Ledger, h.options.Outlived, h.options.Alone
	if h.options.Tasks != "" {
		o.Tasks = filepath.Join(h.options.Tasks, o.Machine)
	}
	input, report, err := h.spawn(o)
	if err != nil {
		return failure(err, "the process can't be started")
	}
	defer func() { _ = report.Close() }()
	stop := context.AfterFunc(ctx, func() {
		_ = input.SetWriteDeadline(time.Unix(0, 1))
		_ = report.SetReadDeadline(time.Unix(0, 1))
	})
	defer stop()
	sent := agent.Send(input, userData)
	if sent != nil {
		_ = input.Close() // a process that knows too little must not wait for more
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

// spawn starts a process whose input stays open as long as it is to live.
func (h *Host) spawn(o agent.Order) (input, report *os.File, err error) {
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
	if _, err := h.children.Start(cmd, o.Machine, o.Instance, func() { _ = input.Close() }); err != nil {
		return nil, nil, errors.Join(err, input.Close(), report.Close())
	}
	return input, report, nil
}

// await waits until the end of an instance's process was entered, if this host has started or
// adopted it.
func (h *Host) await(ctx context.Context, instance string) error {
	return h.children.Await(ctx, func(of ledger.Hand) bool { return of.Instance == instance })
}

// Close kills the processes that still run, waits for all and for the tasks of those it has
// started, and returns the instances that it had to kill. No driver may use the host any more.
func (h *Host) Close() []string {
	killed := h.children.Close()
	_ = h.presence.Close()
	_ = h.absence.SetReadDeadline(time.Now().Add(absencePatience))
	_, _ = h.absence.Read(make([]byte, 1)) // nothing writes to it: it ends with the last task
	_ = h.absence.Close()
	return killed
}
