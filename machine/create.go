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
//	initialize -> Pending -> the node joins -> the token is removed -> Running
//
// If the process is killed after the VM was created and before it was recorded, the
// next one asks for the VM, finds it, and continues from there.
func (d *decider) create() Plan {
	if plan, busy := d.createBackoff(); busy {
		return plan
	}
	if d.m.Spec.ProviderID == "" {
		return d.ensureVM()
	}
	return d.initializeAndJoin()
}

// createBackoff holds a failed creation back until it may be tried again, and
// ends it when its time is up meanwhile.
//
// The machine is in CrashLoopBackOff. How long it waits follows from the code of the failure: after
// RESOURCE_EXHAUSTED Policy.QuotaRetry, 10 min. It does not wait once machine, class or secret have
// changed. The creation timeout runs on; at its end the machine is Failed, and its set replaces it.
func (d *decider) createBackoff() (Plan, bool) {
	op := &d.m.Status.LastOperation
	if op.Kind != OperationCreate || d.classBackoffRecorded() {
		return Plan{}, false
	}
	at := d.retryAt(createCall(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.creationTimedOut(op.Message), true
	}
	return d.retryLater(op.Stage.title(), at, deadline), true
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

// ensureVM asks the driver for the machine's VM, creates it if there is none, and
// records it. It asks before each create, so that a restart makes no second VM.
func (d *decider) ensureVM() Plan {
	if d.o.Class == nil {
		return d.classFailed(codes.NotFound, d.m.Spec.Class.missing())
	}
	if err := d.o.Class.Validate(); err != nil {
		return d.classFailed(codes.InvalidArgument, err.Error())
	}
	vm := d.o.VM
	if vm == nil {
		if plan, busy := d.invalidOrBackoff(); busy && !d.vmMayExist() {
			return plan
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	switch vm.Code {
	case codes.OK, codes.Uninitialized:
		if vm.ProviderID == "" {
			return d.vmWithoutID(vm)
		}
		if vm.Of != "" {
			return d.statusFailed(codes.Internal, vm.mistaken())
		}
		return d.adoptVM(vm)
	case codes.NotFound, codes.Unimplemented:
		return d.issueCreate()
	}
	return d.statusFailed(vm.Code, vm.Message)
}

// adoptVM records a VM that the provider has already.
func (d *decider) adoptVM(vm *VM) Plan {
	if d.createPending() { // it may be what a call made whose answer was lost
		return d.acceptVM(vm, reasonFound)
	}
	return d.recordVM(vm, reasonFound)
}

// vmWithoutID is about a VM of which the driver says that it is there, and not its provider ID. After
// UNINITIALIZED, InitializeMachine finds it by the machine's name and answers its ID. If that answer has
// none either, the driver is asked again: it knows a VM that is initialized.
func (d *decider) vmWithoutID(vm *VM) Plan {
	answer := d.o.Initialized
	switch {
	case vm.Code != codes.Uninitialized || d.o.NoInitialize:
	case answer == nil:
		if plan, busy := d.renewTokenForInit(); busy {
			return plan
		}
		return Plan{Effect: InitializeVM{}, Why: decision.Why{Reason: reasonInitialize, Name: vmName(d.m)}}
	case answer.Code == codes.NotFound || answer.Code == codes.Unimplemented:
	case answer.Code != codes.OK:
		return d.createFailed(StageInstanceInitialization, answer.Code, answer.Message)
	case answer.ProviderID == "":
		return d.createFailed(StageInstanceInitialization, codes.Uninitialized, "the driver gave no provider ID of the VM that it has initialized")
	case answer.Of != "":
		return d.statusFailed(codes.Internal, answer.mistaken())
	default:
		return d.adoptVM(answer)
	}
	return d.statusFailed(codes.Internal, "the driver knows the VM but gave no provider ID: "+vm.Message)
}

// issueCreate announces a create, issues it, and looks at its answer. The
// announcement is written in the very pass that issues the call: a reader of
// an old state fails there, before it can create a VM that no record owns.
func (d *decider) issueCreate() Plan {
	made := d.o.Created
	if made == nil {
		if plan, busy := d.invalidOrBackoff(); busy {
			return plan
		}
		if !d.now.Before(d.creationDeadline()) {
			return d.creationTimedOut("its time was up before its VM was created")
		}
		if plan, busy := d.tokenUnavailable(); busy {
			return plan
		}
		if !d.createAnnounced() {
			return d.move(eventCreate, decision.Why{Reason: reasonFence}, func(s *Status) {
				s.LastOperation = d.operation(OperationCreate, StateProcessing, StageCreateVM)
				s.OnlyRefused, s.NeverCreated = d.onlyRefused(), false
				d.beginCreationClock(s)
				d.recordSpecForCreate(s)
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
	return d.acceptVM(made, reasonCreated)
}

// invalidOrBackoff keeps a machine from calling the provider if no API server would accept its node,
// without an end, or if its class is slowed.
func (d *decider) invalidOrBackoff() (Plan, bool) {
	if bad := d.invalidForNode(); bad != nil && d.o.Created == nil {
		return Plan{Why: specInvalid(bad)}, true
	}
	return d.classBackoff()
}

// acceptVM records a VM that was made for this machine, unless it came up under
// the name of a node that was there before.
func (d *decider) acceptVM(made *VM, reason decision.Reason) Plan {
	switch {
	case d.o.NoCluster || made.NodeName == "":
	case d.o.Node == nil || d.o.Node.Name != made.NodeName:
		return Plan{Effect: FindNode{Name: made.NodeName}, Why: decision.Why{Reason: reasonFindNode, Name: made.NodeName}}
	case d.o.Node.Node != nil && d.staleNode(d.o.Node.Node, made.ProviderID):
		return d.discardVM(made)
	}
	return d.recordVM(made, reason)
}

// createAnnounced reports whether this pass has written the announcement of the create.
func (d *decider) createAnnounced() bool {
	op := &d.m.Status.LastOperation
	return d.o.Fenced && d.m.Status.Phase == PhasePending && op.Kind == OperationCreate &&
		op.State == StateProcessing && op.Stage == StageCreateVM
}

// discardVM deletes a VM that came up under another node's name, and marks this
// machine failed. Its record keeps no node name that it could hurt.
func (d *decider) discardVM(made *VM) Plan {
	if d.o.VMDeleted == nil {
		return Plan{
			Effect: DeleteVM{made.ProviderID},
			Why:    decision.Why{Reason: reasonStaleNodeVM, Name: made.NodeName},
		}
	}
	why := decision.Why{Reason: reasonStaleNode, Name: made.NodeName}
	return d.move(eventCreateRefused, why, func(s *Status) {
		s.LastOperation = d.failure(OperationCreate, StageCreateVM, codes.Aborted, why.String())
	})
}

// recordVM stores what a VM is called before anything else is done with it.
func (d *decider) recordVM(vm *VM, reason decision.Reason) Plan {
	changed := d.m.Clone()
	changed.Spec.ProviderID = vm.ProviderID
	if changed.Spec.NodeName == "" && !d.o.NoCluster {
		changed.Spec.NodeName = vm.NodeName
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reason, Name: vm.ProviderID}}
}

// initializeAndJoin initializes a recorded VM if necessary, and waits until it joins.
func (d *decider) initializeAndJoin() Plan {
	vm := d.o.VM
	if vm == nil && d.o.Created == nil && d.m.Status.Phase != PhasePending {
		if d.o.Class == nil {
			return d.classFailed(codes.NotFound, d.m.Spec.Class.missing())
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	if vm != nil {
		switch vm.Code {
		case codes.OK, codes.Uninitialized, codes.NotFound, codes.Unimplemented:
		default:
			return d.statusFailed(vm.Code, vm.Message)
		}
	}
	if name := d.newNodeName(); name != "" {
		changed := d.m.Clone()
		changed.Spec.NodeName = name
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonNodeNamed, Name: name}}
	}
	if plan, busy := d.initializeVM(); busy {
		return plan
	}
	return d.pendingOrAvailable()
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

// initializeVM has the VM initialized if the driver said that it is not, or if
// a create was begun and nothing says that it was.
func (d *decider) initializeVM() (Plan, bool) {
	uninitialized := d.o.VM != nil && d.o.VM.Code == codes.Uninitialized
	stage := d.m.Status.LastOperation.Stage
	if d.o.NoInitialize || !uninitialized && !d.createPending() {
		return Plan{}, false
	}
	answer := d.o.Initialized
	if answer == nil {
		if d.o.Class == nil {
			return d.classFailed(codes.NotFound, d.m.Spec.Class.missing()), true
		}
		if plan, busy := d.renewTokenForInit(); busy {
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
			d.beginCreationClock(s)
			s.LastOperation = d.operation(OperationCreate, StateProcessing, StageInitialized)
		}), true
	case codes.Unimplemented, codes.NotFound:
		return Plan{}, false
	}
	return d.createFailed(StageInstanceInitialization, answer.Code, answer.Message), true
}

// pendingOrAvailable moves a machine whose VM is ready to Available or Pending, and then waits
// for its node.
func (d *decider) pendingOrAvailable() Plan {
	id := d.m.Spec.ProviderID
	if d.o.NoCluster {
		return d.move(eventAvailable, decision.Why{Reason: reasonAvailable, Name: id}, func(s *Status) {
			s.LastOperation = d.operation(OperationCreate, StateSuccessful, StageInitialized)
			s.LastOperation.Message = "the VM is available"
		})
	}
	if d.m.Status.Phase != PhasePending || d.m.Status.LastOperation.State == StateFailed {
		return d.move(EventProvisioned, decision.Why{Reason: reasonPending, Name: id}, func(s *Status) {
			d.beginCreationClock(s)
			s.LastOperation = d.operation(OperationCreate, StateProcessing, d.keepCreateStage(StageInitialized))
		})
	}
	return d.join()
}

// recordSpecForCreate notes what a VM that is about to be made is made from. An
// earlier create may have taken effect with other values: then these are what
// the VM may have.
func (d *decider) recordSpecForCreate(s *Status) {
	if d.o.VMSpec == nil {
		return
	}
	before := s.VMSpec
	s.VMSpec = *d.o.VMSpec
	if !d.createPending() || before == (VMSpec{}) || before.Declared != s.VMSpec.Declared {
		return
	}
	if before.Begun != "" || before.Updatable != s.VMSpec.Updatable {
		s.VMSpec.Begun = unite(before.Updatable, before.Begun)
	}
}

// tokenUnavailable refuses to create a VM that would boot with a placeholder for a token.
func (d *decider) tokenUnavailable() (Plan, bool) {
	if d.o.Token != TokenUnavailable {
		return Plan{}, false
	}
	message := "the user data of class " + d.m.Spec.Class.Name + " has a placeholder for a bootstrap token, and nothing here makes tokens"
	return d.classFailed(codes.InvalidArgument, message), true
}

// ensureToken makes sure, before a create hands out the user data, that what is
// put into it is there and lasts.
func (d *decider) ensureToken() (Plan, bool) {
	if d.o.Token != TokenNeeded {
		return Plan{}, false
	}
	answer := d.o.TokenEnsured
	switch {
	case answer == nil:
		until := d.tokenExpiry()
		return Plan{Effect: EnsureToken{until}, Why: decision.Why{Reason: reasonEnsureToken, For: until.Sub(d.now)}}, true
	case answer.Code != codes.OK:
		return d.createFailed(StageCreateVM, answer.Code, "bootstrap token: "+answer.Message), true
	}
	return Plan{}, false
}

// renewTokenForInit finds the token again before a VM is initialized, since that hands
// out the user data too. A machine without one is initialized all the same, and
// so is one whose time is up: no token would last.
func (d *decider) renewTokenForInit() (Plan, bool) {
	plan, busy := d.renewToken()
	if busy {
		return plan, true
	}
	answer := d.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return Plan{}, false
	}
	return d.createFailed(StageInstanceInitialization, answer.Code, "bootstrap token: "+answer.Message), true
}

// createPending reports whether a create may have been issued without the VM having
// been seen initialized since.
func (d *decider) createPending() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate &&
		(op.Stage == StageCreateVM || op.Stage == StageInstanceInitialization)
}

// keepCreateStage is stage, unless the persisted stage must not be forgotten.
func (d *decider) keepCreateStage(stage Stage) Stage {
	if d.createPending() {
		return d.m.Status.LastOperation.Stage
	}
	return stage
}

// providerHasVM reports whether the provider has VMs of this machine, even if another program made them.
func (d *decider) providerHasVM() bool {
	if d.o.VM == nil {
		return false
	}
	code := d.o.VM.Code
	return code == codes.OK || code == codes.Uninitialized || code == codes.OutOfRange
}

// classFailed reports a class that nothing can be created from.
func (d *decider) classFailed(code codes.Code, message string) Plan {
	return d.createFailed(d.keepCreateStage(StageNone), code, message)
}

// statusFailed reports a status call that leaves open whether there is a VM.
func (d *decider) statusFailed(code codes.Code, message string) Plan {
	return d.createFailed(d.keepCreateStage(StageGetVMStatus), code, message)
}

// createFailed records a failed step of the creation.
func (d *decider) createFailed(stage Stage, code codes.Code, message string) Plan {
	on, reason := eventCreateFailed, reasonCreateFailed
	switch {
	case code == codes.AlreadyExists && d.o.Created != nil && stage == StageCreateVM:
		on, reason = eventCreateRefused, reasonCreateRefused
	case !d.now.Before(d.creationDeadline()):
		on, reason = eventCreationTimeout, reasonCreateFailed
	}
	why := decision.Why{Reason: reason, Name: stage.title(), Code: code, Detail: message}
	never, unanswered := d.m.untouched() && !d.providerHasVM(), d.createUnanswered()
	answered := d.o.Created != nil && stage == StageCreateVM
	return d.move(on, why, func(s *Status) {
		d.beginCreationClock(s)
		s.LastOperation = d.failure(OperationCreate, stage, code, message)
		s.OnlyRefused = s.OnlyRefused && !unanswered // what is stored from now on does not say that one was
		if answered {
			s.OnlyRefused = s.OnlyRefused && madeNothing(code)
			never = s.OnlyRefused && code == codes.AlreadyExists && !d.providerHasVM()
		}
		s.NeverCreated = never
	})
}

// onlyRefused reports whether it is certain that no create call so far has made anything. One
// whose answer is not recorded may have.
func (d *decider) onlyRefused() bool {
	return d.m.untouched() || d.m.Status.OnlyRefused && !d.createUnanswered()
}

// createUnanswered reports whether an earlier pass announced a create whose answer is not recorded.
func (d *decider) createUnanswered() bool {
	return d.createPending() && d.m.Status.LastOperation.State != StateFailed && !d.createAnnounced()
}

// madeNothing reports whether a create that ended with code has made nothing.
func madeNothing(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted,
		codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// creationTimedOut marks a machine failed that did not run in time.
func (d *decider) creationTimedOut(message string) Plan {
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: message}
	return d.move(eventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, s.LastOperation.Stage, codes.DeadlineExceeded, why.String())
		if s.LastOperation.State == StateFailed {
			op.Code = s.LastOperation.Code // the cause says more than the time it took
		}
		s.LastOperation = op
	})
}

// title is what a sentence calls a stage of a creation.
func (s Stage) title() string {
	if s == StageNone {
		return "preparation"
	}
	return string(s)
}

// mistaken says that an answer is about another machine's VM. Were it recorded,
// that VM would be deleted with this machine.
func (vm *VM) mistaken() string {
	return "the driver answered VM " + vm.ProviderID + ", which is that of machine " + vm.Of
}

// A provider that refuses to create anything of a class, because a quota is used up
// or the class has a mistake, refuses it to every machine of the class. Package
// safety keeps count, and the caller passes a Hold to each of them. A machine with a
// Hold makes no call until it is its turn to try for all. Its creation
// clock begins with its first try. If a quota is missing, the machine's status says so once: an
// autoscaler reads that, and tries another group of nodes.

// createTurnRetry is after how long a turn is asked for again where the answer says
// nothing better.
const createTurnRetry = 5 * time.Second

// classBackoff keeps a machine whose class is slowed from calling the provider until it
// is its turn. It comes before the announcement, so that a machine that waits
// writes no more than one status.
func (d *decider) classBackoff() (Plan, bool) {
	h, turn := d.o.Hold, d.o.CreateTurn
	if h == nil || d.o.Created != nil || turn != nil && turn.Given {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.classBackoffTimedOut(), true
	}
	why := decision.Why{Reason: reasonHeld, Detail: h.String(), Code: h.Code}
	at := h.Until
	switch {
	case turn != nil:
		at = turn.At
	case !d.now.Before(at):
		why.Reason = reasonAskCreate
		return Plan{Effect: AskCreate{}, Why: why}, true
	}
	if d.classBackoffUnrecorded(h) {
		return d.recordClassBackoff(h), true
	}
	if !d.now.Before(at) {
		at = d.now.Add(createTurnRetry)
	}
	if deadline.Before(at) && !d.creationNotBegun() {
		at = deadline
	}
	why.For = at.Sub(d.now)
	return Plan{At: at, Why: why}, true
}

// classBackoffUnrecorded reports whether the status of a new machine has yet to say that a quota
// is missing.
func (d *decider) classBackoffUnrecorded(h *Hold) bool {
	s := &d.m.Status
	return h.Code == codes.ResourceExhausted && s.Phase == PhaseNew && s.LastOperation.Kind == "" && d.m.Spec.ProviderID == ""
}

// recordClassBackoff records the refusal that the class met as this machine's own.
func (d *decider) recordClassBackoff(h *Hold) Plan {
	why := decision.Why{Reason: reasonHeldNoted, Detail: h.String(), Code: h.Code}
	never := !d.providerHasVM()
	return d.move(eventCreateFailed, why, func(s *Status) {
		s.LastOperation, s.NeverCreated = d.failure(OperationCreate, StageNone, h.Code, h.String()), never
	})
}

// classBackoffRecorded reports whether the last operation is what noteHeld wrote. It is no
// attempt of this machine, so nothing waits for it.
func (d *decider) classBackoffRecorded() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate && op.State == StateFailed && op.Stage == StageNone && op.Code == codes.ResourceExhausted
}

// classBackoffTimedOut marks a machine failed whose time was up before its next turn. Its
// failure carries the code of what held it back.
func (d *decider) classBackoffTimedOut() Plan {
	h, last, never := d.o.Hold, &d.m.Status.LastOperation, d.m.untouched() && !d.providerHasVM()
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: h.String()}
	return d.move(eventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, last.Stage, h.Code, why.String())
		if last.Kind != OperationCreate {
			op.Stage = StageNone
		}
		s.LastOperation, s.NeverCreated = op, never
	})
}

