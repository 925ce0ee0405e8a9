package machineset

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// worst is the refusal that is told in the status: the one that keeps the set
// the furthest from what it should be. False: no order was refused.
func (r *Refused) worst() (machine.OperationKind, decision.Why, bool) {
	tell := func(reason decision.Reason, o *machine.Outcome) decision.Why {
		detail, _ := codes.Bounded(o.Message)
		return decision.Why{Reason: reason, Code: o.Code, Detail: detail}
	}
	switch {
	case r.Create != nil:
		return machine.OperationCreate, tell(reasonFailedCreate, r.Create), true
	case r.Delete != nil:
		return machine.OperationDelete, tell(reasonFailedDelete, r.Delete), true
	case r.Change != nil:
		return machine.OperationUpdate, tell(reasonFailedUpdate, r.Change), true
	}
	return "", decision.Why{}, false
}

// retryAt is the moment before which no order is given, since the last refusal
// that is stored is too young; zero: orders may be given. It holds back orders
// of all kinds: the write that stores a refusal wakes the set up again, and
// two kinds that fail in turns would never settle. A changed set opens
// it, and so does a time that no clock can have written.
func (d *situation) retryAt() time.Time {
	failures := d.o.Failures
	if _, _, refused := d.o.Refused.worst(); refused {
		failures++
	}
	return d.retryAfter(failures)
}

// retryAfter returns when orders may be given again after so many failures in a row.
func (d *situation) retryAfter(failures int) time.Time {
	op := &d.s.Status.LastOperation
	if op.State != machine.StateFailed || op.Against.Machine != d.s.Generation ||
		op.Time.After(d.now.Add(d.p.RetryMax)) {
		return time.Time{}
	}
	at := op.Time.Add(d.p.backoff(failures) + time.Second)
	if !d.now.Before(at) {
		return time.Time{}
	}
	return at
}
