package deployment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// state is what one call of Decide knows about a deployment. It is filled in before anything is
// decided, and then only read, except for the last four fields.
type state struct {
	o          *Observation
	p          *Policy
	deployment *Deployment
	now        time.Time

	sets     []setState // of this deployment, the oldest first
	current  *setState  // the new set, one of sets; nil: there is none
	failed   []failing  // the machines that the status lists as failed, the newest first
	failures int32      // how many machines' last operation failed, in all sets

	revision int64 // of the new set: the one that it has, or will get
	bounds   rollout.Bounds

	heldUp heldUp // machines that make no progress

	rolloutFailures RolloutFailures // as the status should have them
	stopAfter       int32           // how many failures stop the rollout; zero: it never stops

	choices []choice // the scaler's, of machines that are not being deleted, in the order in which they were made
	next    step     // of the rollout; filled in last

	// These are set by the steps of the decision, and used by the plan that ends the pass.
	hold       decision.Why  // why no more orders are given; zero: they are given
	wake       time.Time     // the earliest of the known future events; zero: none
	batchSince time.Time     // since when orders wait for others; zero: they do not
	batchWait  time.Duration // how long they still wait; zero: they do not
	throttled  time.Duration // how long the write of the status waits; zero: it does not
}

// count counts the sets and machines of an observation.
func count(o *Observation, p *Policy, now time.Time) *state {
	d := &state{o: o, p: p, deployment: o.Deployment, now: now, batchSince: o.Gathering}
	d.countSets()
	d.current = d.findNewSet()
	d.revision = d.revisionOf(d.current)
	d.bounds = d.deployment.Spec.bounds()
	d.countFailures()
	return d
}

// newest returns the set with the highest revision of those that are not being deleted; if several have it,
// the youngest. Nil: there is none.
func (d *state) newest() *setState {
	var found *setState
	for i := range d.sets {
		f := &d.sets[i]
		if f.set.Deleted() {
			continue
		}
		if found == nil || cmp.Or(cmp.Compare(f.set.Revision, found.set.Revision), olderFirst(f.set, found.set)) > 0 {
			found = f
		}
	}
	return found
}

// updatesInPlace reports whether machines of old sets are to be updated in place.
func (d *state) updatesInPlace() bool {
	spec := &d.deployment.Spec
	return spec.Strategy.Kind == InPlaceUpdate && !spec.Paused && d.current != nil
}

// setNamed returns the set with this name that is not being deleted.
func (d *state) setNamed(name string) *setState {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.Name == name && !f.set.Deleted() {
			return f
		}
	}
	return nil
}

// target returns the set that a machine of f is to move to once it is updated: the one it was selected for
// or, if that is not known or gone, the new one. Nil: the machine is in that set already, or there is none.
func (d *state) target(f *setState, m *machine.Machine) *setState {
	to := d.current
	if key := d.p.Keys.InPlaceTarget; key != "" && m.Annotations[key] != "" {
		if noted := d.setNamed(m.Annotations[key]); noted != nil {
			to = noted
		}
	}
	if to == f {
		return nil
	}
	return to
}

// rolling reports whether a rollout is under way: there is a new set, and another one has machines,
// or should have some, besides hidden ones (see hide).
func (d *state) rolling() bool {
	if d.current == nil {
		return false
	}
	for i := range d.sets {
		if f := &d.sets[i]; f != d.current && f.inUse() && max(f.size(), f.actual) > f.hidden {
			return true
		}
	}
	return false
}

// findNewSet returns a set, not being deleted, that has the deployment's template. Nil: none has.
// An old set's template may have been given to another set later, so several sets may have it: then it is the
// one with the highest revision, and of these the oldest.
func (d *state) findNewSet() (found *setState) {
	for i := range d.sets {
		f := &d.sets[i]
		if !f.set.Deleted() && d.wanted(f.set) && (found == nil || f.set.Revision > found.set.Revision) {
			found = f
		}
	}
	return found
}

// expired returns how many machines are too old.
func (d *state) expired() (n int32) {
	for i := range d.sets {
		n += d.sets[i].expired
	}
	return n
}

// newSetUnused reports whether the new set has never had a machine, or is not created yet.
func (d *state) newSetUnused() bool {
	f := d.current
	return f == nil || f.actual == 0 && f.set.Instructions.Reservation.Settled == 0 && f.announced == f.set.Instructions.Reservation.Reserved
}

