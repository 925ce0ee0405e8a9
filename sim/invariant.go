package sim

// invariant is something that must hold at any moment. It sees each event, in order, and reports by
// World.violate what is broken. Each has a file that is named after it, and keeps there what it
// remembers. What several need of the past is in past.go.
type invariant interface{ see(event) }

// hold makes the invariants that hold in all worlds.
func (w *World) hold() {
	w.retries, w.choices = &p28{World: w}, &p20{World: w, chosen: map[string]*choice{}}
	for _, i := range []invariant{
		&p13{w}, newP07(w), newChildren(w), p10{w}, p23{w}, newP30(w),
		p04{w}, p15{w}, newP17(w), p19{w}, w.choices, newP22(w), p24{w}, p25{w}, w.retries,
	} {
		w.subscribe(i.see)
	}
}

// check tells all that look at the world of an effect, if there was one since the last time.
func (w *World) check() {
	l := &w.past
	if !l.changed && !l.provided {
		return
	}
	w.emit(effect{w.machines.all()})
	l.changed, l.provided = false, false
	w.checkProperties()
	for _, watch := range w.watchers {
		watch()
	}
}
