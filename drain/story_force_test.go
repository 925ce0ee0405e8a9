package drain_test

import (
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

var forceStories = map[string]func(*story){
	"force from the beginning": func(s *story) {
		s.forced = true
		s.protect("db", 1, 0)
		s.add("db", s.volume("vol-1"))
		s.add("web", func(p *pod) { p.Grace = time.Hour })
		s.add("kube-proxy", func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} })
		s.drain(time.Hour)
	},
	"force after the drain timeout": func(s *story) {
		s.protect("db", 1, 0)
		s.add("db")
		s.drain(50 * time.Second)
		s.forced = true
		s.comment("force becomes due")
		s.drain(time.Hour)
	},
	"force spares what a rule skips": func(s *story) {
		s.forced = true
		s.policy.Rules = []drain.Rule{{Selector: labelled("agent"), Behaviour: drain.Skip}}
		s.add("agent")
		s.add("web")
		s.drain(time.Hour)
	},
	"force has a bound": func(s *story) {
		s.forced = true
		s.fails = func(_ drain.Kind, name string) bool { return name == "web" }
		s.add("web")
		s.add("other")
		s.drain(17 * time.Second)
		s.shell.onPlan = nil
		s.drain(42 * time.Second)
		s.shell.onPlan = s.step
		s.drain(time.Hour)
	},
	"force on a node that does not answer": func(s *story) {
		s.policy.OutOfService = true
		s.node.Conditions[0].Status = object.Unknown
		s.add("web", func(p *pod) { p.stuck = true })
		s.later(2*time.Minute, "the kubelet has been silent for two minutes")
		s.drain(time.Second)
		s.forced = true
		s.later(4*time.Minute, "force is due")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
		s.undo()
	},
	"force on a node that has been silent for a short time": func(s *story) {
		s.policy.OutOfService, s.forced = true, true
		s.node.Conditions[0].Status = object.Unknown
		s.later(2*time.Minute, "the kubelet has been silent for two minutes")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
		s.forced = false
		s.later(4*time.Minute, "force is withdrawn")
		s.drain(time.Hour)
		s.forced = true
		s.comment("force is due again")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
		s.node = s.node.Clone()
		s.node.Taints = nil
		s.later(time.Minute, "somebody takes the taint away")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
	},
	"force on a silent node whose VM stays": func(s *story) {
		s.policy.OutOfService, s.forced, s.vmStays = true, true, true
		s.node.Conditions[0].Status = object.Unknown
		s.later(10*time.Minute, "the kubelet has been silent for ten minutes")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
	},
	"the taint of an earlier drain": func(s *story) {
		s.policy.OutOfService, s.forced = true, true
		s.node.Conditions[0].Status = object.Unknown
		s.later(10*time.Minute, "the kubelet has been silent for ten minutes")
		s.drain(time.Hour)
		s.forced, s.asked = false, s.now.Add(time.Hour)
		s.node = s.node.Clone()
		s.node.Conditions[0].Status = object.True
		s.later(time.Hour, "the node is back, and another drain is asked for")
		s.drain(time.Hour)
		s.comment("taints: %v", s.node.Taints)
		s.undo()
	},
	"records from the future": func(s *story) {
		s.forced = true
		s.node.Drain = &machine.DrainRecord{Since: s.now, Cordoned: s.now.AddDate(7000, 0, 0), Forced: s.now.AddDate(7000, 0, 0)}
		s.fails = func(drain.Kind, string) bool { return true }
		s.add("web")
		s.drain(time.Hour)
	},
	"a node cannot be written": func(s *story) {
		s.refuseWrites = true
		s.add("web")
		s.drain(time.Second)
		s.refuseWrites = false
		s.comment("it can be written again")
		s.drain(time.Hour)
	},
	"a read only node is not fenced without force": func(s *story) {
		s.policy.OutOfService = true
		s.node.Conditions = append(s.node.Conditions, object.Condition{
			Type: machine.NodeReadonlyFilesystem, Status: object.True, Since: s.now,
		})
		s.later(10*time.Minute, "the file system has been read-only for ten minutes")
		s.add("web")
		s.drain(time.Hour)
		s.comment("taints: %d", len(s.node.Taints))
	},
	"force while the node cannot be written": func(s *story) {
		s.forced, s.refuseWrites = true, true
		s.add("web")
		s.drain(time.Hour)
	},
	"force while caches are not filled": func(s *story) {
		s.forced, s.incomplete = true, true
		s.add("web")
		s.drain(time.Hour)
	},
	"force and a process that dies": func(s *story) {
		s.forced = true
		s.add("zombie", func(p *pod) { p.stuck = true })
		s.fails = func(_ drain.Kind, name string) bool { return name == "web" }
		s.add("web")
		s.onePass()
		s.restartProcessAfter(50 * time.Second)
		s.drain(time.Hour)
	},
	"detachment from a node that answers again": func(s *story) {
		s.policy.OutOfService, s.forced, s.detachAfterPodEnd = true, true, time.Hour
		s.add("db", s.volume("vol-1"))
		s.node.Conditions[0].Status, s.node.Conditions[0].Since = object.Unknown, s.now
		s.later(10*time.Minute, "the kubelet has been silent for ten minutes")
		s.drain(time.Second)
		s.comment("taints: %v", s.node.Taints)
		s.node.Conditions[0].Status = object.True
		s.later(time.Minute, "the node is back, and force is not due any more")
		s.forced, s.asked = false, s.now
		s.detachPass(nil)
		s.comment("taints: %v, fenced: %t", s.node.Taints, s.node.Drain.Fenced)
		s.attachments = nil
		s.later(time.Second, "it has let go of the volume")
		s.detachPass(nil)
	},
	"detachment after force": func(s *story) {
		s.forced = true
		s.add("db", s.volume("vol-1", "vol-2"))
		s.detachPass(nil)
		s.later(3*time.Second, "one is gone")
		s.attachments = s.attachments[1:]
		s.detachPass(nil)
		s.later(2*time.Minute, "two minutes later")
		s.detachPass(nil)
	},
	"detachment that fails": func(s *story) {
		s.forced = true
		s.add("db", s.volume("vol-1"))
		s.detachPass(func(string) drain.Result { return drain.Failed })
		s.later(5*time.Second, "five seconds later")
		s.detachPass(func(string) drain.Result { return drain.NotFound })
	},
	"detachment of a node that has nothing attached": func(s *story) {
		s.add("db", s.volume("vol-1"))
		s.attached = []string{}
		s.detachPass(nil)
	},
}

