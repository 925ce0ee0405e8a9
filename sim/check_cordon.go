package sim

// p23: a node that a user has cordoned stays cordoned.
type p23 struct{ *World }

func (w p23) see(e event) {
	if _, ok := e.(effect); ok {
		w.checkCordons()
	}
}

func (w p23) checkCordons() {
	if len(w.excuses.cordoned) == 0 {
		return
	}
	for _, n := range w.nodes.all() {
		if w.excuses.cordoned[n.UID] && !n.Unschedulable {
			w.violate("P23", "node %s was cordoned by a user, but no longer is", n.Name)
		}
	}
}
