package group

import "slices"

// State is the state of a member's process.
type State int

// These are the states of a process, in the order of a life. Zero means that it is not up yet.
const (
	Starting State = iota
	Booting        // it runs, and does not serve yet
	Serving
	Gone // it was up, and runs no longer
)

// Next enters what to do about a group whose members' processes have these states, by name: which
// members are removed, and under which new names others are added. The caller carries it out. A
// second call enters the same.
//
// A lost member is removed and replaced. Of members made from an earlier spec, those that don't
// serve are removed at once. One that serves is removed only while all that are wanted serve, so a
// change of the spec replaces one at a time.
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

// staying returns how many members are not being removed.
func (g *Group) staying() (n int) {
	for i := range g.Members {
		if !g.Members[i].Going {
			n++
		}
	}
	return n
}

// shrink chooses surplus members: first those furthest from serving, then the outdated ones, then
// the oldest.
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

// renew chooses the members to replace by new ones from the spec.
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
