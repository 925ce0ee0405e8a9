package deployment

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// Reasons of ConditionAvailable, in the spelling that stored objects have.
const (
	MinimumAvailable   = "MinimumReplicasAvailable"
	MinimumUnavailable = "MinimumReplicasUnavailable"
)

// FailureRefused is the reason of ConditionReplicaFailure when an order to a set was refused. Any other reason
// is copied from a set's own condition.
const FailureRefused = "OrderRefused"

// writeStatus plans a write of the status if it differs from the stored one and the last write is long
// enough ago.
func (d *state) writeStatus(want Status) (Plan, bool) {
	if want.Equal(&d.deployment.Status) {
		return Plan{}, false
	}
	if next := d.statusAt(d.statusInterval(&want)); d.now.Before(next) {
		timeless := want
		timeless.ProgressedAt, timeless.RolloutSince = d.deployment.Status.ProgressedAt, d.deployment.Status.RolloutSince
		if !timeless.Equal(&d.deployment.Status) { // steps after the status wait for it, unless only a time changed
			d.throttled = next.Sub(d.now)
		}
		d.wakeBy(next)
		return Plan{}, false
	}
	why := decision.Why{Reason: reasonStatus, Count: int64(want.Available), All: int64(max(d.deployment.Spec.Replicas, 0))}
	write := &UpdateStatus{Status: want}
	if began := d.deployment.Status.RolloutSince; !began.IsZero() && want.RolloutSince.IsZero() {
		write.Event = EventNormal
		why = decision.Why{
			Reason: reasonRolloutComplete, Name: d.current.set.Name, Number: d.revision,
			Count: int64(want.Available), For: max(0, d.now.Sub(began)),
		}
	}
	return Plan{Write: write, Why: why}, true
}

// statusInterval returns the least time between the last write of the status and the next one. It is zero for
// the status that first reports a rollout, because that records when the rollout began, and for the one that
// first says that all machines are available, because programs and people wait for that.
func (d *state) statusInterval(want *Status) time.Duration {
	settled := d.next.why.Reason == rollout.ReasonDone && want.Unavailable == 0
	have := &d.deployment.Status
	switch {
	case !settled && d.onlyProgress(want):
		return max(d.p.StatusInterval, d.p.ProgressInterval)
	case d.rolloutBegun(), settled && (have.Unavailable > 0 || have.Updated < want.Updated):
		return 0
	}
	return max(d.p.StatusInterval, 0)
}

// onlyProgress reports whether a status differs only in the progress of machines.
func (d *state) onlyProgress(want *Status) bool {
	have := &d.deployment.Status
	sameNames := slices.EqualFunc(want.Failed, have.Failed, func(a, b machineset.FailedMachine) bool { return a.Name == b.Name })
	return sameNames && want.RolloutFailures.Equal(&have.RolloutFailures) &&
		want.ObservedGeneration == have.ObservedGeneration && want.Collisions == have.Collisions && want.sameWanted(have) &&
		object.SameVerdicts(want.Conditions, d.progressed(have.Conditions, want))
}

// progressed returns the stored conditions for a comparison with want. If want says that a rollout that had
// just begun has made progress, the result says so, too, so that this does not count as a difference.
func (d *state) progressed(have []object.Condition, want *Status) []object.Condition {
	next := object.FindCondition(want.Conditions, ConditionProgressing)
	_, had := d.storedProgress()
	if next == nil || next.Reason != ProgressUpdated || had != ProgressCreated && had != ProgressFound {
		return have
	}
	return object.SetCondition(slices.Clone(have), *next)
}

// countedStatus returns the status of a deployment that is invalid or being deleted: only the parts that are
// counted from its sets and machines are brought up to date.
func (d *state) countedStatus() Status {
	s := d.deployment.Status.Clone()
	s.ObservedGeneration = d.deployment.Generation
	s.Failed, s.Failing = d.failedMachines(), d.failures
	s.Expired = d.expired()
	s.Replicas, s.Updated, s.Ready, s.Available, s.InPlace = 0, 0, 0, 0, InPlaceCounts{}
	s.Preserved, s.PreservedFailed = 0, 0
	ordered := int64(0)
	for i := range d.sets {
		f := &d.sets[i]
		s.Replicas += f.actual
		s.Ready += f.ready
		s.Available += f.available
		s.Preserved += f.preserved
		s.PreservedFailed += f.preservedFailed
		ordered += int64(max(f.set.Spec.Replicas, 0))
		s.InPlace.add(&f.inPlace)
	}
	if d.current != nil {
		s.Updated = d.current.actual
	}
	s.Unavailable = int32(min(max(0, ordered-int64(s.Available)), math.MaxInt32))
	s.Conditions = d.slowedConditions(s.Conditions)
	if c := d.replicaFailure(); c.Type != "" {
		s.Conditions = object.SetCondition(s.Conditions, c)
	} else {
		s.Conditions = withoutCondition(s.Conditions, ConditionReplicaFailure)
	}
	return s
}

