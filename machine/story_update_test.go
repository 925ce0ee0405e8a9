package machine_test

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// toRunningWithAgent creates a machine and brings it to Running. Its node has an agent with this answer.
func (s *story) toRunningWithAgent(answer string, takes time.Duration) {
	s.toRunning()
	s.cluster.agent = agentModel{answer: answer, takes: takes}
}

// selectForUpdate makes the owner select the machine, and runs a pass.
func (s *story) selectForUpdate() {
	s.requestInPlace(machine.InPlaceSelected)
	s.later(0, "its owner selects the machine")
}

// commentUpdateMarks writes which marks of an update are on the node.
func (s *story) commentUpdateMarks() {
	n := s.cluster.live(node)
	if n == nil {
		s.comment("the node is gone")
		return
	}
	var marks []string
	for _, l := range pairs(n.Labels) {
		if strings.Contains(l, "update") {
			marks = append(marks, strings.TrimPrefix(l, "node.machine.sapcloud.io/"))
		}
	}
	condition := "not told"
	if c := object.FindCondition(n.Conditions, machine.NodeInPlaceUpdate); c != nil {
		condition = string(c.Status) + " " + c.Reason
	}
	s.comment("the node: labels %s, cordoned %t, agent %s, taints %v", marks, n.Unschedulable, condition, n.Taints)
}

// label sets a label of the node as a user or an agent would; empty: removes it.
func (s *story) label(key, value string) {
	s.cluster.change(node, func(n *machine.Node) {
		if value == "" {
			delete(n.Labels, key)
			return
		}
		n.Labels[key] = value
	})
}

// finishUpdate lets the agent finish, and the owner move the machine to its new set.
func (s *story) finishUpdate(d time.Duration) {
	s.later(d, "the agent is done")
	s.owner.moves = true
	s.later(0, "its owner moves the machine")
}

// force stores a changed machine, as another program might.
func (s *story) force(change func(*machine.Machine)) {
	m := s.store.live().Clone()
	change(m)
	s.store.force(m)
}

// commentWrites writes how many writes there were, and counts from zero again.
func (s *story) commentWrites() {
	s.comment("%d writes of the machine, %d of its node", s.store.writes, s.cluster.writes)
	s.store.writes, s.cluster.writes = 0, 0
}

