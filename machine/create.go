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
func (c creation) create() Plan {
	if plan, wait := c.createGate(); wait {
		return plan
	}
	if c.m.Spec.ProviderID == "" {
		return c.ensureVM()
	}
	return c.awaitNode()
}

// createGate holds a failed creation back until it may be tried again, and
// ends it when its time is up meanwhile.
//
// The machine is in CrashLoopBackOff. How long it waits follows from the code of the failure: after
// RESOURCE_EXHAUSTED Policy.QuotaRetry, 10 min. It does not wait once machine, class or secret have
// changed. The creation timeout runs on; at its end the machine is Failed, and its set replaces it.
func (c creation) createGate() (Plan, bool) {
	op := &c.m.Status.LastOperation
	if op.Kind != OperationCreate || c.heldNoted() {
		return Plan{}, false
	}
	at := c.retryAt(createCall(op.Stage))
	if at.IsZero() {
		return Plan{}, false
	}
	deadline := c.creationDeadline()
	if !c.now.Before(deadline) {
		return c.timedOut(op.Message), true
	}
	return c.retryLater(op.Stage.title(), at, deadline), true
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
func (c creation) ensureVM() Plan {
	if c.o.Class == nil {
		return c.classFailure(codes.NotFound, c.m.Spec.Class.missing())
	}
	if err := c.o.Class.Validate(); err != nil {
		return c.classFailure(codes.InvalidArgument, err.Error())
	}
	vm := c.o.VM
	if vm == nil {
		if plan, wait := c.unfitOrHeld(); wait && !c.mayBeMade() {
			return plan
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	switch vm.Code {
	case codes.OK, codes.Uninitialized:
		if vm.ProviderID == "" {
			return c.unnamed(vm)
		}
		if vm.Of != "" {
			return c.statusFailure(codes.Internal, vm.mistaken())
		}
		return c.adopt(vm)
	case codes.NotFound, codes.Unimplemented:
		return c.issueCreate()
	}
	return c.statusFailure(vm.Code, vm.Message)
}

// adopt records a VM that the provider has already.
func (c creation) adopt(vm *VM) Plan {
	if c.began() { // it may be what a call made whose answer was lost
		return c.accept(vm, reasonFound)
	}
	return c.record(vm, reasonFound)
}

// unnamed is about a VM of which the driver says that it is there, and not its provider ID. After
// UNINITIALIZED, InitializeMachine finds it by the machine's name and answers its ID. If that answer has
// none either, the driver is asked again: it knows a VM that is initialized.
func (c creation) unnamed(vm *VM) Plan {
	answer := c.o.Initialized
	switch {
	case vm.Code != codes.Uninitialized || c.o.NoInitialize:
	case answer == nil:
		if plan, busy := c.findToken(); busy {
			return plan
		}
		return Plan{Effect: InitializeVM{}, Why: decision.Why{Reason: reasonInitialize, Name: vmName(c.m)}}
	case answer.Code == codes.NotFound || answer.Code == codes.Unimplemented:
	case answer.Code != codes.OK:
		return c.createFailed(StageInstanceInitialization, answer.Code, answer.Message)
	case answer.ProviderID == "":
		return c.createFailed(StageInstanceInitialization, codes.Uninitialized, "the driver gave no provider ID of the VM that it has initialized")
	case answer.Of != "":
		return c.statusFailure(codes.Internal, answer.mistaken())
	default:
		return c.adopt(answer)
	}
	return c.statusFailure(codes.Internal, "the driver knows the VM but gave no provider ID: "+vm.Message)
}

// issueCreate announces a create, issues it, and looks at its answer. The
// announcement is written in the very pass that issues the call: a reader of
// an old state fails there, before it can create a VM that no record owns.
func (c creation) issueCreate() Plan {
	made := c.o.Created
	if made == nil {
		if plan, wait := c.unfitOrHeld(); wait {
			return plan
		}
		if !c.now.Before(c.creationDeadline()) {
			return c.timedOut("its time was up before its VM was created")
		}
		if plan, bad := c.noToken(); bad {
			return plan
		}
		if !c.announced() {
			return c.move(eventCreate, decision.Why{Reason: reasonFence}, func(s *Status) {
				s.LastOperation = c.operation(OperationCreate, StateProcessing, StageCreateVM)
				s.OnlyRefused, s.NeverCreated = c.onlyRefused(), false
				c.begin(s)
				c.announceSpec(s)
			})
		}
		if plan, busy := c.ensureToken(); busy {
			return plan
		}
		return Plan{Effect: CreateVM{}, Why: decision.Why{Reason: reasonCreate}}
	}
	switch {
	case made.Code != codes.OK:
		return c.createFailed(StageCreateVM, made.Code, made.Message)
	case made.ProviderID == "":
		return c.createFailed(StageCreateVM, codes.Internal, "the driver gave no provider ID")
	case made.Of != "":
		return c.createFailed(StageCreateVM, codes.Internal, made.mistaken())
	case made.NodeName == "" && !c.o.NoCluster:
		return c.createFailed(StageCreateVM, codes.Internal, "the driver gave no node name")
	}
	return c.accept(made, reasonCreated)
}

// unfitOrHeld keeps a machine from calling the provider if no API server would accept its node,
// without an end, or if its class is slowed.
func (c creation) unfitOrHeld() (Plan, bool) {
	if bad := c.unfit(); bad != nil && c.o.Created == nil {
		return Plan{Why: specInvalid(bad)}, true
	}
	return c.held()
}

// accept records a VM that was made for this machine, unless it came up under
// the name of a node that was there before.
func (c creation) accept(made *VM, reason decision.Reason) Plan {
	switch {
	case c.o.NoCluster || made.NodeName == "":
	case c.o.Node == nil || c.o.Node.Name != made.NodeName:
		return Plan{Effect: FindNode{Name: made.NodeName}, Why: decision.Why{Reason: reasonFindNode, Name: made.NodeName}}
	case c.o.Node.Node != nil && c.stale(c.o.Node.Node, made.ProviderID):
		return c.discard(made)
	}
	return c.record(made, reason)
}

// announced reports whether this pass has written the announcement of the create.
func (c creation) announced() bool {
	op := &c.m.Status.LastOperation
	return c.o.Fenced && c.m.Status.Phase == PhasePending && op.Kind == OperationCreate &&
		op.State == StateProcessing && op.Stage == StageCreateVM
}

// discard deletes a VM that came up under another node's name, and marks this
// machine failed. Its record keeps no node name that it could hurt.
func (c creation) discard(made *VM) Plan {
	if c.o.VMDeleted == nil {
		return Plan{
			Effect: DeleteVM{made.ProviderID},
			Why:    decision.Why{Reason: reasonStaleNodeVM, Name: made.NodeName},
		}
	}
	why := decision.Why{Reason: reasonStaleNode, Name: made.NodeName}
	return c.move(eventCreateRefused, why, func(s *Status) {
		s.LastOperation = c.failure(OperationCreate, StageCreateVM, codes.Aborted, why.String())
	})
}

// record stores what a VM is called before anything else is done with it.
func (c creation) record(vm *VM, reason decision.Reason) Plan {
	changed := c.m.Clone()
	changed.Spec.ProviderID = vm.ProviderID
	if changed.Spec.NodeName == "" && !c.o.NoCluster {
		changed.Spec.NodeName = vm.NodeName
	}
	return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reason, Name: vm.ProviderID}}
}

// awaitNode initializes a recorded VM if necessary, and waits until it joins.
func (c creation) awaitNode() Plan {
	vm := c.o.VM
	if vm == nil && c.o.Created == nil && c.m.Status.Phase != PhasePending {
		if c.o.Class == nil {
			return c.classFailure(codes.NotFound, c.m.Spec.Class.missing())
		}
		return Plan{Effect: GetVM{}, Why: decision.Why{Reason: reasonAskVM}}
	}
	if vm != nil {
		switch vm.Code {
		case codes.OK, codes.Uninitialized, codes.NotFound, codes.Unimplemented:
		default:
			return c.statusFailure(vm.Code, vm.Message)
		}
	}
	if name := c.newNodeName(); name != "" {
		changed := c.m.Clone()
		changed.Spec.NodeName = name
		return Plan{Write: &Update{changed}, Why: decision.Why{Reason: reasonNodeNamed, Name: name}}
	}
	if plan, busy := c.initialize(); busy {
		return plan
	}
	return c.settle()
}

// newNodeName is the node name that a driver gave and that is not recorded yet.
func (c creation) newNodeName() string {
	if c.o.NoCluster || c.m.Spec.NodeName != "" {
		return ""
	}
	for _, vm := range [...]*VM{c.o.VM, c.o.Initialized} {
		if vm != nil && vm.NodeName != "" {
			return vm.NodeName
		}
	}
	return ""
}

// initialize has the VM initialized if the driver said that it is not, or if
// a create was begun and nothing says that it was.
func (c creation) initialize() (Plan, bool) {
	uninitialized := c.o.VM != nil && c.o.VM.Code == codes.Uninitialized
	stage := c.m.Status.LastOperation.Stage
	if c.o.NoInitialize || !uninitialized && !c.began() {
		return Plan{}, false
	}
	answer := c.o.Initialized
	if answer == nil {
		if c.o.Class == nil {
			return c.classFailure(codes.NotFound, c.m.Spec.Class.missing()), true
		}
		if plan, busy := c.findToken(); busy {
			return plan, true
		}
		return Plan{Effect: InitializeVM{}, Why: decision.Why{Reason: reasonInitialize, Name: c.m.Spec.ProviderID}}, true
	}
	switch answer.Code {
	case codes.OK:
		if stage == StageInitialized {
			return Plan{}, false
		}
		why := decision.Why{Reason: reasonInitialized, Name: c.m.Spec.ProviderID}
		return c.move(EventProvisioned, why, func(s *Status) {
			c.begin(s)
			s.LastOperation = c.operation(OperationCreate, StateProcessing, StageInitialized)
		}), true
	case codes.Unimplemented, codes.NotFound:
		return Plan{}, false
	}
	return c.createFailed(StageInstanceInitialization, answer.Code, answer.Message), true
}

// settle moves a machine whose VM is ready to Available or Pending, and then waits
// for its node.
func (c creation) settle() Plan {
	id := c.m.Spec.ProviderID
	if c.o.NoCluster {
		return c.move(eventAvailable, decision.Why{Reason: reasonAvailable, Name: id}, func(s *Status) {
			s.LastOperation = c.operation(OperationCreate, StateSuccessful, StageInitialized)
			s.LastOperation.Message = "the VM is available"
		})
	}
	if c.m.Status.Phase != PhasePending || c.m.Status.LastOperation.State == StateFailed {
		return c.move(EventProvisioned, decision.Why{Reason: reasonPending, Name: id}, func(s *Status) {
			c.begin(s)
			s.LastOperation = c.operation(OperationCreate, StateProcessing, c.keepBegun(StageInitialized))
		})
	}
	return c.join()
}

// announceSpec notes what a VM that is about to be made is made from. An
// earlier create may have taken effect with other values: then these are what
// the VM may have.
func (c creation) announceSpec(s *Status) {
	if c.o.VMSpec == nil {
		return
	}
	before := s.VMSpec
	s.VMSpec = *c.o.VMSpec
	if !c.began() || before == (VMSpec{}) || before.Declared != s.VMSpec.Declared {
		return
	}
	if before.Begun != "" || before.Updatable != s.VMSpec.Updatable {
		s.VMSpec.Begun = unite(before.Updatable, before.Begun)
	}
}

// noToken refuses to create a VM that would boot with a placeholder for a token.
func (c creation) noToken() (Plan, bool) {
	if c.o.Token != TokenUnavailable {
		return Plan{}, false
	}
	message := "the user data of class " + c.m.Spec.Class.Name + " has a placeholder for a bootstrap token, and nothing here makes tokens"
	return c.classFailure(codes.InvalidArgument, message), true
}

// ensureToken makes sure, before a create hands out the user data, that what is
// put into it is there and lasts.
func (c creation) ensureToken() (Plan, bool) {
	if c.o.Token != TokenNeeded {
		return Plan{}, false
	}
	answer := c.o.TokenEnsured
	switch {
	case answer == nil:
		until := token(c).end()
		return Plan{Effect: EnsureToken{until}, Why: decision.Why{Reason: reasonEnsureToken, For: until.Sub(c.now)}}, true
	case answer.Code != codes.OK:
		return c.createFailed(StageCreateVM, answer.Code, "bootstrap token: "+answer.Message), true
	}
	return Plan{}, false
}

// findToken finds the token again before a VM is initialized, since that hands
// out the user data too. A machine without one is initialized all the same, and
// so is one whose time is up: no token would last.
func (c creation) findToken() (Plan, bool) {
	plan, busy := token(c).renew()
	if busy {
		return plan, true
	}
	answer := c.o.TokenEnsured
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return Plan{}, false
	}
	return c.createFailed(StageInstanceInitialization, answer.Code, "bootstrap token: "+answer.Message), true
}

