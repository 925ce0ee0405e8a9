package drain_test

import (
	"time"

	"github.com/millwright-go/millwright/drain"
)

// volumeStories are about pods with volumes. testdata/stories has what each story must decide.
var volumeStories = map[string]func(*story){
	"pods with volumes go one at a time": func(s *story) {
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"), func(p *pod) { p.Priority = 100 })
		s.add("web")
		s.drain(time.Hour)
	},
	"a volume is not detached in time": func(s *story) {
		s.detachAfterPodEnd = -1
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"))
		s.drain(time.Hour)
	},
	"a volume is not attached elsewhere in time": func(s *story) {
		s.reattachAfterDetach = -1
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"))
		s.drain(time.Hour)
	},
	"a refused pod does not hold up the next one": func(s *story) {
		// One of two pods must be healthy, and none is elsewhere yet.
		s.protect("db-1", 1, 0, func(b *budget) { b.ExpectedPods = 2 })
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.Priority = 7 })
		s.add("db-2", s.volume("vol-2"))
		s.drain(2 * time.Minute)
		s.budgets[0].elsewhere++
		s.recomputeBudgetsOf(s.pods[0])
		s.comment("the other pod of db-1 is healthy again")
		s.drain(time.Hour)
	},
	"a volume that two pods share": func(s *story) {
		s.detachAfterPodEnd = time.Hour
		s.add("a", s.volume("shared"))
		s.add("b", s.volume("shared"))
		s.drain(time.Hour)
	},
	"a volume whose pod went before the drain began": func(s *story) {
		s.detachAfterPodEnd = 40 * time.Second
		a := s.add("a", s.volume("vol-1"))
		s.terminate(a, time.Second)
		s.later(2*time.Second, "a is gone, vol-1 is attached still")
		s.drain(time.Hour)
	},
	"a volume that no pod here ever used": func(s *story) {
		s.attachments = append(s.attachments, &drain.Attachment{Name: "att-x", Volume: "vol-x", Node: here})
		s.drain(time.Minute)
		s.restartProcessAfter(time.Second)
		s.drain(time.Hour)
	},
	"volumes of pods that are left alone": func(s *story) {
		s.add("logs", s.volume("vol-1"), func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.add("web", s.volume("vol-2"))
		s.drain(time.Hour)
	},
	"an attached volume does not hold up the drain of a node whose VM is kept": func(s *story) {
		s.vmStays = true
		s.attachments = append(s.attachments, &drain.Attachment{Name: "att-x", Volume: "vol-x", Node: here})
		s.drain(time.Hour)
	},
	"pods come when only volumes are left": func(s *story) {
		s.attachments = append(s.attachments, &drain.Attachment{Name: "att-x", Volume: "vol-x", Node: here})
		s.drain(time.Minute)
		s.add("late", func(p *pod) { p.CreatedAt = s.now })
		s.comment("a pod starts that was bound before the cordon")
		s.drain(time.Hour)
	},
	"a volume that the driver does not know": func(s *story) {
		s.detachAfterPodEnd = time.Hour
		s.known = []string{"vol-2"}
		s.add("a", s.volume("vol-1"))
		s.add("b", s.volume("vol-2"))
		s.drain(2 * time.Minute)
	},
	"a local volume is not waited for": func(s *story) {
		s.add("a", s.volume("disk"))
		s.volumes[0].Local, s.attachments = true, nil // what is part of a node is not attached to it
		s.drain(time.Hour)
	},
	"only the node knows what is attached": func(s *story) {
		s.noAttachments = true
		s.attached = []string{"kubernetes.io/csi/disk.example^vol-1", "kubernetes.io/csi/disk.example^vol-2"}
		s.add("a", s.volume("vol-1"))
		s.add("b", s.volume("vol-2"))
		s.drain(50 * time.Second)
		s.attached = s.attached[1:]
		s.comment("the node says that vol-1 is detached")
		s.drain(time.Minute)
		s.attached = []string{}
		s.comment("the node says that vol-2 is detached")
		s.drain(time.Hour)
	},
	"nobody knows what is attached": func(s *story) {
		s.noAttachments = true
		s.add("a", s.volume("vol-1"))
		s.add("b", s.volume("vol-2"))
		s.drain(time.Hour)
	},
	"a process dies between two volumes": func(s *story) {
		s.detachAfterPodEnd, s.reattachAfterDetach = time.Minute, 80*time.Second
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"))
		s.drain(50 * time.Second)
		s.restartProcessAfter(5 * time.Second)
		s.drain(100 * time.Second)
		s.restartProcessAfter(5 * time.Second)
		s.drain(time.Hour)
	},
	"a process dies before the node records whose volumes are followed": func(s *story) {
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"))
		calls := 0 // the third call, after cordon and eviction, is the record of the turn
		s.killed = func() bool { calls++; return calls == 3 }
		s.onePass()
		s.restartProcessAfter(2 * time.Second)
		s.drain(time.Hour)
	},
	"the pod is gone before its turn could be recorded": func(s *story) {
		s.detachAfterPodEnd = time.Minute
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"))
		s.conflict = func(p *drain.Plan) bool { return p.Why.Reason == drain.ReasonTurn }
		s.onePass()
		s.conflict = nil
		s.later(31*time.Second, "somebody else wrote the node, and db-1 is gone")
		s.drain(time.Hour)
	},
	"the pod has finished before its turn could be recorded": func(s *story) {
		s.detachAfterPodEnd = time.Minute
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.objectStays = 5 * time.Second })
		s.add("db-2", s.volume("vol-2"))
		s.conflict = func(p *drain.Plan) bool { return p.Why.Reason == drain.ReasonTurn }
		s.onePass()
		s.conflict = nil
		s.later(31*time.Second, "somebody else wrote the node, and db-1 has finished")
		s.drain(time.Hour)
	},
	"the last pod with a volume finishes before it is gone": func(s *story) {
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.objectStays = 5 * time.Second })
		s.drain(40 * time.Second)
		s.drain(time.Hour)
	},
	"a pod with a volume finishes and a finalizer keeps it": func(s *story) {
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.objectStays = 24 * time.Hour })
		s.drain(time.Hour)
	},
	"a finished pod does not wait for a volume that another one uses": func(s *story) {
		s.detachAfterPodEnd = time.Hour
		s.add("a", s.volume("vol-1", "shared"), func(p *pod) { p.objectStays = time.Hour })
		s.add("b", s.volume("shared"), func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.drain(31 * time.Second)
		s.attachments = s.attachments[1:]
		s.comment("vol-1 is detached")
		s.drain(time.Hour)
	},
	"somebody else deletes a pod with a volume": func(s *story) {
		s.detachAfterPodEnd = time.Minute
		a := s.add("a", s.volume("vol-1"))
		s.add("b", s.volume("vol-2"))
		s.terminate(a, a.Grace)
		s.later(5*time.Second, "a was told to go")
		s.drain(time.Hour)
	},
	"the time is over for pods with volumes": func(s *story) {
		s.policy.Timeout = time.Minute
		s.add("db-1", s.volume("vol-1"))
		s.add("db-2", s.volume("vol-2"), func(p *pod) { p.Annotations = map[string]string{"millwright-go/do-not-disrupt": "true"} })
		s.add("db-3", s.volume("vol-3"), func(p *pod) { p.Annotations = map[string]string{"millwright-go/do-not-disrupt": "true"} })
		s.detachAfterPodEnd = -1
		s.drain(time.Hour)
	},
	"volumes by order and priority": func(s *story) {
		s.policy.Rules = []drain.Rule{{Selector: labelled("late"), Behaviour: drain.InOrder, Order: 5}}
		s.add("late", s.volume("vol-1"), func(p *pod) { p.Priority = 1000 })
		s.add("early", s.volume("vol-2"))
		s.drain(time.Hour)
	},
}
