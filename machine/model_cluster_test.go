package machine_test

import (
	"fmt"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// clusterModel holds nodes and all their versions. A nil version: it was gone.
type clusterModel struct {
	w            *world
	nodes        map[string][]*machine.Node // versions, by name
	registeredBy map[string]string          // node UID to the machine whose VM registered it; absent: none of ours
	version      int
	halfway      string // the version that the first half of a sync has written
	writes       int
	unready      bool // nodes register without being Ready
	faults       func(effect string) codes.Code
	unreachable  bool                     // its API server does not answer
	undo         func(*machine.Node)      // what something else changes in each node that is written
	rejects      func(*machine.Node) bool // whether the server refuses a node's content
	rejections   int
	drain        *drainModel // nil: there is no drainer
	agent        agentModel
}

func (c *clusterModel) cached(name string, lag int) *machine.Node {
	versions := c.nodes[name]
	if len(versions) == 0 {
		return nil
	}
	return versions[max(0, len(versions)-1-lag)]
}

func (c *clusterModel) live(name string) *machine.Node { return c.cached(name, 0) }

func (c *clusterModel) put(n *machine.Node) *machine.Node {
	c.version++
	n = n.Clone()
	n.Version = strconv.Itoa(c.version)
	c.nodes[n.Name] = append(c.nodes[n.Name], n)
	return n
}

// change edits a node as somebody else would.
func (c *clusterModel) change(name string, change func(*machine.Node)) {
	n := c.live(name).Clone()
	change(n)
	c.put(n)
}

// add makes a node that no VM of the model registered.
func (c *clusterModel) add(name string, change ...func(*machine.Node)) *machine.Node {
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: name}, CreatedAt: c.w.now}}
	n.UID = "node-uid-" + strconv.Itoa(c.version+1)
	n.Labels = map[string]string{"kubernetes.io/hostname": name}
	n.Conditions = []object.Condition{
		{Type: "DiskPressure", Status: object.False, Since: c.w.now},
		{Type: machine.NodeReady, Status: object.True, Reason: "KubeletReady", Since: c.w.now},
	}
	for _, f := range change {
		f(n)
	}
	return c.put(n)
}

// register has the VMs that are up register their nodes. A node that has the
// name already is taken over, as a kubelet does.
func (c *clusterModel) register() {
	for _, v := range c.w.provider.vms {
		if v.joined || !v.boots || c.w.now.Before(v.bootAt) || !c.w.tokens.admits(v) {
			continue
		}
		v.joined = true
		if old := c.live(v.node); old != nil {
			c.registeredBy[old.UID] = v.name
			continue
		}
		n := c.add(v.node, func(n *machine.Node) {
			n.ProviderID = v.id
			n.Taints = []object.Taint{{Key: c.w.policy.Keys.NotReadyTaint, Effect: object.NoSchedule}}
			if c.unready {
				n.Conditions[1].Status, n.Conditions[1].Reason = object.False, "KubeletNotReady"
			}
		})
		c.registeredBy[n.UID] = v.name
	}
}

// ready sets what the node says of itself.
func (c *clusterModel) setReady(name string, status object.ConditionStatus) {
	c.change(name, func(n *machine.Node) {
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{
			Type: machine.NodeReady, Status: status, Reason: "Kubelet", Since: c.w.now,
		})
	})
}

// delete is what somebody asks for who is not us.
func (c *clusterModel) delete(name string) {
	n := c.live(name)
	if n == nil {
		return
	}
	if len(n.Finalizers) == 0 {
		c.version++
		c.nodes[name] = append(c.nodes[name], nil)
		return
	}
	c.change(name, func(n *machine.Node) { n.DeletedAt = c.w.now.Truncate(time.Second) })
}

func (c *clusterModel) find(m *machine.Machine, name string) *machine.Node {
	if name != "" {
		return c.live(name)
	}
	key := c.w.policy.Keys.NodeMachine
	for each := range c.nodes {
		if n := c.live(each); n != nil && key != "" && n.Labels[key] == m.Name {
			return n
		}
	}
	return nil
}

// fault answers for an effect that is to fail.
func (c *clusterModel) fault(effect string) (machine.Outcome, bool) {
	if c.unreachable {
		return failed(codes.Unavailable), true
	}
	if c.faults != nil {
		if code := c.faults(effect); code != codes.OK {
			return failed(code), true
		}
	}
	return machine.Outcome{}, false
}

// touch holds each write of a node to P17.
func (c *clusterModel) checkOwned(m *machine.Machine, n *machine.Node) {
	c.writes++
	owner := n.Labels[c.w.policy.Keys.NodeMachine]
	require.True(c.w.t, owner == "" || owner == m.Name, "P17: wrote node %s of machine %q", n.Name, owner)
	require.True(c.w.t, owner == m.Name || c.registeredBy[n.UID] == m.Name,
		"P17: wrote node %s, which no VM of this machine registered", n.Name)
}