// updateStories are about in-place updates.
var updateStories = map[string]func(*story){
	"update by its owner": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 3*time.Minute)
		s.store.writes, s.cluster.writes = 0, 0
		s.requestInPlace(machine.InPlaceCandidate)
		s.later(0, "its owner says that the machine is to be updated")
		s.selectForUpdate()
		s.commentUpdateMarks()
		s.later(3*time.Minute, "the agent is done")
		s.owner.moves = true
		s.later(time.Second, "its owner moves it to the new set")
		s.commentUpdateMarks()
		s.commentWrites()
	},
	"update by a user": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.requestInPlace(machine.InPlaceCandidate)
		s.later(0, "its owner says that the machine is to be updated")
		s.label(s.policy.Keys.SelectedForUpdate, "true")
		s.later(time.Hour, "a user selects it by a label on the node")
		s.finishUpdate(time.Minute)
		s.commentUpdateMarks()
	},
	"update that a user selects before its turn": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.requestInPlace(machine.InPlaceWaiting)
		s.later(0, "its owner says that the machine is to be updated, and that it decides when")
		s.label(s.policy.Keys.SelectedForUpdate, "true")
		s.later(time.Hour, "a user selects it by a label on the node")
		s.requestInPlace(machine.InPlaceSelected)
		s.later(time.Hour, "its owner selects the machine")
		s.finishUpdate(time.Minute)
		s.commentUpdateMarks()
	},
	"update with a drain": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.addDrain(2, 45*time.Second, 0)
		s.selectForUpdate()
		s.wait()
		s.wait()
		s.commentUpdateMarks()
	},
	"update whose drain fails at first": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.addDrain(0, 0, 0)
		s.failEffect("DrainNode", codes.Unavailable)
		s.selectForUpdate()
		s.failEffect("", codes.OK)
		s.wait()
	},
	"update whose drain never ends": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.addDrain(0, 0, 1)
		s.selectForUpdate()
		s.wait()
		s.commentUpdateMarks()
	},
	"update that fails": func(s *story) {
		s.toRunningWithAgent(machine.UpdateFailed, time.Minute)
		s.cluster.agent.reason = "the image has no signature"
		s.selectForUpdate()
		s.later(time.Minute, "the agent gives up")
		s.comment("the machine says: %s", s.store.live().Status.LastOperation.Message)
		s.commentUpdateMarks()
	},
	"update that fails and is given up": func(s *story) {
		s.toRunningWithAgent(machine.UpdateFailed, time.Minute)
		s.selectForUpdate()
		s.later(time.Minute, "the agent gives up")
		s.wait()
	},
	"update that fails and succeeds at last": func(s *story) {
		s.toRunningWithAgent(machine.UpdateFailed, time.Minute)
		s.selectForUpdate()
		s.later(time.Minute, "the agent gives up")
		s.label(s.policy.Keys.UpdateResult, machine.UpdateSuccessful)
		s.owner.moves = true
		s.finishUpdate(time.Hour)
	},
	"update that is never answered": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.selectForUpdate()
		s.wait()
		s.label(s.policy.Keys.UpdateResult, machine.UpdateSuccessful)
		s.later(time.Minute, "the answer comes late")
	},
	"update with an unknown answer": func(s *story) {
		s.toRunningWithAgent("perhaps", 0)
		s.selectForUpdate()
		s.later(time.Minute, "the agent says perhaps")
		s.label(s.policy.Keys.UpdateResult, machine.UpdateSuccessful)
		s.later(time.Minute, "it says successful")
	},
	"old answer before the update": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.label(s.policy.Keys.UpdateResult, machine.UpdateSuccessful)
		s.comment("the node carries the answer to an update of long ago")
		s.selectForUpdate()
		s.commentUpdateMarks()
	},
	"update withdrawn while a candidate": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.requestInPlace(machine.InPlaceCandidate)
		s.later(0, "its owner says that the machine is to be updated")
		s.commentUpdateMarks()
		s.requestInPlace(machine.InPlaceNone)
		s.later(time.Minute, "rolled back")
		s.commentUpdateMarks()
	},
	"update withdrawn while draining": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 1)
		s.selectForUpdate()
		s.commentUpdateMarks()
		s.requestInPlace(machine.InPlaceNone)
		s.later(time.Minute, "rolled back")
		s.commentUpdateMarks()
	},
	"update deselected by its owner": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 1)
		s.selectForUpdate()
		s.requestInPlace(machine.InPlaceCandidate)
		s.later(time.Minute, "its owner takes the turn back")
		s.commentUpdateMarks()
	},
	"update deselected by a user": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 1)
		s.requestInPlace(machine.InPlaceCandidate)
		s.label(s.policy.Keys.SelectedForUpdate, "true")
		s.later(0, "a user selects it")
		s.label(s.policy.Keys.SelectedForUpdate, "")
		s.later(time.Minute, "the user takes the label off")
		s.commentUpdateMarks()
	},
	"update withdrawn from a node that cannot be written": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 1)
		s.selectForUpdate()
		s.failEffect("SyncNode", codes.PermissionDenied)
		s.requestInPlace(machine.InPlaceNone)
		s.later(time.Minute, "rolled back, but we may not write nodes any more")
		s.failEffect("", codes.OK)
		s.comment("somebody grants the permission")
		s.wait()
	},
	"update withdrawn too late": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 5*time.Minute)
		s.selectForUpdate()
		s.requestInPlace(machine.InPlaceNone)
		s.later(time.Minute, "rolled back")
		s.later(4*time.Minute, "the agent is done")
		s.commentUpdateMarks()
		s.requestInPlace(machine.InPlaceSelected)
		s.later(time.Hour, "its owner selects it once more")
		s.finishUpdate(5 * time.Minute)
	},
	"failed update withdrawn": func(s *story) {
		s.toRunningWithAgent(machine.UpdateFailed, time.Minute)
		s.selectForUpdate()
		s.later(time.Minute, "the agent gives up")
		s.requestInPlace(machine.InPlaceNone)
		s.later(time.Minute, "rolled back")
		s.commentUpdateMarks()
	},
	"failed update and an unhealthy node": func(s *story) {
		s.toRunningWithAgent(machine.UpdateFailed, time.Minute)
		s.selectForUpdate()
		s.later(time.Minute, "the agent gives up")
		s.cluster.setReady(node, object.False)
		s.later(0, "the node is not ready")
		s.wait()
	},
	"update of a cordoned node": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.cluster.change(node, func(n *machine.Node) { n.Unschedulable = true })
		s.comment("a user cordons the node")
		s.selectForUpdate()
		s.finishUpdate(time.Minute)
		s.commentUpdateMarks()
	},
	"update with critical components": func(s *story) {
		taint := object.Taint{Key: s.policy.Keys.CriticalComponents, Effect: object.NoSchedule}
		s.createMachine()
		s.shell.onDecision = nil
		s.reconcile()
		s.advance(time.Minute)
		s.cluster.change(node, func(n *machine.Node) { n.Taints = append(n.Taints, taint) })
		s.reconcile()
		s.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		s.reconcile()
		s.shell.onDecision, s.begun = s.record, s.now
		s.cluster.agent = agentModel{answer: machine.UpdateSuccessful, takes: time.Minute}
		s.selectForUpdate()
		s.finishUpdate(time.Minute)
		s.commentUpdateMarks()
		s.cluster.change(node, func(n *machine.Node) { n.Taints = nil })
		s.later(time.Minute, "the critical components are ready")
	},
	"node not ready while it is updated": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 15*time.Minute)
		s.selectForUpdate()
		s.cluster.setReady(node, object.False)
		s.later(time.Minute, "the node restarts")
		s.finishUpdate(14 * time.Minute)
		s.cluster.setReady(node, object.True)
		s.later(time.Minute, "the node is ready")
	},
	"node not ready for long after its update": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.selectForUpdate()
		s.cluster.setReady(node, object.False)
		s.finishUpdate(time.Minute)
		s.wait()
	},
	"node missing while it is updated": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Hour)
		s.selectForUpdate()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.later(time.Minute, "the node is gone, finalizer and all")
		s.wait()
	},
	"node registers again while it is updated": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 5*time.Minute)
		s.selectForUpdate()
		s.cluster.change(node, func(n *machine.Node) { n.Finalizers = nil })
		s.cluster.delete(node)
		s.advance(time.Minute)
		n := s.cluster.add(node, func(n *machine.Node) { n.ProviderID = "p://1" })
		s.cluster.registeredBy[n.UID] = ours
		s.later(0, "the node was reinstalled, and registers as a new object")
		s.commentUpdateMarks()
	},
	"node deleted by somebody while it is updated": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Hour)
		s.selectForUpdate()
		s.cluster.delete(node)
		s.later(time.Minute, "somebody deletes the node")
	},
	"node of another machine while it is updated": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.selectForUpdate()
		s.label(s.policy.Keys.NodeMachine, "m-2")
		s.later(time.Minute, "the node carries the name of machine m-2 now")
	},
	"deletion while a node is updated": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 0)
		s.selectForUpdate()
		s.requestDeletion()
		s.reconcile()
	},
	"frozen while a node is updated": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.selectForUpdate()
		s.frozen = true
		s.later(time.Hour, "the fleet is frozen")
		s.frozen = false
		s.force(func(m *machine.Machine) { m.Status.ClockFrom = s.now })
		s.later(0, "the fleet thaws, and its clocks restart")
	},
	"node that cannot be written is not updated": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 0)
		s.failEffect("SyncNode", codes.Unavailable)
		s.selectForUpdate()
		s.wait()
		s.failEffect("MarkNode", codes.Unavailable)
		s.comment("labels can be written now, but not conditions")
		s.wait()
		s.failEffect("", codes.OK)
		s.comment("somebody grants the permission")
		s.wait()
		s.later(time.Second, "the agent is quick")
	},
	"agent that cannot be told at first": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, 0)
		s.addDrain(0, 0, 1)
		s.selectForUpdate()
		s.failEffect("MarkNode", codes.Unavailable)
		s.cluster.drain.stuck = 0
		s.later(time.Minute, "the node is empty, and its condition can't be written")
		s.failEffect("", codes.OK)
		s.comment("somebody grants the permission")
		s.wait()
	},
	"crash before the agent is told": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.addDrain(0, 0, 0)
		s.killAt = s.calls + 6
		s.selectForUpdate()
		s.restart()
		s.reconcile()
		s.commentUpdateMarks()
	},
	"stale reader of an update": func(s *story) {
		s.toRunningWithAgent(machine.UpdateSuccessful, time.Minute)
		s.requestInPlace(machine.InPlaceCandidate)
		s.later(0, "its owner says that the machine is to be updated")
		s.selectForUpdate()
		lags := []int{3, 0}
		s.shell.lag = func() int { // the machine is old, the node is not
			lag := lags[0]
			lags = append(lags[1:], 0)
			return lag
		}
		s.later(time.Second, "a cache shows the machine as it was before it was selected")
		s.commentUpdateMarks()
	},
	"candidate on an unhealthy node": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.cluster.setReady(node, object.False)
		s.later(0, "the kubelet is not ready")
		s.selectForUpdate()
		s.commentUpdateMarks()
		s.cluster.setReady(node, object.True)
		s.later(time.Minute, "the kubelet is ready")
	},
	"unknown request": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.requestInPlace("Perhaps")
		s.later(0, "somebody asks for something unknown")
	},
	"update without cluster": func(s *story) {
		s.toRunningWithAgent("", 0)
		s.selectForUpdate()
		s.cluster = nil
		s.later(time.Minute, "the cluster is detached")
		s.wait()
		s.comment("code %s", s.store.live().Status.LastOperation.Code)
	},
}

