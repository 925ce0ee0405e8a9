package drain

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// Detach decides what to do next about the volumes that are still attached to a node whose pods
// were removed by force. It orders the deletion of each attachment that is not being deleted. It
// ends when no attachment is left, when the node is gone or has none attached, or when
// Policy.DetachTimeout has passed since Observation.Asked. The memory keeps each answer under the
// name of the attachment. If force is no longer due, Detach deletes nothing, and removes the taint
// that would make the cluster delete the attachments.
//
// Only a caller's mistake is an error, as for Decide.
func Detach(o *Observation, p *Policy, now time.Time) (Plan, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return Plan{}, err
	}
	end := time.Time{}
	if !o.Asked.IsZero() {
		end = o.Asked.Add(p.DetachTimeout)
	}
	late := !end.IsZero() && !now.Before(end)
	d.lookAgain(end)
	switch {
	case !o.Complete && late:
		return Plan{Done: true, Why: decision.Why{Reason: reasonIncomplete}}, nil
	case !o.Complete:
		return Plan{At: d.at, Why: decision.Why{Reason: reasonIncomplete}}, nil
	case o.Node == nil:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNodeGone}}, nil
	case d.unfences() && !o.WriteFailed:
		return d.unfence(), nil
	case o.Attached != nil && len(o.Attached) == 0:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNoneAttached}}, nil
	}
	return d.detach(end, late), nil
}

// detach decides about a node that is known, and what is attached to it.
func (d *decider) detach(end time.Time, late bool) Plan {
	due, left := d.detachments()
	switch {
	case left == 0:
		return Plan{Done: true, Why: decision.Why{Reason: reasonNoneAttached}}
	case late:
		return Plan{Done: true, Why: decision.Why{Reason: reasonDetachEnded, Have: left, For: d.p.DetachTimeout}}
	case len(due) > 0 && d.o.Forced:
		slices.SortFunc(due, func(a, b DetachOrder) int { return strings.Compare(a.Name, b.Name) })
		return Plan{Detach: due, Why: due[0].Why}
	}
	if name, failed := d.undetached(); failed {
		return Plan{At: d.at, Why: decision.Why{Reason: ReasonDetachFailed, Name: name, Detail: d.o.Memory.answer(name).Message}}
	}
	why := decision.Why{Reason: reasonDetachWait, Have: left}
	if !end.IsZero() {
		why.For = end.Sub(d.now)
	}
	return Plan{At: d.at, Why: why}
}

// undetached returns the first attachment whose deletion was not accepted.
func (d *decider) undetached() (name string, found bool) {
	for _, a := range d.o.Attachments {
		if a == nil || a.Node != d.o.Node.Name || !a.DeletedAt.IsZero() {
			continue
		}
		result := d.o.Memory.answer(a.Name).Result
		if (result == Failed || result == Refused) && (!found || a.Name < name) {
			name, found = a.Name, true
		}
	}
	return name, found
}

// detachments returns the attachments to delete now, and the number of all that are left.
func (d *decider) detachments() (due []DetachOrder, left int64) {
	for _, a := range d.o.Attachments {
		if a == nil || a.Node != d.o.Node.Name || a.Name == "" {
			continue
		}
		answer := d.o.Memory.answer(a.Name)
		if answer.Result == NotFound {
			continue
		}
		left++
		if !a.DeletedAt.IsZero() || answer.Result == Accepted {
			continue
		}
		if again := answer.At.Add(d.p.RetryDelete); answer.Result != "" && d.now.Before(again) {
			d.lookAgain(again)
			continue
		}
		due = append(due, DetachOrder{Name: a.Name, Why: decision.Why{Reason: reasonDetach, Name: a.Volume}})
	}
	return due, left
}
