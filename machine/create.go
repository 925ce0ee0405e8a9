package machine

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// create takes a machine from new to Available or, once its node has joined, to Running. It does one step
// after the other:
//
//	read the VM -> announce the create in the status -> bootstrap token -> create the VM ->
//	record its ID and node name -> initialize -> Pending -> the node joins -> remove the token -> Running
//
// If the process is killed after the VM was created and before it was recorded, the next process reads the
// VM, finds it, and continues from there.
func (d *decider) create() Plan {
	if plan, found := d.createBackoff(); found {
		return plan
	}
	if d.m.Spec.ProviderID == "" {
		return d.ensureVM()
	}
	return d.initializeAndJoin()
}

// createBackoff waits for the next attempt after a failed creation, and marks the machine Failed at its
// deadline.
//
// The machine is in CrashLoopBackOff. The wait depends on the code of the failure: after
// RESOURCE_EXHAUSTED it is Policy.QuotaRetry, 10 min by default. A change of the machine, its class or its
// secrets ends it. The creation timeout continues to run.
func (d *decider) createBackoff() (Plan, bool) {
	op := &d.m.Status.LastOperation
	if op.Kind != OperationCreate || d.classBackoffRecorded() {
		return Plan{}, false
	}
	at := d.retryAt(creationCallOf(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.creationTimedOut(op.Message), true
	}
	return d.retryLater(op.Stage.title(), at, deadline), true
}

// creationCallOf returns the driver call of a creation's stage.
func creationCallOf(stage Stage) codes.Call {
	switch stage {
	case StageGetVMStatus:
		return codes.GetMachineStatus
	case StageInstanceInitialization:
		return codes.InitializeMachine
	}
	return codes.CreateMachine
}

// ensureVM reads the machine's VM, creates it if it does not exist, and records it. It reads before each
// create, so that a restart creates no second VM. A driver without GetMachineStatus must make CreateMachine
// idempotent itself.
func (d *decider) ensureVM() Plan {
	if d.o.Class == nil {
		return d.classFailed(codes.NotFound, d.m.Spec.Class.missing())
	}
	if err := d.o.Class.Validate(); err != nil {
		return d.classFailed(codes.InvalidArgument, err.Error())
	}
	vm := d.o.VM
	if vm == nil {
		if plan, found := d.invalidOrBackoff(); found && !d.vmMayExist() {
			return plan
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	switch vm.Code {
	case codes.OK, codes.Uninitialized:
		if vm.ProviderID == "" {
			return d.vmWithoutID(vm)
		}
		if vm.ClaimedBy != "" {
			return d.statusFailed(codes.Internal, vm.wrongVMMessage())
		}
		return d.adoptVM(vm)
	case codes.NotFound, codes.Unimplemented:
		return d.issueCreate()
	}
	return d.statusFailed(vm.Code, vm.Message)
}

// adoptVM records a VM that already exists.
func (d *decider) adoptVM(vm *VM) Plan {
	if d.createMayBeUnfinished() { // the VM may come from a create whose answer was lost
		return d.acceptVM(vm, reasonFound)
	}
	return d.recordVM(vm, reasonFound)
}

// vmWithoutID handles an answer of GetMachineStatus that reports a VM without its provider ID. After
// UNINITIALIZED, InitializeMachine finds the VM by the machine's name and returns the ID. Any other such
// answer is a failure of the driver, and is retried.
func (d *decider) vmWithoutID(vm *VM) Plan {
	answer := d.o.Initialized
	switch {
	case vm.Code != codes.Uninitialized || d.o.NoInitialize:
	case answer == nil:
		if plan, found := d.renewTokenForInit(); found {
			return plan
		}
		return Plan{Effect: InitializeVM{}, Why: decision.Why{Reason: reasonInitialize, Name: vmName(d.m)}}
	case answer.Code == codes.NotFound || answer.Code == codes.Unimplemented:
	case answer.Code != codes.OK:
		return d.createFailed(StageInstanceInitialization, answer.Code, answer.Message)
	case answer.ProviderID == "":
		return d.createFailed(StageInstanceInitialization, codes.Uninitialized, "the driver returned no provider ID for the VM that it initialized")
	case answer.ClaimedBy != "":
		return d.statusFailed(codes.Internal, answer.wrongVMMessage())
	default:
		return d.adoptVM(answer)
	}
	return d.statusFailed(codes.Internal, "the driver reports the VM but returned no provider ID: "+vm.Message)
}

// issueCreate announces a create in the status, issues it, and handles its answer. The announcement is
// written in the pass that issues the call: a process that has read a stale machine fails at that write,
// before it can create a VM that no machine owns.
func (d *decider) issueCreate() Plan {
	made := d.o.Created
	if made == nil {
		if plan, found := d.invalidOrBackoff(); found {
			return plan
		}
		if !d.now.Before(d.creationDeadline()) {
			return d.creationTimedOut("no VM was created")
		}
		if plan, found := d.tokenUnavailable(); found {
			return plan
		}
		if !d.announcedThisPass() {
			return d.move(eventCreate, decision.Why{Reason: reasonCreateAnnounced}, func(s *Status) {
				s.LastOperation = d.operation(OperationCreate, StateProcessing, StageCreateVM)
				s.OnlyRefused, s.NeverCreated = d.nothingCreatedYet(), false
				d.beginCreationClock(s)
				d.recordSpecForCreate(s)
			})
		}
		if plan, found := d.ensureToken(); found {
			return plan
		}
		return Plan{Effect: CreateVM{}, Why: decision.Why{Reason: reasonCreate}}
	}
	switch {
	case made.Code != codes.OK:
		return d.createFailed(StageCreateVM, made.Code, made.Message)
	case made.ProviderID == "":
		return d.createFailed(StageCreateVM, codes.Internal, "the driver returned no provider ID")
	case made.ClaimedBy != "":
		return d.createFailed(StageCreateVM, codes.Internal, made.wrongVMMessage())
	case made.NodeName == "" && !d.o.NoCluster:
		return d.createFailed(StageCreateVM, codes.Internal, "the driver returned no node name")
	}
	return d.acceptVM(made, reasonCreated)
}

// invalidOrBackoff returns a plan without a create if the API server would reject the machine's node, for
// example because of an invalid label, or if the machine's class backs off.
func (d *decider) invalidOrBackoff() (Plan, bool) {
	if bad := d.invalidForNode(); bad != nil && d.o.Created == nil {
		return Plan{Why: specInvalid(bad)}, true
	}
	return d.classBackoff()
}

// acceptVM records a VM that was created for this machine, unless its node name belongs to an older node.
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

// announcedThisPass reports whether this pass has announced the create.
func (d *decider) announcedThisPass() bool {
	op := &d.m.Status.LastOperation
	return d.o.Fresh && d.m.Status.Phase == PhasePending && op.Kind == OperationCreate &&
		op.State == StateProcessing && op.Stage == StageCreateVM
}

// discardVM deletes a VM whose node name belongs to another node, and marks the machine Failed. It records
// no node name, so that the machine's deletion leaves that node alone.
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

// recordVM stores provider ID and node name of a VM before any other call for it.
func (d *decider) recordVM(vm *VM, reason decision.Reason) Plan {
	changed := d.m.Clone()
	changed.Spec.ProviderID = vm.ProviderID
	if changed.Spec.NodeName == "" && !d.o.NoCluster {
		changed.Spec.NodeName = vm.NodeName
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reason, Name: vm.ProviderID}}
}

// initializeAndJoin initializes a recorded VM if necessary, and waits until its node joins.
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
	if plan, found := d.initializeVM(); found {
		return plan
	}
	return d.pendingOrAvailable()
}

// newNodeName returns a node name that the driver returned and that is not recorded yet.
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

// initializeVM initializes the VM if the driver reports it as uninitialized, or if a create was announced
// and no initialization is recorded since.
func (d *decider) initializeVM() (Plan, bool) {
	uninitialized := d.o.VM != nil && d.o.VM.Code == codes.Uninitialized
	stage := d.m.Status.LastOperation.Stage
	if d.o.NoInitialize || !uninitialized && !d.createMayBeUnfinished() {
		return Plan{}, false
	}
	answer := d.o.Initialized
	if answer == nil {
		if d.o.Class == nil {
			return d.classFailed(codes.NotFound, d.m.Spec.Class.missing()), true
		}
		if plan, found := d.renewTokenForInit(); found {
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

// pendingOrAvailable moves a machine whose VM is ready to Available or Pending. A Pending one then waits
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

// recordSpecForCreate records the spec that a VM is about to be created from. If the result of an earlier
// create is not known, its values are recorded in Begun, because the VM may have them.
func (d *decider) recordSpecForCreate(s *Status) {
	if d.o.VMSpec == nil {
		return
	}
	before := s.VMSpec
	s.VMSpec = *d.o.VMSpec
	if !d.createMayBeUnfinished() || before == (VMSpec{}) || before.Declared != s.VMSpec.Declared {
		return
	}
	if before.Begun != "" || before.Updatable != s.VMSpec.Updatable {
		s.VMSpec.Begun = unionOfValues(before.Updatable, before.Begun)
	}
}

// tokenUnavailable fails a creation whose VM would boot with a placeholder instead of a token.
func (d *decider) tokenUnavailable() (Plan, bool) {
	if d.o.Token != TokenUnavailable {
		return Plan{}, false
	}
	message := "the user data of class " + d.m.Spec.Class.Name + " has a placeholder for a bootstrap token, and this manager makes no tokens"
	return d.classFailed(codes.InvalidArgument, message), true
}

// ensureToken creates the bootstrap token before the create, which passes it on in the user data.
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

// renewTokenForInit renews the token before a VM is initialized, because that call gets the user data too.
// A machine without a token is initialized all the same, and so is one whose creation deadline has passed.
func (d *decider) renewTokenForInit() (Plan, bool) {
	plan, found := d.renewToken()
	if found {
		return plan, true
	}
	answer := d.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return Plan{}, false
	}
	return d.createFailed(StageInstanceInitialization, answer.Code, "bootstrap token: "+answer.Message), true
}

// createMayBeUnfinished reports whether a create was announced, in this pass or an earlier one, and no
// initialization of the VM is recorded since.
func (d *decider) createMayBeUnfinished() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate &&
		(op.Stage == StageCreateVM || op.Stage == StageInstanceInitialization)
}

// keepCreateStage returns stage. If a create may be unfinished, it returns the stored stage, which says so.
func (d *decider) keepCreateStage(stage Stage) Stage {
	if d.createMayBeUnfinished() {
		return d.m.Status.LastOperation.Stage
	}
	return stage
}

// providerHasVM reports whether the provider has a VM of this machine, even if another program created it.
func (d *decider) providerHasVM() bool {
	if d.o.VM == nil {
		return false
	}
	code := d.o.VM.Code // OUT_OF_RANGE: several VMs match the machine
	return code == codes.OK || code == codes.Uninitialized || code == codes.OutOfRange
}

// classFailed records that nothing can be created from the class.
func (d *decider) classFailed(code codes.Code, message string) Plan {
	return d.createFailed(d.keepCreateStage(StageNone), code, message)
}

// statusFailed records a call of GetMachineStatus that does not say whether the VM exists.
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
	neverCreated, unanswered := d.m.certainlyNoVM() && !d.providerHasVM(), d.createUnanswered()
	answered := d.o.Created != nil && stage == StageCreateVM
	return d.move(on, why, func(s *Status) {
		d.beginCreationClock(s)
		s.LastOperation = d.failure(OperationCreate, stage, code, message)
		// The new LastOperation no longer shows that an earlier create was not answered and may have made a VM.
		s.OnlyRefused = s.OnlyRefused && !unanswered
		if answered {
			s.OnlyRefused = s.OnlyRefused && createsNothing(code)
			// ALREADY_EXISTS: the VM of this name is not ours.
			neverCreated = s.OnlyRefused && code == codes.AlreadyExists && !d.providerHasVM()
		}
		s.NeverCreated = neverCreated
	})
}

// nothingCreatedYet reports whether it is certain that no create call so far has created a VM. A call whose
// answer is not recorded may have created one.
func (d *decider) nothingCreatedYet() bool {
	return d.m.certainlyNoVM() || d.m.Status.OnlyRefused && !d.createUnanswered()
}

// createUnanswered reports whether an earlier pass announced a create whose answer is not recorded.
func (d *decider) createUnanswered() bool {
	return d.createMayBeUnfinished() && d.m.Status.LastOperation.State != StateFailed && !d.announcedThisPass()
}

// createsNothing reports whether it is certain that a create that failed with code has created nothing.
func createsNothing(code codes.Code) bool {
	switch code {
	case codes.InvalidArgument, codes.AlreadyExists, codes.PermissionDenied, codes.ResourceExhausted,
		codes.Unauthenticated, codes.Unimplemented:
		return true
	}
	return false
}

// creationTimedOut marks a machine Failed because it is not Running at its creation deadline.
func (d *decider) creationTimedOut(message string) Plan {
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: message}
	return d.move(eventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, s.LastOperation.Stage, codes.DeadlineExceeded, why.String())
		if s.LastOperation.State == StateFailed {
			op.Code = s.LastOperation.Code // the cause says more than the timeout
		}
		s.LastOperation = op
	})
}

