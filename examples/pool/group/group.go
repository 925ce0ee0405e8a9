package group

import (
	"slices"

	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// Group is what is on record of one group.
type Group struct {
	ID     string          `json:"id"`     // unique to this group among all that ever bore its name
	Target int             `json:"target"` // how many agents are wanted; not negative
	Spec   procdriver.Spec `json:"spec"`   // what agents are made from by now
	// Boot is the user data that agents boot from, the same for all. It holds a
	// secret. Empty: they boot from nothing.
	Boot    []byte   `json:"boot,omitempty"`
	Going   bool     `json:"going,omitempty"` // all of it is to be gone
	Members []Member `json:"members,omitempty"`
	// Supervisor is the process that has taken the group on last. It may be gone.
	Supervisor procid.ID `json:"supervisor"`
	// Trouble says why an agent could not be started; empty: they could.
	Trouble string `json:"trouble,omitempty"`
}

// Member is one agent of a group, from before it is started until it has ended.
type Member struct {
	Name string          `json:"name"` // unique to this agent; its node's, too
	Spec procdriver.Spec `json:"spec"` // what it is made from
	// ProviderID is empty until it has been started.
	ProviderID string `json:"providerID,omitempty"`
	Going      bool   `json:"going,omitempty"` // it is told to end
	// Asked says that the provider wants to take it out, and waits to hear that it
	// is drained.
	Asked bool `json:"asked,omitempty"`
}

// Has tells whether a provider ID is that of an agent of the group.
func (g *Group) Has(id string) bool { return g.member(id) != nil }

func (g *Group) member(id string) *Member {
	i := slices.IndexFunc(g.Members, func(m Member) bool { return m.ProviderID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &g.Members[i]
}

// Remove has agents go for good: the target sinks by as many as there were of
// them. Those that go already, and others', change nothing.
func (g *Group) Remove(ids []string) {
	for _, id := range ids {
		if m := g.member(id); m != nil && !m.Going {
			m.Going = true
			g.Target = max(0, g.Target-1)
		}
	}
}

// Replace has an agent go and another one come in its place.
func (g *Group) Replace(id string) {
	if m := g.member(id); m != nil {
		m.Going = true
	}
}

// Ask says that the provider wants to take an agent out once it is drained.
func (g *Group) Ask(id string) {
	if m := g.member(id); m != nil && !m.Going {
		m.Asked = true
	}
}

// Drained takes out those agents among these that the provider has asked for.
func (g *Group) Drained(ids []string) {
	for _, id := range ids {
		if m := g.member(id); m != nil && m.Asked {
			m.Going = true
		}
	}
}

// Clone returns a copy that shares nothing changeable with g.
func (g *Group) Clone() *Group {
	c := *g
	c.Boot = slices.Clone(g.Boot)
	c.Members = slices.Clone(g.Members)
	return &c
}