// revisionOf returns the revision that a set must have as the new one: its own if that is above all others,
// otherwise the next number. nil stands for a set that is not created yet. After the largest number there is
// no next, and two sets share it.
func (d *state) revisionOf(f *setState) int64 {
	own, others := int64(0), int64(0)
	for i := range d.sets {
		if g := &d.sets[i]; g == f {
			own = g.set.Revision
		} else {
			others = max(others, g.set.Revision)
		}
	}
	switch {
	case own > others:
		return own
	case others == math.MaxInt64:
		return others
	}
	return others + 1
}

// resizable returns the set with this UID, if it can be resized.
func (d *state) resizable(uid string) *setState {
	for i := range d.sets {
		if f := &d.sets[i]; f.set.UID == uid && !f.set.Deleted() {
			return f
		}
	}
	return nil
}

// countKnownChoices counts the available machines among a set's deletion candidates that it has not deleted
// yet.
func (d *state) countKnownChoices(f *setState) {
	surplus := f.actual - f.size()
	if surplus <= 0 || len(f.set.Instructions.DeletionCandidates) == 0 {
		return
	}
	named := make(map[string]bool, len(f.set.Instructions.DeletionCandidates))
	for _, v := range f.set.Instructions.DeletionCandidates {
		named[v.Name] = true
	}
	for _, m := range f.machines {
		if m != nil && named[m.Name] && !m.Deleted() && m.OwnedBy(f.set.UID) && d.available(m) {
			f.choicesAvailable = min(f.choicesAvailable+1, surplus)
		}
	}
	f.choicesKnown = f.choicesAvailable
}

// countSets separates this deployment's own sets, which it puts in order, from others, which it
// leaves out, and counts their machines.
func (d *state) countSets() {
	d.sets = make([]setState, 0, len(d.o.Sets))
	for i := range d.o.Sets {
		c := &d.o.Sets[i]
		if c.Set != nil && c.Set.OwnedBy(d.deployment.UID) {
			d.sets = append(d.sets, setState{set: c.Set, machines: c.Machines})
		}
	}
	slices.SortFunc(d.sets, func(a, b setState) int { return olderFirst(a.set, b.set) })
	d.sets = slices.CompactFunc(d.sets, func(a, b setState) bool { return a.set.UID == b.set.UID })
	for i := range d.sets {
		d.countMachines(&d.sets[i])
	}
}

// olderFirst compares sets by creation, then name.
func olderFirst(a, b *machineset.Set) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func (d *state) countMachines(f *setState) {
	minReady := d.minReady()
	open := f.openNames()
	f.paused = d.isPaused(&f.set.Meta)
	for _, m := range f.machines {
		if m == nil || !m.OwnedBy(f.set.UID) {
			continue
		}
		if open[m.Name] {
			f.announced--
		}
		d.countHeldUp(m)
		if m.Deleted() {
			f.terminating++
			continue
		}
		f.actual++
		if m.Status.LastOperation.State == machine.StateFailed && !m.PreservedFailed(d.now) {
			d.listFailed(f.set, m)
		}
		available := false
		if machineset.CountsAsAutoPreserved(m, d.p.Keys.Preserve) {
			f.preserving++
		}
		if m.Preserved(d.now) {
			f.countPreserved(m)
			d.countPaused(f, m)
			d.wakeBy(m.Status.Preservation.Until)
			continue
		}
		if m.Ready() {
			f.ready++
			at := m.AvailableAt(minReady)
			if available = !at.After(d.now); !available {
				d.wakeBy(at)
			}
		}
		paused := d.countPaused(f, m)
		if paused && (!available || inUpdate(m)) {
			f.pausedUnavailable++
		}
		f.countInPlace(m, available, paused)
		d.countRequests(f, m, available)
	}
	d.countKnownChoices(f)
}

// failing is a machine whose last operation failed.
type failing struct {
	machine *machine.Machine
	set     string
}

// listFailed adds a machine whose last operation failed to the few that are listed.
func (d *state) listFailed(set *machineset.Set, m *machine.Machine) {
	d.failures++
	f := failing{m, set.Name}
	limit := max(d.p.FailedSummaries, 0)
	if n := len(d.failed); n >= limit && (limit == 0 || newestFirst(d.failed[n-1], f) <= 0) {
		return
	}
	at, _ := slices.BinarySearchFunc(d.failed, f, newestFirst)
	d.failed = slices.Insert(d.failed, at, f)
	d.failed = d.failed[:min(len(d.failed), limit)]
}

