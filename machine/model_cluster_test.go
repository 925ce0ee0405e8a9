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

// clusterModel is a cluster: it holds all versions of each node. A nil version: the node did not exist.
type clusterModel struct {
	w            *world
	nodes        map[string][]*machine.Node // versions, by name
	registeredBy map[string]string          // node UID to the machine whose VM registered it; absent: none of ours
	version      int
	halfway      string // the version that the first half of a sync has written, see capacity
	writes       int
	unready      bool // nodes register without being Ready
	faults       func(effect string) codes.Code
	unreachable  bool                     // its API server does not answer
	undo         func(*machine.Node)      // changes each node that is written, as another program would
	rejects      func(*machine.Node) bool // reports whether the server rejects a node
	rejections   int
	drain        *drainModel // nil: this process drains no nodes
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

// change edits a node as another program would.
func (c *clusterModel) change(name string, change func(*machine.Node)) {
	n := c.live(name).Clone()
	change(n)
	c.put(n)
}

// add creates a node that no VM of the model has registered.
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

// register makes the VMs that have booted register their nodes. If the name is taken, the VM takes the node
// over, as a kubelet does.
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

// setReady sets condition Ready of a node.
func (c *clusterModel) setReady(name string, status object.ConditionStatus) {
	c.change(name, func(n *machine.Node) {
		n.Conditions = object.SetCondition(n.Conditions, object.Condition{
			Type: machine.NodeReady, Status: status, Reason: "Kubelet", Since: c.w.now,
		})
	})
}

// delete deletes a node as somebody else would.
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

// fault returns the failure of an effect, and whether there is one.
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

// checkOwned checks P17 for each write of a node: the node is this machine's.
func (c *clusterModel) checkOwned(m *machine.Machine, n *machine.Node) {
	c.writes++
	owner := n.Labels[c.w.policy.Keys.NodeMachine]
	require.True(c.w.t, owner == "" || owner == m.Name, "P17: wrote node %s of machine %q", n.Name, owner)
	require.True(c.w.t, owner == m.Name || c.registeredBy[n.UID] == m.Name,
		"P17: wrote node %s, which no VM of this machine registered", n.Name)
}

// capacity makes the first half of a sync. If that fails, the second half is made nevertheless.
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

// mark sets a condition. It returns nil without a failure if somebody else has written the node.
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

// drainModel drains the only node. The node has pods that leave after some time, pods that leave only by force,
// and volumes.
type drainModel struct {
	w           *world
	pods        int           // one of them leaves each time that leaveAfter has passed
	leaveAfter  time.Duration // from the beginning of the drain, or from the last pod that left
	stuck       int           // pods that leave only by force
	wedged      bool          // the stuck pods do not leave by force either
	volumes     int           // attached until detachAfter has passed since the first forced DetachVolumes
	detachAfter time.Duration
	refused     string // why no volume can be detached

	next        time.Time // when the next pod leaves
	freed       time.Time // when the volumes are detached
	orders      []machine.DrainNode
	detachCalls int
}

// run is one call of DrainNode.
func (m *drainModel) run(of *machine.Machine, e *machine.DrainNode) machine.DrainAnswer {
	if bad, yes := m.w.cluster.fault("DrainNode"); yes {
		return machine.DrainAnswer{Outcome: bad}
	}
	m.checkOrder(of, e)
	m.orders = append(m.orders, *e)
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

// checkOrder checks the arguments of DrainNode.
func (m *drainModel) checkOrder(of *machine.Machine, e *machine.DrainNode) {
	c := m.w.cluster
	require.True(m.w.t, e.Forced || e.Until.After(m.w.now), "P21: Until has passed")
	require.False(m.w.t, e.Since.IsZero() || e.Since.After(m.w.now), "Since must be a stored time")
	forced := of.Labels[m.w.policy.Keys.ForceDrain] != ""
	require.False(m.w.t, e.Forced && !of.Deleted() && !forced, "P22: force without the label")
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
	m.detachCalls++
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

// addDrain makes the cluster drain nodes. pods leave one after the other, each after leaveAfter; stuck pods
// leave only by force.
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

// agentModel is the agent that updates nodes whose condition says ReadyForUpdate.
type agentModel struct {
	answer  string // empty: it never answers
	takes   time.Duration
	reason  string
	updated int // how often it has answered
}

// due returns when the agent is done with the node. Zero: it is not told to work, or never answers.
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

// setUpdateResult sets the agent's answer on the node.
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

// checkAnnouncement checks the state in which condition ReadyForUpdate is set, because it tells an agent to
// work: the update can't be withdrawn any more, and the node is out of service and empty.
func (c *clusterModel) checkAnnouncement(n *machine.Node, e *machine.MarkNode) {
	if e.Condition.Type != machine.NodeInPlaceUpdate {
		return
	}
	require.Equal(c.w.t, object.True, e.Condition.Status, "the status of the condition is always True")
	if e.Condition.Reason != machine.ReasonReadyForUpdate {
		return
	}
	m := c.w.store.live()
	require.Equal(c.w.t, machine.PhaseInPlaceUpdating, m.Status.Phase, "ReadyForUpdate for a machine that is not being updated")
	require.Equal(c.w.t, machine.StageReady, m.Status.LastOperation.Stage, "ReadyForUpdate before the stage is stored")
	require.True(c.w.t, n.Unschedulable, "ReadyForUpdate on a node in service")
	require.Empty(c.w.t, n.Labels[c.w.policy.Keys.UpdateResult], "ReadyForUpdate on a node with an answer")
	if c.drain != nil {
		require.Zero(c.w.t, c.drain.pods+c.drain.stuck, "ReadyForUpdate on a node that is not empty")
	}
}

// ownerModel is the machine's owner. If moves is set, it moves a machine to its new set when its update is
// done.
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

// requestInPlace sets what the machine's owner requests.
func (w *world) requestInPlace(r machine.InPlaceRequest) {
	w.edit(func(m *machine.Machine) { m.Spec.InPlace = r })
}
