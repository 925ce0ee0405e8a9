package machine

import "time"

// yes is the value of a label that says so.
const yes = "true"

// wantedMarks is what an in-place update wants to be on a node.
type wantedMarks struct {
	UpdateMarks
	noAnswer    bool // the agent's answer was taken, or is an old one
	noSelection bool // a user's selection was fulfilled
}

// wanted says what a node should carry, by where the update stands.
func (u nodeUpdate) wanted() wantedMarks {
	asked, have := u.m.Spec.InPlace != InPlaceNone, u.marks()
	var w wantedMarks
	if u.records() {
		w.UpdateMarks = have
		return w
	}
	switch u.m.Status.Phase {
	case PhaseRunning:
		w.noAnswer, w.noSelection = u.leftOver(), u.leftOver()
		w.Candidate, w.Since = asked && u.n.announced(), sinceTold(u.n)
	case PhaseInPlaceUpdating:
		if u.over() {
			w.Candidate, w.Since, w.noAnswer = asked && u.n.announced(), sinceTold(u.n), true
			break
		}
		w.UpdateMarks = UpdateMarks{Since: u.m.Status.Since.Truncate(time.Second), Candidate: true, Selected: have.Selected, Cordoned: true}
		if u.m.Spec.InPlace == InPlaceSelected {
			w.Selected = true
		}
		w.noAnswer = u.m.Status.LastOperation.Stage != StageReady
	case PhaseInPlaceUpdateFailed:
		return u.wantedOfFailed(have)
	case PhaseInPlaceUpdateSuccessful:
		if asked {
			w.UpdateMarks = have
			break
		}
		w.noAnswer, w.noSelection = true, true
	case PhaseNew, PhasePending, PhaseAvailable, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff, PhaseTerminating:
		w.Candidate, w.Since = have.Candidate && asked && u.n.announced(), sinceTold(u.n)
	}
	return w
}

// wantedOfFailed is wanted after an update has failed.
func (u nodeUpdate) wantedOfFailed(have UpdateMarks) (w wantedMarks) {
	asked := u.m.Spec.InPlace != InPlaceNone
	switch {
	case u.outdated(): // it is not trusted with workload
		w.Since, w.Cordoned, w.Candidate, w.noAnswer = have.Since, have.Cordoned, asked, true
	case u.over():
		w.Candidate, w.Since, w.noAnswer = asked && u.n.announced(), sinceTold(u.n), true
	default:
		w.UpdateMarks = have
	}
	return w
}

// inLine reports whether a node carries what apply would put there and
// nothing that it would take off. Most machines are in no update: they ask for
// nothing, and their nodes carry nothing.
func (u nodeUpdate) inLine() bool {
	if u.n.Applied.Update.none() && u.n.Drain == nil && u.m.Status.Phase == PhaseRunning && u.m.Spec.InPlace == InPlaceNone {
		return !u.leftOver()
	}
	return !u.drainIsOver() && u.labelsInLine()
}

