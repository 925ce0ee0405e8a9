package groupdriver

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// HostOptions are the options of a Host.
type HostOptions struct {
	// Dir is the directory of the provider's state. It is created when needed.
	Dir string
	// Program is the path of the supervisors' program. Its main function first calls supervisor.Main and
	// agent.Main. The file must exist as long as there are groups. Empty means the running program.
	Program string
	// Lock is a file that this program has locked (roster.Hold). If no program has locked it for longer
	// than Alone, the groups end.
	Lock  string
	Alone time.Duration
}

// Host starts supervisors. NewHost makes it. Several drivers can share it. Groups outlive it for a
// while (HostOptions.Alone), so that another program can take them over. It is safe for concurrent use.
type Host struct {
	options     HostOptions
	supervisors *roster.Roster
	turn        chan struct{} // a mutex, held while a supervisor is started
}

// starts is how often a call tries to start a supervisor before it gives up.
const starts = 5

// NewHost returns a host.
func NewHost(o HostOptions) *Host {
	return &Host{options: o, supervisors: roster.Open(supervisor.Supervisors(o.Dir)), turn: make(chan struct{}, 1)}
}

// ensure starts a supervisor if a group has none. It returns once the supervisor has joined, or the
// group is gone.
func (h *Host) ensure(ctx context.Context, t *target) error {
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return failure(ctx.Err(), "no supervisor was started")
	}
	for range starts {
		if g, err := t.dir.Read(t.name); err != nil || g == nil {
			return err
		}
		found, err := h.supervisor(t)
		if err == nil && found == nil {
			if err = h.start(t); err == nil {
				found, err = h.supervisor(t)
			}
		}
		for err == nil && found != nil && found.PID == 0 {
			if err = roster.Pause(ctx); err == nil {
				found, err = h.supervisor(t)
			}
		}
		if err != nil {
			return failure(err, "the supervisor is not up yet")
		}
		if found != nil {
			return nil
		}
	}
	return codes.New(codes.Unavailable, "the supervisor ends as soon as it is started")
}

// supervisor returns the process of a group's supervisor, or nil if the group has none. The process
// may not have joined yet.
func (h *Host) supervisor(t *target) (*roster.Entry, error) {
	return h.supervisors.Living(t.entry(), "")
}

// start starts a supervisor.
func (h *Host) start(t *target) error {
	dir, err := filepath.Abs(h.options.Dir)
	if err != nil {
		return err
	}
	about, err := json.Marshal(supervisor.Args{
		Root: dir, Cluster: t.spec.Cluster, Group: t.name, Provider: h.options.Lock, Alone: h.options.Alone,
	})
	if err != nil {
		return err
	}
	return h.supervisors.Start(h.options.Program, supervisor.Role, roster.Entry{
		Name: t.entry(), Instance: roster.NewInstance(), About: about,
	})
}

// entry returns the name that the group's supervisors have in the roster.
func (t *target) entry() string { return t.spec.Cluster + "/" + t.name }

// await waits until every supervisor of a group has ended.
func (h *Host) await(ctx context.Context, t *target) error {
	for {
		if found, err := h.supervisor(t); err != nil || found == nil {
			return err
		}
		if err := roster.Pause(ctx); err != nil {
			return err
		}
	}
}

// Install copies the running program to a path, for HostOptions.Program: groups may outlive the
// program, and "go run" removes its program when that ends.
func Install(path string) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	text, err := os.ReadFile(self)
	if err != nil {
		return err
	}
	return roster.WriteFile(path, text, 0o700)
}
