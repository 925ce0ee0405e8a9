package sim

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/internal/groups"
)

// machineCalls carries out the calls to the provider about machines, and counts them.
type machineCalls struct {
	*base
	*vms
	catalog     *classCatalog
	driverCalls map[codes.Call]int
	refusals    map[Refusal]int
	answered    []time.Time // when the calls of the last minute were answered, if there is a limit
}

func newMachineCalls(v *vms, c *classCatalog) *machineCalls {
	return &machineCalls{base: v.base, vms: v, catalog: c, driverCalls: map[codes.Call]int{}, refusals: map[Refusal]int{}}
}

// vmsCollected: orphan VMs were deleted. gone lists them.
type vmsCollected struct{ gone []drivertest.MemoryVM }

func (c *machineCalls) arrived(s driver.CallInfo) {
	call, _ := s.Method.(codes.Call)
	c.driverCalls[call]++
}

func (c *machineCalls) provide(ctx context.Context, next func(context.Context) error) error {
	err := next(ctx)
	c.acting = true
	c.handleVMChanges()
	c.acting = false
	c.check()
	return err
}

// late schedules a call whose caller has died, to be carried out later. Invariants excuse what it does:
// it may create a VM after its machine is gone, which then has to be collected, or delete a VM whose
// node has joined since.
func (c *machineCalls) late(ctx context.Context, s driver.CallInfo, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	c.After(c.upTo(c.hazards.LateBy), func() {
		c.count(CallLate)
		if s.Method == codes.CreateMachine {
			c.lateVMs[s.Object.Name] = true
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
	if c.throttle() {
		return codes.New([]codes.Code{codes.ResourceExhausted, codes.Unavailable}[c.chance(2)], "too many calls to the simulated provider in a minute")
	}
	if code := c.refused(func(code codes.Code) bool { return liesAboutVM(call, code) }); code != codes.OK {
		c.refusals[Refusal{call, code}]++
		switch {
		case call != codes.GetMachineStatus:
		case code == codes.NotFound, code == codes.OutOfRange, code == codes.Unimplemented, code == codes.Uninitialized: // these answers name no node, though there may be one
			c.misled[s.Object.Name] = true
		}
		return codes.New(code, "a fault of the simulated provider")
	}
	full := c.hazards.Capacity > 0 && c.provider.Count() >= c.hazards.Capacity
	if call == codes.CreateMachine && (full || c.zoneIsOut(c.catalog.sizeOf(s.Class.Name))) {
		c.count(CapacityOut)
		return codes.New(codes.ResourceExhausted, "the simulated provider has no more capacity")
	}
	if call == codes.GetMachineStatus && c.Now().Sub(c.vmCreated[s.Object.Name]) < c.hazards.Eventually {
		c.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// fails reports whether the provider fails now, regardless of the call.
func (c *machineCalls) fails() bool {
	if c.throttle() {
		return true
	}
	if !c.happens(c.hazards.Call) {
		return false
	}
	c.count(CallFailed)
	return true
}

// throttle counts a call against the limit, and reports whether it is over the limit.
func (c *machineCalls) throttle() bool {
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

// liesAboutVM reports whether a code would wrongly tell the manager that a VM is gone.
func liesAboutVM(call codes.Call, code codes.Code) bool {
	return code == codes.NotFound && (call == codes.DeleteMachine || call == codes.UpdateMachine)
}

// watchedMachines wraps a driver and notices which VMs are deleted as orphans: in such a call, the
// machine in the request has no UID.
type watchedMachines struct {
	driver.Driver
	vms *vms
}

// Unwrap returns the wrapped driver.
func (c watchedMachines) Unwrap() driver.Driver { return c.Driver }

// DeleteMachine implements driver.Driver.
func (c watchedMachines) DeleteMachine(ctx context.Context, req *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	if req.Machine.UID != "" {
		return c.Driver.DeleteMachine(ctx, req)
	}
	if c.vms.hazards.Spelling > 0 {
		for _, vm := range c.vms.provider.VMs() {
			if req.Machine.Spec.ProviderID == otherSpelling(vm.ID) {
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

// ListMachines implements driver.Driver. As Faults say, new VMs are missing, and the spelling differs.
func (c watchedMachines) ListMachines(ctx context.Context, req *driver.ListMachinesRequest) (*driver.ListMachinesResponse, error) {
	got, err := c.Driver.ListMachines(ctx, req)
	if err != nil || c.vms.hazards.Eventually == 0 && c.vms.hazards.Spelling == 0 {
		return got, err
	}
	spell := strings.Clone
	if c.vms.happens(c.vms.hazards.Spelling) {
		c.vms.count(ListSpelled)
		spell = otherSpelling
	}
	seen := make(map[string]string, len(got.Machines))
	for id, name := range got.Machines {
		if c.vms.Now().Sub(c.vms.createdAt[id]) < c.vms.hazards.Eventually {
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

// poolCalls carries out the calls to the provider about groups, and counts them.
type poolCalls struct {
	*base
	*stores
	groups       *groups.Provider
	silent       time.Time // until when no call is answered
	collects     bool      // whether the manager collects the groups of deleted pools
	calls        map[machinepool.Call]int
	poolRefusals map[PoolRefusal]int
}

func newPoolCalls(g *base, s *stores, p *groups.Provider, collects bool) *poolCalls {
	return &poolCalls{
		base: g, stores: s, groups: p, collects: collects,
		calls: map[machinepool.Call]int{}, poolRefusals: map[PoolRefusal]int{},
	}
}

// changes returns the number of calls so far that change a group.
func (c *poolCalls) changes() (n int) {
	for call, times := range c.calls {
		if call != machinepool.GetPoolStatus && call != machinepool.ListPools {
			n += times
		}
	}
	return n
}

// poolCalled: a process calls the driver of groups about a pool. to is the size that it orders, ids are
// the instances that it wants deleted, replaced, or reports as drained.
type poolCalled struct {
	pool *machinepool.Pool
	call machinepool.Call
	to   int32
	ids  []string
}

func (c *poolCalls) arrived(s driver.CallInfo) {
	call, _ := s.Method.(machinepool.Call)
	c.calls[call]++
}

func (c *poolCalls) provide(ctx context.Context, next func(context.Context) error) error {
	c.acting = true
	err := next(ctx)
	c.acting = false
	c.changed()
	c.check()
	return err
}

func (c *poolCalls) late(ctx context.Context, _ driver.CallInfo, next func(context.Context) error) {
	ctx = context.WithoutCancel(ctx)
	c.After(c.upTo(c.hazards.LateBy), func() {
		c.count(CallLate)
		c.belated = true
		_ = c.provide(ctx, next) // no caller gets the answer
		c.belated = false
	})
}

func (c *poolCalls) refusal(s driver.CallInfo) error {
	call, _ := s.Method.(machinepool.Call)
	asks := call == machinepool.GetPoolStatus
	code := c.refused(func(code codes.Code) bool { return code == codes.NotFound && (asks || call == machinepool.DeletePool) })
	if code != codes.OK {
		c.poolRefusals[PoolRefusal{call, code}]++
		return codes.New(code, "a fault of the simulated provider")
	}
	if c.Now().Before(c.silent) {
		c.count(CallFailed)
		c.poolRefusals[PoolRefusal{call, codes.Unavailable}]++
		return codes.New(codes.Unavailable, "the simulated provider does not answer")
	}
	if g := c.groups.Of(s.Object); g != nil && asks && c.Now().Sub(g.Made) < c.hazards.Eventually {
		c.count(StatusLagged)
		return codes.New(codes.NotFound, "the simulated provider does not see it yet")
	}
	return nil
}

// see notes that a group is gone, so that it is no longer expected.
func (c *poolCalls) see(e event) {
	if e, ok := e.(groups.Gone); ok {
		delete(c.lateGroups, e.Pool)
	}
}

// watchedPools wraps a pool driver and emits an event for each request.
type watchedPools struct {
	pooldriver.Driver
	calls *poolCalls
}

// Unwrap returns the wrapped driver.
func (d watchedPools) Unwrap() pooldriver.Driver { return d.Driver }

// CreatePool implements pooldriver.Driver. If the pool is gone by now, its group has no owner, and the
// manager has to find it.
func (d watchedPools) CreatePool(ctx context.Context, req *pooldriver.CreatePoolRequest) (*pooldriver.Response, error) {
	c := d.calls
	c.emit(poolCalled{pool: req.Pool, call: machinepool.CreatePool, to: req.Replicas})
	if c.belated && c.poolGoneOrDeleting(req.Pool.Key) || c.forgotten[req.Pool.UID] {
		c.expectOwnerlessGroup(req.Pool.Key)
	}
	return d.Driver.CreatePool(ctx, req)
}

// expectOwnerlessGroup notes that a pool that is gone has a group, or may get one. If the manager does
// not collect such groups, the world removes it after a while, as a person would.
func (c *poolCalls) expectOwnerlessGroup(k object.Key) {
	c.lateGroups[k] = true
	if c.collects {
		return
	}
	c.After(10*time.Minute, func() {
		delete(c.lateGroups, k)
		if g := c.groups.Of(k); g != nil && c.poolGoneOrDeleting(k) {
			c.groups.Lose(g)
		}
	})
}

// ScalePool implements pooldriver.Driver.
func (d watchedPools) ScalePool(ctx context.Context, req *pooldriver.ScalePoolRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.ScalePool, to: req.To})
	return d.Driver.ScalePool(ctx, req)
}

// DeletePool implements pooldriver.Driver.
func (d watchedPools) DeletePool(ctx context.Context, req *pooldriver.DeletePoolRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.DeletePool})
	return d.Driver.DeletePool(ctx, req)
}

// DeleteInstances implements pooldriver.Driver.
func (d watchedPools) DeleteInstances(ctx context.Context, req *pooldriver.DeleteInstancesRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.DeleteInstances, ids: req.ProviderIDs})
	return d.Driver.DeleteInstances(ctx, req)
}

// ReplaceInstance implements pooldriver.Driver.
func (d watchedPools) ReplaceInstance(ctx context.Context, req *pooldriver.ReplaceInstanceRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.ReplaceInstance, ids: []string{req.ProviderID}})
	return d.Driver.ReplaceInstance(ctx, req)
}

// InstancesDrained implements pooldriver.Driver.
func (d watchedPools) InstancesDrained(ctx context.Context, req *pooldriver.InstancesDrainedRequest) (*pooldriver.Response, error) {
	d.calls.emit(poolCalled{pool: req.Pool, call: machinepool.InstancesDrained, ids: req.ProviderIDs})
	return d.Driver.InstancesDrained(ctx, req)
}

// retrier is a user who, once the faults have stopped, continues rollouts that stopped because machines
// failed: the user pauses the deployment, and resumes it when its status counts no failures.
type retrier struct {
	*base
	edit    func(name string, change func(*deployment.Spec))
	retries map[string]bool // names of the deployments that the user has paused
}

func (r *retrier) see(e event) {
	change, ok := e.(stored[*deployment.Deployment])
	if !ok || change.now == nil || !r.faultsStopped {
		return
	}
	d := change.now
	switch {
	case r.retries[d.Name]:
		if d.Spec.Paused && d.Status.RolloutFailures.Count == 0 {
			r.retries[d.Name] = false
			r.pauseLater(d.Name, false)
		}
	case !d.Spec.Paused && stopped(d):
		r.retries[d.Name] = true
		r.pauseLater(d.Name, true)
	}
}

func (r *retrier) pauseLater(name string, paused bool) {
	r.After(retryTime, func() { r.edit(name, func(s *deployment.Spec) { s.Paused = paused }) })
}

// retryTime is how long the user waits before a pause, and before a resume.
const retryTime = time.Minute

// stopped reports whether a deployment's status says that its rollout has stopped.
func stopped(d *deployment.Deployment) bool {
	c := object.FindCondition(d.Status.Conditions, deployment.ConditionProgressing)
	return c != nil && c.Reason == deployment.ProgressStopped
}
