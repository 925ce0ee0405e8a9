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

// HostOptions say what a Host starts.
type HostOptions struct {
	// Dir is where the provider keeps all it knows. It is made when needed.
	Dir string
	// Program is the path of a program that calls supervisor.Main and agent.Main first of all, and
	// that stays as long as groups do. If it is empty, it is the running program.
	Program string
	// Lock is the file that this program has locked (roster.Hold). Groups go on without a program
	// that has it for as long as Alone.
	Lock  string
	Alone time.Duration
}

// Host starts supervisors. It outlives drivers. Groups outlive it for a while, so that the host of
// another program can go on with them. NewHost makes it. It is safe for concurrent use.
type Host struct {
	options     HostOptions
	supervisors *roster.Roster
	turn        chan struct{} // held while a supervisor is started
}

// starts is how often a call tries to start a supervisor before it gives up.
const starts = 5

// NewHost returns a host.
func NewHost(o HostOptions) *Host {
	return &Host{options: o, supervisors: roster.Open(supervisor.Supervisors(o.Dir)), turn: make(chan struct{}, 1)}
}

// ensure returns once a group has a live supervisor, or is gone.
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

// supervisor returns the process of a group's supervisor, or nil if it has none. It may not have
// joined yet.
func (h *Host) supervisor(t *target) (*roster.Entry, error) {
	return h.supervisors.Living(t.entry(), "")
}

// start starts a supervisor.
func (h *Host) start(t *target) error {
	dir, err := filepath.Abs(h.options.Dir)
	if err != nil {
		return err
	}
	about, err := json.Marshal(supervisor.Order{
		Root: dir, Cluster: t.spec.Cluster, Group: t.name, Provider: h.options.Lock, Alone: h.options.Alone,
	})
	if err != nil {
		return err
	}
	return h.supervisors.Start(h.options.Program, supervisor.Role, roster.Entry{
		Name: t.entry(), Instance: roster.NewInstance(), About: about,
	})
}

// entry returns what the roster calls the group's supervisors.
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

// Install copies the running program to a path, for a Host whose groups outlive it: what "go run"
// has made is gone then.
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
