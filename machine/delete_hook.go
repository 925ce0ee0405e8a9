package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// hold waits for the hooks that others have put on a machine that is being
// deleted: annotations that begin with prefix. The program that put one there takes it
// off when the deletion may go on. Once hooks have held a stage back for Policy.HookTimeout, they do
// so no more, whether it was one hook or several; nor do they with the label that forces a deletion.
//
// The clock of the stage's own work begins when the hooks are off.
func (d deletion) hold(prefix string) (Plan, bool) {
	if d.forcedByLabel() {
		return Plan{}, false
	}
	status := &d.m.Status
	since, until := d.past(status.HeldSince), time.Time{}
	held := status.StageSince.IsZero() && !since.IsZero()
	if since.IsZero() {
		since = d.stamp()
	}
	hook := d.hook(prefix)
	why := decision.Why{Reason: reasonHook, Name: hook}
	if timeout := d.p.HookTimeout; timeout > 0 {
		until = d.after(since, timeout)
		why.For = until.Sub(d.now)
	}
	op := d.operation(OperationDelete, StateProcessing, status.DeletionStage())
	if hook == "" || !until.IsZero() && !d.now.Before(until) {
		if !held {
			return Plan{}, false
		}
		return d.setStatus(decision.Why{Reason: reasonUnheld, Name: string(op.Stage)}, func(s *Status) {
			d.noteVM(s)
			s.LastOperation, s.StageSince = op, d.stamp()
		}), true
	}
	op.Message = "waiting for hook " + strconv.Quote(hook) + " to be taken off"
	if last := &status.LastOperation; !held || last.State != op.State || last.Message != op.Message {
		return d.setStatus(why, func(s *Status) {
			d.noteVM(s)
			s.LastOperation, s.StageSince, s.HeldSince = op, time.Time{}, since
		}), true
	}
	return Plan{At: until, Why: why}, true
}

// hook is the first annotation with a prefix, by name; empty: there is none.
func (d deletion) hook(prefix string) (first string) {
	if prefix == "" {
		return ""
	}
	for key := range d.m.Annotations {
		if strings.HasPrefix(key, prefix) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}