// began reports whether a create may have been issued without the VM having
// been seen initialized since.
func (c creation) began() bool {
	op := &c.m.Status.LastOperation
	return op.Kind == OperationCreate &&
		(op.Stage == StageCreateVM || op.Stage == StageInstanceInitialization)
}

// keepBegun is stage, unless the persisted stage must not be forgotten.
func (c creation) keepBegun(stage Stage) Stage {
	if c.began() {
		return c.m.Status.LastOperation.Stage
	}
	return stage
}

// known reports whether the provider has VMs of this machine, even if another program made them.
func (c creation) known() bool {
	if c.o.VM == nil {
		return false
	}
	code := c.o.VM.Code
	return code == codes.OK || code == codes.Uninitialized || code == codes.OutOfRange
}

// classFailure reports a class that nothing can be created from.
func (c creation) classFailure(code codes.Code, message string) Plan {
	return c.createFailed(c.keepBegun(StageNone), code, message)
}

// statusFailure reports a status call that leaves open whether there is a VM.
func (c creation) statusFailure(code codes.Code, message string) Plan {
	return c.createFailed(c.keepBegun(StageGetVMStatus), code, message)
}

// createFailed records a failed step of the creation.
func (c creation) createFailed(stage Stage, code codes.Code, message string) Plan {
	on, reason := eventCreateFailed, reasonCreateFailed
	switch {
	case code == codes.AlreadyExists && c.o.Created != nil && stage == StageCreateVM:
		on, reason = eventCreateRefused, reasonCreateRefused
	case !c.now.Before(c.creationDeadline()):
		on, reason = eventCreationTimeout, reasonCreateFailed
	}
	why := decision.Why{Reason: reason, Name: stage.title(), Code: code, Detail: message}
	never, unanswered := c.m.untouched() && !c.known(), c.unanswered()
	answered := c.o.Created != nil && stage == StageCreateVM
	return c.move(on, why, func(s *Status) {
		c.begin(s)
		s.LastOperation = c.failure(OperationCreate, stage, code, message)
		s.OnlyRefused = s.OnlyRefused && !unanswered // what is stored from now on does not say that one was
		if answered {
			s.OnlyRefused = s.OnlyRefused && madeNothing(code)
			never = s.OnlyRefused && code == codes.AlreadyExists && !c.known()
		}
		s.NeverCreated = never
	})
}

