package sim

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// agents update nodes in place. One runs on each node.
type agents struct {
	*kubelets
	update time.Duration   // how long an update takes
	fails  func() bool     // says which updates fail, beside chance; nil: none
	label  string          // of a node, for the answer
	atWork map[string]*job // by UID of the node: an agent that is at work, or was
}

// job is one update of a node by its agent.
type job struct {
	node     *machine.Node
	answer   string
	stubborn bool // it answers though the update is withdrawn
	over     bool // another one has begun, or the update is withdrawn
}

func newAgents(k *kubelets, update time.Duration, label string) *agents {
	if update == 0 {
		update = updateTime
	}
	return &agents{kubelets: k, update: update, label: label, atWork: map[string]*job{}}
}

// updateTime is how long an agent takes unless Options set another time.
const updateTime = 2 * time.Minute

// These say how late agents are, how long restarts take, and when agents answer again.
const (
	lateTime   = 2 * time.Hour
	rebootTime = 15 * time.Minute
	mendTime   = 30 * time.Minute
)

// These tell of updates in place: a node says that it is ready for one, and its agent answers.
type (
	updateAwaited  struct{ node string }
	updateAnswered struct{ node, answer string }
)

// see lets the agents read what their nodes say. An agent that may update its node does so and
// answers by a label.
func (a *agents) see(e event) {
	if e, ok := e.(stored[*machine.Node]); ok && e.now != nil {
		a.look(e.now)
	}
}

func (a *agents) look(n *machine.Node) {
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	j := a.atWork[n.UID]
	if c == nil || c.Status != object.True || c.Reason != machine.ReasonReadyForUpdate {
		if j != nil {
			j.over = true
		}
		return
	}
	if j != nil && !j.over {
		return
	}
	if j != nil {
		j.stubborn = false // it begins with the next one
	}
	j = &job{node: n, answer: machine.UpdateSuccessful}
	a.atWork[n.UID] = j
	a.emit(updateAwaited{n.Name})
	if a.happens(a.hazards.DeadUpdate) {
		a.count(UpdateSilent)
		return
	}
	if a.happens(a.hazards.BadUpdate) || a.fails != nil && a.fails() {
		a.count(UpdateFailed)
		j.answer = machine.UpdateFailed
	}
	a.work(j)
}

// work lets an agent update its node, and answer.
func (a *agents) work(j *job) {
	takes := a.update + a.upTo(a.hazards.SlowBoot)
	if a.happens(a.hazards.LateUpdate) {
		a.count(UpdateLate)
		j.stubborn = true
		takes += a.upTo(lateTime)
	}
	if a.happens(a.hazards.UpdateReboot) {
		a.count(UpdateRebooted)
		until, silent := a.upTo(takes), a.upTo(rebootTime)
		a.After(until, func() { a.waver(j.node.Name, a.vmOf(j.node), silent) })
		takes += until + silent // it begins again
	}
	a.After(takes, func() { a.finish(j) })
}

func (a *agents) finish(j *job) {
	a.answer(j)
	if j.answer == machine.UpdateFailed && a.happens(a.hazards.SecondAnswer) {
		again := &job{j.node, machine.UpdateSuccessful, true, true}
		a.After(a.upTo(mendTime), func() {
			if a.atWork[j.node.UID] == j {
				a.count(UpdateMended)
				a.answer(again)
			}
		})
	}
}

func (a *agents) answer(j *job) {
	n, err := a.nodes.Get(context.Background(), j.node.Key)
	if err != nil || n.UID != j.node.UID || j.over && !j.stubborn {
		return
	}
	n = n.Clone()
	n.Labels = withLabel(n.Labels, a.label, j.answer)
	a.emit(updateAnswered{n.Name, j.answer})
	_, _ = a.nodes.Update(context.Background(), n) // read in the same instant: no conflict
}

func withLabel(labels map[string]string, key, value string) map[string]string {
	if labels == nil {
		labels = map[string]string{}
	}
	labels[key] = value
	return labels
}
