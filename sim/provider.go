package sim

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
)

// step takes one call to the driver through what may befall it.
func (p *process) step(ctx context.Context, s driver.Subject, next func(context.Context) error) error {
	w := p.w
	w.clock.pause(w.o.Faults.CallTime/2 + w.upTo(w.o.Faults.CallTime/2))
	if p.dead {
		if w.happens(w.o.Faults.Late) {
			w.clock.after(w.upTo(w.o.Faults.LateBy), func() { w.late(context.WithoutCancel(ctx), s, next) })
		}
		return errDead
	}
	p.calls++
	w.driverCalls[s.Method]++
	fate := p.fate()
	if fate == killedBefore {
		p.kill()
		return errDead
	}
	if err := w.refusal(s); err != nil {
		return err
	}
	err := w.provide(ctx, next)
	if fate == killedAfter {
		p.kill()
		return errDead
	}
	if err == nil && w.happens(w.o.Faults.LostCall) {
		w.count("answer of the provider lost")
		err = codes.New(codes.DeadlineExceeded, "the answer was lost")
	}
	w.clock.pause(w.latency())
	if p.dead {
		return errDead
	}
	return err
}

// provide carries a call out.
func (w *World) provide(ctx context.Context, next func(context.Context) error) error {
	err := next(ctx)
	w.ledger.provided = true
	w.lookAtVMs()
	w.check()
	return err
}

// late carries out a call whose caller has died. What it creates may come when
// the machine is gone: that is nobody's fault, and somebody has to collect it.
func (w *World) late(ctx context.Context, s driver.Subject, next func(context.Context) error) {
	w.count("call to the provider came late")
	if s.Method == codes.CreateMachine {
		w.ledger.late[s.Machine.Name] = true
	}
	_ = w.provide(ctx, next) // nobody hears the answer
}

// collected is a driver that looks at which VMs are deleted for being nobody's:
// the machine of such a call is made up, and has no UID.
type collected struct {
	driver.Driver
	w *World
}

// Unwrap returns the driver that is watched.
func (c collected) Unwrap() driver.Driver { return c.Driver }

// DeleteMachine implements driver.Driver.
func (c collected) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	before := c.w.provider.VMs()
	gone, err := c.Driver.DeleteMachine(ctx, req)
	if req.Machine.UID == "" {
		c.w.checkCollected(before)
	}
	return gone, err
}

// AddStray makes a VM that nobody asked for, in the cluster of the fleet, under
// the name of some machine. It returns the VM's ID.
func (w *World) AddStray(name string) string {
	id := w.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: "small", Initialized: true})
	w.ledger.strays[id] = true
	w.ledger.provided = true
	w.lookAtVMs()
	w.check()
	return id
}

// Strays is how many of the VMs that AddStray made are left.
func (w *World) Strays() (n int) {
	for _, vm := range w.provider.VMs() {
		if w.ledger.strays[vm.ID] {
			n++
		}
	}
	return n
}

// refusal is an error instead of the call; nil: it is carried out.
func (w *World) refusal(s driver.Subject) error {
	if w.happens(w.o.Faults.Call) {
		w.count("call to the provider failed")
		code := callFaults[w.chance(len(callFaults))]
		return codes.New(code, "a fault of the simulated provider")
	}
	if s.Method == codes.CreateMachine && w.o.Faults.Capacity > 0 && w.provider.Count() >= w.o.Faults.Capacity {
		w.count("no capacity")
		return codes.New(codes.ResourceExhausted, "the simulated provider has no more capacity")
	}
	if s.Method == codes.GetMachineStatus && w.clock.now.Sub(w.born[s.Machine.Name]) < w.o.Faults.Eventually {
		w.count("status not consistent yet")
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// callFaults are the codes that any call may answer at any time.
var callFaults = []codes.Code{
	codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unavailable,
	codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
}

// lookAtVMs has new VMs boot, and the nodes of VMs that are gone fall silent.
func (w *World) lookAtVMs() {
	alive := map[string]string{}
	for _, vm := range w.provider.VMs() {
		alive[vm.ID] = vm.Name
		if _, known := w.vms[vm.ID]; !known {
			w.vms[vm.ID] = vm.Name
			w.born[vm.Name] = w.clock.now
			w.boot(vm.Name, vm.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) { // sorted, so that chance falls the same way each time
		name := w.vms[id]
		if _, still := alive[id]; !still && !w.gone[id] {
			w.gone[id] = true
			w.checkDrained(name, w.apps.lost(name))
			w.clock.after(30*time.Second, func() { w.silence(name, id) })
		}
	}
}
