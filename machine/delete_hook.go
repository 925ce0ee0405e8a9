package machine

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// hold waits for the hooks that others have put on a machine that is being
// deleted: annotations that begin with prefix. The program that put one there takes it
// off when the deletion may go on. The wait ends at Policy.HookTimeout, and
// with the label that forces a deletion.
func (d deletion) hold(prefix string) (Plan, bool) {
	hook := d.hook(prefix)
	if hook == "" || d.forcedByLabel() {
		return Plan{}, false
	}
	until := time.Time{}
	why := decision.Why{Reason: reasonHook, Name: hook}
	if timeout := d.p.HookTimeout; timeout > 0 {
		if until = d.after(d.m.DeletedAt, timeout); !d.now.Before(until) {
			return Plan{}, false
		}
		why.For = until.Sub(d.now)
	}
	op := d.operation(OperationDelete, StateProcessing, d.m.Status.DeletionStage())
	op.Message = "waiting for hook " + strconv.Quote(hook) + " to be taken off"
	if last := &d.m.Status.LastOperation; last.State != op.State || last.Message != op.Message {
		return d.setStatus(why, func(s *Status) {
			d.noteVM(s)
			s.LastOperation = op
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