// replicaFailure returns the condition of a deployment whose orders to sets fail, or whose sets fail to create
// or delete machines: the new set's failure, or else that of the oldest set that has one. The zero condition:
// there is no failure. Only the code of a refused order is recorded: its message may differ each time, and the
// status would be written each time.
func (d *state) replicaFailure() object.Condition {
	if failed := d.o.Failed; failed != nil {
		return object.Condition{
			Type: ConditionReplicaFailure, Status: object.True, Reason: FailureRefused, Since: d.stamp(),
			Message: "an order to a set was refused: " + failed.Code.Contract(),
		}
	}
	found := d.current.failure()
	for i := 0; i < len(d.sets) && found == nil; i++ {
		found = d.sets[i].failure()
	}
	if found == nil {
		return object.Condition{}
	}
	return object.Condition{
		Type: ConditionReplicaFailure, Status: object.True,
		Reason: found.Reason, Message: found.Message, Since: d.stamp(),
	}
}

// failure returns a set's own condition that machines could not be created or deleted, or nil.
func (f *setState) failure() *object.Condition {
	if f == nil {
		return nil
	}
	c := object.FindCondition(f.set.Status.Conditions, ConditionReplicaFailure)
	if c == nil || c.Status != object.True {
		return nil
	}
	return c
}

// wantedStatus returns the whole status of a valid deployment.
func (d *state) wantedStatus() Status {
	s := d.countedStatus()
	d.recordWanted(&s, d.batchWait > 0)
	s.Conditions = withoutCondition(s.Conditions, ConditionSpecValid)
	if bad := d.deployment.Spec.Template.InvalidEntry(); bad != nil {
		s.Conditions = object.SetCondition(s.Conditions, d.specInvalid(bad, reasonSpecInvalid))
	}
	s.Conditions = object.SetCondition(s.Conditions, d.availability(&s))
	s.Conditions = object.SetCondition(s.Conditions, d.progressCondition(&s))
	d.countOutdated(&s)
	s.Conditions = d.classInvalid(d.classMissing(s.Conditions))
	s.RolloutFailures = d.rolloutFailures
	return s
}

// specInvalid returns the condition SpecValid, False, for an invalid field.
func (d *state) specInvalid(bad *object.FieldError, reason decision.Reason) object.Condition {
	return object.Condition{
		Type: ConditionSpecValid, Status: object.False, Reason: reason.String(), Message: bad.Error(), Since: d.stamp(),
	}
}

// ClassNotFound is the reason of ConditionClassMissing.
const ClassNotFound = "ClassNotFound"

// classMissing returns conditions with ConditionClassMissing, if the template's class is missing.
func (d *state) classMissing(conditions []object.Condition) []object.Condition {
	if !d.o.ClassMissing {
		return withoutCondition(conditions, ConditionClassMissing)
	}
	return object.SetCondition(conditions, object.Condition{
		Type: ConditionClassMissing, Status: object.True, Reason: ClassNotFound, Since: d.stamp(),
		Message: "class " + d.deployment.Spec.Template.Spec.Class.Name + " does not exist; no VM is created until it does",
	})
}

// classInvalid returns conditions with ConditionClassInvalid, if the template's class is invalid.
func (d *state) classInvalid(conditions []object.Condition) []object.Condition {
	if d.o.ClassInvalid == "" {
		return withoutCondition(conditions, ConditionClassInvalid)
	}
	return object.SetCondition(conditions, object.Condition{
		Type: ConditionClassInvalid, Status: object.True, Reason: ConditionClassInvalid, Since: d.stamp(),
		Message: d.o.ClassInvalid + "; no machine is updated in place until that is fixed",
	})
}

func (d *state) availability(s *Status) object.Condition {
	replicas := d.deployment.Spec.Replicas
	floor := max(0, int64(replicas)-int64(d.bounds.Unavailable))
	if d.deployment.Spec.Strategy.Kind == Recreate {
		floor = int64(replicas) // all may be missing, but the condition says so
	}
	preserved := ""
	if s.Preserved > 0 {
		floor = max(0, floor-int64(s.Preserved))
		preserved = fmt.Sprintf(", kept for inspection: %d", s.Preserved)
	}
	c := object.Condition{Type: ConditionAvailable, Status: object.True, Reason: MinimumAvailable, Since: d.stamp()}
	if int64(s.Available) < floor {
		c.Status, c.Reason = object.False, MinimumUnavailable
	}
	c.Message = fmt.Sprintf("machines available: %d, wanted: %d, floor: %d%s", s.Available, replicas, floor, preserved)
	return c
}