// title returns the name of a creation's stage for messages.
func (s Stage) title() string {
	if s == StageNone {
		return "preparation"
	}
	return string(s)
}

// wrongVMMessage returns the message for an answer with another machine's VM. Such a VM must not be recorded,
// because it would be deleted with this machine.
func (vm *VM) wrongVMMessage() string {
	return "the driver returned VM " + vm.ProviderID + ", which belongs to machine " + vm.ClaimedBy
}

// If a quota is exhausted or a class is wrong, the provider refuses to create every machine of the class.
// Package safety/backoff counts these refusals, and the caller gives each machine of the class a ClassBackoff.
// One machine of the class at a time gets a permit for the next attempt. Until a machine has the permit, it
// makes no create call. Its creation timeout begins with its first attempt. If a quota is exhausted, its status
// says so once, for an autoscaler to read.

// permitRetry is how long to wait before AskCreate is repeated, unless the answer says when.
const permitRetry = 5 * time.Second

// classBackoff asks for a permit and waits for it, if the machine's class backs off. It precedes the
// announcement, so that a waiting machine writes at most one status.
func (d *decider) classBackoff() (Plan, bool) {
	backoff, permit := d.o.ClassBackoff, d.o.CreatePermit
	if backoff == nil || d.o.Created != nil || permit != nil && permit.Given {
		return Plan{}, false
	}
	deadline := d.creationDeadline()
	if !d.now.Before(deadline) {
		return d.classBackoffTimedOut(), true
	}
	why := decision.Why{Reason: reasonClassBackoff, Detail: backoff.String(), Code: backoff.Code}
	at := backoff.Until
	switch {
	case permit != nil:
		at = permit.At
	case !d.now.Before(at):
		why.Reason = reasonAskCreate
		return Plan{Effect: AskCreate{}, Why: why}, true
	}
	if d.classBackoffUnrecorded(backoff) {
		return d.recordClassBackoff(backoff), true
	}
	if !d.now.Before(at) {
		at = d.now.Add(permitRetry)
	}
	if deadline.Before(at) && !d.creationNotBegun() {
		at = deadline
	}
	why.For = at.Sub(d.now)
	return Plan{At: at, Why: why}, true
}