// capacity is the first half of a sync; the second finds out how it went.
func (c *clusterModel) capacity(m *machine.Machine, e *machine.SyncNode) {
	now := c.live(e.Node.Name)
	if now == nil || now.Version != e.Node.Version {
		return
	}
	if _, bad := c.fault("SyncNode"); bad {
		return
	}
	c.checkOwned(m, now)
	next := now.Clone()
	next.Capacity = e.Node.Capacity
	c.halfway = c.put(next).Version
}

func (c *clusterModel) sync(m *machine.Machine, e *machine.SyncNode) (*machine.Node, machine.Outcome) {
	if bad, yes := c.fault("SyncNode"); yes {
		return nil, bad
	}
	now := c.live(e.Node.Name)
	if now == nil || now.UID != e.Node.UID {
		return nil, failed(codes.NotFound)
	}
	if now.Version != e.Node.Version && now.Version != c.halfway {
		return nil, failed(codes.Aborted)
	}
	c.checkOwned(m, now)
	want := e.Node
	for i := 0; c.rejects != nil && c.rejects(want); i++ {
		if c.rejections++; i == len(e.Rest) {
			return nil, failed(codes.InvalidArgument)
		}
		want = e.Rest[i].Clone()
		want.Applied.Refused.Code, want.Applied.Refused.Message = codes.InvalidArgument, "the server refuses it"
	}
	next := want.Clone()
	next.Capacity = now.Capacity
	if c.undo != nil {
		c.undo(next)
	}
	return c.put(next), machine.Outcome{}
}

// mark sets a condition. nil and no failure: somebody else has written the node.
func (c *clusterModel) mark(m *machine.Machine, e *machine.MarkNode) (*machine.Node, machine.Outcome) {
	if bad, yes := c.fault("MarkNode"); yes {
		return nil, bad
	}
	now := c.live(e.Node.Name)
	if now == nil || now.Version != e.Node.Version {
		return nil, machine.Outcome{}
	}
	c.checkOwned(m, now)
	c.checkAnnouncement(now, e)
	c.change(now.Name, func(n *machine.Node) { n.Conditions = object.SetCondition(n.Conditions, e.Condition) })
	return c.live(now.Name), machine.Outcome{}
}

func (c *clusterModel) remove(m *machine.Machine, e machine.DeleteNode) machine.Outcome {
	if bad, yes := c.fault("DeleteNode"); yes {
		return bad
	}
	require.NotEmpty(c.w.t, e.UID, "P17: an empty ID matches nothing")
	now := c.live(e.Name)
	if now == nil || now.UID != e.UID {
		return failed(codes.NotFound)
	}
	c.checkOwned(m, now)
	c.version++
	c.nodes[e.Name] = append(c.nodes[e.Name], nil)
	return machine.Outcome{}
}

// drainModel is a drain of the only node there is: pods that leave after a
// while, pods that leave by force only, and volumes that take their time.
type drainModel struct {
	w           *world
	pods        int           // leave, one each time leaves has passed since the drain began
	leaveAfter  time.Duration // how long the next one takes
	stuck       int           // leave by force only
	wedged      bool          // not even then
	volumes     int           // attached until held has passed after a detach was asked for
	detachAfter time.Duration
	refused     string // why no volume can be detached

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
	m.checkOrder(of, e)
	m.asked = append(m.asked, *e)
	if e.Forced && !m.wedged {
		m.pods, m.stuck = 0, 0
		return machine.DrainAnswer{Done: true, Forced: true}
	}
	if m.pods > 0 && m.next.IsZero() {
		m.next = m.w.now.Add(m.leaveAfter)
	}
	for m.pods > 0 && !m.w.now.Before(m.next) {
		m.pods--
		m.next = m.next.Add(m.leaveAfter)
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
func (m *drainModel) checkOrder(of *machine.Machine, e *machine.DrainNode) {
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
		m.freed = m.w.now.Add(m.detachAfter)
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
func (w *world) addDrain(pods int, leaveAfter time.Duration, stuck int) *drainModel {
	w.cluster.drain = &drainModel{w: w, pods: pods, leaveAfter: leaveAfter, stuck: stuck}
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
	w.cluster.setUpdateResult(a.answer, a.reason)
}

// result has the agent's answer put on the node.
func (c *clusterModel) setUpdateResult(answer, reason string) {
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
func (c *clusterModel) checkAnnouncement(n *machine.Node, e *machine.MarkNode) {
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
func (w *world) requestInPlace(r machine.InPlaceRequest) {
	w.edit(func(m *machine.Machine) { m.Spec.InPlace = r })
}