// Reasons of ConditionProgressing, in the spelling that stored objects have.
const (
	// ProgressCreated: a rollout has begun with a set that was created for it.
	ProgressCreated = "NewMachineSetCreated"
	// ProgressFound: a rollout has begun with a set that existed before.
	ProgressFound = "FoundNewMachineSet"
	// ProgressUpdated: the rollout has made progress.
	ProgressUpdated = "MachineSetUpdated"
	// ProgressAvailable: the rollout is complete. This reason stays when machines fail or the fleet
	// is scaled later, until the next rollout. The message then says what is missing.
	ProgressAvailable = "NewMachineSetAvailable"
	// ProgressPaused: the deployment is paused; the status is Unknown.
	ProgressPaused = "DeploymentPaused"
	// ProgressResumed: the rollout is no longer paused or stopped, and has made no progress since.
	ProgressResumed = "DeploymentResumed"
	// ProgressStopped: the rollout has stopped because machines failed, see Strategy.StopAfter; the
	// status is False.
	ProgressStopped = "RolloutStopped"
	// ProgressDeadlineExceeded: the rollout has made no progress for Spec.ProgressDeadline; the
	// status is False. It stays while the deployment is paused, and until there is progress.
	ProgressDeadlineExceeded = "ProgressDeadlineExceeded"
)

// rolloutReasons are the reasons of the condition Progressing during a rollout, each with its status.
var rolloutReasons = map[string]object.ConditionStatus{
	ProgressCreated: object.True, ProgressFound: object.True, ProgressUpdated: object.True,
	ProgressResumed: object.True, ProgressDeadlineExceeded: object.False, ProgressStopped: object.False,
}

