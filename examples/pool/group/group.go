package group

import (
	"slices"

	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
	"github.com/millwright-go/millwright/machinepool"
)

// Group is the stored state of a group: a number of agents (processes) that a supervisor keeps running.
type Group struct {
	ID     string          `json:"id"`     // unique to this group among all that ever had its name
	Target int             `json:"target"` // how many agents are wanted; not negative
	Spec   procdriver.Spec `json:"spec"`   // of agents that are started from now on
	// Boot is the user data of all agents. It holds a secret. It may be empty.
	Boot     []byte `json:"boot,omitempty"`
	Deleting bool   `json:"going,omitempty"` // the group and all its members are being deleted
	// Rolling bounds how members are replaced after a change of Spec. Nil: one after the other.
	Rolling *machinepool.RollingUpdate `json:"rolling,omitempty"`
	Members []Member                   `json:"members,omitempty"`
	// Trouble says why an agent could not be started or ended. It is empty if there was no such failure.
	Trouble string `json:"trouble,omitempty"`
}

// Member is one agent of a group, from before it is started until it has ended.
type Member struct {
	Name string          `json:"name"` // unique to this agent; its node has the same name
	Spec procdriver.Spec `json:"spec"` // with which the agent is started
	// ProviderID is empty until the agent has been started.
	ProviderID  string `json:"providerID,omitempty"`
	Terminating bool   `json:"going,omitempty"` // the supervisor is to end the agent
	// DrainRequested says that the provider will remove the agent once it is reported as drained.
	DrainRequested bool `json:"asked,omitempty"`
}

// member returns the agent with a provider ID, or nil.
func (g *Group) member(id string) *Member {
	i := slices.IndexFunc(g.Members, func(m Member) bool { return m.ProviderID == id })
	if i < 0 || id == "" {
		return nil
	}
	return &g.Members[i]
}

// Remove marks the agents with these provider IDs for removal, and lowers the target by their number,
// so that they are not replaced. Agents that are marked already, or of another group, are ignored.
func (g *Group) Remove(ids []string) {
	for _, id := range ids {
		if m := g.member(id); m != nil && !m.Terminating {
			m.Terminating = true
			g.Target = max(0, g.Target-1)
		}
	}
}

// Replace marks an agent for removal. It will be replaced, because the target stays.
func (g *Group) Replace(id string) {
	if m := g.member(id); m != nil {
		m.Terminating = true
	}
}

// RequestDrain records that the provider will remove an agent once it is reported as drained.
func (g *Group) RequestDrain(id string) {
	if m := g.member(id); m != nil && !m.Terminating {
		m.DrainRequested = true
	}
}

// Drained marks for removal the agents with these provider IDs whose drain was requested.
func (g *Group) Drained(ids []string) {
	for _, id := range ids {
		if m := g.member(id); m != nil && m.DrainRequested {
			m.Terminating = true
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
