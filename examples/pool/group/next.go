package group

import (
	"slices"

	"github.com/millwright-go/millwright/deployment/rollout"
)

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
// serve are removed at once. Those that serve are removed only while enough others serve: see Rolling.
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
	for n := g.staying(); n < g.size(); n++ {
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

// bounds returns how far an update may leave the target.
func (g *Group) bounds() rollout.Bounds {
	if g.Rolling == nil {
		return rollout.Bounds{Unavailable: 1}
	}
	return g.Rolling.Bounds(int32(g.Target))
}

// size returns how many members there should be now: during an update there may be more than the target.
func (g *Group) size() int {
	outdated := 0
	for i := range g.Members {
		if m := &g.Members[i]; !m.Going && m.Spec != g.Spec {
			outdated++
		}
	}
	return g.Target + min(int(g.bounds().Surge), outdated)
}

// shrink chooses surplus members: first those furthest from serving, then the outdated ones, then
// the oldest.
func (g *Group) shrink(states map[string]State) {
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
	for _, m := range order {
		if g.staying() <= g.size() {
			return
		}
		m.Going = true // an outdated one lowers the size
	}
}

// renew chooses the members to replace by new ones from the spec.
func (g *Group) renew(states map[string]State) {
	var outdated []*Member // those that serve
	spare := -max(0, g.Target-int(g.bounds().Unavailable))
	for i := range g.Members {
		m := &g.Members[i]
		serves := !m.Going && states[m.Name] == Serving
		if serves {
			spare++
		}
		switch {
		case m.Going || m.Spec == g.Spec:
		case !serves:
			m.Going = true
		default:
			outdated = append(outdated, m)
		}
	}
	for _, m := range outdated[:max(0, min(spare, len(outdated)))] {
		m.Going = true
	}
}
