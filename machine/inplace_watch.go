package machine

// step looks at what an in-place update wants of a machine that is
// watched, before anything else is done about its node.
func (u inPlace) step(healthy bool) (Plan, bool) {
	switch u.m.Status.Phase {
	case PhaseRunning:
		if healthy && nodeUpdate(u).selected() && !nodeUpdate(u).waits() && !u.preserved() && u.n.Applied.Preserved == (PreservedMarks{}) {
			return u.begin(), true
		}
	case PhaseInPlaceUpdateFailed:
		return u.tryAgain(healthy)
	}
	return u.announce()
}

// tryAgain looks whether the agent of a failed update has succeeded at last,
// whether the machine is to be updated once more, or not at all.
func (u inPlace) tryAgain(healthy bool) (Plan, bool) {
	marks := nodeUpdate(u)
	selected, outdated := marks.selected(), marks.outdated()
	again := selected && outdated && healthy
	answered := selected && !outdated && u.n.result(&u.p.Keys) == UpdateSuccessful
	switch {
	case (again || answered) && u.o.Node.cached():
		return u.look(false), true
	case again:
		return u.begin(), true
	case answered:
		return u.succeeded(StageUpdateFailed), true
	case u.n.underWay() && (outdated || !selected):
		return u.say(u.restReason())
	case u.n.told() && u.n.result(&u.p.Keys) == UpdateFailed:
		return u.say(ReasonNodeUpdateFailed)
	}
	return Plan{}, false
}

// announce has the node of a machine that is in no update say whether it is to
// be updated. What another program announced for its own labels is left alone.
func (u inPlace) announce() (Plan, bool) {
	have := &u.n.Applied.Update
	switch {
	case u.n.underWay() && !have.Since.IsZero():
		return u.say(u.restReason())
	case u.m.Status.Phase != PhaseRunning || u.n.underWay():
		return Plan{}, false
	case u.m.Spec.InPlace != InPlaceNone && !nodeUpdate(u).adopts() && u.announces():
		return u.say(ReasonCandidateForUpdate)
	case nodeUpdate(u).misleads():
		return u.say(ReasonUpdateSuccessful)
	}
	return Plan{}, false
}

// announces reports whether a node has yet to say that it is a candidate. After a
// success it says so before it is labelled, else once it is.
func (u inPlace) announces() bool {
	if u.n.announced() {
		return u.n.Applied.Update.Candidate && u.n.unsaid(ReasonCandidateForUpdate)
	}
	return u.n.Applied.Update.Candidate || !u.n.says(u.p.Keys.CandidateForUpdate)
}

// forgive lets a machine run again whose failed update is not wanted any more
// and whose node is healthy.
func (u inPlace) forgive() Plan {
	sync := nodeSync{u.situation, u.n, false}
	switch {
	case u.o.Node.cached():
		return u.look(false)
	case u.n.underWay():
		return u.later(u.unmarked())
	case sync.outOfLine():
		return Plan{Why: sync.notInLine()}
	}
	return u.settleStatus(u.withdrawn(u.n.Name, StageUpdateFailed))
}
