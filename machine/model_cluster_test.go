package machine_test

import (
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// clusterModel holds nodes and all their versions. A nil version: it was gone.
type clusterModel struct {
	w        *world
	nodes    map[string][]*machine.Node // versions, by name
	madeOf   map[string]string          // node UID to the machine whose VM registered it; absent: none of ours
	version  int
	halfway  string // the version that the first half of a sync has written
	writes   int
	unready  bool // nodes register without being Ready
	faults   func(effect string) codes.Code
	away     bool                     // its API server does not answer
	undo     func(*machine.Node)      // what something else changes in each node that is written
	refuses  func(*machine.Node) bool // whether the server refuses a node's content
	refusals int
	drain    *drainModel // nil: there is no drainer
	agent    agentModel
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
			c.madeOf[old.UID] = v.name
			continue
		}
		n := c.add(v.node, func(n *machine.Node) {
			n.ProviderID = v.id
			n.Taints = []object.Taint{{Key: c.w.policy.Keys.NotReadyTaint, Effect: object.NoSchedule}}
			if c.unready {
				n.Conditions[1].Status, n.Conditions[1].Reason = object.False, "KubeletNotReady"
			}
		})
		c.madeOf[n.UID] = v.name
	}
}

// ready sets what the node says of itself.
func (c *clusterModel) ready(name string, status object.ConditionStatus) {
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
	if c.away {
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
func (c *clusterModel) touch(m *machine.Machine, n *machine.Node) {
	c.writes++
	owner := n.Labels[c.w.policy.Keys.NodeMachine]
	require.True(c.w.t, owner == "" || owner == m.Name, "P17: wrote node %s of machine %q", n.Name, owner)
	require.True(c.w.t, owner == m.Name || c.madeOf[n.UID] == m.Name,
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
	c.touch(m, now)
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
	c.touch(m, now)
	want := e.Node
	for i := 0; c.refuses != nil && c.refuses(want); i++ {
		if c.refusals++; i == len(e.Rest) {
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
	c.touch(m, now)
	c.announced(now, e)
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
	c.touch(m, now)
	c.version++
	c.nodes[e.Name] = append(c.nodes[e.Name], nil)
	return machine.Outcome{}
}
