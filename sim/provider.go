package sim

import (
	"context"
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/clock"
	"github.com/millwright-go/millwright/sim/preview"
)

// service carries out the calls to the simulated provider about machines, or those about groups.
type service interface {
	// arrived counts a call.
	arrived(s driver.CallInfo)
	// refusal returns an error if the call is not carried out.
	refusal(s driver.CallInfo) error
	// provide carries a call out. late does so some time after its caller has died.
	provide(ctx context.Context, next func(context.Context) error) error
	late(ctx context.Context, s driver.CallInfo, next func(context.Context) error)
}

// These are the events of a call to the provider.
type (
	// callBegun: a process has begun a call, which is on its way.
	callBegun struct{ call driver.CallInfo }
	// callArrived: the call has reached the driver.
	callArrived struct {
		by   *process
		call driver.CallInfo
	}
	// callAnswered: the call has ended, with err or without.
	callAnswered struct {
		by   *process
		call driver.CallInfo
		at   time.Time // when the wait until the next attempt begins
		err  error
	}
)

// interceptor makes each call to a driver, and simulates what may happen to it.
func (p *process) interceptor(to service) driver.Interceptor {
	return func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		if p.dead {
			return errDead // no caller is alive
		}
		defer p.noteUnderway(s)()
		p.emit(callBegun{s})
		p.clock.Pause(p.hazards.CallTime/2 + p.upTo(p.hazards.CallTime/2))
		if p.dead {
			if p.happens(p.hazards.Late) {
				to.late(ctx, s, next)
			}
			return errDead
		}
		p.calls++
		p.steps++
		to.arrived(s)
		outcome := p.outcome()
		switch outcome {
		case killedLate:
			to.late(ctx, s, next)
			fallthrough
		case killedBefore:
			p.kill()
			return errDead
		}
		p.emit(callArrived{p, s})
		if err := to.refusal(s); err != nil {
			p.emit(callAnswered{p, s, p.Now(), err})
			return err
		}
		early := p.hang(0.5)
		if p.dead {
			if p.happens(p.hazards.Late) {
				to.late(ctx, s, next)
			}
			return errDead
		}
		err := to.provide(ctx, next)
		if outcome == killedAfter {
			p.kill()
			return errDead
		}
		if err == nil && p.happens(p.hazards.LostCall) {
			p.count(CallAnswerLost)
			err = codes.New(codes.DeadlineExceeded, "the answer was lost")
		}
		p.emit(callAnswered{p, s, p.Now(), err})
		p.clock.Pause(p.latency())
		if !early {
			p.hang(1)
		}
		if p.dead {
			return errDead
		}
		return err
	}
}

// noteUnderway notes that a call has begun, and returns a function that notes its end. It checks that
// only one call about an object is under way at a time (P52).
func (p *process) noteUnderway(s driver.CallInfo) (ended func()) {
	if s.Object == (object.Key{}) {
		return func() {}
	}
	about := callTarget{s.Kind, s.Object}
	if before, busy := p.underway[about]; busy {
		p.violate("P52", "%s is called for %s %s while %s is under way", s.Method, s.Kind, s.Object, before)
	}
	p.underway[about] = s.Method
	return func() { delete(p.underway, about) }
}

// hang makes a call, by chance, take longer than its caller waits, and reports whether it did. It happens
// with the given share of the probability Faults.Hang.
func (p *process) hang(share float64) bool {
	if !p.happens(p.hazards.Hang * share) {
		return false
	}
	p.count(CallHung)
	p.clock.Pause(p.patience + p.upTo(p.hazards.HangFor))
	return true
}

// await implements manager.Runtime.Await: it reports whether do ended in time. If nothing can hang, it
// just calls do. A driver of Options.Driver may always take too long.
func (p *process) await(_ context.Context, limit, grace time.Duration, do func()) bool {
	p.limit, p.patience = max(limit, 0), limit+grace
	if p.hazards.Hang <= 0 && (!p.userDriver || limit <= 0) {
		do()
		return true
	}
	return p.clock.Await(p.patience, do)
}

// commonCodes are the codes of errors that a healthy provider may answer now and then.
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

// refused returns the code with which a call is refused, or OK. lie reports whether a code would wrongly
// tell the manager that something is gone; then Unavailable is used.
func (g *base) refused(lie func(codes.Code) bool) codes.Code {
	if !g.happens(g.hazards.Call) {
		return codes.OK
	}
	g.count(CallFailed)
	all := g.hazards.Codes
	if all == nil {
		all = commonCodes
	}
	code := all[g.chance(len(all))]
	if lie(code) {
		return codes.Unavailable
	}
	return code
}