// detachPass carries out what Detach decides until there is nothing to do. answer is the API server's; nil: all
// succeed.
func (s *story) detachPass(answer func(string) drain.Result) {
	for range mostDecisions {
		plan, err := drain.Detach(s.observe(), s.policy, s.now)
		if err != nil {
			s.t.Errorf("detach: %v", err)
			return
		}
		if plan.Write != nil {
			s.line("write node", plan.Why.String())
			s.node = plan.Write
			continue
		}
		if len(plan.Detach) == 0 {
			s.step(plan, nil)
			return
		}
		for _, o := range plan.Detach {
			result := drain.Accepted
			if answer != nil {
				result = answer(o.Name)
			}
			s.memory.Note(o.Name, drain.Answer{Kind: drain.Deleted, Result: result, At: s.now})
			s.line("detach "+o.Name+": "+string(result), o.Why.String())
		}
	}
	s.t.Errorf("the pass does not end")
}

var nodeStories = map[string]func(*story){
	"the node vanishes half way": func(s *story) {
		s.add("web", func(p *pod) { p.Grace = time.Hour })
		s.onePass()
		s.later(time.Minute, "somebody deletes the node")
		s.node = nil
		s.onePass()
	},
	"the node was cordoned already": func(s *story) {
		s.node.Unschedulable = true
		s.add("web")
		s.drain(time.Hour)
		s.undo()
	},
	"somebody uncordons the node": func(s *story) {
		s.add("slow", func(p *pod) { p.Grace = 4 * time.Minute })
		s.onePass()
		for range 2 {
			s.node = s.node.Clone()
			s.node.Unschedulable = false
			s.later(2*time.Second, "somebody uncordons the node")
			s.drain(30 * time.Second)
		}
	},
	"a record of an earlier drain": func(s *story) {
		s.policy.MaxEvictRetries = 3
		s.protect("db", 1, 0, func(b *budget) { b.ExpectedPods = 2 })
		s.add("db")
		s.drain(0)
		s.asked = s.now.Add(24 * time.Hour)
		s.later(24*time.Hour, "the drain was given up, and a day later the machine is deleted")
		s.drain(30 * time.Second)
		s.undo()
	},
	"a cordon from the future": func(s *story) {
		s.node.Drain = &machine.DrainRecord{Since: s.now, Cordoned: s.now.AddDate(7000, 0, 0)}
		s.onePass()
	},
	"a record from the future": func(s *story) {
		s.add("web")
		s.node.Unschedulable = true
		s.node.Drain = &machine.DrainRecord{Since: s.now.AddDate(7000, 0, 0), Turn: machine.DrainTurn{UID: "x", Since: s.now.AddDate(7000, 0, 0)}}
		s.drain(time.Hour)
	},
	"a hook holds the drain back": func(s *story) {
		s.node.Annotations = map[string]string{"pre-drain.millwright-go/backup": "storage-team"}
		s.add("web")
		s.drain(10 * time.Minute)
		s.node = s.node.Clone()
		s.node.Annotations = nil
		s.comment("the backup is made, and the annotation gone")
		s.drain(time.Hour)
	},
	"many hooks": func(s *story) {
		s.node.Annotations = map[string]string{
			"pre-drain.millwright-go/z": "", "pre-drain.millwright-go/b": "", "pre-drain.millwright-go/c": "", "pre-drain.millwright-go/x": "",
			"pre-drain.millwright-go/d": "", "pre-drain.millwright-go/y": "", "a": "",
		}
		for range 5 {
			s.onePass()
		}
	},
	"a hook that nobody removes": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.node.Annotations = map[string]string{"pre-drain.millwright-go/backup": "storage-team"}
		s.add("web")
		s.drain(time.Hour)
	},
}
