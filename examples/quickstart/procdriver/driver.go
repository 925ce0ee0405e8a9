// Package procdriver is a driver whose machines are processes of this computer (package agent).
//
// Its state is a directory with a roster for each cluster, so that a new driver knows as much as an
// earlier one. A machine exists as long as its process runs: a killed machine is NOT_FOUND.
package procdriver

import (
	"context"
	"fmt"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
	"github.com/millwright-go/millwright/machine"
)

// Options of a Driver. Dir and Lock are required. The program's main function must first call
// agent.Main.
type Options struct {
	// Dir is the directory of the rosters. It is created when needed.
	Dir string
	// Lock is a file that this program has locked (roster.Hold). If no program has locked it for longer
	// than Outlives, the machines end. Zero means that they end with the program.
	Lock     string
	Outlives time.Duration
}

// grace is how long a machine may take to end; then it is killed.
const grace = 2 * time.Second

// Driver makes machines that are processes. New makes it. It is safe for concurrent use, also by several
// programs with the same directory: there is one process with a name.
type Driver struct {
	driver.Unimplemented // the optional calls
	options              Options

	mu      sync.Mutex // guards rosters
	rosters map[string]*roster.Roster
}

var _ driver.IDMatcher = (*Driver)(nil)

// New returns a driver. It starts nothing.
func New(o Options) *Driver {
	return &Driver{options: o, rosters: make(map[string]*roster.Roster)}
}

// ProviderIDsMatch implements driver.IDMatcher: a node has the provider ID of its machine.
func (d *Driver) ProviderIDsMatch() bool { return true }

// Roster returns the processes of a cluster.
func (d *Driver) Roster(cluster string) *roster.Roster {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.rosters[cluster] == nil {
		d.rosters[cluster] = roster.Open(filepath.Join(d.options.Dir, cluster))
	}
	return d.rosters[cluster]
}

// CreateMachine implements driver.Driver. If a process with the machine's name runs, CreateMachine
// adopts it, and otherwise it starts one. It returns once the process has joined.
func (d *Driver) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	t.name, t.instance = q.Machine.Name, "" // any process with the name is adopted
	node := ""                              // the user data is the node's name
	if q.Secret != nil {
		node = string(q.Secret.Data[machine.UserData])
	}
	for started := false; ; started = true {
		if err := ctx.Err(); err != nil {
			return nil, fmt.Errorf("the machine's process is not up yet: %w", err)
		}
		found, err := d.obtain(ctx, t, node, !started)
		switch {
		case err != nil:
			return nil, fmt.Errorf("the machine's process can't be started: %w", err)
		case found == nil:
			return nil, codes.New(codes.Unavailable, "the machine's process ended before it was up")
		case found.PID == 0:
			_ = roster.Pause(ctx)
			continue
		}
		if err := t.checkAdoption(found); err != nil {
			return nil, err
		}
		return &driver.CreateMachineResponse{ProviderID: t.id(found), NodeName: t.name}, nil
	}
}

// obtain returns the machine's process, or nil if there is none. If start is true and there is none, it
// starts one, which joins the cluster under the name node.
func (d *Driver) obtain(ctx context.Context, t *target, node string, start bool) (*roster.Entry, error) {
	held, err := t.roster.Hold(ctx, t.name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = held.Close() }()
	found, err := t.living()
	if found != nil || err != nil || !start {
		return found, err
	}
	e := roster.Entry{Name: t.name, Instance: roster.NewInstance()}
	e.About = encode(agent.Machine{
		ProviderID: t.id(&e), Version: t.spec.Version, Boot: t.spec.BootDelay,
		Node: node, Program: d.options.Lock, Outlives: d.options.Outlives,
	})
	return &e, t.roster.Start("", agent.MachineRole, e)
}

// DeleteMachine implements driver.Driver. It sends SIGTERM to the machine's process, kills it if it does
// not end in time, and returns when it has ended.
func (d *Driver) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	next, at := syscall.SIGTERM, time.Now()
	for {
		found, err := t.living()
		if err != nil {
			return nil, fmt.Errorf("the machine's process can't be looked up: %w", err)
		}
		if found == nil {
			return &driver.DeleteMachineResponse{}, nil
		}
		if found.PID != 0 && !time.Now().Before(at) {
			_ = found.Signal(next) // an error means that it has just ended
			next, at = syscall.SIGKILL, time.Now().Add(grace)
		}
		if err := roster.Pause(ctx); err != nil {
			return nil, fmt.Errorf("the machine's process did not end: %w", err)
		}
	}
}

// GetMachineStatus implements driver.Driver. A process that has not joined yet does not count, because
// it may end before it joins.
func (d *Driver) GetMachineStatus(_ context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	found, err := t.living()
	if err != nil {
		return nil, fmt.Errorf("the machine's process can't be looked up: %w", err)
	}
	if found == nil || found.PID == 0 {
		return nil, codes.New(codes.NotFound, "no process of this machine is running")
	}
	return &driver.GetMachineStatusResponse{ProviderID: t.id(found), NodeName: found.Name}, nil
}

// ListMachines implements driver.Driver.
func (d *Driver) ListMachines(_ context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	spec, err := SpecOf(q.Class)
	if err != nil {
		return nil, err
	}
	running, err := d.Roster(spec.Cluster).Running()
	if err != nil {
		return nil, fmt.Errorf("the roster can't be read: %w", err)
	}
	machines := make(map[string]string, len(running))
	for _, e := range running {
		machines[ProviderID(spec.Cluster, e.Name, e.Instance)] = e.Name
	}
	return &driver.ListMachinesResponse{Machines: machines}, nil
}