// vmMayExist reports whether a VM may exist though none is recorded: a create was
// announced, and no refusal says that nothing came of it.
func (d *decider) vmMayExist() bool {
	op := &d.m.Status.LastOperation
	return d.createPending() && (op.State != StateFailed || codes.RecoveryFor(codes.CreateMachine, op.Code).AutoRetry)
}

// A node that joins a cluster shows a bootstrap token, which it finds in its
// VM's user data. Each machine has one of its own: it is there before the create
// is issued, lasts until the creation's time is up, and is removed when the node has
// joined, or else with the machine.
//
// Nothing is recorded of it. The token is found by the machine's identity, so
// that a process which comes after a crash makes sure of the same one; to delete
// one that is gone is no mistake. It is made between the announcement and the
// create, and only there: so a machine of which it is recorded that no create was
// issued never had one, and a reader of an old state makes none for a machine
// that has joined meanwhile. It is deleted before the write that ends the need
// for it (Running, or the finalizer's removal), so that a crash in between
// deletes it again. A deletion that fails holds nothing up: the token has an end
// of its own.

// tokenExpiry is until when a token is needed.
func (d *decider) tokenExpiry() time.Time { return d.creationDeadline().Truncate(time.Second) }

// renewToken prolongs the token of a VM that exists.
func (d *decider) renewToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenEnsured != nil || !d.now.Before(d.creationDeadline()) {
		return Plan{}, false
	}
	until := d.tokenExpiry()
	return Plan{Effect: RenewToken{until}, Why: decision.Why{Reason: reasonRenewToken, For: until.Sub(d.now)}}, true
}

// joinTimeProlonged reports whether the machine's time to join was prolonged, by a freeze
// or a pause, beyond what its token may have been made for. That the token was
// prolonged since is not recorded: it is made sure of in each pass.
func (d *decider) joinTimeProlonged() bool { return d.waitBase(d.m.CreatedAt).After(d.m.CreatedAt) }

// removeToken deletes the token of a machine that does not need it any more.
func (d *decider) removeToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenRemoved != nil {
		return Plan{}, false
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// tokenNotDeleted is the warning about a token that could not be deleted.
func (d *decider) tokenNotDeleted() decision.Why {
	answer := d.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}
