package driver_test

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// shelf is a provider of machines that stand on a shelf: a driver with the two required calls, and
// one more.
type shelf struct {
	driver.Unimplemented
	mu     sync.Mutex
	number int
	ids    map[string]string // by machine name
}

func (s *shelf) CreateMachine(
	_ context.Context, req *driver.CreateMachineRequest,
) (*driver.CreateMachineResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := req.Machine.Name
	if s.ids[name] == "" {
		s.number++
		s.ids[name] = fmt.Sprintf("shelf:///%d", s.number)
	}
	return &driver.CreateMachineResponse{ProviderID: s.ids[name], NodeName: name}, nil
}

func (s *shelf) DeleteMachine(
	_ context.Context, req *driver.DeleteMachineRequest,
) (*driver.DeleteMachineResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	want := req.Machine.Spec.ProviderID
	for name, id := range s.ids {
		if id == want || want == "" && name == req.Machine.Name {
			delete(s.ids, name)
		}
	}
	return &driver.DeleteMachineResponse{}, nil
}

func (s *shelf) ListMachines(
	context.Context, *driver.ListMachinesRequest,
) (*driver.ListMachinesResponse, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	machines := map[string]string{}
	for name, id := range s.ids {
		machines[id] = name
	}
	return &driver.ListMachinesResponse{Machines: machines}, nil
}

// This wraps a driver in interceptors, and makes two calls.
func Example() {
	limits := driver.Limits{
		Concurrency: 10,
		Interval:    50 * time.Millisecond,
		Burst:       5,
		Now:         time.Now,
		After:       time.After,
	}
	timeouts := driver.Timeouts{
		Default: time.Minute,
		By:      map[driver.Method]time.Duration{codes.CreateMachine: 10 * time.Minute},
	}
	d := driver.Intercept(&shelf{ids: map[string]string{}},
		driver.Limit(limits), driver.Deadline(timeouts), driver.Recover(nil))
	d = driver.Validate(d, driver.ValidateOptions{NodeNames: true})
	d = driver.Intercept(d, driver.Hook(time.Now, func(_ context.Context, c driver.Call) {
		fmt.Println(c.Method, c.Object, c.Code)
	}))

	m := &machine.Machine{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "m-1"}}}
	class := &machine.Class{Meta: object.Meta{Key: object.Key{Namespace: "fleet", Name: "small"}}}
	made, err := d.CreateMachine(context.Background(), &driver.CreateMachineRequest{Machine: m, Class: class})
	fmt.Println(made.ProviderID, err)

	_, err = d.GetMachineStatus(context.Background(), &driver.GetMachineStatusRequest{Machine: m, Class: class})
	fmt.Println(codes.Message(err))

	below, ok := driver.As[*shelf](d)
	fmt.Println(below.number, ok)
	// Output:
	// CreateMachine fleet/m-1 OK
	// shelf:///1 <nil>
	// GetMachineStatus fleet/m-1 Unimplemented
	// this driver has no GetMachineStatus
	// 1 true
}

// This interceptor of your own tries reading calls twice.
func ExampleIntercept() {
	patient := func(ctx context.Context, call driver.CallInfo, next func(context.Context) error) error {
		err := next(ctx)
		if call.ReadOnly && codes.Of(err) == codes.Unavailable {
			fmt.Println(call.Method, "again:", codes.Message(err))
			return next(ctx)
		}
		return err
	}
	d := driver.Intercept(&busy{}, patient)
	_, err := d.ListMachines(context.Background(), &driver.ListMachinesRequest{Class: &machine.Class{}})
	fmt.Println(err)
	// Output:
	// ListMachines again: the provider is busy
	// <nil>
}

// busy fails its first list.
type busy struct {
	driver.Unimplemented
	listed bool
}

func (b *busy) ListMachines(context.Context, *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	if !b.listed {
		b.listed = true
		return nil, codes.New(codes.Unavailable, "the provider is busy")
	}
	return &driver.ListMachinesResponse{}, nil
}
