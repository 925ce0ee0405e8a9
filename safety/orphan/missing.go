package orphan

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// lagOfLists is how long after a machine has become available its VM does not count as missing, because listings
// may lag behind creates, unless one has named it already (Observation.Sighted). The figure is this
// library's.
const lagOfLists = 10 * time.Minute

// A VM is missing when it has been absent from the listings for Policy.VMPeriod, or Policy.OrphanGap if that is
// longer. mostMissGap applies instead if VMPeriod is off, or if a listing lacks most VMs of its class's machines, and
// at least two. It is as long as a node may be unhealthy, because an incident at the provider may hide VMs that run.
// allMissGap applies if a listing lacks all VMs of its class's machines, and at least two. Then the class or its
// secret may point to another account, and machines that were replaced because of that would leave their VMs behind.
// Both figures are this library's.
const (
	mostMissGap = 10 * time.Minute
	allMissGap  = time.Hour
)

// Unlisted is a machine without a cluster whose VM was absent from the last listing of its class.
type Unlisted struct {
	Machine    object.Key
	UID        string
	Class      object.Key
	ProviderID string // of the machine
	// Since is when the first listing without the VM was asked for.
	Since time.Time
	// Due is the time from which a listing without the VM makes it missing.
	Due time.Time
	// Missing is when the last such listing was asked for. If it is set, the VM counts as missing, and the
	// machine asks the provider for it, once for each listing. Zero: the VM does not count as missing yet.
	Missing time.Time
}

// unlisted returns the machines whose VMs should be in the listings of this pass and are not, and those of
// earlier passes if this one does not list their class. It also fills in sighted.
func (d *decider) unlisted() []Unlisted {
	if !d.o.NoCluster {
		return nil
	}
	before := d.missedBefore()
	all, named := []Unlisted(nil), make(map[object.Key]int64)
	names, seen := d.listedNames(), d.seen()
	d.sighted = nil
	for _, m := range d.o.Machines {
		c := d.classOfMachine(m)
		if c == nil {
			continue
		}
		listed := !c.notListed() && (names[m.Name] || d.lists(m.Spec.ProviderID))
		if id := m.Spec.ProviderID; (listed || seen[id]) && d.now.Before(m.Status.Since.Add(lagOfLists)) {
			d.sighted = append(d.sighted, id)
		}
		if listed {
			named[c.Key]++
		} else if known, missed := d.miss(m, c, before[m.Key], seen); missed {
			all = append(all, known)
		}
	}
	slices.Sort(d.sighted)
	d.judgeMissing(all, named)
	for _, u := range d.o.Unlisted { // classes without a listing in this pass
		if c := d.classOf(u.Class); c != nil && c.notListed() && !u.Since.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unlisted) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unlisted) bool { return a.Machine == b.Machine })
}

// missedBefore returns the machines whose VMs earlier listings lacked.
func (d *decider) missedBefore() map[object.Key]Unlisted {
	before := make(map[object.Key]Unlisted, len(d.o.Unlisted))
	for _, u := range d.o.Unlisted {
		before[u.Machine] = u
	}
	return before
}

// notListed reports whether this pass has no listing of the class's VMs.
func (c *Class) notListed() bool { return c.Listing == nil || c.Listing.Code != codes.OK }

// unlistedDue returns when a class is to be listed again to find out whether VMs are missing that its last listing
// lacked. Zero: there are none.
func (d *decider) unlistedDue(c *Class) (at time.Time) {
	for i := range d.o.Unlisted {
		if u := &d.o.Unlisted[i]; u.Class == c.Key && u.Missing.IsZero() {
			at = times.Earlier(at, u.Due)
		}
	}
	return at
}

// watchDue returns when a class is to be listed again to find out whether VMs of its machines are gone. Zero: that
// is not searched for, or the class has no machines that work.
func (d *decider) watchDue(c *Class) time.Time {
	if !d.watchesVMs() || !d.used[c.Key] {
		return time.Time{}
	}
	return c.Asked.Add(d.p.VMPeriod)
}

// usedBy returns the classes of the machines that work, see up.
func usedBy(machines []*machine.Machine) map[object.Key]bool {
	used := make(map[object.Key]bool)
	for _, m := range machines {
		if m != nil && up(m) {
			used[object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}] = true
		}
	}
	return used
}

// watchesVMs reports whether classes are listed every VMPeriod to find VMs that are gone.
func (d *decider) watchesVMs() bool { return d.o.NoCluster && d.p.VMPeriod != object.Off }

// seen returns Observation.Sighted as a set.
func (d *decider) seen() map[string]bool {
	seen := make(map[string]bool, len(d.o.Sighted))
	for _, id := range d.o.Sighted {
		seen[id] = true
	}
	return seen
}

