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

// missGap is how long a VM must have been absent from the listings before it is missing, or
// Policy.OrphanGap if that is longer. It is as long as a node may be unhealthy, because a
// provider's incident may hide VMs that run. allMissGap applies if a listing names no VM of any of
// its class's machines, two or more. The class or its secret may then point to another account, and
// a machine that is replaced for that leaves its VM behind. Both figures are this library's.
const (
	missGap    = 10 * time.Minute
	allMissGap = time.Hour
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
	before := make(map[object.Key]Unlisted, len(d.o.Unlisted))
	for _, u := range d.o.Unlisted {
		before[u.Machine] = u
	}
	all, named := []Unlisted(nil), make(map[object.Key]bool)
	names := d.listedNames()
	for _, m := range d.o.Machines {
		if m == nil {
			continue
		}
		c := d.classOf(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
		if c == nil || c.silent() {
			continue
		}
		known, missed := d.miss(m, c.Listing, before[m.Key])
		switch {
		case names[m.Name] || d.lists(m.Spec.ProviderID):
			named[c.Key] = true
		case missed:
			all = append(all, known)
		}
	}
	d.judgeMissing(all, named)
	for _, u := range d.o.Unlisted { // classes without a listing in this pass
		if c := d.classOf(u.Class); c != nil && c.silent() && !u.Since.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unlisted) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unlisted) bool { return a.Machine == b.Machine })
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

// miss notes that a listing does not have the VM of a machine. It returns false if a listing need
// not have it.
func (d *decider) miss(m *machine.Machine, l *Listing, known Unlisted) (Unlisted, bool) {
	phase, id := m.Status.Phase, m.Spec.ProviderID
	class := object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}
	switch {
	case phase != machine.PhaseAvailable && phase != machine.PhaseRunning:
		return known, false
	case m.Deleted() || blank(id) || d.p.Paused(m) || m.Preserved(d.now):
		return known, false
	case l.Asked.Before(m.Status.Since.Add(lagOfLists)):
		return known, false
	case known.UID != m.UID || known.ProviderID != id || known.Class != class,
		known.Since.IsZero(), known.Since.After(l.Asked):
		return Unlisted{Machine: m.Key, UID: m.UID, Class: class, ProviderID: id, Since: l.Asked}, true
	}
	return known, true
}

// judgeMissing sets from when on VMs that the listings of this pass do not have are missing, and
// notes those that are. named are the classes that list a VM of theirs.
func (d *decider) judgeMissing(all []Unlisted, named map[object.Key]bool) {
	count := make(map[object.Key]int64)
	for i := range all {
		count[all[i].Class]++
	}
	for i := range all {
		u, gap := &all[i], max(d.p.OrphanGap, missGap)
		if !named[u.Class] && count[u.Class] > 1 {
			gap = max(gap, allMissGap)
		}
		u.Due = u.Since.Add(gap)
		if asked := d.classOf(u.Class).Listing.Asked; !asked.Before(u.Due) {
			u.Missing = asked
		}
	}
	for _, c := range d.classes {
		if n := count[c.Key]; n > 1 && !named[c.Key] {
			d.warn = append(d.warn, decision.Why{Reason: reasonNoneListed, Name: c.Key.String(), Have: n, For: allMissGap})
		}
	}
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
