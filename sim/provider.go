package sim

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/object"
)

// step takes one call to the driver through what may happen to it.
func (p *process) step(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
	w := p.w
	if p.dead {
		return errDead // no caller is alive
	}
	w.clock.pause(w.o.Faults.CallTime/2 + w.upTo(w.o.Faults.CallTime/2))
	if p.dead {
		if w.happens(w.o.Faults.Late) {
			w.late(ctx, s, next)
		}
		return errDead
	}
	p.calls++
	w.steps++
	call, _ := s.Method.(codes.Call)
	w.driverCalls[call]++
	outcome := p.outcome()
	switch outcome {
	case killedLate:
		w.late(ctx, s, next)
		fallthrough
	case killedBefore:
		p.kill()
		return errDead
	}
	w.emit(called{p, s})
	if err := w.refusal(s); err != nil {
		w.emit(answered{p, s, err})
		return err
	}
	err := w.provide(ctx, next)
	if outcome == killedAfter {
		p.kill()
		return errDead
	}
	if err == nil && w.happens(w.o.Faults.LostCall) {
		w.count(CallAnswerLost)
		err = codes.New(codes.DeadlineExceeded, "the answer was lost")
	}
	w.emit(answered{p, s, err})
	w.clock.pause(w.latency())
	if p.dead {
		return errDead
	}
	return err
}

// provide carries a call out.
func (w *World) provide(ctx context.Context, next func(context.Context) error) error {
	err := next(ctx)
	w.changed()
	w.acting = true
	w.lookAtVMs()
	w.acting = false
	w.check()
	return err
}

// late carries out a call whose caller has died. What it creates may come when
// the machine is gone: that is no fault, and the VM has to be collected.
func (w *World) late(ctx context.Context, s driver.CallInfo, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	w.clock.after(w.upTo(w.o.Faults.LateBy), func() {
		w.count(CallLate)
		if s.Method == codes.CreateMachine {
			w.facts.late[s.Object.Name] = true
		}
		if s.Method == codes.UpdateMachine {
			w.facts.lateTags[s.Object.Name] = true
		}
		_ = w.provide(ctx, next) // no caller gets the answer
	})
}

// collected is a driver that checks which VMs are deleted as orphans. The machine of such a call is
// made up, and has no UID.
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
		c.w.emit(vmsCollected{before})
	}
	return gone, err
}

// ListMachines implements driver.Driver. VMs that were made just now are missing.
func (c collected) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	got, err := c.Driver.ListMachines(ctx, req)
	if err != nil || c.w.o.Faults.Eventually == 0 {
		return got, err
	}
	seen := make(map[string]string, len(got.Machines))
	for id, name := range got.Machines {
		if c.w.clock.now.Sub(c.w.made[id]) < c.w.o.Faults.Eventually {
			c.w.count(ListLagged)
			continue
		}
		seen[id] = name
	}
	return &driver.ListMachinesResponse{Machines: seen}, nil
}

// AddOrphanVM makes an orphan VM in the cluster of the fleet, under the name of some machine. It
// returns the VM's ID.
func (w *World) AddOrphanVM(name string) string {
	id := w.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: "small", Initialized: true})
	w.facts.orphanVMs[id] = true
	w.changed()
	w.lookAtVMs()
	w.check()
	return id
}

// OrphanVMs returns how many of the VMs that AddOrphanVM made are left.
func (w *World) OrphanVMs() (n int) {
	for _, vm := range w.provider.VMs() {
		if w.facts.orphanVMs[vm.ID] {
			n++
		}
	}
	return n
}