// spec returns a provider spec of the model: a size, and tags as keys and values in turn.
func spec(size string, tags ...string) string {
	text := `{"size":"` + size + `","tags":{`
	for i := 0; i < len(tags); i += 2 {
		if i > 0 {
			text += ","
		}
		text += `"` + tags[i] + `":"` + tags[i+1] + `"`
	}
	return text + "}}"
}

// setClassSpec changes the provider spec of the class.
func (w *world) setClassSpec(spec string) {
	changed := w.class.Clone()
	changed.ProviderSpec = []byte(spec)
	changed.Generation++
	w.class = changed
}

// toRunningWithTags creates a machine whose driver can update tags, and brings it to Running.
func (s *story) toRunningWithTags(change ...func(*machine.Machine)) {
	s.fields = []string{"tags"}
	s.setClassSpec(spec("s", "team", "a"))
	s.toRunning(change...)
}

func ownedBySet(m *machine.Machine) {
	m.Owner = &object.Owner{Kind: "MachineSet", Name: "set-1", UID: "set-1"}
}

var hotStories = map[string]func(*story){
	"VM gets other tags": func(s *story) {
		s.toRunningWithTags()
		s.provider.note = "tagged"
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.later(time.Hour, "an hour later")
		s.comment("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"VM stays as its class changes otherwise": func(s *story) {
		s.toRunningWithTags()
		s.setClassSpec(spec("m", "team", "b"))
		s.later(time.Minute, "size and tags in the class change")
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the size is as it was")
	},
	"VM cannot be reached for its tags": func(s *story) {
		s.toRunningWithTags()
		s.failing(codes.UpdateMachine, codes.Unavailable, false)
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, the provider does not answer")
		s.later(time.Second, "something else wakes it")
		s.wait()
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.later(time.Minute, "the provider answers again")
	},
	"tags that are refused until they are right": func(s *story) {
		s.toRunningWithTags()
		s.failing(codes.UpdateMachine, codes.InvalidArgument, false)
		s.setClassSpec(spec("s", "team", "no such team"))
		s.later(time.Minute, "the tags in the class become something that is not allowed")
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.setClassSpec(spec("s", "team", "c"))
		s.later(time.Second, "they are corrected")
	},
	"VM that cannot be changed is replaced": func(s *story) {
		s.toRunningWithTags(ownedBySet)
		s.failing(codes.UpdateMachine, codes.Unimplemented, false)
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and the driver can't do that after all")
		s.later(time.Hour, "an hour later")
	},
	"VM that cannot be changed and has no set": func(s *story) {
		s.toRunningWithTags()
		s.failing(codes.UpdateMachine, codes.Unimplemented, false)
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and the driver can't do that after all")
		s.later(time.Hour, "an hour later")
	},
	"VM to be changed is gone": func(s *story) {
		s.toRunningWithTags()
		s.provider.vms = nil
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change, and somebody has deleted the VM")
		s.later(time.Hour, "an hour later")
		s.cluster.setReady(node, object.Unknown)
		s.later(time.Minute, "its node falls silent")
	},
	"lost response to an update of tags taken back": func(s *story) {
		s.toRunningWithTags()
		s.failing(codes.UpdateMachine, codes.DeadlineExceeded, true)
		s.setClassSpec(spec("s", "team", "b", "extra", "yes"))
		s.later(time.Minute, "the tags in the class change; the answer is lost")
		s.failing(codes.UpdateMachine, codes.OK, false)
		s.setClassSpec(spec("s", "team", "a"))
		s.later(time.Second, "the tags in the class are what they were")
		s.comment("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"crash amid an update of tags": func(s *story) {
		s.toRunningWithTags()
		s.setClassSpec(spec("s", "team", "b"))
		s.killAt, s.killAfter = s.calls+2, true
		s.later(time.Minute, "the tags in the class change")
		s.restart()
		s.later(time.Second, "")
	},
	"stale reader of tags": func(s *story) {
		s.toRunningWithTags()
		s.setClassSpec(spec("s", "team", "b"))
		old := s.class
		s.later(time.Minute, "the tags in the class change")
		s.setClassSpec(spec("s", "team", "c"))
		s.later(time.Minute, "and again")
		s.shell = &shell{w: s.world, onDecision: s.record, lag: func() int { return 4 }}
		s.cachedClass = func() *machine.Class { return old }
		s.comment("a second process reads class and machine as they were before")
		_, _, _ = s.shell.reconcile()
		s.cachedClass, s.shell.lag = nil, nil
		s.later(time.Second, "its caches catch up")
		s.comment("the tags of the VM: %v", s.provider.vms[0].tags)
	},
	"VM waits for its turn to get other tags": func(s *story) {
		s.toRunningWithTags()
		s.updateTurn = func(*machine.Machine) *machine.UpdateTurn {
			return &machine.UpdateTurn{Detail: "no more than 1 of web at a time"}
		}
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change while other VMs are changed")
		s.updateTurn = nil
		s.wait()
	},
	"tags change while the machine is unhealthy": func(s *story) {
		s.toRunningWithTags()
		s.cluster.setReady(node, object.Unknown)
		s.later(0, "the kubelet stops reporting")
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.cluster.setReady(node, object.True)
		s.later(time.Minute, "the kubelet reports again")
	},
	"driver learns to change tags": func(s *story) {
		s.setClassSpec(spec("s", "team", "a"))
		s.toRunning()
		s.fields = []string{"tags"}
		s.later(time.Hour, "a new version of the driver can change tags")
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
		s.fields = []string{"tags", "size"}
		s.later(time.Hour, "the next version can change sizes too")
		s.later(time.Minute, "")
	},
	"tags without cluster": func(s *story) {
		s.cluster, s.fields = nil, []string{"tags"}
		s.setClassSpec(spec("s", "team", "a"))
		s.createMachine()
		s.reconcile()
		s.setClassSpec(spec("s", "team", "b"))
		s.later(time.Minute, "the tags in the class change")
	},
	"tags change before a create is repeated": func(s *story) {
		s.fields = []string{"tags"}
		s.setClassSpec(spec("s", "team", "a"))
		s.provider.noStatus = true
		s.failing(codes.CreateMachine, codes.DeadlineExceeded, true)
		s.createMachine()
		s.reconcile()
		s.setClassSpec(spec("s", "team", "b"))
		s.failing(codes.CreateMachine, codes.OK, false)
		s.later(time.Second, "the tags in the class change before the create is repeated")
		s.later(time.Minute, "the node joins")
		s.later(time.Second, "")
		s.comment("the tags of the VM: %v", s.provider.vms[0].tags)
	},
}
