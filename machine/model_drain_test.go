package machine_test

import (
	"fmt"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// drainModel is a drain of the only node there is: pods that leave after a
// while, pods that leave by force only, and volumes that take their time.
type drainModel struct {
	w       *world
	pods    int           // leave, one each time leaves has passed since the drain began
	leaves  time.Duration // how long the next one takes
	stuck   int           // leave by force only
	wedged  bool          // not even then
	volumes int           // attached until held has passed after a detach was asked for
	held    time.Duration
	refused string // why no volume can be detached

	next    time.Time // when the next pod leaves
	freed   time.Time // when the volumes leave
	asked   []machine.DrainNode
	detachs int
}

// run is one call of the drain.
func (m *drainModel) run(of *machine.Machine, e *machine.DrainNode) machine.DrainAnswer {
	if bad, yes := m.w.cluster.fault("DrainNode"); yes {
		return machine.DrainAnswer{Outcome: bad}
	}
	m.hold(of, e)
	m.asked = append(m.asked, *e)
	if e.Forced && !m.wedged {
		m.pods, m.stuck = 0, 0
		return machine.DrainAnswer{Done: true, Forced: true}
	}
	if m.pods > 0 && m.next.IsZero() {
		m.next = m.w.now.Add(m.leaves)
	}
	for m.pods > 0 && !m.w.now.Before(m.next) {
		m.pods--
		m.next = m.next.Add(m.leaves)
	}
	switch {
	case m.pods > 0:
		return machine.DrainAnswer{At: m.next, Why: fmt.Sprintf("%d pods are leaving", m.pods+m.stuck)}
	case m.stuck > 0:
		return machine.DrainAnswer{Blocked: true, Why: fmt.Sprintf("%d pods are held by budget db", m.stuck)}
	}
	return machine.DrainAnswer{Done: true}
}

// hold holds each order to the rules.
func (m *drainModel) hold(of *machine.Machine, e *machine.DrainNode) {
	c := m.w.cluster
	require.True(m.w.t, e.Forced || e.Until.After(m.w.now), "P21: a drain whose time is up")
	require.False(m.w.t, e.Since.IsZero() || e.Since.After(m.w.now), "a drain counts from a stored time")
	forced := of.Labels[m.w.policy.Keys.ForceDrain] != ""
	require.False(m.w.t, e.Forced && !of.Deleted() && !forced, "P22: force for an update that nobody asked for")
	require.NotEqual(m.w.t, of.Deleted(), e.Stays)
	if now := c.live(e.Node.Name); now != nil && now.UID == e.Node.UID {
		owner := now.Labels[m.w.policy.Keys.NodeMachine]
		require.True(m.w.t, owner == "" || owner == of.Name, "P17: drained node %s of machine %q", now.Name, owner)
	}
}

func (m *drainModel) detach(of *machine.Machine, e *machine.DetachVolumes) machine.DrainAnswer {
	if bad, yes := m.w.cluster.fault("DetachVolumes"); yes {
		return machine.DrainAnswer{Outcome: bad}
	}
	require.True(m.w.t, of.Deleted())
	m.detachs++
	if m.volumes > 0 && m.freed.IsZero() && e.Forced {
		m.freed = m.w.now.Add(m.held)
	}
	if m.volumes == 0 || !m.freed.IsZero() && !m.w.now.Before(m.freed) {
		m.volumes = 0
		return machine.DrainAnswer{Done: true}
	}
	if m.refused != "" {
		return machine.DrainAnswer{At: m.freed, Why: m.refused, Blocked: true}
	}
	return machine.DrainAnswer{At: m.freed, Why: fmt.Sprintf("%d volumes", m.volumes)}
}

// drains gives the cluster a drain.
func (w *world) drains(pods int, leaves time.Duration, stuck int) *drainModel {
	w.cluster.drain = &drainModel{w: w, pods: pods, leaves: leaves, stuck: stuck}
	return w.cluster.drain
}

func drainAnswer(a *machine.DrainAnswer) string {
	switch {
	case a.Code != codes.OK:
		return a.Code.Contract()
	case a.Done && a.Forced:
		return "done, forced"
	case a.Done:
		return "done"
	}
	return "not yet"
}

// agentModel is the program that updates nodes which say that they may be updated.
type agentModel struct {
	answer  string // empty: it never answers
	takes   time.Duration
	reason  string
	updated int // how often it was done
}

// due is when the agent will have done its work on the node; zero: there is none.
func (a *agentModel) due(w *world) time.Time {
	n := w.cluster.live(node)
	if n == nil || a.answer == "" || n.Labels[w.policy.Keys.UpdateResult] != "" {
		return time.Time{}
	}
	c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate)
	if c == nil || c.Status != object.True || c.Reason != machine.ReasonReadyForUpdate {
		return time.Time{}
	}
	return c.Since.Add(a.takes)
}

func (a *agentModel) work(w *world) {
	if due := a.due(w); due.IsZero() || w.now.Before(due) {
		return
	}
	a.updated++
	w.cluster.result(a.answer, a.reason)
}

// result has the agent's answer put on the node.
func (c *clusterModel) result(answer, reason string) {
	c.change(node, func(n *machine.Node) {
		if n.Labels == nil {
			n.Labels = map[string]string{}
		}
		n.Labels[c.w.policy.Keys.UpdateResult] = answer
		if reason != "" {
			n.Annotations = map[string]string{c.w.policy.Keys.UpdateFailedReason: reason}
		}
	})
}

// announced holds each announcement to an agent to the rules: the update
// can't be withdrawn any more, and the node is out of service and empty.
func (c *clusterModel) announced(n *machine.Node, e *machine.MarkNode) {
	if e.Condition.Type != machine.NodeInPlaceUpdate {
		return
	}
	require.Equal(c.w.t, object.True, e.Condition.Status, "the reason says it all")
	if e.Condition.Reason != machine.ReasonReadyForUpdate {
		return
	}
	m := c.w.store.live()
	require.Equal(c.w.t, machine.PhaseInPlaceUpdating, m.Status.Phase, "announced for a machine that is not being updated")
	require.Equal(c.w.t, machine.StageReady, m.Status.LastOperation.Stage, "announced before that was stored")
	require.True(c.w.t, n.Unschedulable, "announced on a node in service")
	require.Empty(c.w.t, n.Labels[c.w.policy.Keys.UpdateResult], "announced under an answer")
	if c.drain != nil {
		require.Zero(c.w.t, c.drain.pods+c.drain.stuck, "announced on a node that is not empty")
	}
}

// ownerModel moves machines whose update is done.
type ownerModel struct {
	moves bool
	moved int
}

func (o *ownerModel) due(m *machine.Machine) bool {
	return o.moves && m != nil && !m.Deleted() && m.Status.Phase == machine.PhaseInPlaceUpdateSuccessful && m.Spec.InPlace != ""
}

func (o *ownerModel) work(w *world) {
	if !o.due(w.store.live()) {
		return
	}
	o.moved++
	w.edit(func(m *machine.Machine) {
		m.Spec.InPlace = machine.InPlaceNone
		m.Spec.NodeTemplate.Labels = map[string]string{"version": "2"}
	})
}

// ask writes what the machine's owner asks of it.
func (w *world) ask(r machine.InPlaceRequest) {
	w.edit(func(m *machine.Machine) { m.Spec.InPlace = r })
}