// failedMachines returns the failed machines as the status lists them.
func (d *state) failedMachines() []machineset.FailedMachine {
	if len(d.failed) == 0 {
		return nil
	}
	out := make([]machineset.FailedMachine, len(d.failed))
	for i, f := range d.failed {
		out[i] = machineset.FailedMachineOf(f.machine, f.set)
	}
	return out
}

func newestFirst(a, b failing) int {
	m, n := a.machine, b.machine
	return cmp.Or(cmp.Compare(n.CreatedAt.Unix(), m.CreatedAt.Unix()), cmp.Compare(m.Name, n.Name),
		cmp.Compare(a.set, b.set), cmp.Compare(m.Spec.ProviderID, n.Spec.ProviderID))
}

// countPaused reports whether a machine is paused, and counts it if so.
func (d *state) countPaused(f *setState, m *machine.Machine) bool {
	if !d.isPaused(&m.Meta) {
		return false
	}
	if f.pausedMachines++; f.pausedMachines == 1 || m.Name < f.firstPaused {
		f.firstPaused = m.Name
	}
	return true
}

// countRequests counts a machine that is to be replaced, on request or for its age, as its set
// does.
func (d *state) countRequests(f *setState, m *machine.Machine, available bool) {
	maxAge := d.deployment.Spec.MaxAge
	requested := machineset.Requested(m, d.p.Keys.Replace)
	f.replaceable = f.replaceable || available && !inUpdate(m) && (requested || tooOld(m, f.set.Spec.MaxAge, d.now))
	switch {
	case d.isPaused(&m.Meta):
	case requested:
		f.requested++
	case maxAge > 0 && available && machineset.MayExpire(m):
		at := machineset.ExpiresAt(m, maxAge)
		if at.IsZero() {
			return
		}
		if d.now.Before(at) {
			d.wakeBy(at)
			return
		}
		f.requested++
		f.expired++
	}
}

// tooOld reports whether a set with that maximum age may replace a machine for its age.
func tooOld(m *machine.Machine, maxAge time.Duration, now time.Time) bool {
	at := machineset.ExpiresAt(m, maxAge)
	return !at.IsZero() && !now.Before(at) && machineset.MayExpire(m)
}

// setState is one set of the deployment with the sums of its machines.
type setState struct {
	set      *machineset.Set
	machines []*machine.Machine

	actual    int32 // machines that are not being deleted
	ready     int32 // of these, ready
	available int32 // of these, ready for the deployment's MinReady

	inPlace    InPlaceCounts
	underWay   int32            // of actual, in an update, see inUpdate
	leaving    int32            // of available, in an update: they are about to stop
	selectable int32            // of available, those that could be selected
	delayed    int32            // of actual, selected and not healthy enough to begin
	unfit      *machine.Machine // the first by name that is neither ready nor in an update; nil: there is none

	terminating int32 // machines that are being deleted
	// announced is how many machines may still be created, whatever the present size of the set. Their
	// names are reserved, and their creates may be in flight.
	announced int64

	preserved       int32 // of actual, kept for inspection; none of them is available
	preservedFailed int32 // of preserved, those in phase Failed
	preserving      int32 // of actual, those that count against the set's AutoPreserve
	hidden          int32 // of preserved, hidden from the rollout

	requested      int    // machines that are to be replaced, on request or because they are too old
	expired        int32  // of requested, those that are too old
	replaceable    bool   // some machine is available, in no update, and to be replaced
	paused         bool   // whether the set is paused
	pausedMachines int    // machines that are paused
	firstPaused    string // the first of their names

	// choicesAvailable is how many available machines the set deletes because a scaler chose them:
	// those that it has got already, and those that it gets with its next size.
	choicesAvailable  int32
	choicesKnown      int32                          // of choicesAvailable, those that the set has got already
	pausedUnavailable int32                          // of actual, paused and not available: the set keeps them
	choicesNew        []machineset.DeletionCandidate // those that the set gets with its next size
}

// countPreserved counts a machine that is kept for inspection.
func (f *setState) countPreserved(m *machine.Machine) {
	f.preserved++
	switch {
	case m.Ready():
		f.ready++
	case m.Status.Phase == machine.PhaseFailed:
		f.preservedFailed++
	}
}

// manyNames is the maximum number of open names of a set that are searched for among its machines.
const manyNames = 1000

