package deployment

import (
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// begun reports whether a machine's update can't be cancelled any more by removing the request. Its
// outcome is known when it is over.
func begun(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseInPlaceUpdating || updated(m)
}

// updated reports whether a machine's update was successful.
func updated(m *machine.Machine) bool { return m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful }

// inUpdate reports whether a machine is being updated, or about to be, and will move then. A
// machine that was selected, here or by another program, and is not healthy begins, if ever, when
// it is healthy again. A machine without a request returns to work where it is.
func inUpdate(m *machine.Machine) bool {
	if m.Spec.InPlace == machine.InPlaceNone {
		return false
	}
	return begun(m) || m.Ready() && (m.Spec.InPlace == machine.InPlaceSelected || selectedElsewhere(m))
}

// selectedElsewhere reports whether a machine's node says that its update has begun. If the update
// began here, the machine says so itself before.
func selectedElsewhere(m *machine.Machine) bool {
	c := object.FindCondition(m.Status.Conditions, machine.NodeInPlaceUpdate)
	if c == nil || c.Status != object.True {
		return false
	}
	switch c.Reason {
	case machine.ReasonSelectedForUpdate, machine.ReasonDrainSuccessful, machine.ReasonReadyForUpdate:
		return true
	}
	return false
}

// delayed reports whether a machine was selected and begins when it is healthy again.
func delayed(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseUnknown && m.Spec.InPlace == machine.InPlaceSelected
}

// selectable reports whether a machine that is available can be selected. A machine without a node
// has no agent that could update it.
func selectable(m *machine.Machine) bool {
	return m.Status.Phase == machine.PhaseRunning && m.Spec.InPlace != machine.InPlaceSelected
}

// countInPlace counts a machine that is not being deleted.
func (f *family) countInPlace(m *machine.Machine, available, paused bool) {
	under := inUpdate(m)
	if under {
		f.underWay++
	} else if !m.Ready() && !begun(m) && (f.unfit == nil || m.Name < f.unfit.Name) {
		f.unfit = m
	}
	if available {
		f.available++
		if under {
			f.leaving++
		} else if selectable(m) && !paused {
			f.selectable++
		}
	}
	if delayed(m) {
		f.delayed++
	}
	countUpdate(&f.inPlace, m)
}

// countUpdate counts a machine by how far its update is.
func countUpdate(c *InPlaceCounts, m *machine.Machine) {
	switch {
	case m.Status.Phase == machine.PhaseInPlaceUpdating:
		c.Updating++
	case updated(m):
		c.Updated++
	case m.Status.Phase == machine.PhaseInPlaceUpdateFailed:
		c.Failed++
	case m.Spec.InPlace == machine.InPlaceSelected:
		c.Selected++
	case m.Spec.InPlace == machine.InPlaceCandidate, m.Spec.InPlace == machine.InPlaceWaiting:
		c.Candidates++
	}
}
