package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// agents update nodes in place. One runs on each node.
type agents struct {
	*ground
	nodes    *trackedStore[*machine.Node]
	update   time.Duration   // how long an update takes
	fails    func() bool     // says which updates fail, beside chance; nil: none
	label    string          // of a node, for the answer
	updating map[string]bool // nodes, by UID, whose agent is at work, or was
}

func newAgents(g *ground, nodes *trackedStore[*machine.Node], update time.Duration, label string) *agents {
	if update == 0 {
		update = updateTime
	}
	return &agents{ground: g, nodes: nodes, update: update, label: label, updating: map[string]bool{}}
}

// updateTime is how long an agent takes unless Options set another time.
const updateTime = 2 * time.Minute

// updateAwaited: a node says that it is ready for its update in place.
type updateAwaited struct{ node string }

// see lets the agents read what their nodes say. An agent that may update its node does so and
// answers by a label.
func (a *agents) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok && e.now != nil {
		a.look(e.now)
	}
}

func (a *agents) look(n *machine.Node) {
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	if c == nil || c.Status != object.True || c.Reason != machine.ReasonReadyForUpdate {
		delete(a.updating, n.UID)
		return
	}
	if a.updating[n.UID] {
		return
	}
	a.updating[n.UID] = true
	a.emit(updateAwaited{n.Name})
	if a.happens(a.hazards.DeadUpdate) {
		a.count(UpdateSilent)
		return
	}
	answer := machine.UpdateSuccessful
	if a.happens(a.hazards.BadUpdate) || a.fails != nil && a.fails() {
		a.count(UpdateFailed)
		answer = machine.UpdateFailed
	}
	a.After(a.update+a.upTo(a.hazards.SlowBoot), func() { a.answer(n.Key, n.UID, answer) })
}

func (a *agents) answer(k object.Key, uid, answer string) {
	n, err := a.nodes.Get(context.Background(), k)
	if err != nil || n.UID != uid || !a.updating[uid] {
		return
	}
	n = n.Clone()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[a.label] = answer
	_, _ = a.nodes.Update(context.Background(), n) // read in the same instant: no conflict
}