// openNames returns the names of the set's open reservation, at most the first 1000, and sets announced to
// their number.
func (f *setState) openNames() map[string]bool {
	r := &f.set.Instructions.Reservation
	if r.Settled < 0 || r.Reserved <= r.Settled {
		return nil
	}
	f.announced = r.Reserved - r.Settled
	n := min(f.announced, manyNames)
	names := make(map[string]bool, n)
	for i := range n {
		names[f.set.MachineName(r.Settled+1+i)] = true
	}
	return names
}

// size returns the ordered size of a set as a rollout should see it. A set that is being deleted
// will have no machines. A negative size is invalid, and counts as the number of machines that the
// set has.
func (f *setState) size() int32 {
	switch {
	case f.set.Deleted():
		return 0
	case f.set.Spec.Replicas < 0:
		return f.actual - f.leavingCount()
	}
	return f.set.Spec.Replicas
}

// leavingCount returns how many of its machines a set names as leaving. Its size does not include them.
func (f *setState) leavingCount() (n int32) {
	for _, m := range f.machines {
		if f.owns(m) && slices.Contains(f.set.Instructions.Handover.Leaving, m.Name) {
			n++
		}
	}
	return n
}

// numbers returns the set as package rollout sees it. current: it is the new set. raised: it is the only set
// that may grow. Name is the UID, because a set that is being deleted may have the same name as its successor.
func (f *setState) numbers(current, raised bool) rollout.Set {
	s := rollout.Set{
		Name: f.set.UID, New: current, Spec: f.size(), Actual: f.actual, Available: max(0, f.available-f.leaving-f.choicesAvailable),
		Terminating: f.terminating, Deleting: f.set.Deleted(), Chosen: int32(len(f.choicesNew)), Accounted: f.choicesKnown + f.pausedUnavailable,
		Selected: f.underWay, Selectable: f.selectable, Paused: f.paused,
	}
	if !raised {
		// Machines that this set may still create count as existing. The raised set needs no such
		// care, because it never gets above the wanted size.
		s.Actual = int32(min(f.mostMachines(), math.MaxInt32))
		s.Accounted += s.Actual - f.actual
	}
	if f.pauseObserved() {
		s.Accounted = s.Actual
	}
	return f.withoutHidden(s)
}

// pauseObserved reports whether the set is paused and its status says so: then it is deleting no
// machine, see machineset.ConditionPaused.
func (f *setState) pauseObserved() bool {
	return f.paused && f.condition(machineset.ConditionPaused) != nil
}

// mostMachines returns how many machines the set may have without another order: those it has, those on
// their way, and those that its surge allowance lets it create.
func (f *setState) mostMachines() int64 {
	most := f.present()
	if extra := f.set.Instructions.SurgeAllowance.Surge; extra > 0 && !f.set.Deleted() {
		most = max(most, int64(f.size())+int64(extra)) // it may be creating them already
	}
	return most
}

// mayBeReplacing reports whether the set may be deleting available machines to replace them: some are to be
// replaced, and it has not observed yet that its surge allowance was revoked.
func (f *setState) mayBeReplacing() bool {
	revoked := f.set.Instructions.SurgeAllowance == (machineset.SurgeAllowance{}) && f.set.Status.ObservedGeneration == f.set.Generation
	return f.replaceable && !f.set.Deleted() && !revoked
}

// unused reports whether a set has no machines, should have none and is creating none. Its own status must say
// so, too.
func (f *setState) unused() bool {
	s := f.set
	return s.Spec.Replicas == 0 && f.actual == 0 && f.terminating == 0 && f.announced <= 0 &&
		s.Status.Replicas == 0 && s.Status.ObservedGeneration >= s.Generation
}

// owns reports whether a machine counts as one of the set.
func (f *setState) owns(m *machine.Machine) bool {
	return m != nil && m.OwnedBy(f.set.UID) && !m.Deleted()
}

// oldest returns the oldest of a set's machines for which wanted returns true, at most limit, by age and then
// by name. Machines that are being deleted are left out.
func (f *setState) oldest(limit int, wanted func(*machine.Machine) bool) []*machine.Machine {
	var out []*machine.Machine
	for _, m := range f.machines {
		if m == nil || !wanted(m) || !f.owns(m) { // owns is last, because it reads the owner from memory elsewhere
			continue
		}
		if limit <= 0 || len(out) == limit && olderMachine(out[limit-1], m) <= 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(out, m, olderMachine)
		out = slices.Insert(out, at, m)
		out = out[:min(len(out), limit)]
	}
	return out
}

func olderMachine(a, b *machine.Machine) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

