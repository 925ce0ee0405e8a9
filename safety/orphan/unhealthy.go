package orphan

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

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
