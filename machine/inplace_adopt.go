package machine

// Another program, or an earlier version of it, may have begun an update of a
// node before this library manages the machine. The node's labels and the
// reason of its condition say where that update stands.

// adopts reports whether another program has begun an update of the node, or has
// led on one that was announced here: the label of a candidate and a condition are
// there, and no record of when it began. An update that begins here is recorded
// before the condition tells of it, and for as long as it does (sinceTold); and the
// record of a candidate never meets a success (announced). What the other program
// put there is taken off when the update is over.
func (u nodeUpdate) adopts() bool {
	have := &u.n.Applied.Update
	if !have.Since.IsZero() || !u.n.says(u.p.Keys.CandidateForUpdate) {
		return false
	}
	if u.m.Spec.InPlace == InPlaceNone && !u.inUpdate() {
		return u.leftOver()
	}
	switch u.n.updateReason() {
	case ReasonCandidateForUpdate:
		return have.none()
	case ReasonUpdateSuccessful:
		return u.n.result(&u.p.Keys) == UpdateSuccessful
	}
	return u.n.underWay()
}

// leftOver reports whether another program has moved the machine to its new
// owner after its update, and has yet to clean its node up. It says so by the
// agent's answer on the machine.
func (u nodeUpdate) leftOver() bool {
	k := &u.p.Keys
	return u.m.Spec.InPlace == InPlaceNone && u.m.Status.Phase == PhaseRunning &&
		k.UpdateResult != "" && u.m.Labels[k.UpdateResult] == UpdateSuccessful &&
		u.n.updateReason() == ReasonUpdateSuccessful && u.n.result(k) == UpdateSuccessful
}

// inUpdate reports whether the machine's phase is one of an update.
func (u nodeUpdate) inUpdate() bool {
	phase := u.m.Status.Phase
	return phase == PhaseInPlaceUpdating || phase == PhaseInPlaceUpdateFailed || phase == PhaseInPlaceUpdateSuccessful
}

// marks is what an update has put on the node: as recorded, or as another
// program that began the update left it. A cordon is the update's from the
// drain on. A selection is ours if the owner selects: a user's stays.
func (u nodeUpdate) marks() UpdateMarks {
	if !u.adopts() {
		return u.n.Applied.Update
	}
	have, drained := &u.n.Applied.Update, u.n.updateReason() != ReasonCandidateForUpdate
	return UpdateMarks{
		Candidate: true, Cordoned: have.Cordoned || drained && u.n.Unschedulable,
		Selected: have.Selected || u.m.Spec.InPlace == InPlaceSelected && u.n.says(u.p.Keys.SelectedForUpdate),
	}
}

// answeredElsewhere reports whether another program has begun the update or has
// led it on, and the agent has answered to it.
func (u nodeUpdate) answeredElsewhere() bool {
	return u.adopts() && u.n.concluded(&u.p.Keys)
}

// unclaimed reports whether another program has begun the update of a machine
// of which nothing is requested. That is no withdrawal: the machine's owner has
// not seen it yet. It has the time of an update for that.
func (u nodeUpdate) unclaimed() bool {
	s := &u.m.Status
	return u.n != nil && u.m.Spec.InPlace == InPlaceNone && (s.Phase == PhaseInPlaceUpdating || s.Phase == PhaseInPlaceUpdateFailed) &&
		u.adopts() && u.now.Before(u.verdictAt(s.Since, u.p.inPlaceTimeout(u.m)))
}

// records reports whether the marks that another program has left are recorded as
// they are: before anything else is done with them, and until the update goes on here.
func (u nodeUpdate) records() bool {
	switch {
	case u.m.Status.Phase == PhaseInPlaceUpdating || !u.adopts() || u.leftOver():
		return false
	case u.inUpdate():
		return u.strange()
	}
	return true
}

// strange reports whether another program has left marks that are not on record.
func (u nodeUpdate) strange() bool {
	if !u.adopts() {
		return false
	}
	marks := u.marks()
	return !u.n.Applied.Update.equal(&marks)
}
