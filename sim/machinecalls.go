package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
)

// machineCalls are the calls to the provider about machines.
type machineCalls struct {
	*ground
	*vms
	catalog     *catalog
	driverCalls map[codes.Call]int
	refusals    map[Refusal]int
	answered    []time.Time // calls of the last minute, if they are limited
}

func newMachineCalls(v *vms, c *catalog) *machineCalls {
	return &machineCalls{ground: v.ground, vms: v, catalog: c, driverCalls: map[codes.Call]int{}, refusals: map[Refusal]int{}}
}

// vmsCollected: orphans were deleted; gone are their VMs.
type vmsCollected struct{ gone []drivertest.MemoryVM }

func (c *machineCalls) arrived(s driver.CallInfo) {
	call, _ := s.Method.(codes.Call)
	c.driverCalls[call]++
}

func (c *machineCalls) provide(ctx context.Context, next func(context.Context) error) error {
	err := next(ctx)
	c.acting = true
	c.lookAtVMs()
	c.acting = false
	c.check()
	return err
}

// late carries out a call whose caller has died. What it creates may come when
// the machine is gone: that is no fault, and the VM has to be collected. A
// deletion may come when a node with volumes has joined since.
func (c *machineCalls) late(ctx context.Context, s driver.CallInfo, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	c.After(c.upTo(c.hazards.LateBy), func() {
		c.count(CallLate)
		if s.Method == codes.CreateMachine {
			c.ground.late[s.Object.Name] = true
		}
		if s.Method == codes.UpdateMachine {
			c.lateTags[s.Object.Name] = true
		}
		c.belated = true
		_ = c.provide(ctx, next) // no caller gets the answer
		c.belated = false
	})
}

func (c *machineCalls) refusal(s driver.CallInfo) error {
	call, _ := s.Method.(codes.Call)
	if c.throttled() {
		return codes.New([]codes.Code{codes.ResourceExhausted, codes.Unavailable}[c.chance(2)], "too many calls to the simulated provider in a minute")
	}
	if code := c.refused(func(code codes.Code) bool { return liesAboutVM(call, code) }); code != codes.OK {
		c.refusals[Refusal{call, code}]++
		switch {
		case call != codes.GetMachineStatus:
		case code == codes.NotFound, code == codes.OutOfRange, code == codes.Unimplemented, code == codes.Uninitialized: // and no node
			c.misled[s.Object.Name] = true
		}
		return codes.New(code, "a fault of the simulated provider")
	}
	full := c.hazards.Capacity > 0 && c.provider.Count() >= c.hazards.Capacity
	if call == codes.CreateMachine && (full || c.isDark(c.catalog.sizeOf(s.Class.Name))) {
		c.count(CapacityOut)
		return codes.New(codes.ResourceExhausted, "the simulated provider has no more capacity")
	}
	if call == codes.GetMachineStatus && c.Now().Sub(c.born[s.Object.Name]) < c.hazards.Eventually {
		c.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// fails reports whether the provider fails now, regardless of the call.
func (c *machineCalls) fails() bool {
	if c.throttled() {
		return true
	}
	if !c.happens(c.hazards.Call) {
		return false
	}
	c.count(CallFailed)
	return true
}

// throttled reports whether the provider answers no more calls in this minute.
func (c *machineCalls) throttled() bool {
	limit := c.hazards.CallsPerMinute
	if limit <= 0 || c.faultsStopped {
		return false
	}
	c.answered = slices.DeleteFunc(c.answered, func(at time.Time) bool { return c.Now().Sub(at) >= time.Minute })
	if len(c.answered) < limit {
		c.answered = append(c.answered, c.Now())
		return false
	}
	c.count(CallThrottled)
	return true
}

// liesAboutVM reports whether a code would make the manager believe wrongly that a VM is gone.
func liesAboutVM(call codes.Call, code codes.Code) bool {
	return code == codes.NotFound && (call == codes.DeleteMachine || call == codes.UpdateMachine)
}

// watchedMachines is a driver that checks which VMs are deleted as orphans. The machine of such a
// call is made up, and has no UID.
type watchedMachines struct {
	driver.Driver
	vms *vms
}

// Unwrap returns the driver that is watched.
func (c watchedMachines) Unwrap() driver.Driver { return c.Driver }

// DeleteMachine implements driver.Driver.
func (c watchedMachines) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if req.Machine.UID != "" {
		return c.Driver.DeleteMachine(ctx, req)
	}
	if c.vms.hazards.Spelling > 0 {
		for _, vm := range c.vms.provider.VMs() {
			if req.Machine.Spec.ProviderID == spelled(vm.ID) {
				req.Machine.Spec.ProviderID = vm.ID
			}
		}
	}
	before := c.vms.provider.VMs()
	out, err := c.Driver.DeleteMachine(ctx, req)
	left := c.vms.provider.VMs()
	gone := slices.DeleteFunc(before, func(vm drivertest.MemoryVM) bool {
		return slices.ContainsFunc(left, func(other drivertest.MemoryVM) bool { return other.ID == vm.ID })
	})
	c.vms.collected += len(gone)
	c.vms.emit(vmsCollected{gone})
	return out, err
}

// ListMachines implements driver.Driver. VMs that were made just now are missing.
func (c watchedMachines) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	got, err := c.Driver.ListMachines(ctx, req)
	if err != nil || c.vms.hazards.Eventually == 0 && c.vms.hazards.Spelling == 0 {
		return got, err
	}
	spell := strings.Clone
	if c.vms.happens(c.vms.hazards.Spelling) {
		c.vms.count(ListSpelled)
		spell = spelled
	}
	seen := make(map[string]string, len(got.Machines))
	for id, name := range got.Machines {
		if c.vms.Now().Sub(c.vms.made[id]) < c.vms.hazards.Eventually {
			c.vms.count(ListLagged)
			continue
		}
		seen[spell(id)] = spell(name)
	}
	return &driver.ListMachinesResponse{Machines: seen}, nil
}

// withoutUpdates is a driver that declares that it can't change VMs.
type withoutUpdates struct{ *drivertest.Memory }

// UpdatableFields implements driver.FieldUpdater.
func (withoutUpdates) UpdatableFields() []string { return nil }
