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
func (d *decider) wanted(n *Node) wantedMarks {
	asked, have := d.m.Spec.InPlace != InPlaceNone, d.updateMarks(n)
	var w wantedMarks
	if d.records(n) {
		w.UpdateMarks = have
		return w
	}
	switch d.m.Status.Phase {
	case PhaseRunning:
		w.noAnswer, w.noSelection = d.leftOver(n), d.leftOver(n)
		w.Candidate, w.Since = asked && n.announced(), sinceTold(n)
	case PhaseInPlaceUpdating:
		if d.over(n) {
			w.Candidate, w.Since, w.noAnswer = asked && n.announced(), sinceTold(n), true
			break
		}
		w.UpdateMarks = UpdateMarks{Since: d.m.Status.Since.Truncate(time.Second), Candidate: true, Selected: have.Selected, Cordoned: true}
		if d.m.Spec.InPlace == InPlaceSelected {
			w.Selected = true
		}
		w.noAnswer = d.m.Status.LastOperation.Stage != StageReady
	case PhaseInPlaceUpdateFailed:
		return d.wantedOfFailed(n, have)
	case PhaseInPlaceUpdateSuccessful:
		if asked {
			w.UpdateMarks = have
			break
		}
		w.noAnswer, w.noSelection = true, true
	case PhaseNew, PhasePending, PhaseAvailable, PhaseUnknown, PhaseFailed, PhaseCrashLoopBackOff, PhaseTerminating:
		w.Candidate, w.Since = have.Candidate && asked && n.announced(), sinceTold(n)
	}
	return w
}

// wantedOfFailed is wanted after an update has failed.
func (d *decider) wantedOfFailed(n *Node, have UpdateMarks) (w wantedMarks) {
	asked := d.m.Spec.InPlace != InPlaceNone
	switch {
	case d.outdated(): // it is not trusted with workload
		w.Since, w.Cordoned, w.Candidate, w.noAnswer = have.Since, have.Cordoned, asked, true
	case d.over(n):
		w.Candidate, w.Since, w.noAnswer = asked && n.announced(), sinceTold(n), true
	default:
		w.UpdateMarks = have
	}
	return w
}

// marksInLine tells whether a node carries what applyMarks would put there and
// nothing that it would take off. Most machines are in no update: they ask for
// nothing, and their nodes carry nothing.
func (d *decider) marksInLine(n *Node) bool {
	if n.Applied.Update.none() && n.Drain == nil && d.m.Status.Phase == PhaseRunning && d.m.Spec.InPlace == InPlaceNone {
		return !d.leftOver(n)
	}
	return !d.drainIsOver(n) && d.updateInLine(n)
}

func (d *decider) updateInLine(n *Node) bool {
	if d.unclaimed(n) {
		return true
	}
	have, k, w := &n.Applied.Update, &d.p.Keys, d.wanted(n)
	return !d.strange(n) && have.Since.Equal(w.Since) &&
		labelInLine(n, k.CandidateForUpdate, have.Candidate, w.Candidate) &&
		labelInLine(n, k.SelectedForUpdate, have.Selected, w.Selected) &&
		(w.Cordoned && n.Unschedulable || !w.Cordoned && !have.Cordoned) &&
		!(w.noAnswer && n.answered(k)) && !(w.noSelection && n.says(k.SelectedForUpdate))
}

func labelInLine(n *Node, key string, have, want bool) bool {
	if want && key != "" {
		return n.Labels[key] == yes
	}
	return !have
}

// applyMarks changes a copy of a node into what an in-place update wants it to
// be, and records what of it is ours. n has a map of labels.
func (d *decider) applyMarks(n *Node) {
	have, k, w := d.updateMarks(n), &d.p.Keys, d.wanted(n)
	if t, seen := n.taint(k.CriticalComponents); seen {
		n.Applied.Critical = t
	}
	if d.unclaimed(n) {
		return
	}
	now := UpdateMarks{Since: w.Since, Cordoned: have.Cordoned && w.Cordoned}
	now.Candidate = setLabel(n.Labels, k.CandidateForUpdate, have.Candidate, w.Candidate)
	now.Selected = setLabel(n.Labels, k.SelectedForUpdate, have.Selected, w.Selected)
	switch {
	case w.Cordoned && !n.Unschedulable:
		n.Unschedulable, now.Cordoned = true, true
	case have.Cordoned && !w.Cordoned:
		n.Unschedulable = false
	}
	if w.noAnswer {
		delete(n.Labels, k.UpdateResult)
		delete(n.Annotations, k.UpdateFailedReason)
	}
	if w.noSelection {
		delete(n.Labels, k.SelectedForUpdate)
	}
	if d.returns() && !have.Since.IsZero() {
		d.restoreCritical(n)
	}
	if d.drainIsOver(n) {
		if !n.Drain.Cordoned.IsZero() && !w.Cordoned {
			n.Unschedulable = false
		}
		n.Drain = nil
	}
	n.Applied.Update = now
}

// drainIsOver tells whether a node has the record of a drain that nobody goes
// on with: its machine is neither going nor being updated. With the record goes
// the cordon, if it was the drain's.
func (d *decider) drainIsOver(n *Node) bool {
	return n.Drain != nil && (d.m.Status.Phase == PhaseRunning || d.returns())
}

// returns tells whether the machine's update is done and its owner has taken
// it over.
func (d *decider) returns() bool {
	return d.m.Status.Phase == PhaseInPlaceUpdateSuccessful && d.m.Spec.InPlace == InPlaceNone
}

// restoreCritical puts the critical-components taint on again, in the same
// write that lets workload back: whoever takes it off once the components are
// ready does so again. Only a node that once carried it gets it, since where
// nobody uses it nobody would take it off.
func (d *decider) restoreCritical(n *Node) {
	t := n.Applied.Critical
	if t.Key == "" || t.Key != d.p.Keys.CriticalComponents || n.hasTaint(t.Key) {
		return
	}
	n.Taints = append(n.Taints, t)
}

// setLabel puts a label on or takes it off, and tells whether it is ours: what
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