// progressCondition returns the condition Progressing, from a comparison of s with the stored status. It
// records progress in s.
func (d *state) progressCondition(s *Status) object.Condition {
	c := object.Condition{
		Type: ConditionProgressing, Status: object.True, Since: d.stamp(),
		Message: d.next.why.String() + d.pausedRemark() + d.heldUp.remark(),
	}
	_, had := d.storedProgress()
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
	case rollout.Done(d.next.fleet):
		c.Reason = ProgressAvailable
		further = had != ProgressAvailable
		s.RolloutSince = time.Time{}
	case had == ProgressAvailable && d.onlyNewMachines(s):
		c.Reason, further = ProgressAvailable, false
	case (had == ProgressPaused || had == ProgressStopped) && !d.rolloutBegun():
		c.Reason = ProgressResumed
	case rolloutReasons[had] == "" || d.rolloutBegun():
		c.Reason = d.beginReason()
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

// storedProgress returns the stored condition and its reason. Empty: there is none, or none that this
// library has written.
func (d *state) storedProgress() (have *object.Condition, reason string) {
	have = object.FindCondition(d.deployment.Status.Conditions, ConditionProgressing)
	if have == nil {
		return nil, ""
	}
	status := rolloutReasons[have.Reason]
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

// standstill completes the condition of a rollout that has made no progress since the last status.
func (d *state) standstill(s *Status, c object.Condition, had string) object.Condition {
	if s.ProgressedAt.IsZero() {
		s.ProgressedAt = d.stamp()
	}
	c.Reason = had
	switch {
	case d.overdue(s.ProgressedAt, had):
		return d.exceeded(c)
	case had == ProgressDeadlineExceeded: // the deadline has changed
		c.Reason = d.beginReason()
	}
	return c
}

// exceeded returns c as the condition of a rollout whose deadline has passed.
func (d *state) exceeded(c object.Condition) object.Condition {
	c.Status, c.Reason = object.False, ProgressDeadlineExceeded
	c.Message = fmt.Sprintf("no progress within %s: %s", d.deployment.Spec.ProgressDeadline, c.Message)
	return c
}

// overdue reports whether the progress deadline has passed. It counts from the last progress, or from the end
// of a later outage. If it has not passed, the next decision is due when it does. A deadline that was exceeded
// before an outage stays exceeded.
func (d *state) overdue(since time.Time, had string) bool {
	deadline := d.deployment.Spec.ProgressDeadline
	if deadline <= 0 {
		return false
	}
	if restarted := d.clockFrom(); had != ProgressDeadlineExceeded && restarted.After(since) {
		since = restarted
	}
	due := since.Add(deadline).Add(time.Second) // since was rounded down
	if due.After(d.now) {
		d.wakeBy(due)
		return false
	}
	return true
}

// clockFrom returns when an outage of an API server last ended, as this process or a machine knows. A
// time in the future does not count.
func (d *state) clockFrom() (last time.Time) {
	consider := func(at time.Time) {
		if at.After(last) && !at.After(d.now) {
			last = at
		}
	}
	consider(d.o.ClockFrom)
	for i := range d.sets {
		for _, m := range d.sets[i].machines {
			consider(m.Status.ClockFrom)
		}
	}
	return last
}

// rolloutBegun reports whether another set has become the new one since the deployment's revision was
// recorded. The revision is recorded after the status has reported the rollout.
func (d *state) rolloutBegun() bool {
	return !d.held() && d.current != nil && d.deployment.Revision != d.revision
}

// beginReason returns the reason with which a rollout begins. A set that has had machines was created for
// this rollout if it is no older than the deployment and all other sets.
func (d *state) beginReason() string {
	if d.newSetUnused() {
		return ProgressCreated
	}
	made := d.current.set.CreatedAt
	older := func(f setState) bool { return made.Before(f.set.CreatedAt) }
	if made.Before(d.deployment.CreatedAt) || slices.ContainsFunc(d.sets, older) {
		return ProgressFound
	}
	return ProgressCreated
}

// onlyNewMachines reports whether no old machine is left that the rollout would replace.
func (d *state) onlyNewMachines(s *Status) bool {
	return s.Replicas-s.Updated == d.hiddenOld() && !d.newSetUnused()
}

// furtherThan reports whether a rollout has progressed from b to a.
func furtherThan(a, b *Status) bool {
	return a.Updated > b.Updated || a.Replicas-a.Updated < b.Replicas-b.Updated ||
		a.Ready > b.Ready || a.Available > b.Available || a.InPlace.furtherThan(&b.InPlace)
}

// Complete reports whether the rollout of d is complete, by its status: the status has observed the present
// spec, and Replicas, Updated and Available are all equal to the replicas of the spec. Machines that are being
// deleted may still exist.
//
// It is stricter than ProgressAvailable, which stays when machines fail or are preserved later.
func Complete(d *Deployment) bool { return Missing(d) == "" }

// Missing returns what d lacks to be Complete, as in "3 of 10 machines are updated", and what holds its
// machines up, by their last operations. Empty: it is complete. It fits store.Await, which waits for a
// rollout and can report its progress.
func Missing(d *Deployment) string {
	missing := lack(d)
	if missing == "" {
		return ""
	}
	missing += heldUpRemark(d)
	if d.Spec.Paused {
		missing += "; the deployment is paused"
	}
	if c := object.FindCondition(d.Status.Conditions, ConditionClassMissing); c != nil && d.Status.ObservedGeneration == d.Generation {
		missing += "; " + c.Message
	}
	if c := object.FindCondition(d.Status.Conditions, ConditionClassInvalid); c != nil && d.Status.ObservedGeneration == d.Generation {
		missing += "; " + c.Message
	}
	switch c := object.FindCondition(d.Status.Conditions, ConditionProgressing); {
	case c == nil || c.Status != object.False:
	case c.Reason == ProgressDeadlineExceeded:
		missing += fmt.Sprintf("; there was no progress within %s", d.Spec.ProgressDeadline)
	case c.Reason == ProgressStopped:
		missing += "; " + c.Message
	}
	return missing
}

// lack returns the first part of what Missing says: what is missing, without causes.
func lack(d *Deployment) string {
	s, wanted := &d.Status, max(d.Spec.Replicas, 0)
	invalid := object.FindCondition(s.Conditions, ConditionSpecValid)
	switch {
	case d.Deleted():
		return "the deployment is being deleted"
	case s.ObservedGeneration < d.Generation:
		return "the current spec has not been observed yet"
	case invalid != nil && invalid.Status == object.False:
		return "the spec is invalid: " + invalid.Message
	case s.Updated < wanted:
		return fmt.Sprintf("%d of %d machines are updated", s.Updated, wanted)
	case s.Replicas > s.Updated:
		return fmt.Sprintf("old machines are still there: %d", s.Replicas-s.Updated)
	case s.Updated > wanted:
		return fmt.Sprintf("more machines than wanted: %d", s.Updated-wanted)
	case s.Available < wanted && s.Preserved > 0:
		return fmt.Sprintf("%d of %d machines are available, %d are kept for inspection", s.Available, wanted, s.Preserved)
	case s.Available < wanted:
		return fmt.Sprintf("%d of %d machines are available", s.Available, wanted)
	}
	return ""
}
