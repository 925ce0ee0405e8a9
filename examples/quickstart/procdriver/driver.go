// Package procdriver is a driver whose machines are processes of this computer.
//
// What it knows is in a directory (package registry), so that a new driver knows as much as the one
// before it, and several at the same time do no harm. A machine exists as long as its process runs:
// one that was killed is NOT_FOUND.
package procdriver

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
	"github.com/millwright-go/millwright/machine"
)

// DefaultGrace is how long a process may take to end, unless Options say otherwise.
const DefaultGrace = 2 * time.Second

// Options of a Driver.
type Options struct {
	// Dir is where the driver keeps its records, with a directory for each
	// cluster. It is made when needed.
	Dir string
	// Host starts processes.
	Host *Host
	// Grace is how long a process may take to end before it is killed. Zero means DefaultGrace.
	Grace time.Duration
}

// Driver makes machines that are processes. New makes it. It is safe for concurrent use.
type Driver struct {
	driver.Unimplemented
	options Options
}

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.IDMatcher = (*Driver)(nil)
)

// New returns a driver. It starts nothing.
func New(o Options) (*Driver, error) {
	if o.Dir == "" || o.Host == nil {
		return nil, errors.New("procdriver: Options need a Dir and a Host")
	}
	if o.Grace <= 0 {
		o.Grace = DefaultGrace
	}
	return &Driver{options: o}, nil
}

// ProviderIDsMatch implements driver.IDMatcher: agents report the provider ID
// that they were started with.
func (d *Driver) ProviderIDsMatch() bool { return true }

func (d *Driver) dir(s Spec) *registry.Dir {
	return registry.At(filepath.Join(d.options.Dir, s.Cluster))
}

// CreateMachine implements driver.Driver.
func (d *Driver) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	t.name, t.instance = q.Machine.Name, "" // a create is by name
	if _, err := registry.Make(t.dir.Path()); err != nil {
		return nil, failure(err, "the directory of cluster "+t.spec.Cluster+" can't be made")
	}
	guard, err := t.dir.Guard(ctx, t.name)
	if err != nil {
		return nil, failure(err, "another call for this machine does not end")
	}
	defer guard.Release()
	instance, err := d.obtain(ctx, t, userData(q.Secret))
	if err != nil {
		return nil, err
	}
	return &driver.CreateMachineResponse{
		ProviderID: ProviderID(t.spec.Cluster, t.name, instance), NodeName: t.name, Addresses: addresses(t.name),
	}, nil
}

// obtain adopts the process that has the machine's seat or, if the seat is free, starts one. If it
// can do neither, a process is about to find out whether it is the one on record, or is ending.
func (d *Driver) obtain(ctx context.Context, t *target, userData []byte) (instance string, err error) {
	for {
		seat, err := t.dir.TakeSeat(t.name)
		if err == nil {
			return d.start(ctx, t, seat, userData)
		}
		if !errors.Is(err, registry.ErrHeld) {
			return "", failure(err, "the machine's seat can't be taken")
		}
		record, err := t.dir.Read(t.name)
		if err != nil {
			return "", failure(err, "the machine's record can't be read")
		}
		if _, living := t.dir.Living(record); living {
			return t.adopt(record)
		}
		if err := registry.Pause(ctx); err != nil {
			return "", failure(err, "the machine's process does not come up")
		}
	}
}

// adopt returns the process on record if it is like the one that was asked for.
func (t *target) adopt(r *registry.Record) (instance string, err error) {
	var made Spec
	if err := json.Unmarshal(r.Spec, &made); err != nil {
		return "", failure(err, "the machine's record can't be read")
	}
	if made != t.spec {
		return "", codes.Newf(codes.AlreadyExists, "a process of this name runs version %q with boot delay %q, not version %q with boot delay %q",
			made.Version, made.BootDelay, t.spec.Version, t.spec.BootDelay)
	}
	return r.Instance, nil
}

// start records a new incarnation and starts it. An earlier process of this machine that has not
// taken the seat yet ends once it reads the record. So does this one if the call starts it and dies
// here.
func (d *Driver) start(ctx context.Context, t *target, seat *registry.Seat, userData []byte) (instance string, err error) {
	defer seat.Release()
	boot, err := t.spec.boot()
	if err != nil {
		return "", failure(err, "the boot delay can't be read")
	}
	instance, err = newInstance()
	if err != nil {
		return "", failure(err, "there is no randomness for a new instance")
	}
	if err := seat.Write(&registry.Record{Machine: t.name, Instance: instance, Spec: t.spec.Encode()}); err != nil {
		return "", failure(err, "the machine's record can't be written")
	}
	seat.Release()
	return instance, d.options.Host.start(ctx, agent.Order{
		Machine: t.name, Instance: instance, ProviderID: ProviderID(t.spec.Cluster, t.name, instance),
		Registry: t.dir.Path(), Boot: boot,
	}, userData)
}

