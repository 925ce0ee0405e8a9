package groupdriver

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

// HostOptions say what a Host starts.
type HostOptions struct {
	// Dir is where the provider keeps all it knows. It is made when needed.
	Dir string
	// Program is the path of a program that calls supervisor.Ordered and agent.Ordered first of
	// all. If it is empty, it is the running program.
	Program string
	// Env is added to the environment of supervisors and agents, which is empty
	// otherwise.
	Env []string
	// Supervisors and Agents are the paths of their ledgers. If they are empty, no ledger is kept.
	Supervisors, Agents string
	// Tasks is where agents find their tasks, each in a directory of its name. If it is empty, they
	// run none.
	Tasks string
	// Alone is how long groups go on when the program of their host is gone. Zero means
	// agent.Abandonment.
	Alone time.Duration
	// Grace is how long an agent may take to end before it is killed. Zero means the default of
	// package procdriver.
	Grace time.Duration
}

// Host starts supervisors and sees them end. It outlives drivers. Groups outlive it for a while, so
// that the host of another program can go on with them. NewHost makes it. It is safe for concurrent
// use.
type Host struct {
	options HostOptions
	running sync.WaitGroup
	turn    chan struct{} // held while a supervisor is started

	mu       sync.Mutex
	children map[string]*child // by instance; those whose end was not seen yet
}

// child is a supervisor that was started here, or found running.
type child struct {
	hand ledger.Hand
	cmd  *exec.Cmd     // nil if it was found
	done chan struct{} // closed once its end was seen
}

// starts is how often a call tries to start a supervisor before it gives up.
const starts = 5

// found is the time between two checks whether a supervisor that is not a child has ended.
const found = 10 * time.Millisecond

// NewHost returns a host. From then on this program is the provider of all groups in the directory.
func NewHost(o HostOptions) (*Host, error) {
	if o.Dir == "" {
		return nil, errors.New("groupdriver: HostOptions need a Dir")
	}
	if o.Program == "" {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		o.Program = program
	}
	if err := os.MkdirAll(o.Dir, 0o700); err != nil {
		return nil, err
	}
	if err := group.WriteProvider(supervisor.Provider(o.Dir)); err != nil {
		return nil, err
	}
	h := &Host{options: o, turn: make(chan struct{}, 1), children: make(map[string]*child)}
	return h, h.find()
}

// find adopts supervisors that another program has started.
func (h *Host) find() error {
	if h.options.Supervisors == "" {
		return nil
	}
	lives, err := ledger.Open(h.options.Supervisors).Lives()
	for _, life := range lives {
		if life.Ended {
			continue
		}
		h.take(&child{hand: h.hand(life.Machine, life.Instance, life.ID), done: make(chan struct{})})
	}
	return err
}

func (h *Host) hand(machine, instance string, id procid.ID) ledger.Hand {
	return ledger.Hand{Path: h.options.Supervisors, Machine: machine, Instance: instance, ID: id}
}

// take starts a goroutine that waits for a child.
func (h *Host) take(c *child) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.children[c.hand.Instance] = c
	h.running.Go(func() {
		how := "gone; the program that started it has died before"
		if c.cmd != nil {
			_ = c.cmd.Wait() // the state says how it ended
			how = c.cmd.ProcessState.String()
		} else {
			c.outlast()
		}
		_ = c.hand.Enter(ledger.Ended, how) // a missing one makes the ledger's check fail
		h.mu.Lock()
		delete(h.children, c.hand.Instance)
		h.mu.Unlock()
		close(c.done)
	})
}

func (c *child) outlast() {
	ticker := time.NewTicker(found)
	defer ticker.Stop()
	for c.hand.ID.Alive() {
		<-ticker.C
	}
}

// ensure returns once a group has a live supervisor, or is gone.
func (h *Host) ensure(ctx context.Context, t *target) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return failure(ctx.Err(), "the supervisor was not looked after")
	}
	for range starts {
		if up, err := kept(t); up || err != nil {
			return err
		}
		c, err := h.start(t)
		if err != nil {
			return failure(err, "the supervisor can't be started")
		}
		for up, over := false, false; !up && !over; {
			if err := registry.Pause(ctx); err != nil {
				return failure(err, "the supervisor was started and is not up yet")
			}
			over = c.over()
			if up, err = kept(t); err != nil {
				return err
			}
			if up {
				return nil
			}
		}
	}
	return codes.New(codes.Unavailable, "the supervisor ends as soon as it is started")
}

// kept reports whether a group has a live supervisor, or is gone.
func kept(t *target) (bool, error) {
	g, err := t.dir.Read(t.name)
	if err != nil {
		return false, failure(err, "the group's record can't be read")
	}
	return g == nil || g.Supervisor.Alive(), nil
}

func (c *child) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// start starts a supervisor.
func (h *Host) start(t *target) (*child, error) {
	o := h.options
	order := supervisor.Order{
		Root: o.Dir, Cluster: t.spec.Cluster, Group: t.name, Instance: strings.ToLower(rand.Text()[:12]),
		Program: o.Program, Ledger: o.Supervisors, Agents: o.Agents, Tasks: o.Tasks, Env: o.Env, Alone: o.Alone, Grace: o.Grace,
	}
	cmd := exec.Command(o.Program)
	cmd.Args = []string{"supervisor " + t.name}
	cmd.Env = append(order.Environ(), o.Env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // terminal input is not for it
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	id, err := procid.Of(cmd.Process.Pid)
	if err != nil {
		id = procid.ID{PID: cmd.Process.Pid} // its instance is known nevertheless
	}
	c := &child{hand: h.hand(t.spec.Cluster+"/"+t.name, order.Instance, id), cmd: cmd, done: make(chan struct{})}
	h.take(c)
	return c, nil
}

// await waits until the end of every supervisor of a group was seen.
func (h *Host) await(ctx context.Context, t *target) error {
	var of []*child
	h.mu.Lock()
	for _, c := range h.children {
		if c.hand.Machine == t.spec.Cluster+"/"+t.name {
			of = append(of, c)
		}
	}
	h.mu.Unlock()
	for _, c := range of {
		select {
		case <-c.done:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return nil
}

// Close kills the supervisors that still run, waits for all, and returns how many
// it had to kill. Agents go on; no driver may use the host any more.
func (h *Host) Close() int {
	killed := 0
	h.mu.Lock()
	for _, c := range h.children {
		if c.kill() == nil {
			killed++
		}
	}
	h.mu.Unlock()
	h.running.Wait()
	return killed
}

func (c *child) kill() error {
	if c.cmd == nil {
		return c.hand.ID.Signal(syscall.SIGKILL)
	}
	return c.cmd.Process.Kill() // not waited for yet, so that its PID is still its own
}
