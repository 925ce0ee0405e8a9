package group

import "slices"

// State is how the process of a member stands.
type State int

// The states of a process, in the order of a life. Zero: it is not up yet.
const (
	Starting State = iota
	Booting        // it runs, and does not serve yet
	Serving
	Gone // it was up, and runs no more
)

// Next enters what is to be done about a group whose members' processes stand
// like that, by name: who goes, and under which new names others come. What it
// has entered is the caller's to carry out; entered again, it is the same.
//
// Who was lost goes, and has another in its place. Of members made from an
// earlier spec, those that don't serve go at once, and one that serves goes only
// while all that are wanted serve: so a change of the spec takes one at a time.
func (g *Group) Next(states map[string]State, name func() string) {
	for i := range g.Members {
		if m := &g.Members[i]; g.Going || states[m.Name] == Gone {
			m.Going = true
		}
	}
	if g.Going {
		return
	}
	g.shrink(states)
	g.renew(states)
	for n := g.staying(); n < g.Target; n++ {
		g.Members = append(g.Members, Member{Name: name(), Spec: g.Spec})
	}
}

// staying is how many members are not going.
func (g *Group) staying() (n int) {
	for i := range g.Members {
		if !g.Members[i].Going {
			n++
		}
	}
	return n
}

// shrink chooses who is too many: who serves least, then who is outdated, then
// who has been here longest.
func (g *Group) shrink(states map[string]State) {
	surplus := g.staying() - g.Target
	if surplus <= 0 {
		return
	}
	var order []*Member
	for i := range g.Members {
		if m := &g.Members[i]; !m.Going {
			order = append(order, m)
		}
	}
	rank := func(m *Member) int {
		r := 2 * int(states[m.Name])
		if m.Spec == g.Spec {
			r++
		}
		return r
	}
	slices.SortStableFunc(order, func(a, b *Member) int { return rank(a) - rank(b) })
	for _, m := range order[:surplus] {
		m.Going = true
	}
}

// renew chooses who is to be made anew from the spec.
func (g *Group) renew(states map[string]State) {
	var outdated *Member // the first one that serves
	down := max(0, g.Target-g.staying())
	for i := range g.Members {
		m := &g.Members[i]
		if m.Going || states[m.Name] != Serving {
			down++
		}
		switch {
		case m.Going || m.Spec == g.Spec:
		case states[m.Name] != Serving:
			m.Going = true
		case outdated == nil:
			outdated = m
		}
	}
	if outdated != nil && down == 0 {
		outdated.Going = true
	}
}