// classBackoffUnrecorded reports whether the status of a new machine does not say yet that a quota is
// exhausted.
func (d *decider) classBackoffUnrecorded(backoff *ClassBackoff) bool {
	s := &d.m.Status
	return backoff.Code == codes.ResourceExhausted && s.Phase == PhaseNew && s.LastOperation.Kind == "" && d.m.Spec.ProviderID == ""
}

// recordClassBackoff records the latest refusal of the class as this machine's failure.
func (d *decider) recordClassBackoff(backoff *ClassBackoff) Plan {
	why := decision.Why{Reason: reasonClassBackoffRecorded, Detail: backoff.String(), Code: backoff.Code}
	neverCreated := !d.providerHasVM()
	return d.move(eventCreateFailed, why, func(s *Status) {
		s.LastOperation = d.failure(OperationCreate, StageNone, backoff.Code, backoff.String())
		s.NeverCreated = neverCreated
	})
}

// classBackoffRecorded reports whether recordClassBackoff has written the last operation. The machine itself has
// made no attempt then, so no backoff of its own follows.
func (d *decider) classBackoffRecorded() bool {
	op := &d.m.Status.LastOperation
	return op.Kind == OperationCreate && op.State == StateFailed && op.Stage == StageNone && op.Code == codes.ResourceExhausted
}

