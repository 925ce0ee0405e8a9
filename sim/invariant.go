package sim

// invariant is something that must hold at any moment. It sees each event, in order, and reports by
// World.violate what is broken. Each has a file that is named after it, and keeps there what it
// remembers. What several need of the past is in past.go.
type invariant interface{ see(event) }

// addInvariants makes the invariants that hold in all worlds.
func addInvariants(w *World) {
	choices, turns := newP20(w), newP22Volumes(w)
	for _, i := range []invariant{
		&p13{w}, newP07(w), newChildren(w), &p10{World: w}, p23{w}, newP30(w),
		p04{w}, p15{w}, newP17(w), p19{w, choices}, choices, turns, newP22(turns), p24{w}, p25{w}, p25Paused{w}, newP28(w),
		newP44(w), newP45(w), newP46(w), p47{w}, p07InPlace{w}, newClassFirst(w), newP49(w), &p51{turns}, newP61(w), newP62(w), newP63(w), newP64(w), newP65(w), newP66(w),
	} {
		w.subscribe(i.see)
	}
}
