package deployment

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
)

// A rollout stops when too many machines have failed in it: Strategy.StopAfter says how many. A machine of the
// new set that becomes machine.PhaseFailed counts. With InPlaceUpdate, a machine whose update fails counts, too.
//
// The count is stored in the status, because a failed machine is replaced after a while and must still count.
// Each machine counts once, so the status names the failed machines that still exist. A machine that failed
// before the count began belongs to an earlier rollout. So the beginning of a count is stored before the first
// order that creates or selects machines (beginCount).

// RolloutFailures counts the machines that failed in a rollout. The zero value: no rollout is under
// way, or it does not stop for failures.
type RolloutFailures struct {
	// Revision is the revision of the new set. Another rollout begins its own count.
	Revision int64
	// Count is how many machines failed since Since and have not recovered. It does not exceed the number
	// that stops the rollout.
	Count int32
	// Since is when the count began, or when a machine was last updated in place successfully. Machines
	// that failed before do not count. Whole seconds. Zero: all count.
	Since time.Time
	// Names are the counted machines that still exist, in order.
	Names []string
}

// Clone returns a copy that shares nothing with r.
func (r RolloutFailures) Clone() RolloutFailures {
	r.Names = slices.Clone(r.Names)
	return r
}

// Equal reports whether both are the same. Times are compared as instants.
func (r *RolloutFailures) Equal(s *RolloutFailures) bool {
	return r.Revision == s.Revision && r.Count == s.Count && r.Since.Equal(s.Since) && slices.Equal(r.Names, s.Names)
}

// mostFailures is the largest count at which a rollout stops. It bounds the names in a status.
const mostFailures = 100

// stopAfter returns how many failures stop a rollout with these bounds. Zero: it never stops.
func (s *Spec) stopAfter(bounds rollout.Bounds) int32 {
	inPlace := s.Strategy.Kind == InPlaceUpdate && s.Strategy.Orchestration == Automatic
	limit := int64(s.Strategy.StopAfter.Ceil(s.Replicas))
	switch {
	case s.Strategy.Kind == Recreate, s.Strategy.Kind == InPlaceUpdate && !inPlace:
		return 0
	case s.Strategy.StopAfter.Value > 0:
		if limit > int64(max(s.Replicas, 0)) {
			return 0
		}
	case inPlace:
		limit = int64(bounds.Surge) + int64(bounds.Unavailable)
	default:
		return 0
	}
	return int32(min(max(limit, 1), mostFailures))
}

// failure is a machine that failed because of the rollout.
type failure struct {
	name string
	at   time.Time // when it failed, or an earlier time if that is not known; whole seconds
}

// countFailures counts the machines that failed in this rollout. While the deployment is paused, the count is
// zero, so that a user can continue a stopped rollout by pausing and resuming it.
func (d *state) countFailures() {
	d.stopAfter = d.deployment.Spec.stopAfter(d.bounds)
	if d.stopAfter == 0 || d.current == nil || !d.rolling() {
		return
	}
	stored, counted := &d.deployment.Status.RolloutFailures, &d.rolloutFailures
	failed := d.failedByRollout()
	counted.Revision = d.revision
	if stored.Revision != d.revision || d.deployment.Spec.Paused {
		for _, b := range failed {
			if after := b.at.Add(time.Second); after.After(counted.Since) {
				counted.Since = after
			}
		}
		return
	}
	d.continueCount()
	if at := d.succeeded(); at.After(stored.Since) {
		counted.Since, counted.Count, counted.Names = at, 0, nil
	}
	for _, b := range failed {
		if counted.Count < d.stopAfter && !b.at.Before(counted.Since) && !slices.Contains(counted.Names, b.name) {
			counted.Names = append(counted.Names, b.name)
			counted.Count++
		}
	}
	slices.Sort(counted.Names)
}

