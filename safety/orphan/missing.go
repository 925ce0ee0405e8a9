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

// lagOfLists is how long after a machine has become available its VM does not count as missing.
// Lists and answers of a provider may lag behind its creates. The figure is this library's.
const lagOfLists = 10 * time.Minute

// A VM is missing when it has been absent from the listings for Policy.VMPeriod, or Policy.OrphanGap
// if that is longer. mostMissGap applies if a listing misses most VMs of its class's machines, two or
// more, or if VMPeriod is off. It is as long as a node may be unhealthy, because a provider's incident
// may hide VMs that run. allMissGap applies if a listing names none of two or more. The class or its
// secret may then point to another account, and a machine that is replaced for that leaves its VM
// behind. Both figures are this library's.
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
	// Since is when the first listing without it was asked for.
	Since time.Time
	// Due is the time from which a listing without it makes it missing.
	Due time.Time
	// Missing is when the last such listing was asked for. Zero: there was none yet. If it is set,
	// the VM counts as missing, and the machine asks the provider for it, once for each listing.
	Missing time.Time
}

// unlisted searches the listings of this pass for machines whose VMs they should have and do not.
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
		listed := !c.silent() && (names[m.Name] || d.lists(m.Spec.ProviderID))
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
		if c := d.classOf(u.Class); c != nil && c.silent() && !u.Since.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unlisted) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unlisted) bool { return a.Machine == b.Machine })
}

// missedBefore returns the machines whose VMs earlier listings did not have.
func (d *decider) missedBefore() map[object.Key]Unlisted {
	before := make(map[object.Key]Unlisted, len(d.o.Unlisted))
	for _, u := range d.o.Unlisted {
		before[u.Machine] = u
	}
	return before
}

// silent reports whether this pass has no listing of the class's VMs.
func (c *Class) silent() bool { return c.Listing == nil || c.Listing.Code != codes.OK }

// unlistedDue returns when a class is to be listed again for VMs that its last listing did not
// have. Zero means that there are none.
func (d *decider) unlistedDue(c *Class) (at time.Time) {
	for i := range d.o.Unlisted {
		if u := &d.o.Unlisted[i]; u.Class == c.Key && u.Missing.IsZero() {
			at = times.Earlier(at, u.Due)
		}
	}
	return at
}

// lookAt returns when a class without a cluster is to be listed again to see that the VMs of its
// machines are there. Zero: there are none, or at no time of its own.
func (d *decider) lookAt(c *Class) time.Time {
	if !d.watches() || !d.used[c.Key] {
		return time.Time{}
	}
	return c.Asked.Add(d.p.VMPeriod)
}

// usedBy returns the classes with machines that are up.
func usedBy(machines []*machine.Machine) map[object.Key]bool {
	used := make(map[object.Key]bool)
	for _, m := range machines {
		if m != nil && up(m) {
			used[object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}] = true
		}
	}
	return used
}

// watches reports whether VMs are listed to see that they are there.
func (d *decider) watches() bool { return d.o.NoCluster && d.p.VMPeriod != object.Off }

// seen returns the VMs that listings have named since their machines became available.
func (d *decider) seen() map[string]bool {
	seen := make(map[string]bool, len(d.o.Sighted))
	for _, id := range d.o.Sighted {
		seen[id] = true
	}
	return seen
}

// classOfMachine returns the class of a machine. Nil: it is not searched for, or there is no machine.
func (d *decider) classOfMachine(m *machine.Machine) *Class {
	if m == nil {
		return nil
	}
	return d.classOf(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
}

// miss notes that a class's listing does not have the VM of a machine. It returns false if a listing
// need not have it, or if there is none.
func (d *decider) miss(m *machine.Machine, c *Class, known Unlisted, seen map[string]bool) (Unlisted, bool) {
	if c.silent() {
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

// judgeMissing sets from when on VMs that the listings of this pass do not have are missing, and
// notes those that are. named is how many VMs of its machines each class lists.
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

// missGap returns how long the VMs of a class must be absent from its listings, of which the last one
// has so many and misses so many.
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

// listedNames returns the machines for which a VM was listed in this pass, with any ID: a list may
// use other IDs for VMs than CreateMachine does.
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
	// Listed is when that listing was asked for. The machine asks the provider for its VM, once for
	// each listing.
	Listed time.Time
}

// unhealthy returns the machines whose VMs are unhealthy by the last listings of their classes.
func (d *decider) unhealthy() []Unhealthy {
	if !d.o.NoCluster {
		return nil
	}
	var all []Unhealthy
	for _, m := range d.o.Machines {
		c := d.classOfMachine(m)
		if c == nil || c.silent() || m.Deleted() || !up(m) || d.p.Paused(m) || m.Preserved(d.now) {
			continue
		}
		if id := m.Spec.ProviderID; c.Listing.Unhealthy[id] && !blank(id) {
			all = append(all, Unhealthy{Machine: m.Key, UID: m.UID, Class: c.Key, ProviderID: id, Listed: c.Listing.Asked})
		}
	}
	for _, u := range d.o.Unhealthy { // classes without a listing in this pass
		if c := d.classOf(u.Class); c != nil && c.silent() && !u.Listed.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unhealthy) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unhealthy) bool { return a.Machine == b.Machine })
}

// up reports whether a machine does its work, or may do it again, as far as its phase says.
func up(m *machine.Machine) bool {
	switch m.Status.Phase {
	case machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown:
		return true
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
	}
	return false
}