func (u nodeUpdate) labelsInLine() bool {
	if u.unclaimed() {
		return true
	}
	have, k, w := &u.n.Applied.Update, &u.p.Keys, u.wanted()
	return !u.strange() && have.Since.Equal(w.Since) &&
		labelInLine(u.n, k.CandidateForUpdate, have.Candidate, w.Candidate) &&
		labelInLine(u.n, k.SelectedForUpdate, have.Selected, w.Selected) &&
		(w.Cordoned && u.n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		!(w.noAnswer && u.n.answered(k)) && !(w.noSelection && u.n.says(k.SelectedForUpdate))
}

func labelInLine(n *Node, key string, have, want bool) bool {
	if want && key != "" {
		return n.Labels[key] == yes
	}
	return !have
}

// apply changes a copy of a node into what an in-place update wants it to
// be, and records what of it is ours. n has a map of labels.
func (u nodeUpdate) apply() {
	have, k, w := u.marks(), &u.p.Keys, u.wanted()
	if t, seen := u.n.taint(k.CriticalComponents); seen {
		u.n.Applied.Critical = t
	}
	if u.unclaimed() {
		return
	}
	now := UpdateMarks{Since: w.Since, Cordoned: have.Cordoned && w.Cordoned}
	now.Candidate = setLabel(u.n.Labels, k.CandidateForUpdate, have.Candidate, w.Candidate)
	now.Selected = setLabel(u.n.Labels, k.SelectedForUpdate, have.Selected, w.Selected)
	switch {
	case w.Cordoned && !u.n.Unschedulable:
		u.n.Unschedulable, now.Cordoned = true, true
	case have.Cordoned && !w.Cordoned:
		u.n.Unschedulable = false
	}
	if w.noAnswer {
		delete(u.n.Labels, k.UpdateResult)
		delete(u.n.Annotations, k.UpdateFailedReason)
	}
	if w.noSelection {
		delete(u.n.Labels, k.SelectedForUpdate)
	}
	if u.returns() && !have.Since.IsZero() {
		u.restoreCritical()
	}
	if u.drainIsOver() {
		if !u.n.Drain.Cordoned.IsZero() && !w.Cordoned {
			u.n.Unschedulable = false
		}
		u.n.Drain = nil
	}
	u.n.Applied.Update = now
}

// drainIsOver reports whether a node has the record of a drain that does
// not go on: its machine is neither being deleted nor updated. The cordon is
// removed with the record, if it was the drain's.
func (u nodeUpdate) drainIsOver() bool {
	return u.n.Drain != nil && (u.m.Status.Phase == PhaseRunning || u.returns())
}

// returns reports whether the machine's update is done and its owner has taken
// it over.
func (u nodeUpdate) returns() bool {
	return u.m.Status.Phase == PhaseInPlaceUpdateSuccessful && u.m.Spec.InPlace == InPlaceNone
}

// restoreCritical puts the critical-components taint on again, in the same
// write that lets workload back: the program that takes it off once the components are
// ready does so again. Only a node that once carried it gets it: in a
// fleet that does not use the taint, no program would remove it.
func (u nodeUpdate) restoreCritical() {
	t := u.n.Applied.Critical
	if t.Key == "" || t.Key != u.p.Keys.CriticalComponents || u.n.hasTaint(t.Key) {
		return
	}
	u.n.Taints = append(u.n.Taints, t)
}

// setLabel puts a label on or takes it off, and reports whether it is ours: what
// somebody else put there is left alone.
func setLabel(labels map[string]string, key string, have, want bool) bool {
	switch {
	case key == "":
		return false
	case want && labels[key] == yes:
		return have
	case want:
		labels[key] = yes
		return true
	case have && labels[key] == yes:
		delete(labels, key)
	}
	return false
}

// selected reports whether it is the machine's turn: by its owner's request, or
// by a user's label on the node of a candidate. One that waits does not begin for that.
func (u nodeUpdate) selected() bool {
	switch u.m.Spec.InPlace {
	case InPlaceSelected:
		return true
	case InPlaceCandidate, InPlaceWaiting:
		return !u.n.Applied.Update.Selected && u.n.says(u.p.Keys.SelectedForUpdate)
	}
	return false
}

// waits reports whether a user has selected a machine whose turn its owner decides. What another
// program has begun does not wait.
func (u nodeUpdate) waits() bool {
	return u.m.Spec.InPlace == InPlaceWaiting && u.selected() && (u.n.updateReason() == ReasonCandidateForUpdate || !u.adopts())
}

// over reports whether an update that the agent is not at work at is not wanted
// any more.
func (u nodeUpdate) over() bool {
	switch u.m.Status.Phase {
	case PhaseInPlaceUpdating:
		return u.m.Status.LastOperation.Stage != StageReady && !u.selected()
	case PhaseInPlaceUpdateFailed:
		return !u.outdated() && !u.selected() && !u.unclaimed()
	}
	return false
}

// outdated reports whether the node was updated after that had been withdrawn.
func (u nodeUpdate) outdated() bool {
	op := &u.m.Status.LastOperation
	return u.m.Status.Phase == PhaseInPlaceUpdateFailed && op.Kind == OperationInPlaceUpdate && op.Stage == StageCandidate
}

// misleads reports whether a node of which no update is wanted says that it
// awaits one, or something at which no other program begins one. What another
// program has announced for its own label does not count; ours is taken off first.
func (u nodeUpdate) misleads() bool {
	if u.m.Spec.InPlace != InPlaceNone || u.n.Applied.Update.Candidate {
		return false
	}
	return u.n.formerEnd() || u.n.awaitsTurn() && !u.n.says(u.p.Keys.CandidateForUpdate)
}
