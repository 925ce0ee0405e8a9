package group

import (
	"slices"

	"github.com/millwright-go/millwright/deployment/rollout"
)

// State is the state of a member's process.
type State int

// These are the states of a process, in their order.
const (
	Starting State = iota // it does not run yet
	Booting               // it runs, and does not serve yet
	Serving
	Gone // it has ended
)

// Next decides which members to remove and which to add. It marks and adds them in g; the caller ends
// and starts the processes. states has the states of the members' processes, by member name. name
// returns a new member's name. If the states stay the same, a second call changes nothing.
//
// A member whose process has ended is removed and replaced. Members with an outdated spec are removed
// at once if they don't serve. Otherwise they are removed only while enough others serve: see Rolling.
func (g *Group) Next(states map[string]State, name func() string) {
	for i := range g.Members {
		if m := &g.Members[i]; g.Deleting || states[m.Name] == Gone {
			m.Terminating = true
		}
	}
	if g.Deleting {
		return
	}
	g.shrink(states)
	g.renew(states)
	for n := g.active(); n < g.size(); n++ {
		g.Members = append(g.Members, Member{Name: name(), Spec: g.Spec})
	}
}

// active returns how many members are not being removed.
func (g *Group) active() (n int) {
	for i := range g.Members {
		if !g.Members[i].Terminating {
			n++
		}
	}
	return n
}

// bounds returns how far the numbers may differ from the target during an update.
func (g *Group) bounds() rollout.Bounds {
	if g.Rolling == nil {
		return rollout.Bounds{Unavailable: 1}
	}
	return g.Rolling.Bounds(int32(g.Target))
}

// size returns how many active members there should be: the target, and during an update some more.
func (g *Group) size() int {
	outdated := 0
	for i := range g.Members {
		if m := &g.Members[i]; !m.Terminating && m.Spec != g.Spec {
			outdated++
		}
	}
	return g.Target + min(int(g.bounds().Surge), outdated)
}

// shrink marks surplus members for removal: first those furthest from serving, then the outdated ones,
// then the oldest.
func (g *Group) shrink(states map[string]State) {
	var order []*Member
	for i := range g.Members {
		if m := &g.Members[i]; !m.Terminating {
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
		if g.active() <= g.size() {
			return
		}
		m.Terminating = true // this may lower the size, if m is outdated
	}
}

// renew marks outdated members for removal, as many as the bounds allow. Next replaces them.
func (g *Group) renew(states map[string]State) {
	var outdated []*Member // that serve
	// spare is the number of serving members minus the number that must serve.
	spare := -max(0, g.Target-int(g.bounds().Unavailable))
	for i := range g.Members {
		m := &g.Members[i]
		serves := !m.Terminating && states[m.Name] == Serving
		if serves {
			spare++
		}
		switch {
		case m.Terminating || m.Spec == g.Spec:
		case !serves:
			m.Terminating = true
		default:
			outdated = append(outdated, m)
		}
	}
	for _, m := range outdated[:max(0, min(spare, len(outdated)))] {
		m.Terminating = true
	}
}
