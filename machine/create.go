package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// create takes a machine from new to Available, or to Running once its node
// has joined. The order of its steps is the order of writes and calls:
//
//	ask for the VM -> announce -> bootstrap token -> create -> record ID and node name ->
//	initialize -> Pending -> the node joins -> the token goes -> Running
//
// A process that is killed after the VM was made and before it was recorded is
// followed by one that asks for the VM, finds it, and goes on from there.
func (d *decider) create() Plan {
	if plan, wait := d.createGate(); wait {
		return plan
	}
	if d.m.Spec.ProviderID == "" {
		return d.obtain()
	}
	return d.bringUp()
}

// createGate holds a failed creation back until it may be tried again, and
// ends it when its time is up meanwhile.
func (d *decider) createGate() (Plan, bool) {
	op := &d.m.Status.LastOperation
	if op.Kind != OperationCreate || d.heldNoted() {
		return Plan{}, false
	}
	at := d.retryAt(createCall(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.timedOut(op.Message), true
	}
	if deadline.Before(at) {
		at = deadline
	}
	why := decision.Why{Reason: reasonRetryAt, Name: op.Stage.title(), Code: op.Code, For: at.Sub(d.now)}
	return Plan{At: at, Why: why}, true
}

// createCall is the driver call that a failed stage of a creation made.
func createCall(stage Stage) codes.Call {
	switch stage {
	case StageGetVMStatus:
		return codes.GetMachineStatus
	case StageInstanceInitialization:
		return codes.InitializeMachine
	}
	return codes.CreateMachine
}

// began tells whether a create may have been issued without the VM having
// been seen initialized since.
func (d *decider) began() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate &&
		(op.Stage == StageCreateVM || op.Stage == StageInstanceInitialization)
}

func (d *decider) creationDeadline() time.Time {
	return d.verdictAt(d.m.CreatedAt, d.p.creationTimeout(d.m))
}