// beginCount stores that the count of this rollout's failures has begun. The rest of the status follows
// at the end of the pass.
func (d *state) beginCount() (Plan, bool) {
	counted := &d.rolloutFailures
	if counted.Revision == d.deployment.Status.RolloutFailures.Revision || counted.Revision == 0 || d.deployment.Spec.Paused {
		return Plan{}, false
	}
	status := d.deployment.Status.Clone()
	status.RolloutFailures = counted.Clone()
	why := decision.Why{Reason: reasonCount, Number: counted.Revision, Count: int64(d.stopAfter)}
	return Plan{Write: &UpdateStatus{Status: status}, Why: why}, true
}

// continueCount continues the stored count, without the machines that have recovered. A machine that is
// preserved takes no part in the rollout, so it still counts.
func (d *state) continueCount() {
	stored, counted := &d.deployment.Status.RolloutFailures, &d.rolloutFailures
	counted.Since, counted.Count = stored.Since, stored.Count
	for _, name := range stored.Names {
		switch m := d.machineNamed(name); {
		case m == nil:
		case m.Deleted() || m.Preserved(d.now) || m.Status.Phase == machine.PhaseFailed || m.Status.Phase == machine.PhaseInPlaceUpdateFailed:
			counted.Names = append(counted.Names, name)
		default:
			counted.Count = max(counted.Count-1, 0)
		}
	}
}

// failedByRollout returns the machines that failed because of the present template, ordered by when they
// failed.
func (d *state) failedByRollout() (out []failure) {
	inPlace := d.deployment.Spec.Strategy.Kind == InPlaceUpdate
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() || f != d.current && !inPlace {
			continue
		}
		for _, m := range f.machines {
			if m == nil || !m.OwnedBy(f.set.UID) {
				continue
			}
			if at := d.failedByTemplateAt(f, m); !at.IsZero() {
				out = append(out, failure{m.Name, at})
			}
		}
	}
	slices.SortFunc(out, func(a, b failure) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.name, b.name)) })
	return out
}

// failedByTemplateAt returns when a machine of f failed because of the present template, or an earlier time if
// that is not known. Zero: it did not.
func (d *state) failedByTemplateAt(f *setState, m *machine.Machine) (at time.Time) {
	switch m.Status.Phase {
	case machine.PhaseFailed:
		if f == d.current {
			return m.Status.Since
		}
	case machine.PhaseTerminating: // its set may be replacing it already
		if f == d.current && m.Status.DeletedFrom == machine.PhaseFailed {
			return m.CreatedAt // it is not known any more when the machine failed
		}
	case machine.PhaseInPlaceUpdateFailed:
		if f != d.current && d.target(f, m) == d.current && m.Status.LastOperation.Stage != machine.StageCandidate {
			return m.Status.Since
		}
	}
	return at
}

// succeeded returns when a machine that was updated in place last became available. Zero: none is known, or it is
// a rolling update, in which a success does not reset the count. The time is read from the machine and not from
// the clock, so that failures between the success and this decision count.
func (d *state) succeeded() (last time.Time) {
	if d.deployment.Spec.Strategy.Kind != InPlaceUpdate {
		return last
	}
	for _, m := range d.current.machines {
		if m == nil || !d.current.owns(m) || m.Status.LastOperation.Kind != machine.OperationInPlaceUpdate {
			continue
		}
		if at := m.AvailableAt(d.minReady()); at.After(last) && !at.After(d.now) {
			last = at
		}
	}
	return last
}

// machineNamed returns the machine of that name. Nil: no set has it.
func (d *state) machineNamed(name string) *machine.Machine {
	for i := range d.sets {
		f := &d.sets[i]
		for _, m := range f.machines {
			if m != nil && m.Name == name && m.OwnedBy(f.set.UID) {
				return m
			}
		}
	}
	return nil
}

// stopped reports whether the rollout has stopped because machines failed.
func (d *state) stopped() bool { return d.stopAfter > 0 && d.rolloutFailures.Count >= d.stopAfter }

// whyStopped returns why the rollout has stopped.
func (d *state) whyStopped() decision.Why {
	r := &d.rolloutFailures
	why := decision.Why{Reason: ReasonRolloutStopped, Count: int64(r.Count), All: int64(d.stopAfter)}
	if len(r.Names) > 0 {
		why.Detail = " (" + strings.Join(r.Names[:min(len(r.Names), 3)], ", ") + ")"
	}
	return why
}
