package decision

// FirstOf calls the steps of a decision in their order. The first step that has something to do makes the
// plan, and the others are not called. found is false if no step has anything to do.
func FirstOf[D, P any](d D, steps ...func(D) (P, bool)) (plan P, found bool) {
	for _, step := range steps {
		if plan, found = step(d); found {
			return plan, true
		}
	}
	var none P
	return none, false
}
