package group

import (
	"slices"

	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/machinepool"
)

// Group is the record of one group.
type Group struct {
	ID     string          `json:"id"`     // unique to this group among all that ever had its name
	Target int             `json:"target"` // how many agents are wanted; not negative
	Spec   procdriver.Spec `json:"spec"`   // what agents are made from now
	// Boot is the user data that agents boot from, the same for all. It holds a secret. If it is
	// empty, they boot without.
	Boot  []byte `json:"boot,omitempty"`
	Going bool   `json:"going,omitempty"` // all of it is to be deleted
	// Rolling bounds how members are replaced after a change of Spec. Nil: one after the other.
	Rolling *machinepool.RollingUpdate `json:"rolling,omitempty"`
	Members []Member                   `json:"members,omitempty"`
	// Trouble says why an agent could not be started. It is empty if all could.
	Trouble string `json:"trouble,omitempty"`
}

// Member is one agent of a group, from before it is started until it has ended.
type Member struct {
	Name string          `json:"name"` // unique to this agent; its node's, too
	Spec procdriver.Spec `json:"spec"` // what it is made from
	// ProviderID is empty until it has been started.
	ProviderID string `json:"providerID,omitempty"`
	Going      bool   `json:"going,omitempty"` // it is told to end
	// Asked says that the provider wants to remove it, and waits until it is reported as drained.
	Asked bool `json:"asked,omitempty"`
}

// member returns the agent of that provider ID, or nil.
func (g *Group) member(id string) *Member {
	i := slices.IndexFunc(g.Members, func(m Member) bool { return m.ProviderID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &g.Members[i]
}

// Remove marks agents for removal without replacement, and lowers the target by their number. It
// ignores agents that are marked already or belong to another group.
func (g *Group) Remove(ids []string) {
	for _, id := range ids {
		if m := g.member(id); m != nil && !m.Going {
			m.Going = true
			g.Target = max(0, g.Target-1)
		}
	}
}

// Replace marks an agent for removal with replacement.
func (g *Group) Replace(id string) {
	if m := g.member(id); m != nil {
		m.Going = true
	}
}

// Ask says that the provider wants to remove an agent once it is drained.
func (g *Group) Ask(id string) {
	if m := g.member(id); m != nil && !m.Going {
		m.Asked = true
	}
}

// Drained removes those of these agents that the provider has asked for.
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
	if g.Rolling != nil {
		rolling := *g.Rolling
		c.Rolling = &rolling
	}
	return &c
}