// classOfMachine returns the class of a machine. Nil: the observation does not have the class, or m is nil.
func (d *decider) classOfMachine(m *machine.Machine) *Class {
	if m == nil {
		return nil
	}
	return d.classOf(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
}

// miss returns the entry for a machine whose VM is not in its class's listing. False: there is no listing, it
// need not have the VM, or the machine is paused or preserved.
func (d *decider) miss(m *machine.Machine, c *Class, known Unlisted, seen map[string]bool) (Unlisted, bool) {
	if c.notListed() {
		return known, false
	}
	l, class, id := c.Listing, c.Key, m.Spec.ProviderID
	switch {
	case !up(m):
		return known, false
	case m.Deleted() || blank(id) || d.p.Paused(m) || m.Preserved(d.now):
		return known, false
	case !seen[id] && l.Asked.Before(m.Status.Since.Add(lagOfLists)):
		return known, false
	case known.UID != m.UID || known.ProviderID != id || known.Class != class,
		known.Since.IsZero(), known.Since.After(l.Asked):
		return Unlisted{Machine: m.Key, UID: m.UID, Class: class, ProviderID: id, Since: l.Asked}, true
	}
	return known, true
}

// judgeMissing sets Due of the machines whose VMs the listings of this pass lack, and Missing if that time has come.
// named is how many VMs of its machines each class lists.
func (d *decider) judgeMissing(all []Unlisted, named map[object.Key]int64) {
	count := make(map[object.Key]int64)
	for i := range all {
		count[all[i].Class]++
	}
	for i := range all {
		u := &all[i]
		gap := d.missGap(count[u.Class], named[u.Class])
		u.Due = u.Since.Add(gap)
		if asked := d.classOf(u.Class).Listing.Asked; !asked.Before(u.Due) {
			u.Missing = asked
		}
		if gap != allMissGap {
			d.warn = append(d.warn, decision.Why{Reason: reasonNotListed, Name: u.Machine.String(), Detail: u.ProviderID, For: gap})
		}
	}
	for _, c := range d.classes {
		if n := count[c.Key]; n > 1 && named[c.Key] == 0 {
			d.warn = append(d.warn, decision.Why{Reason: reasonNoneListed, Name: c.Key.String(), Have: n, For: allMissGap})
		}
	}
}

// missGap returns how long VMs must be absent from the listings of their class to be missing. missing and listed are
// how many VMs of the class's machines the last listing lacks and has.
func (d *decider) missGap(missing, listed int64) time.Duration {
	gap := max(d.p.OrphanGap, d.p.VMPeriod)
	switch {
	case missing > 1 && listed == 0:
		return max(gap, allMissGap)
	case missing > 1 && missing > listed, d.p.VMPeriod == object.Off:
		return max(gap, mostMissGap)
	}
	return gap
}

// listedNames returns the names of the machines for which a VM was listed in this pass, with any ID: a listing may
// have other IDs than CreateMachine had.
func (d *decider) listedNames() map[string]bool {
	names := make(map[string]bool)
	for _, c := range d.classes {
		if c.Listing == nil {
			continue
		}
		for _, name := range c.Listing.VMs {
			names[name] = true
		}
	}
	return names
}

// Unhealthy is a machine without a cluster whose VM the last listing of its class named as unhealthy.
type Unhealthy struct {
	Machine    object.Key
	UID        string
	Class      object.Key
	ProviderID string // of the machine
	// Listed is when that listing was asked for. For each such listing, the machine asks the provider for
	// its VM once.
	Listed time.Time
}

// unhealthy returns the machines whose VMs the last listing of their class named as unhealthy.
func (d *decider) unhealthy() []Unhealthy {
	if !d.o.NoCluster {
		return nil
	}
	var all []Unhealthy
	for _, m := range d.o.Machines {
		c := d.classOfMachine(m)
		if c == nil || c.notListed() || m.Deleted() || !up(m) || d.p.Paused(m) || m.Preserved(d.now) {
			continue
		}
		if id := m.Spec.ProviderID; c.Listing.Unhealthy[id] && !blank(id) {
			all = append(all, Unhealthy{Machine: m.Key, UID: m.UID, Class: c.Key, ProviderID: id, Listed: c.Listing.Asked})
		}
	}
	for _, u := range d.o.Unhealthy { // classes without a listing in this pass
		if c := d.classOf(u.Class); c != nil && c.notListed() && !u.Listed.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unhealthy) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unhealthy) bool { return a.Machine == b.Machine })
}

// up reports whether a machine works, or may work again, by its phase.
func up(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown:
		return true
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
	}
	return false
}
