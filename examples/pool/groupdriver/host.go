package groupdriver

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/pool/group"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/children"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
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
	options  HostOptions
	turn     chan struct{} // held while a supervisor is started
	children *children.Children
}

// starts is how often a call tries to start a supervisor before it gives up.
const starts = 5

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
	h := &Host{options: o, turn: make(chan struct{}, 1), children: children.New(o.Supervisors)}
	if o.Supervisors == "" {
		return h, nil
	}
	lives, err := ledger.Open(o.Supervisors).Lives()
	h.children.Adopt(lives)
	return h, err
}

// ensure returns once a group has a live supervisor, or is gone.
func (h *Host) ensure(ctx context.Context, t *target) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return failure(ctx.Err(), "the supervisor was not watched")
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
			over = c.Over()
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

// start starts a supervisor.
func (h *Host) start(t *target) (*children.Child, error) {
	o := h.options
	order := supervisor.Order{
		Root: o.Dir, Cluster: t.spec.Cluster, Group: t.name, Instance: strings.ToLower(rand.Text()[:12]),
		Program: o.Program, Ledger: o.Supervisors, Agents: o.Agents, Tasks: o.Tasks, Env: o.Env, Alone: o.Alone, Grace: o.Grace,
	}
	cmd := exec.Command(o.Program)
	cmd.Args = []string{"supervisor " + t.name}
	cmd.Env = append(order.Environ(), o.Env...)
	return h.children.Start(cmd, t.entry(), order.Instance, nil)
}

// entry returns what the ledger calls the group's supervisors.
func (t *target) entry() string { return t.spec.Cluster + "/" + t.name }

// await waits until the end of every supervisor of a group was seen.
func (h *Host) await(ctx context.Context, t *target) error {
	return h.children.Await(ctx, func(of ledger.Hand) bool { return of.Machine == t.entry() })
}

// Close kills the supervisors that still run, waits for all, and returns how many
// it had to kill. Agents go on; no driver may use the host any more.
func (h *Host) Close() int { return len(h.children.Close()) }