// inUse reports whether a set has machines, or should have some.
func (f *setState) inUse() bool { return f.size() > 0 || f.actual > 0 }

// present returns how many machines a set has, including those that may still be created whatever its size.
func (f *setState) present() int64 { return int64(f.actual) + max(f.announced, 0) }

// freePlaces returns how many machines a set lacks.
func (f *setState) freePlaces() int { return int(max(int64(f.set.Spec.Replicas)-f.present(), 0)) }

// namesDone reports whether all names that the set has given out became machines, or can't any
// more.
func (f *setState) namesDone() bool {
	r := &f.set.Instructions.Reservation
	return f.announced == 0 && r.Settled >= 0 && r.Reserved >= r.Settled
}

// withoutHidden returns the numbers of a set without its hidden machines (see hide). None of these is available
// or selectable, so only two numbers change.
func (f *setState) withoutHidden(s rollout.Set) rollout.Set {
	s.Spec -= f.hidden
	s.Actual -= min(s.Actual, f.hidden)
	return s
}

// condition returns a set's own condition of a type, if it is true and the set is not being
// deleted. Nil: otherwise.
func (f *setState) condition(typ string) *object.Condition {
	if f == nil || f.set.Deleted() {
		return nil
	}
	c := object.FindCondition(f.set.Status.Conditions, typ)
	if c == nil || c.Status != object.True {
		return nil
	}
	return c
}

// selectorChanged returns an error if the selector was changed and no longer matches a set that has
// machines: the set would be left without an owner. If it still matches the labels of the set's template, a
// user has relabelled the set to release it, which is no error. Nil: no error.
func (d *state) selectorChanged() *object.FieldError {
	selector := &d.deployment.Spec.Selector
	for i := range d.sets {
		f := &d.sets[i]
		if f.inUse() && !f.set.Deleted() && !selector.Matches(f.set.Labels) && !selector.Matches(f.set.Spec.Template.Labels) {
			return object.Invalid("spec.selector", fmt.Sprintf(
				"was changed and does not match set %s, whose machines (%d) would run on without an owner: change it back, or delete the set", f.set.Name, f.actual))
		}
	}
	return nil
}

// claim adopts sets without an owner that the selector matches, and releases sets that it no longer matches.
// It leaves out sets that are being deleted.
func (d *state) claim() (Plan, bool) {
	if d.held() {
		return Plan{}, false
	}
	var plan Plan
	for _, s := range d.o.Orphans {
		if d.adoptable(s) {
			why := decision.Why{Reason: reasonAdopt, Name: s.Name}
			plan.Adopt = append(plan.Adopt, Order{d.adopted(s), why})
		}
	}
	if len(plan.Adopt) > 0 {
		plan.Why = plan.Adopt[0].Why
		return plan, true
	}
	for i := range d.sets {
		s := d.sets[i].set
		if s.Deleted() || d.deployment.Spec.Selector.Matches(s.Labels) {
			continue
		}
		released := s.Clone()
		released.Owner = nil
		released.Instructions.Marks, released.Instructions.DeletionCandidates = machine.RolloutMarks{}, nil
		plan.Release = append(plan.Release, Order{released, decision.Why{Reason: ReasonRelease, Name: s.Name, Count: int64(d.sets[i].actual)}})
	}
	if len(plan.Release) > 0 {
		plan.Why = plan.Release[0].Why
		return plan, true
	}
	return Plan{}, false
}

func (d *state) adoptable(s *machineset.Set) bool {
	return s != nil && s.Owner == nil && !s.Deleted() && s.Namespace == d.deployment.Namespace &&
		d.deployment.Spec.Selector.Matches(s.Labels)
}

// adopted returns a copy of an orphan that belongs to the deployment. If the hash label is missing,
// the set and its future machines get it. Its selector stays, because its present machines do not
// carry the label.
func (d *state) adopted(orphan *machineset.Set) *machineset.Set {
	s := orphan.Clone()
	s.Owner = d.owner()
	s.AddFinalizer(machineset.Finalizer)
	label := d.p.Keys.TemplateHash
	hash, labelled := s.Labels[label]
	if !labelled {
		hash = templateHash(&s.Spec.Template, label, 0)
		s.Labels = withEntry(s.Labels, label, hash)
	}
	if _, labelled = s.Spec.Template.Labels[label]; !labelled {
		s.Spec.Template.Labels = withEntry(s.Spec.Template.Labels, label, hash)
	}
	return s
}