// classBackoffTimedOut marks a machine Failed because its creation deadline passed before it got a permit. The
// failure has the code of the class's refusal.
func (d *decider) classBackoffTimedOut() Plan {
	backoff, last := d.o.ClassBackoff, &d.m.Status.LastOperation
	neverCreated := d.m.certainlyNoVM() && !d.providerHasVM()
	why := decision.Why{Reason: reasonCreationTimeout, For: d.p.creationTimeout(d.m), Detail: backoff.String()}
	return d.move(eventCreationTimeout, why, func(s *Status) {
		op := d.failure(OperationCreate, last.Stage, backoff.Code, why.String())
		if last.Kind != OperationCreate {
			op.Stage = StageNone
		}
		s.LastOperation, s.NeverCreated = op, neverCreated
	})
}

// vmMayExist reports whether a VM may exist that is not recorded: a create was announced, and it was not answered
// or has failed with a code that is retried.
func (d *decider) vmMayExist() bool {
	op := &d.m.Status.LastOperation
	return d.createMayBeUnfinished() && (op.State != StateFailed || codes.RecoveryFor(codes.CreateMachine, op.Code).AutoRetry)
}

// A node joins a cluster with a bootstrap token from the user data of its VM. Each machine has a token of
// its own: it exists before the create is issued, is valid until the creation deadline, and is removed when
// the node has joined, or with the machine.
//
//   - The token is found by the machine's identity and not recorded, so a process that continues after a
//     crash ensures the same token. Removing one that does not exist is no failure.
//   - It is created only between the announcement and the create. So a machine without an announced create
//     never had one, and a stale reader creates none for a machine that has joined.
//   - It is removed before the write that ends the need for it (phase Running, or the removal of the
//     finalizer), so that it is removed again after a crash in between.
//   - A failed removal blocks nothing, because the token expires.

// tokenExpiry returns when the token may expire.
func (d *decider) tokenExpiry() time.Time { return d.creationDeadline().Truncate(time.Second) }

// renewToken renews the token of an existing VM, once a pass and before the creation deadline.
func (d *decider) renewToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenEnsured != nil || !d.now.Before(d.creationDeadline()) {
		return Plan{}, false
	}
	until := d.tokenExpiry()
	return Plan{Effect: RenewToken{until}, Why: decision.Why{Reason: reasonRenewToken, For: until.Sub(d.now)}}, true
}

// joinTimeProlonged reports whether a freeze, a pause or a late first step has moved the creation deadline.
// Then the token may expire before the deadline, and each pass renews it, because renewals are not recorded.
func (d *decider) joinTimeProlonged() bool { return d.waitBase(d.m.CreatedAt).After(d.m.CreatedAt) }

// removeToken deletes the token, once a pass. The caller knows that the machine no longer needs it.
func (d *decider) removeToken() (Plan, bool) {
	if d.o.Token != TokenNeeded || d.o.TokenRemoved != nil {
		return Plan{}, false
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// tokenNotDeleted returns a warning if the token could not be deleted.
func (d *decider) tokenNotDeleted() decision.Why {
	answer := d.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}
