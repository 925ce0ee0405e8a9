package drivertest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
)

// The calls of a trial. They go to the driver under test by way of watch.

func (r *trial) create(ctx context.Context, m *machine.Machine) (*driver.CreateMachineResponse, error) {
	return r.createOf(ctx, m, r.setup.Class)
}

func (r *trial) createOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.CreateMachineResponse, error) {
	return watch(ctx, r, codes.CreateMachine, r.setup.Driver.CreateMachine,
		func() *driver.CreateMachineRequest {
			return &driver.CreateMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) initialize(ctx context.Context, m *machine.Machine) (*driver.InitializeMachineResponse, error) {
	return r.initializeOf(ctx, m, r.setup.Class)
}

func (r *trial) initializeOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.InitializeMachineResponse, error) {
	return watch(ctx, r, codes.InitializeMachine, r.setup.Driver.InitializeMachine,
		func() *driver.InitializeMachineRequest {
			return &driver.InitializeMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) delete(ctx context.Context, m *machine.Machine) (*driver.DeleteMachineResponse, error) {
	return r.deleteOf(ctx, m, r.setup.Class)
}

func (r *trial) deleteOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.DeleteMachineResponse, error) {
	return watch(ctx, r, codes.DeleteMachine, r.setup.Driver.DeleteMachine,
		func() *driver.DeleteMachineRequest {
			return &driver.DeleteMachineRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) status(ctx context.Context, m *machine.Machine) (*driver.GetMachineStatusResponse, error) {
	return r.statusOf(ctx, m, r.setup.Class)
}

func (r *trial) statusOf(
	ctx context.Context, m *machine.Machine, c *machine.Class,
) (*driver.GetMachineStatusResponse, error) {
	return watch(ctx, r, codes.GetMachineStatus, r.setup.Driver.GetMachineStatus,
		func() *driver.GetMachineStatusRequest {
			return &driver.GetMachineStatusRequest{Machine: m.Clone(), Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) list(ctx context.Context, c *machine.Class) (*driver.ListMachinesResponse, error) {
	return watch(ctx, r, codes.ListMachines, r.setup.Driver.ListMachines,
		func() *driver.ListMachinesRequest {
			return &driver.ListMachinesRequest{Class: c.Clone(), Secret: r.secret()}
		})
}

func (r *trial) volumes(ctx context.Context, volumes []driver.Volume) (*driver.GetVolumeIDsResponse, error) {
	return watch(ctx, r, codes.GetVolumeIDs, r.setup.Driver.GetVolumeIDs,
		func() *driver.GetVolumeIDsRequest {
			q := &driver.GetVolumeIDsRequest{Volumes: slices.Clone(volumes)}
			for i := range q.Volumes {
				q.Volumes[i].Attributes = maps.Clone(q.Volumes[i].Attributes)
				q.Volumes[i].Spec = bytes.Clone(q.Volumes[i].Spec)
			}
			return q
		})
}

func (r *trial) update(
	ctx context.Context, m *machine.Machine, last, wanted []byte,
) (*driver.UpdateMachineResponse, error) {
	return watch(ctx, r, codes.UpdateMachine, r.setup.Driver.UpdateMachine,
		func() *driver.UpdateMachineRequest {
			return &driver.UpdateMachineRequest{
				Machine: m.Clone(), Class: r.setup.Class.Clone(), Secret: r.secret(),
				LastApplied: bytes.Clone(last), Wanted: bytes.Clone(wanted),
			}
		})
}

// migrate passes a request on as it is: its class is there to be changed.
func (r *trial) migrate(
	q *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return watch(r.ctx, r, codes.GenerateMachineClassForMigration, r.setup.Driver.GenerateMachineClassForMigration,
		func() *driver.GenerateMachineClassForMigrationRequest { return q })
}

func (r *trial) secret() *machine.Secret {
	if r.setup.Secret == nil {
		return nil
	}
	return r.setup.Secret.Clone()
}

// answer is how a call ended.
type answer[R any] struct {
	response *R
	err      error
	value    any // of a panic
	stack    []byte
}

// errStuck is the answer of calls that were given up.
var errStuck = errors.New("the driver is stuck")

// watch makes one call and looks at how the driver behaved in it. request
// makes the same request each time.
func watch[Q, R any](
	ctx context.Context, r *trial, method fmt.Stringer, call func(context.Context, *Q) (*R, error), request func() *Q,
) (*R, error) {
	r.Helper()
	if r.stuck.Load() {
		return nil, errStuck
	}
	ctx, cancel := context.WithTimeout(ctx, r.suite.Patience)
	defer cancel()
	given := request()
	ended := make(chan answer[R], 1)
	go func() {
		var a answer[R]
		defer func() {
			if a.value = recover(); a.value != nil {
				a.stack = debug.Stack()
				a.err = errors.New("the driver panicked")
			}
			ended <- a
		}()
		a.response, a.err = call(ctx, given)
	}()
	a, ok := await(ctx, ended, r.suite.Prompt)
	if !ok {
		r.stuck.Store(true)
		r.Errorf("%s did not return within %v after its context had ended; a call stops when its context does",
			method, r.suite.Prompt)
		return nil, errStuck
	}
	r.inspect(method, a.err, a.response != nil)
	if a.value != nil {
		r.Errorf("%s panicked: %v\n%s", method, a.value, a.stack)
	}
	if !reflect.DeepEqual(given, request()) {
		r.Errorf("%s changed its request; requests are shared and must be left as they are", method)
	}
	if a.response != nil {
		r.secrets.search(r, method.String()+"'s response", *a.response)
	}
	return a.response, a.err
}

// await waits for an answer, and for as long as prompt beyond the context's end.
func await[A any](ctx context.Context, ended <-chan A, prompt time.Duration) (a A, ok bool) {
	select {
	case a = <-ended:
		return a, true
	case <-ctx.Done():
	}
	select {
	case a = <-ended:
		return a, true
	case <-time.After(prompt):
		return a, false
	}
}

// responsive are the calls to which OK alone is no answer.
var responsive = []fmt.Stringer{
	codes.CreateMachine, codes.GetMachineStatus, codes.ListMachines, codes.GetVolumeIDs,
	machinepool.CreatePool, machinepool.GetPoolStatus,
}

// inspect looks at what any error must keep to.
func (r *trial) inspect(method fmt.Stringer, err error, response bool) {
	r.Helper()
	if err == nil {
		if !response && slices.Contains(responsive, method) {
			r.Errorf("%s answered OK and no response", method)
		}
		return
	}
	text := fmt.Sprint(err) // survives what an Error method may do
	r.secrets.search(r, method.String()+"'s error", text, codes.Message(err))
	var typed *codes.Error
	if errors.As(err, &typed) && (typed == nil || typed.Message == "" && typed.Cause == nil) || text == "" {
		r.Errorf("%s failed with %s and no message; say what a person can do about it", method, codes.Of(err))
	}
}
