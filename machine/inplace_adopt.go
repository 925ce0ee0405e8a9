package machine

// Another program, or an earlier version of it, may have begun an update of a
// node before this library looks after the machine. The node's labels and the
// reason of its condition say where that update stands.

// adopts reports whether another program has begun an update of the node, or has
// led on one that was announced here: the label of a candidate and a condition are
// there, and no record of when it began. An update that begins here is recorded
// before the condition tells of it, and for as long as it does (sinceTold); and the
// record of a candidate never meets a success (announced). What the other program
// put there is taken off when the update is over.
func (d *decider) adopts(n *Node) bool {
	have := &n.Applied.Update
	if !have.Since.IsZero() || !n.says(d.p.Keys.CandidateForUpdate) {
		return false
	}
	if d.m.Spec.InPlace == InPlaceNone && !d.inUpdate() {
		return d.leftOver(n)
	}
	switch n.updateReason() {
	case ReasonCandidateForUpdate:
		return have.none()
	case ReasonUpdateSuccessful:
		return n.result(&d.p.Keys) == UpdateSuccessful
	}
	return n.underWay()
}

// leftOver reports whether another program has moved the machine to its new
// owner after its update, and has yet to clean its node up. It says so by the
// agent's answer on the machine.
func (d *decider) leftOver(n *Node) bool {
	k := &d.p.Keys
	return d.m.Spec.InPlace == InPlaceNone && d.m.Status.Phase == PhaseRunning &&
		k.UpdateResult != "" && d.m.Labels[k.UpdateResult] == UpdateSuccessful &&
		n.updateReason() == ReasonUpdateSuccessful && n.result(k) == UpdateSuccessful
}

// inUpdate reports whether the machine's phase is one of an update.
func (d *decider) inUpdate() bool {
	phase := d.m.Status.Phase
	return phase == PhaseInPlaceUpdating || phase == PhaseInPlaceUpdateFailed || phase == PhaseInPlaceUpdateSuccessful
}

// updateMarks is what an update has put on the node: as recorded, or as another
// program that began the update left it. A cordon is the update's from the
// drain on. A selection is ours if the owner selects: a user's stays.
func (d *decider) updateMarks(n *Node) UpdateMarks {
	if !d.adopts(n) {
		return n.Applied.Update
	}
	have, drained := &n.Applied.Update, n.updateReason() != ReasonCandidateForUpdate
	return UpdateMarks{
		Candidate: true, Cordoned: have.Cordoned || drained && n.Unschedulable,
		Selected: have.Selected || d.m.Spec.InPlace == InPlaceSelected && n.says(d.p.Keys.SelectedForUpdate),
	}
}

// answeredElsewhere reports whether another program has begun the update or has
// led it on, and the agent has answered to it.
func (d *decider) answeredElsewhere(n *Node) bool {
	return d.adopts(n) && n.concluded(&d.p.Keys)
}

// unclaimed reports whether another program has begun the update of a machine
// of which nothing is requested. That is no withdrawal: the machine's owner has
// not seen it yet. It has the time of an update for that.
func (d *decider) unclaimed(n *Node) bool {
	s := &d.m.Status
	return n != nil && d.m.Spec.InPlace == InPlaceNone && (s.Phase == PhaseInPlaceUpdating || s.Phase == PhaseInPlaceUpdateFailed) &&
		d.adopts(n) && d.now.Before(d.verdictAt(s.Since, d.p.inPlaceTimeout(d.m)))
}

// records reports whether the marks that another program has left are recorded as
// they are: before anything else is done with them, and until the update goes on here.
func (d *decider) records(n *Node) bool {
	switch {
	case d.m.Status.Phase == PhaseInPlaceUpdating || !d.adopts(n) || d.leftOver(n):
		return false
	case d.inUpdate():
		return d.strange(n)
	}
	return true
}

// strange reports whether another program has left marks that are not on record.
func (d *decider) strange(n *Node) bool {
	if !d.adopts(n) {
		return false
	}
	marks := d.updateMarks(n)
	return !n.Applied.Update.equal(&marks)
}
