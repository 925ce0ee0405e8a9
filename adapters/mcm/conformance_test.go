package mcm_test

import (
	"context"
	"sync"
	"testing"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// withFaults is a driver with the fault hook of its provider.
type withFaults struct {
	driver.Driver
	driver.FaultHook
}

// readingFirst calls GetMachineStatus before each create, one after the other, as the manager does.
type readingFirst struct {
	driver.Driver
	mu sync.Mutex
}

func (a *readingFirst) CreateMachine(ctx context.Context, q *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	s, err := a.GetMachineStatus(ctx, &driver.GetMachineStatusRequest{Machine: q.Machine, Class: q.Class, Secret: q.Secret})
	switch codes.Of(err) {
	case codes.OK, codes.Uninitialized:
		return &driver.CreateMachineResponse{ProviderID: s.ProviderID, NodeName: s.NodeName, Addresses: s.Addresses}, nil
	case codes.NotFound, codes.Unimplemented:
		return a.Driver.CreateMachine(ctx, q)
	default:
		return nil, err
	}
}

func memory() *drivertest.Memory {
	return drivertest.NewMemory(drivertest.MemoryOptions{Token: "a-token-of-some-length", NeedsInitialization: true})
}

func setup(d driver.Driver, hook driver.FaultHook, m *drivertest.Memory) drivertest.Setup {
	class := func(cluster, size string) *machine.Class {
		return m.Class(object.Key{Name: cluster + size}, drivertest.MemorySpec{Cluster: cluster, Size: size})
	}
	return drivertest.Setup{
		Driver: &withFaults{driver.Validate(d, driver.ValidateOptions{NodeNames: true}), hook},
		Class:  class("blue", "small"), Secret: m.Secret(object.Key{Name: "boot"}),
		OtherCluster: class("green", "small"), Invalid: class("blue", ""), NeedsInitialization: true, Count: m.Count,
		Volumes: map[string]driver.Volume{"v-1": {Name: "pv", Type: drivertest.MemoryVolumes, Handle: "v-1"}},
	}
}

// TestConformance: a provider that keeps the contract of drivers also keeps it through this package.
func TestConformance(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(*testing.T) drivertest.Setup {
		m := memory()
		s := setup(bridged(&cloud{Memory: m}), m, m)
		s.Again, s.PageSize = func() driver.Driver { return bridged(&cloud{Memory: m}) }, 3
		s.Different = m.Class(object.Key{Name: "large"}, drivertest.MemorySpec{Cluster: "blue", Size: "large"})
		return s
	}})
}

// TestConformanceOfDuplicating: a provider whose create is not idempotent keeps the contract, too, if
// GetMachineStatus is called first. Setup.Different is not set: a VM of another size would be adopted.
func TestConformanceOfDuplicating(t *testing.T) {
	drivertest.Run(t, drivertest.Suite{New: func(*testing.T) drivertest.Setup {
		m := memory()
		c := &duplicating{cloud: cloud{Memory: m}}
		return setup(&readingFirst{Driver: bridged(c)}, c, m)
	}})
}