// onlyRefused reports whether it is certain that no create call so far has made anything. One
// whose answer is not recorded may have.
func (c creation) onlyRefused() bool {
	return c.m.untouched() || c.m.Status.OnlyRefused && !c.unanswered()
}

// unanswered reports whether an earlier pass announced a create whose answer is not recorded.
func (c creation) unanswered() bool {
	return c.began() && c.m.Status.LastOperation.State != StateFailed && !c.announced()
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

// timedOut marks a machine failed that did not run in time.
func (c creation) timedOut(message string) Plan {
	why := decision.Why{Reason: reasonCreationTimeout, For: c.p.creationTimeout(c.m), Detail: message}
	return c.move(eventCreationTimeout, why, func(s *Status) {
		op := c.failure(OperationCreate, s.LastOperation.Stage, codes.DeadlineExceeded, why.String())
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

// held keeps a machine whose class is slowed from calling the provider until it
// is its turn. It comes before the announcement, so that a machine that waits
// writes no more than one status.
func (c creation) held() (Plan, bool) {
	h, turn := c.o.Hold, c.o.CreateTurn
	if h == nil || c.o.Created != nil || turn != nil && turn.Given {
		return Plan{}, false
	}
	deadline := c.creationDeadline()
	if !c.now.Before(deadline) {
		return c.heldTooLong(), true
	}
	why := decision.Why{Reason: reasonHeld, Detail: h.String(), Code: h.Code}
	at := h.Until
	switch {
	case turn != nil:
		at = turn.At
	case !c.now.Before(at):
		why.Reason = reasonAskCreate
		return Plan{Effect: AskCreate{}, Why: why}, true
	}
	if c.unnoted(h) {
		return c.noteHeld(h), true
	}
	if !c.now.Before(at) {
		at = c.now.Add(createTurnRetry)
	}
	if deadline.Before(at) && !c.unbegun() {
		at = deadline
	}
	why.For = at.Sub(c.now)
	return Plan{At: at, Why: why}, true
}

// unnoted reports whether the status of a new machine has yet to say that a quota
// is missing.
func (c creation) unnoted(h *Hold) bool {
	s := &c.m.Status
	return h.Code == codes.ResourceExhausted && s.Phase == PhaseNew && s.LastOperation.Kind == "" && c.m.Spec.ProviderID == ""
}

// noteHeld records the refusal that the class met as this machine's own.
func (c creation) noteHeld(h *Hold) Plan {
	why := decision.Why{Reason: reasonHeldNoted, Detail: h.String(), Code: h.Code}
	never := !c.known()
	return c.move(eventCreateFailed, why, func(s *Status) {
		s.LastOperation, s.NeverCreated = c.failure(OperationCreate, StageNone, h.Code, h.String()), never
	})
}

// heldNoted reports whether the last operation is what noteHeld wrote. It is no
// attempt of this machine, so nothing waits for it.
func (s *situation) heldNoted() bool {
	op := &s.m.Status.LastOperation
	return op.Kind == OperationCreate && op.State == StateFailed && op.Stage == StageNone && op.Code == codes.ResourceExhausted
}

// heldTooLong marks a machine failed whose time was up before its next turn. Its
// failure carries the code of what held it back.
func (c creation) heldTooLong() Plan {
	h, last, never := c.o.Hold, &c.m.Status.LastOperation, c.m.untouched() && !c.known()
	why := decision.Why{Reason: reasonCreationTimeout, For: c.p.creationTimeout(c.m), Detail: h.String()}
	return c.move(eventCreationTimeout, why, func(s *Status) {
		op := c.failure(OperationCreate, last.Stage, h.Code, why.String())
		if last.Kind != OperationCreate {
			op.Stage = StageNone
		}
		s.LastOperation, s.NeverCreated = op, never
	})
}

// mayBeMade reports whether a VM may exist though none is recorded: a create was
// announced, and no refusal says that nothing came of it.
func (c creation) mayBeMade() bool {
	op := &c.m.Status.LastOperation
	return c.began() && (op.State != StateFailed || codes.RecoveryFor(codes.CreateMachine, op.Code).AutoRetry)
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

// end is until when a token is needed.
func (t token) end() time.Time { return t.creationDeadline().Truncate(time.Second) }

// renew prolongs the token of a VM that exists.
func (t token) renew() (Plan, bool) {
	if t.o.Token != TokenNeeded || t.o.TokenEnsured != nil || !t.now.Before(t.creationDeadline()) {
		return Plan{}, false
	}
	until := t.end()
	return Plan{Effect: RenewToken{until}, Why: decision.Why{Reason: reasonRenewToken, For: until.Sub(t.now)}}, true
}

// prolonged reports whether the machine's time to join was prolonged, by a freeze
// or a pause, beyond what its token may have been made for. That the token was
// prolonged since is not recorded: it is made sure of in each pass.
func (t token) prolonged() bool { return t.since(t.m.CreatedAt).After(t.m.CreatedAt) }

// remove deletes the token of a machine that does not need it any more.
func (t token) remove() (Plan, bool) {
	if t.o.Token != TokenNeeded || t.o.TokenRemoved != nil {
		return Plan{}, false
	}
	return Plan{Effect: RemoveToken{}, Why: decision.Why{Reason: reasonRemoveToken}}, true
}

// left is the warning about a token that could not be deleted.
func (t token) left() decision.Why {
	answer := t.o.TokenRemoved
	if answer == nil || answer.Code == codes.OK || answer.Code == codes.NotFound {
		return decision.Why{}
	}
	return decision.Why{Reason: reasonTokenLeft, Code: answer.Code, Detail: answer.Message}
}
