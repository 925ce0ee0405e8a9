package unmanaged

import (
	"cmp"
	"fmt"
	"maps"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides which nodes no machine owns, and which have an owner again. It changes none of its
// arguments, and returns the same plan for the same arguments. Only a caller's mistake is an error.
//
// A node's machine is the one that has recorded the node's name or provider ID, or the one that the node's label
// names. A node younger than NodeAge is left alone, because it may belong to a machine that has not joined yet. A
// node whose provider ID is that of a machine or an instance in another spelling (object.Alike) is left alone, too.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil {
		return Plan{}, fmt.Errorf("unmanaged.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	if o.Frozen {
		return Plan{At: now.Add(p.CheckPeriod), Why: decision.Why{Reason: reasonFrozen}}, nil
	}
	d := decider{o: o, p: p, now: now, at: now.Add(p.NodePeriod), claimants: claimantsOf(o.Machines)}
	for _, n := range o.Nodes {
		if n != nil && n.Name != "" && !o.Refused[n.Name] && len(d.writes) < p.Burst {
			d.decideNode(n)
		}
	}
	if d.spelled.Have > 0 && len(d.warn) < p.Burst {
		d.warn = append(d.warn, d.spelled)
	}
	if len(d.writes) > 0 && !o.Read.Live() {
		return Plan{ReadMachines: true, Why: decision.Why{Reason: reasonReadOwners, Have: int64(len(d.writes))}}, nil
	}
	if len(d.writes) > 0 {
		return Plan{Write: d.writes, Warn: d.warn, Why: d.writes[0].Why}, nil
	}
	return Plan{Warn: d.warn, At: d.at, Why: decision.Why{Reason: reasonDone, Have: d.young}}, nil
}

// decider is one call of Decide.
type decider struct {
	o         *Observation
	p         *safety.Policy
	now, at   time.Time
	claimants claimants
	writes    []WriteNode
	warn      []decision.Why
	young     int64             // nodes without a machine that are younger than NodeAge
	ids       *object.Spellings // of machines and instances; nil: not needed yet
	spelled   decision.Why      // the warning about nodes with such an ID in another spelling
}

// claimants are the machines that claim nodes. If several claim the same node, the first by name counts, so that the
// result does not depend on the order of the input.
type claimants struct {
	nodes, ids map[string]claimant // by name and by provider ID of the node
	names      map[string]bool     // of all machines
}

// claimant is a machine that claims a node.
type claimant struct {
	name string
	more bool // other machines claim the node, too
}

func claimantsOf(machines []*machine.Machine) claimants {
	h := claimants{
		nodes: make(map[string]claimant, len(machines)), ids: make(map[string]claimant, len(machines)),
		names: make(map[string]bool, len(machines)),
	}
	for _, m := range machines {
		if m == nil {
			continue
		}
		claim(h.nodes, m.Spec.NodeName, m.Name)
		claim(h.ids, m.Spec.ProviderID, m.Name)
		h.names[m.Name] = true
	}
	return h
}

func claim(by map[string]claimant, key, name string) {
	if key == "" || name == "" {
		return
	}
	first, taken := by[key]
	by[key] = claimant{min(name, first.name), true}
	if !taken {
		by[key] = claimant{name, false}
	}
}

// of returns the machine that claims a node. The zero value: none does. label is the key of the label that names a
// node's machine.
func (h *claimants) of(n *machine.Node, label string) claimant {
	if found := h.nodes[n.Name]; found.name != "" {
		return found
	}
	if found := h.ids[n.ProviderID]; found.name != "" {
		return found
	}
	if name := n.Labels[label]; label != "" && name != "" && h.names[name] {
		return claimant{name, false}
	}
	return claimant{}
}

// decideNode decides about one node.
func (d *decider) decideNode(n *machine.Node) {
	owner := d.claimants.of(n, d.p.Keys.NodeMachine)
	_, marked := n.Annotations[d.p.Keys.NotManaged]
	marked = marked && d.p.Keys.NotManaged != ""
	ownedOtherwise := n.ProviderID != "" && (d.o.Instances[n.ProviderID] || owner.name == "" && d.alike(n))
	switch {
	case owner.name == "" && !ownedOtherwise:
		d.disown(n, marked)
	case marked:
		d.write(n, decision.Why{Reason: reasonManaged, Name: n.Name, Detail: cmp.Or(owner.name, n.ProviderID)}, func(c *machine.Node) {
			delete(c.Annotations, d.p.Keys.NotManaged)
		})
	}
	if owner.more && len(d.warn) < d.p.Burst {
		d.warn = append(d.warn, decision.Why{Reason: reasonTwoOwners, Name: n.Name, Detail: owner.name})
	}
}

// alike reports whether a node's provider ID is that of a machine or an instance in another spelling. If so, it adds
// the node to the warning.
func (d *decider) alike(n *machine.Node) bool {
	if d.ids == nil {
		d.ids = new(object.Spellings)
		for id := range d.claimants.ids {
			d.ids.Add(id)
		}
		for id := range d.o.Instances {
			d.ids.Add(id)
		}
	}
	if len(d.ids.Alike(n.ProviderID)) == 0 {
		return false
	}
	if d.spelled.Have++; d.spelled.Have == 1 {
		d.spelled.Reason, d.spelled.Name, d.spelled.Detail = reasonSpelled, n.Name, n.ProviderID
	}
	return true
}

// disown removes the finalizer of a node that no machine owns, and adds the annotation, once the node is old enough.
func (d *decider) disown(n *machine.Node, marked bool) {
	ours := n.HasFinalizer(machine.NodeFinalizer)
	if !ours && (marked || d.p.Keys.NotManaged == "") {
		return
	}
	if at := n.CreatedAt.Add(d.p.NodeAge + time.Second); d.now.Before(at) {
		d.at, d.young = times.Earlier(d.at, at), d.young+1
		return
	}
	d.write(n, decision.Why{Reason: reasonNotManaged, Name: n.Name, For: d.p.NodeAge}, func(c *machine.Node) {
		c.RemoveFinalizer(machine.NodeFinalizer)
		if d.p.Keys.NotManaged == "" {
			return
		}
		c.Annotations = maps.Clone(c.Annotations)
		if c.Annotations == nil {
			c.Annotations = make(map[string]string, 1)
		}
		c.Annotations[d.p.Keys.NotManaged] = "1"
	})
}

func (d *decider) write(n *machine.Node, why decision.Why, change func(*machine.Node)) {
	changed := n.Clone()
	change(changed)
	d.writes = append(d.writes, WriteNode{changed, why})
}

// The reasons of decisions about nodes.
var (
	reasonFrozen     = decision.NewReason("Frozen", "frozen: nothing is judged")
	reasonReadOwners = decision.NewReason("ReadOwners", "{have} nodes seem to need a change: reading all machines live")
	reasonNotManaged = decision.NewReason("NotManaged", "no machine owns node {name}, which is older than {for}")
	reasonManaged    = decision.NewReason("ManagedAgain", "node {name} has an owner, {detail}")
	reasonTwoOwners  = decision.NewReason("SeveralMachines", "node {name} is claimed by several machines, {detail} among them: left alone")
	reasonSpelled    = decision.NewReason("NodeSpelledOtherwise", "{have} nodes, such as {name}, carry the provider ID of a machine or an instance in another spelling, {detail}: they are left alone")
	reasonDone       = decision.NewReason("NodesChecked", "nodes checked; {have} without a machine are too new to judge")
)