// Provider is the simulated provider, and the driver for it. A driver of Options.Driver may wrap it. Its
// calls fail as often as Faults say, see World.Request. Its VMs join the cluster.
type Provider struct {
	*drivertest.Memory
	calls driver.Driver // Memory with the faults of the world
}

func newProvider(d *userDriverCalls, c *machineCalls) *Provider {
	memory := c.vms.provider
	through := func(ctx context.Context, s driver.CallInfo, next func(context.Context) error) error {
		return d.request(ctx, &request{
			what:     s.Method.String(),
			carryOut: func() error { return c.provide(ctx, next) },
			refusal:  func() error { return c.refusal(s) },
			lost:     func() error { return codes.New(codes.DeadlineExceeded, "the answer was lost") },
			late:     func() { c.late(ctx, s, next) },
		})
	}
	return &Provider{memory, driver.Intercept(watchedMachines{memory, c.vms}, through)}
}

// CreateMachine implements driver.Driver.
func (p *Provider) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	return p.calls.CreateMachine(ctx, req)
}

// InitializeMachine implements driver.Driver.
func (p *Provider) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	return p.calls.InitializeMachine(ctx, req)
}

// DeleteMachine implements driver.Driver.
func (p *Provider) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	return p.calls.DeleteMachine(ctx, req)
}

// GetMachineStatus implements driver.Driver.
func (p *Provider) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	return p.calls.GetMachineStatus(ctx, req)
}

// ListMachines implements driver.Driver.
func (p *Provider) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	return p.calls.ListMachines(ctx, req)
}

// GetVolumeIDs implements driver.Driver.
func (p *Provider) GetVolumeIDs(ctx context.Context, req *driver.GetVolumeIDsRequest) (*driver.GetVolumeIDsResponse, error) {
	return p.calls.GetVolumeIDs(ctx, req)
}

// GenerateMachineClassForMigration implements driver.Driver.
func (p *Provider) GenerateMachineClassForMigration(
	ctx context.Context, req *driver.GenerateMachineClassForMigrationRequest,
) (*driver.GenerateMachineClassForMigrationResponse, error) {
	return p.calls.GenerateMachineClassForMigration(ctx, req)
}

// UpdateMachine implements driver.Driver.
func (p *Provider) UpdateMachine(ctx context.Context, req *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error) {
	return p.calls.UpdateMachine(ctx, req)
}

// previewDriver is the driver of a preview. Its calls take the durations of the model. It creates VMs
// of any class, and ignores provider specs.
type previewDriver struct {
	*drivertest.Memory
	clock *clock.Clock
	model *preview.Model
	class *machine.Class // the class that the simulated provider gets in all requests
}

func newPreviewDriver(w *World, m *preview.Model) previewDriver {
	return previewDriver{w.provider, w.clock, m, w.provider.Class(object.Key{Name: "any"}, drivertest.MemorySpec{Cluster: clusterName, Size: "any"})}
}

// UpdatableFields implements driver.FieldUpdater.
func (d previewDriver) UpdatableFields() []string { return d.model.Updatable }

// CreateMachine implements driver.Driver.
func (d previewDriver) CreateMachine(ctx context.Context, req *driver.CreateMachineRequest) (*driver.CreateMachineResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.CreateMachine(ctx, &r)
}

// InitializeMachine implements driver.Driver.
func (d previewDriver) InitializeMachine(ctx context.Context, req *driver.InitializeMachineRequest) (*driver.InitializeMachineResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.InitializeMachine(ctx, &r)
}

// DeleteMachine implements driver.Driver.
func (d previewDriver) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	r := *req
	r.Class = d.class
	d.clock.Pause(d.model.Delete)
	return d.Memory.DeleteMachine(ctx, &r)
}

// GetMachineStatus implements driver.Driver.
func (d previewDriver) GetMachineStatus(ctx context.Context, req *driver.GetMachineStatusRequest) (*driver.GetMachineStatusResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.GetMachineStatus(ctx, &r)
}

// ListMachines implements driver.Driver.
func (d previewDriver) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	r := *req
	r.Class = d.class
	return d.Memory.ListMachines(ctx, &r)
}

// UpdateMachine implements driver.Driver.
func (d previewDriver) UpdateMachine(context.Context, *driver.UpdateMachineRequest) (*driver.UpdateMachineResponse, error) {
	d.clock.Pause(d.model.UpdateVM)
	return &driver.UpdateMachineResponse{}, nil
}

// Sleep lets time pass in the world: give it to a driver that waits in place of time.Sleep. ctx is the
// context of the driver's call, or one derived from it. If ctx ends, Sleep returns its error at once.
// Outside of a call of the driver it does not wait.
func (w *World) Sleep(ctx context.Context, d time.Duration) error {
	return w.userDriverCalls.sleep(ctx, d)
}

