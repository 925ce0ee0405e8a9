package deployment

import (
	"fmt"
	"slices"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/object"
)

// progress is how far the rollout is.
type progress struct {
	*summary
	rollout *resizing
}

// Reasons of ConditionProgressing, in the spelling that stored objects have.
const (
	// ProgressCreated: a rollout has begun with a set that was made for it.
	ProgressCreated = "NewMachineSetCreated"
	// ProgressFound: a rollout has begun with a set that was there before it.
	ProgressFound = "FoundNewMachineSet"
	// ProgressUpdated: the rollout has made progress.
	ProgressUpdated = "MachineSetUpdated"
	// ProgressAvailable: the rollout is complete. This reason stays when machines fail or the fleet
	// is scaled later, until the next rollout. The message says what is missing then.
	ProgressAvailable = "NewMachineSetAvailable"
	// ProgressPaused: the deployment is paused; the status is Unknown.
	ProgressPaused = "DeploymentPaused"
	// ProgressResumed: it is no longer paused or stopped, and has made no progress since.
	ProgressResumed = "DeploymentResumed"
	// ProgressStopped: the rollout has stopped because machines failed, see Strategy.StopAfter; the
	// status is False.
	ProgressStopped = "RolloutStopped"
	// ProgressDeadlineExceeded: the rollout has made no progress for Spec.ProgressDeadline; the
	// status is False. It stays while the deployment is paused, and until there is progress.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// underWay are the reasons that stand during a rollout, each with its status.
var underWay = map[string]object.ConditionStatus{
	ProgressCreated: object.True, ProgressFound: object.True, ProgressUpdated: object.True,
	ProgressResumed: object.True, ProgressDeadlineExceeded: object.False, ProgressStopped: object.False,
}

// progress computes how far the rollout is, by comparing s with the stored status. It records in s
// if there was progress.
func (d progress) progress(s *Status) object.Condition {
	c := object.Condition{Type: ConditionProgressing, Status: object.True, Since: d.stamp(), Message: d.rollout.step.String() + d.rollout.keptRemark() + d.stuck.remark()}
	_, had := d.hadProgress()
	if d.deployment.Spec.Paused {
		if had == ProgressDeadlineExceeded {
			return d.exceeded(c)
		}
		c.Status, c.Reason = object.Unknown, ProgressPaused
		return c
	}
	further := true
	switch {
	case d.stopped():
		c.Status, c.Reason, c.Message = object.False, ProgressStopped, d.whyStopped().String()
		further = false
	case rollout.Done(d.rollout.fleet):
		c.Reason = ProgressAvailable
		further = had != ProgressAvailable
		s.RolloutSince = time.Time{}
	case had == ProgressAvailable && d.onlyNew(s):
		c.Reason, further = ProgressAvailable, false
	case (had == ProgressPaused || had == ProgressStopped) && !d.begun():
		c.Reason = ProgressResumed
	case underWay[had] == "" || d.begun():
		c.Reason = d.opening()
		s.RolloutSince = d.stamp()
	case furtherThan(s, &d.deployment.Status):
		c.Reason = ProgressUpdated
	default:
		c, further = d.standstill(s, c, had), false
	}
	if further {
		s.ProgressedAt = d.stamp()
	}
	return c
}

// hadProgress returns the stored condition and its reason. Empty: there is none, or none that this
// library has written.
func (d progress) hadProgress() (have *object.Condition, reason string) {
	have = object.FindCondition(d.deployment.Status.Conditions, ConditionProgressing)
	if have == nil {
		return nil, ""
	}
	status := underWay[have.Reason]
	switch have.Reason {
	case ProgressAvailable:
		status = object.True
	case ProgressPaused:
		status = object.Unknown
	}
	if status == "" || have.Status != status {
		return have, ""
	}
	return have, have.Reason
}

// standstill completes the condition of a rollout that has made no progress.
func (d progress) standstill(s *Status, c object.Condition, had string) object.Condition {
	if s.ProgressedAt.IsZero() {
		s.ProgressedAt = d.stamp()
	}
	c.Reason = had
	switch {
	case d.overdue(s.ProgressedAt, had):
		return d.exceeded(c)
	case had == ProgressDeadlineExceeded: // the deadline has changed
		c.Reason = d.opening()
	}
	return c
}

// exceeded returns c as the condition of a rollout whose deadline has passed.
func (d progress) exceeded(c object.Condition) object.Condition {
	c.Status, c.Reason = object.False, ProgressDeadlineExceeded
	c.Message = fmt.Sprintf("no progress within %s: %s", d.deployment.Spec.ProgressDeadline, c.Message)
	return c
}

// overdue reports whether the progress deadline, counted from the last progress or the end of an
// outage after it, has passed. If it has not, the next decision is no later. An outage takes back no
// verdict that came before it.
func (d progress) overdue(since time.Time, had string) bool {
	deadline := d.deployment.Spec.ProgressDeadline
	if deadline <= 0 {
		return false
	}
	if restarted := d.clockFrom(); had != ProgressDeadlineExceeded && restarted.After(since) {
		since = restarted
	}
	due := since.Add(deadline).Add(time.Second) // since was rounded down
	if due.After(d.now) {
		d.lookAt(due)
		return false
	}
	return true
}

// clockFrom returns when clocks were restarted last. What this process does not know, its machines do.
// A time in the future counts as none.
func (d progress) clockFrom() (last time.Time) {
	note := func(at time.Time) {
		if at.After(last) && !at.After(d.now) {
			last = at
		}
	}
	note(d.o.ClockFrom)
	for i := range d.sets {
		for _, m := range d.sets[i].machines {
			note(m.Status.ClockFrom)
		}
	}
	return last
}

// begun reports whether another set has become the new one since the deployment's revision was
// recorded. The revision is recorded after the status has reported the rollout.
func (d progress) begun() bool {
	return !d.held() && d.current != nil && d.deployment.Revision != d.revision
}

// opening returns the reason with which a rollout begins. A set that has had machines was made for
// this rollout if it is no older than the deployment and all other sets.
func (d progress) opening() string {
	if d.fresh() {
		return ProgressCreated
	}
	made := d.current.set.CreatedAt
	older := func(f family) bool { return made.Before(f.set.CreatedAt) }
	if made.Before(d.deployment.CreatedAt) || slices.ContainsFunc(d.sets, older) {
		return ProgressFound
	}
	return ProgressCreated
}

// onlyNew reports whether no machine is left to be replaced.
func (d progress) onlyNew(s *Status) bool { return s.Replicas-s.Updated == d.asideOld() && !d.fresh() }

// furtherThan reports whether a rollout has progressed from b to a.
func furtherThan(a, b *Status) bool {
	return a.Updated > b.Updated || a.Replicas-a.Updated < b.Replicas-b.Updated ||
		a.Ready > b.Ready || a.Available > b.Available || a.InPlace.furtherThan(&b.InPlace)
}