func newInstance() (string, error) {
	var bits [6]byte
	if _, err := rand.Read(bits[:]); err != nil {
		return "", err
	}
	return hex.EncodeToString(bits[:]), nil
}

// DeleteMachine implements driver.Driver.
func (d *Driver) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	if _, err := os.Stat(t.dir.Path()); t.elsewhere || errors.Is(err, os.ErrNotExist) {
		return &driver.DeleteMachineResponse{}, nil
	}
	guard, err := t.dir.Guard(ctx, t.name)
	if err != nil {
		return nil, failure(err, "another call for this machine does not end")
	}
	defer guard.Release()
	record, err := t.dir.Read(t.name)
	switch {
	case err != nil:
		return nil, failure(err, "the machine's record can't be read")
	case record == nil:
		err = guard.Remove()
	case t.instance == "" || t.instance == record.Instance:
		err = errors.Join(d.end(ctx, t, record), guard.Remove())
	}
	if err != nil {
		return nil, failure(err, "the machine's process did not end")
	}
	return &driver.DeleteMachineResponse{}, nil
}

// end tells the process on record to end, kills it if it does not, and removes the record once the
// seat is free.
func (d *Driver) end(ctx context.Context, t *target, r *registry.Record) error {
	next, at := syscall.SIGTERM, time.Now()
	for {
		seat, err := t.dir.TakeSeat(t.name)
		if err == nil {
			defer seat.Release()
			if err := d.options.Host.await(ctx, r.Instance); err != nil {
				return err
			}
			return seat.Clear()
		}
		if !errors.Is(err, registry.ErrHeld) {
			return err
		}
		if who, living := t.dir.Living(r); living && !time.Now().Before(at) {
			_ = who.ID.Signal(next) // gone in the last moment, or retried later
			next, at = syscall.SIGKILL, time.Now().Add(d.options.Grace)
		}
		if err := registry.Pause(ctx); err != nil {
			return err
		}
	}
}

// GetMachineStatus implements driver.Driver.
func (d *Driver) GetMachineStatus(ctx context.Context, q *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	t, err := d.target(q.Machine, q.Class)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(err, "the machine was not looked up")
	}
	if t.elsewhere {
		return nil, codes.New(codes.NotFound, "the provider ID is none of cluster "+t.spec.Cluster)
	}
	record, err := t.dir.Read(t.name)
	if err != nil {
		return nil, failure(err, "the machine's record can't be read")
	}
	_, living := t.dir.Living(record)
	if !living || t.instance != "" && t.instance != record.Instance {
		return nil, codes.New(codes.NotFound, "no process of this machine is running")
	}
	return &driver.GetMachineStatusResponse{
		ProviderID: ProviderID(t.spec.Cluster, t.name, record.Instance), NodeName: t.name, Addresses: addresses(t.name),
	}, nil
}

// ListMachines implements driver.Driver.
func (d *Driver) ListMachines(ctx context.Context, q *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	spec, err := SpecOf(q.Class)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, failure(err, "the machines were not listed")
	}
	dir := d.dir(spec)
	records, err := dir.List()
	if err != nil {
		return nil, failure(err, "the records can't be read")
	}
	machines := make(map[string]string, len(records))
	for _, r := range records {
		if _, living := dir.Living(r); living {
			machines[ProviderID(spec.Cluster, r.Machine, r.Instance)] = r.Machine
		}
	}
	return &driver.ListMachinesResponse{Machines: machines}, nil
}

func userData(s *machine.Secret) []byte {
	if s == nil {
		return nil
	}
	return s.Data[machine.UserData]
}

func addresses(name string) []machine.Address {
	return []machine.Address{{Type: "Hostname", Value: name}}
}

// failure returns the error of a call: its context's code if that has ended it, else UNAVAILABLE,
// which is retried.
func failure(err error, message string) error {
	code := codes.Of(err)
	if code == codes.Unknown {
		code = codes.Unavailable
	}
	return codes.Wrap(code, err, message)
}
