package deployment

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// countLeaving counts the available machines that a set was told to delete and has not deleted.
func (d *summary) countLeaving(f *family) {
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
			f.given = min(f.given+1, surplus)
		}
	}
	f.told = f.given
}

// count separates this deployment's own sets, which it puts in order, from others, which it leaves
// out, and counts their machines.
func (d *summary) count() {
	d.sets = make([]family, 0, len(d.o.Sets))
	for i := range d.o.Sets {
		c := &d.o.Sets[i]
		if c.Set != nil && c.Set.OwnedBy(d.deployment.UID) {
			d.sets = append(d.sets, family{set: c.Set, machines: c.Machines})
		}
	}
	slices.SortFunc(d.sets, func(a, b family) int { return olderFirst(a.set, b.set) })
	d.sets = slices.CompactFunc(d.sets, func(a, b family) bool { return a.set.UID == b.set.UID })
	for i := range d.sets {
		d.countMachines(&d.sets[i])
	}
}

// olderFirst compares sets by creation, then name.
func olderFirst(a, b *machineset.Set) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name), cmp.Compare(a.UID, b.UID))
}

func (d *summary) countMachines(f *family) {
	minReady := d.minReady()
	open := f.openNames()
	f.paused = d.leaves(&f.set.Meta)
	for _, m := range f.machines {
		if m == nil || !m.OwnedBy(f.set.UID) {
			continue
		}
		if open[m.Name] {
			f.announced--
		}
		d.noteHeldUp(m)
		if m.Deleted() {
			f.terminating++
			continue
		}
		f.actual++
		if m.Status.LastOperation.State == machine.StateFailed && !m.PreservedFailed(d.now) {
			d.listFailed(f.set, m)
		}
		available := false
		if machineset.Preserving(m, d.p.Keys.Preserve) {
			f.preserving++
		}
		if m.Preserved(d.now) {
			f.countPreserved(m)
			d.spare(f, m)
			d.lookAt(m.Status.Preservation.Until)
			continue
		}
		if m.Ready() {
			f.ready++
			at := m.AvailableAt(minReady)
			if available = !at.After(d.now); !available {
				d.lookAt(at)
			}
		}
		paused := d.spare(f, m)
		if paused && (!available || inUpdate(m)) {
			f.idle++
		}
		f.countInPlace(m, available, paused)
		d.countRequests(f, m, available)
	}
	d.countLeaving(f)
}

// failing is a machine whose last operation failed.
type failing struct {
	machine *machine.Machine
	set     string
}

// listFailed adds a machine whose last operation failed to the few that are listed.
func (d *summary) listFailed(set *machineset.Set, m *machine.Machine) {
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

// failedMachines returns those that are listed.
func (d *summary) failedMachines() []machineset.FailedMachine {
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

// spare counts a machine of a set if it is paused, and reports whether it is.
func (d *summary) spare(f *family, m *machine.Machine) bool {
	if !d.leaves(&m.Meta) {
		return false
	}
	if f.spared++; f.spared == 1 || m.Name < f.firstKept {
		f.firstKept = m.Name
	}
	return true
}

// countRequests counts a machine that is to be replaced, on request or for its age, as its set
// does.
func (d *summary) countRequests(f *family, m *machine.Machine, available bool) {
	maxAge := d.deployment.Spec.MaxAge
	requested := machineset.Requested(m, d.p.Keys.Replace)
	f.takeable = f.takeable || available && !inUpdate(m) && (requested || tooOld(m, f.set.Spec.MaxAge, d.now))
	switch {
	case d.leaves(&m.Meta):
	case requested:
		f.requested++
	case maxAge > 0 && available && machineset.MayExpire(m):
		at := machineset.ExpiresAt(m, maxAge)
		if at.IsZero() {
			return
		}
		if d.now.Before(at) {
			d.lookAt(at)
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
