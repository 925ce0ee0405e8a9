package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// agentLooks lets the agents on nodes read what their nodes say. An agent that may update its node
// does so and answers by a label.
func (w *World) agentLooks(n *machine.Node) {
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	if c == nil || c.Status != object.True || c.Reason != machine.ReasonReadyForUpdate {
		delete(w.updating, n.UID)
		return
	}
	if w.updating[n.UID] {
		return
	}
	w.updating[n.UID] = true
	w.emit(updateAwaited{n.Name})
	if w.happens(w.o.Faults.DeadUpdate) {
		w.count(UpdateSilent)
		return
	}
	answer := machine.UpdateSuccessful
	if w.happens(w.o.Faults.BadUpdate) {
		w.count(UpdateFailed)
		answer = machine.UpdateFailed
	}
	w.clock.after(w.o.Update+w.upTo(w.o.Faults.SlowBoot), func() { w.answer(n.Key, n.UID, answer) })
}

func (w *World) answer(k object.Key, uid, answer string) {
	n, err := w.nodes.Get(context.Background(), k)
	if err != nil || n.UID != uid || !w.updating[uid] {
		return
	}
	n = n.Clone()
	if n.Labels == nil {
		n.Labels = map[string]string{}
	}
	n.Labels[w.machinePolicy().Keys.UpdateResult] = answer
	_, _ = w.nodes.Update(context.Background(), n) // read in the same instant: no conflict
}

// updateTime is how long an agent takes unless Options set another time.
const updateTime = 2 * time.Minute
