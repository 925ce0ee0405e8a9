package machine

import (
	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

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
