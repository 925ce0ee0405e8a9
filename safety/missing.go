package safety

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// lagOfLists is how long after a machine has come to be available nobody misses its
// VM: lists and answers of a provider may lag behind what it has made. The figure
// is this library's.
const lagOfLists = 10 * time.Minute

// Unlisted is a machine without a cluster whose VM was not in the last listing of
// its class.
type Unlisted struct {
	Machine    object.Key
	UID        string
	Class      object.Key
	ProviderID string // of the machine
	// Since is when the first listing was asked for that did not have it.
	Since time.Time
	// Missing is when the last listing was asked for that did not have it either,
	// at least OrphanGap after the first. Zero: there was none yet. Then the VM
	// counts as missing, and the provider is asked for it: once for each listing.
	Missing time.Time
}

// unlisted goes through the listings of this pass for machines whose VMs they
// should have and do not.
func (d *collection) unlisted() []Unlisted {
	if !d.o.NoCluster {
		return nil
	}
	before := make(map[object.Key]Unlisted, len(d.o.Unlisted))
	for _, u := range d.o.Unlisted {
		before[u.Machine] = u
	}
	var all []Unlisted
	names := d.listedNames()
	for _, m := range d.o.Machines {
		if m == nil {
			continue
		}
		c := d.classOf(object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name})
		if c == nil || c.silent() {
			continue
		}
		if known, missed := d.miss(m, c.Listing, before[m.Key]); missed && !names[m.Name] && !d.lists(m.Spec.ProviderID) {
			all = append(all, known)
		}
	}
	for _, u := range d.o.Unlisted { // what nothing was heard of
		if c := d.classOf(u.Class); c != nil && c.silent() && !u.Since.After(d.now) {
			all = append(all, u)
		}
	}
	slices.SortFunc(all, func(a, b Unlisted) int { return byKey(a.Machine, b.Machine) })
	return slices.CompactFunc(all, func(a, b Unlisted) bool { return a.Machine == b.Machine })
}

// silent reports whether nothing was heard of the class's VMs in this pass.
func (c *OrphanClass) silent() bool { return c.Listing == nil || c.Listing.Code != codes.OK }

// unlistedDue is when a class is to be asked again for VMs that its last listing
// did not have; zero: there are none.
func (d *collection) unlistedDue(c *OrphanClass) (at time.Time) {
	for i := range d.o.Unlisted {
		if u := &d.o.Unlisted[i]; u.Class == c.Key && u.Missing.IsZero() {
			at = earlier(at, u.Since.Add(d.p.OrphanGap))
		}
	}
	return at
}

// miss notes that a listing does not have the VM of a machine. False: it need not.
func (d *collection) miss(m *machine.Machine, l *Listing, known Unlisted) (Unlisted, bool) {
	phase, id := m.Status.Phase, m.Spec.ProviderID
	switch {
	case phase != machine.PhaseAvailable && phase != machine.PhaseRunning:
		return known, false
	case m.Deleted() || blank(id) || isPaused(m, d.p.Keys.Paused) || m.Preserved(d.now):
		return known, false
	case l.Asked.Before(m.Status.Since.Add(lagOfLists)):
		return known, false
	case known.UID != m.UID || known.ProviderID != id || known.Since.IsZero() || known.Since.After(l.Asked):
		class := object.Key{Namespace: m.Namespace, Name: m.Spec.Class.Name}
		return Unlisted{Machine: m.Key, UID: m.UID, Class: class, ProviderID: id, Since: l.Asked}, true
	case !l.Asked.Before(known.Since.Add(d.p.OrphanGap)):
		known.Missing = l.Asked
	}
	return known, true
}

// listedNames are the machines that a VM was listed for in this pass, whatever its
// ID: a list may know VMs by other IDs than CreateMachine does.
func (d *collection) listedNames() map[string]bool {
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