// refusal is an error instead of the call; nil: it is carried out.
func (w *World) refusal(s driver.CallInfo) error {
	call, _ := s.Method.(codes.Call)
	if w.happens(w.o.Faults.Call) {
		w.count(CallFailed)
		all := w.o.Faults.Codes
		if all == nil {
			all = commonCodes
		}
		code := all[w.chance(len(all))]
		if lie(call, code) {
			code = codes.Unavailable
		}
		w.refusals[Refusal{call, code}]++
		return codes.New(code, "a fault of the simulated provider")
	}
	full := w.o.Faults.Capacity > 0 && w.provider.Count() >= w.o.Faults.Capacity
	if call == codes.CreateMachine && (full || w.isDark(w.sizeOf(s.Class.Name))) {
		w.count(CapacityOut)
		return codes.New(codes.ResourceExhausted, "the simulated provider has no more capacity")
	}
	if call == codes.GetMachineStatus && w.clock.now.Sub(w.born[s.Object.Name]) < w.o.Faults.Eventually {
		w.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// commonCodes are those that a healthy provider may answer now and then.
var commonCodes = []codes.Code{
	codes.Canceled, codes.Unknown, codes.DeadlineExceeded, codes.Aborted, codes.Internal, codes.Unavailable,
	codes.ResourceExhausted, codes.PermissionDenied, codes.Unauthenticated,
}

// AllCodes returns every code but OK.
func AllCodes() (all []codes.Code) {
	for code := codes.Canceled; code <= codes.Uninitialized; code++ {
		all = append(all, code)
	}
	return all
}

// vanish removes a VM one day, with probability Faults.LostVM.
func (w *World) vanish(id string) {
	if !w.happens(w.o.Faults.LostVM) {
		return
	}
	w.clock.after(w.upTo(time.Hour), func() {
		if w.faultsStopped || !w.provider.Remove(id) {
			return
		}
		w.count(VMLost)
		w.changed()
		w.lookAtVMs()
		w.check()
	})
}

// lookAtVMs boots new VMs, and makes the nodes of VMs that are gone silent.
func (w *World) lookAtVMs() {
	alive := map[string]string{}
	for _, vm := range w.provider.VMs() {
		alive[vm.ID] = vm.Name
		if _, known := w.vms[vm.ID]; !known {
			w.vms[vm.ID] = vm.Name
			w.born[vm.Name], w.made[vm.ID], w.zoneOf[vm.ID] = w.clock.now, w.clock.now, vm.Size
			w.boot(vm.Name, vm.ID)
			w.vanish(vm.ID)
		}
	}
	for _, id := range slices.Sorted(maps.Keys(w.vms)) { // sorted, so that chance decides the same way each time
		name := w.vms[id]
		if _, still := alive[id]; !still && !w.gone[id] {
			w.gone[id] = true
			if n, err := w.nodes.Get(context.Background(), object.Key{Name: name}); err == nil && n.ProviderID == id {
				w.emit(vmGone{name, w.apps.running(name)})
				w.apps.lost(name)
			}
			w.clock.after(30*time.Second, func() { w.silence(name, id) })
		}
	}
}

// driver returns the simulated provider's own driver.
func (w *World) driver() driver.Driver {
	if w.o.UpdatableTags {
		return w.provider
	}
	return silent{w.provider}
}

// silent is a driver that declares that it can't change VMs.
type silent struct{ *drivertest.Memory }

// UpdatableFields implements driver.FieldUpdater.
func (silent) UpdatableFields() []string { return nil }

// TagClass makes a class equal to another, or to itself, except for its tags. The simulated
// provider can change tags on existing VMs if Options say so.
func (w *World) TagClass(name, like string, tags map[string]string) error {
	ctx := context.Background()
	class, err := w.classes.Get(ctx, object.Key{Namespace: Namespace, Name: like})
	if err != nil {
		return err
	}
	var spec drivertest.MemorySpec
	if err := json.Unmarshal(class.ProviderSpec, &spec); err != nil {
		return err
	}
	class = class.Clone()
	spec.Tags = tags
	class.ProviderSpec = spec.Encode()
	if name == like {
		_, err = w.classes.Update(ctx, class)
		return err
	}
	class.Meta = object.Meta{Key: object.Key{Namespace: Namespace, Name: name}}
	_, err = w.classes.Create(ctx, class)
	return err
}

// Refusal is a call that the provider refused with a code.
type Refusal struct {
	Call codes.Call
	Code codes.Code
}

// These tell of calls to the provider, and of VMs.
type (
	// called: a process calls the driver. answered: the call has ended, with err or without.
	called struct {
		by   *process
		call driver.CallInfo
	}
	answered struct {
		by   *process
		call driver.CallInfo
		err  error
	}
	// vmsCollected: orphans were deleted; before are the VMs that there were.
	vmsCollected struct{ before []drivertest.MemoryVM }
	// vmGone: the VM of a node is gone, and so many pods ran on it.
	vmGone struct {
		node    string
		running int
	}
)