// Request makes one request of a driver to its provider: do carries it out. As often as Faults say, it
// takes time, fails before it is carried out, loses its answer, or hangs until ctx ends, or the
// manager dies during it. ctx is the context of the driver's call, or one derived from it. what names
// the request in traces.
//
// It is for a provider that the world does not know, such as the fake of a client library.
// World.Provider and Transport make their requests in the same way. While do runs, nothing else runs in
// the world. Outside of a call of the driver Request just calls do.
func (w *World) Request(ctx context.Context, what string, do func(context.Context) error) error {
	return w.userDriverCalls.request(ctx, &request{
		what: what, carryOut: func() error { return do(ctx) },
		refusal: func() error {
			if w.fails() {
				return ErrRefused
			}
			return nil
		},
		lost: func() error { return ErrAnswerLost },
	})
}

// vms follows the VMs of the simulated provider, including those that vanish without a call.
type vms struct {
	*base
	*cloud
	kubelets  *kubelets
	names     map[string]string     // names of the machines of all VMs that ever existed, by ID
	vmCreated map[string]time.Time  // when the last VM of a machine was created, by its name
	createdAt map[string]time.Time  // when a VM was created, by its ID
	added     []drivertest.MemoryVM // VMs since the last handleVMChanges, in the order of their creation
	missing   []string              // IDs of VMs that were removed since the last handleVMChanges
	collected int                   // number of VMs that were deleted as orphans
}

func newVMs(k *kubelets) *vms {
	v := &vms{
		base: k.base, cloud: k.cloud, kubelets: k,
		names: map[string]string{}, vmCreated: map[string]time.Time{}, createdAt: map[string]time.Time{},
	}
	v.provider.Watch(v.note)
	return v
}

// note keeps a change of the provider's VMs for handleVMChanges.
func (v *vms) note(vm drivertest.MemoryVM, gone bool) {
	if gone {
		v.missing = append(v.missing, vm.ID)
	} else {
		v.added = append(v.added, vm)
	}
}

// vmGone: the VM of a node is gone. The pods of the node have not changed yet.
type vmGone struct{ node, id string }

// AddOrphanVM creates a VM without a machine in the cluster of the fleet, and returns its ID. A machine
// of that name may exist.
func (v *vms) AddOrphanVM(name string) string {
	id := v.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: "small", Initialized: true})
	v.orphanVMs[id] = true
	v.handleVMChanges()
	v.check()
	return id
}

// OrphanVMs returns how many of the VMs of AddOrphanVM still exist.
func (v *vms) OrphanVMs() (n int) {
	for _, vm := range v.provider.VMs() {
		if v.orphanVMs[vm.ID] {
			n++
		}
	}
	return n
}

// maybeVanish removes a VM within an hour, with probability Faults.LostVM.
func (v *vms) maybeVanish(id string) {
	if !v.happens(v.hazards.LostVM) {
		return
	}
	v.After(v.upTo(time.Hour), func() {
		if v.faultsStopped || !v.provider.Remove(id) {
			return
		}
		v.count(VMLost)
		v.handleVMChanges()
		v.check()
	})
}

// handleVMChanges boots new VMs, and makes the nodes of removed VMs NotReady. It ignores VMs that were
// created and removed since it was last called.
func (v *vms) handleVMChanges() {
	v.changed()
	added, missing := v.added, v.missing
	v.added, v.missing = nil, nil
	for _, vm := range added {
		if _, known := v.names[vm.ID]; !known && !slices.Contains(missing, vm.ID) {
			v.register(vm.Name, vm.ID, vm.Size)
			v.kubelets.boot(vm.Name, vm.ID)
			v.maybeVanish(vm.ID)
		}
	}
	slices.Sort(missing) // a fixed order, so that the same seed gives the same run
	for _, id := range missing {
		if name, known := v.names[id]; known {
			v.gone(name, id)
		}
	}
}

// register records a new VM.
func (v *vms) register(name, id, size string) {
	v.names[id] = name
	v.vmCreated[name], v.createdAt[id], v.zoneOf[id] = v.Now(), v.Now(), size
}

// addExisting adds the VM of a machine that existed before the world began, and returns its ID.
func (v *vms) addExisting(name, size string) (id string) {
	id = v.provider.Add(drivertest.MemoryVM{Name: name, Cluster: clusterName, Size: size, Initialized: true})
	v.register(name, id, size)
	return id
}

// gone makes the node of a VM that no longer exists NotReady, after a while.
func (v *vms) gone(name, id string) {
	v.removed[id] = true
	if n, err := v.kubelets.nodes.Get(context.Background(), object.Key{Name: name}); err == nil && v.kubelets.vmOf(n) == id {
		v.emit(vmGone{name, id})
		v.kubelets.apps.Lost(name)
	}
	v.After(30*time.Second, func() { v.kubelets.vmIsGone(name, id) })
}