// obtain finds the machine's VM or has it created, and records it.
func (d *decider) obtain() Plan {
	if d.o.Class == nil {
		return d.classFailure(codes.NotFound, d.m.Spec.Class.missing())
	}
	if err := d.o.Class.Validate(); err != nil {
		return d.classFailure(codes.InvalidArgument, err.Error())
	}
	vm := d.o.VM
	if vm == nil {
		if plan, wait := d.held(); wait && !d.mayBeMade() {
			return plan
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	switch vm.Code {
	case codes.OK, codes.Uninitialized:
		if vm.ProviderID == "" {
			return d.statusFailure(codes.Internal, "the driver knows the VM but gave no provider ID: "+vm.Message)
		}
		if vm.Of != "" {
			return d.statusFailure(codes.Internal, vm.mistaken())
		}
		if d.began() { // it may be what a call made whose answer was lost
			return d.accept(vm, reasonFound)
		}
		return d.record(vm, reasonFound)
	case codes.NotFound, codes.Unimplemented:
		return d.issueCreate()
	}
	return d.statusFailure(vm.Code, vm.Message)
}

// classFailure reports a class that nothing can be created from.
func (d *decider) classFailure(code codes.Code, message string) Plan {
	return d.createFailed(d.keepBegun(StageNone), code, message)
}

// statusFailure reports a status call that leaves open whether there is a VM.
func (d *decider) statusFailure(code codes.Code, message string) Plan {
	return d.createFailed(d.keepBegun(StageGetVMStatus), code, message)
}

// keepBegun is stage, unless the persisted stage must not be forgotten.
func (d *decider) keepBegun(stage Stage) Stage {
	if d.began() {
		return d.m.Status.LastOperation.Stage
	}
	return stage
}

// issueCreate announces a create, issues it, and looks at its answer. The
// announcement is written in the very pass that issues the call: a reader of
// an old state fails there, before it can bring a VM to life that nobody wants.
func (d *decider) issueCreate() Plan {
	made := d.o.Created
	if made == nil {
		if plan, wait := d.held(); wait {
			return plan
		}
		if !d.now.Before(d.creationDeadline()) {
			return d.timedOut("its time was up before its VM was created")
		}
		if plan, bad := d.noToken(); bad {
			return plan
		}
		if !d.announced() {
			return d.move(EventCreate, decision.Why{Reason: reasonFence}, func(s *Status) {
				s.LastOperation = d.operation(OperationCreate, StateProcessing, StageCreateVM)
				s.NeverCreated = false
				d.announceSpec(s)
			})
		}
		if plan, busy := d.ensureToken(); busy {
			return plan
		}
		return Plan{Effect: CreateVM{}, Why: decision.Why{Reason: reasonCreate}}
	}
	switch {
	case made.Code != codes.OK:
		return d.createFailed(StageCreateVM, made.Code, made.Message)
	case made.ProviderID == "":
		return d.createFailed(StageCreateVM, codes.Internal, "the driver gave no provider ID")
	case made.Of != "":
		return d.createFailed(StageCreateVM, codes.Internal, made.mistaken())
	case made.NodeName == "" && !d.o.NoCluster:
		return d.createFailed(StageCreateVM, codes.Internal, "the driver gave no node name")
	}
	return d.accept(made, reasonCreated)
}

// mistaken says that an answer is about another machine's VM. Were it recorded,
// that VM would be deleted with this machine.
func (vm *VM) mistaken() string {
	return "the driver answered VM " + vm.ProviderID + ", which is that of machine " + vm.Of
}

// accept records a VM that was made for this machine, unless it came up under
// the name of a node that was there before.
func (d *decider) accept(made *VM, reason decision.Reason) Plan {
	switch {
	case d.o.NoCluster || made.NodeName == "":
	case d.o.Node == nil || d.o.Node.Name != made.NodeName:
		return Plan{Effect: FindNode{Name: made.NodeName}, Why: decision.Why{Reason: reasonFindNode, Name: made.NodeName}}
	case d.o.Node.Node != nil && d.stale(d.o.Node.Node, made.ProviderID):
		return d.discard(made)
	}
	return d.record(made, reason)
}

func (d *decider) announced() bool {
	op := &d.m.Status.LastOperation
	return d.o.Fenced && d.m.Status.Phase == PhasePending && op.Kind == OperationCreate &&
		op.State == StateProcessing && op.Stage == StageCreateVM
}

// stale tells whether a node was there before the VM with this provider ID
// and only shares its name.
func (d *decider) stale(n *Node, providerID string) bool {
	if n.ProviderID != "" && n.ProviderID == providerID {
		return false
	}
	if d.p.ProviderIDsMatch && n.ProviderID != "" && providerID != "" {
		return true
	}
	return n.CreatedAt.Before(d.m.CreatedAt)
}

// discard deletes a VM that came up under another node's name, and gives up
// this machine. Its record keeps no node name that it could hurt.
func (d *decider) discard(made *VM) Plan {
	if d.o.VMDeleted == nil {
		return Plan{
			Effect: DeleteVM{made.ProviderID},
			Why:    decision.Why{Reason: reasonStaleNodeVM, Name: made.NodeName},
		}
	}
	why := decision.Why{Reason: reasonStaleNode, Name: made.NodeName}
	return d.move(EventCreateRefused, why, func(s *Status) {
		s.LastOperation = d.failure(OperationCreate, StageCreateVM, codes.Aborted, why.String())
	})
}

// record stores what a VM is called before anything else is done with it.
func (d *decider) record(vm *VM, reason decision.Reason) Plan {
	changed := d.m.Clone()
	changed.Spec.ProviderID = vm.ProviderID
	if changed.Spec.NodeName == "" && !d.o.NoCluster {
		changed.Spec.NodeName = vm.NodeName
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reason, Name: vm.ProviderID}}
}

// bringUp initializes a recorded VM where needed and waits for it to join.
func (d *decider) bringUp() Plan {
	vm := d.o.VM
	if vm == nil && d.o.Created == nil && d.m.Status.Phase != PhasePending {
		if d.o.Class == nil {
			return d.classFailure(codes.NotFound, d.m.Spec.Class.missing())
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	if vm != nil {
		switch vm.Code {
		case codes.OK, codes.Uninitialized, codes.NotFound, codes.Unimplemented:
		default:
			return d.statusFailure(vm.Code, vm.Message)
		}
	}
	if name := d.newNodeName(); name != "" {
		changed := d.m.Clone()
		changed.Spec.NodeName = name
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonNodeNamed, Name: name}}
	}
	if plan, busy := d.initialize(); busy {
		return plan
	}
	return d.settle()
}

// newNodeName is the node name that a driver gave and that is not recorded yet.
func (d *decider) newNodeName() string {
	if d.o.NoCluster || d.m.Spec.NodeName != "" {
		return ""
	}
	for _, vm := range [...]*VM{d.o.VM, d.o.Initialized} {
		if vm != nil && vm.NodeName != "" {
			return vm.NodeName
		}
	}
	return ""
}

// initialize has the VM initialized if the driver said that it is not, or if
// a create was begun and nothing says that it was.
func (d *decider) initialize() (Plan, bool) {
	uninitialized := d.o.VM != nil && d.o.VM.Code == codes.Uninitialized
	stage := d.m.Status.LastOperation.Stage
	if d.o.NoInitialize || !uninitialized && !d.began() {
		return Plan{}, false
	}
	answer := d.o.Initialized
	if answer == nil {
		if d.o.Class == nil {
			return d.classFailure(codes.NotFound, d.m.Spec.Class.missing()), true
		}
		if plan, busy := d.findToken(); busy {
			return plan, true
		}
		return Plan{Effect: InitializeVM{}, Why: decision.Why{Reason: reasonInitialize, Name: d.m.Spec.ProviderID}}, true
	}
	switch answer.Code {
	case codes.OK:
		if stage == StageInitialized {
			return Plan{}, false
		}
		why := decision.Why{Reason: reasonInitialized, Name: d.m.Spec.ProviderID}
		return d.move(EventProvisioned, why, func(s *Status) {
			s.LastOperation = d.operation(OperationCreate, StateProcessing, StageInitialized)
		}), true
	case codes.Unimplemented, codes.NotFound:
		return Plan{}, false
	}
	return d.createFailed(StageInstanceInitialization, answer.Code, answer.Message), true
}

// settle moves a VM that is ready for it to Available or Pending, and looks
// after its joining.
func (d *decider) settle() Plan {
	id := d.m.Spec.ProviderID
	if d.o.NoCluster {
		return d.move(EventAvailable, decision.Why{Reason: reasonAvailable, Name: id}, func(s *Status) {
			s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
			s.LastOperation.Message = "the VM is available"
		})
	}
	if d.m.Status.Phase != PhasePending || d.m.Status.LastOperation.State == StateFailed {
		return d.move(EventProvisioned, decision.Why{Reason: reasonPending, Name: id}, func(s *Status) {
			s.LastOperation = d.operation(OperationCreate, StateProcessing, d.keepBegun(StageInitialized))
		})
	}
	return d.join()
}

// createFailed records a failed step of the creation.
func (d *decider) createFailed(stage Stage, code codes.Code, message string) Plan {
	on, reason := EventCreateFailed, reasonCreateFailed
	switch {
	case code == codes.AlreadyExists && d.o.Created != nil && stage == StageCreateVM:
		on, reason = EventCreateRefused, reasonCreateRefused
	case !d.now.Before(d.creationDeadline()):
		on, reason = EventCreationTimeout, reasonCreateFailed
	}
	why := decision.Why{Reason: reason, Name: stage.title(), Code: code, Detail: message}
	never := d.m.untouched() && !d.known()
	return d.move(on, why, func(s *Status) {
		s.LastOperation = d.failure(OperationCreate, stage, code, message)
		s.NeverCreated = never
	})
}

// title is what a sentence calls a stage of a creation.
func (s Stage) title() string {
	if s == StageNone {
		return "preparation"
	}
	return string(s)
}

// known tells whether the provider has VMs of this machine, whoever made them.
func (d *decider) known() bool {
	if d.o.VM == nil {
		return false
	}
	code := d.o.VM.Code
	return code == codes.OK || code == codes.Uninitialized || code == codes.OutOfRange
}

// timedOut gives up a machine that did not come to run in time.
func (d *decider) timedOut(message string) Plan {
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: message}
	return d.move(EventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, s.LastOperation.Stage, codes.DeadlineExceeded, why.String())
		if s.LastOperation.State == StateFailed {
			op.Code = s.LastOperation.Code // the cause says more than the time it took
		}
		s.LastOperation = op
	})
}
