package drain_test

import (
	"strings"
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

var podStories = map[string]func(*story){
	"an empty node": func(s *story) { s.drain(time.Hour) },
	"three pods": func(s *story) {
		s.add("web-1")
		s.add("web-2")
		s.add("slow", func(p *pod) { p.Grace = 2 * time.Minute })
		s.drain(time.Hour)
	},
	"static and daemon set pods stay": func(s *story) {
		s.add("kube-proxy", func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.add("etcd", func(p *pod) { p.Mirror = true })
		s.add("web")
		s.drain(time.Hour)
		s.comment("left on the node: %d pods", len(s.pods))
	},
	"finished pods go unasked": func(s *story) {
		s.protect("job", 1, 0)
		s.add("job", func(p *pod) { p.Finished = true })
		s.add("web")
		s.drain(time.Hour)
	},
	"a finished pod that stays does not hold the drain up": func(s *story) {
		s.add("job", func(p *pod) { p.Finished, p.stuck = true, true })
		s.drain(time.Hour)
	},
	"a pod that is going already": func(s *story) {
		web := s.add("web")
		s.terminate(web, web.Grace)
		s.later(10*time.Second, "web was told to go by somebody else 10s ago")
		s.drain(time.Hour)
	},
	"a pod that never ends": func(s *story) {
		s.add("zombie", func(p *pod) { p.stuck = true })
		s.add("web")
		s.drain(time.Hour)
	},
	"a pod that is gone already": func(s *story) {
		web := s.add("web")
		s.cache = s.snapshot()
		s.remove(web)
		s.comment("web is gone; the cache does not know yet")
		s.onePass()
	},
	"a finished pod that somebody else deletes": func(s *story) {
		job := s.add("job", func(p *pod) { p.Finished, p.stuck = true, true })
		s.terminate(job, job.Grace)
		s.comment("the finished pod job is being deleted, and a finalizer keeps it")
		s.drain(time.Hour)
	},
	"one pod listed twice": func(s *story) {
		s.add("web")
		s.cache = append(s.snapshot(), s.snapshot()...)
		s.onePass()
	},
	"a pod comes back under its name": func(s *story) {
		web := s.add("web", func(p *pod) { p.lasts = 5 * time.Second })
		s.onePass()
		s.later(web.lasts, "web is gone, and another pod has its name, tolerating the cordon")
		s.add("web")
		s.drain(time.Hour)
	},
	"pods that come during the drain": func(s *story) {
		s.add("slow", func(p *pod) { p.Grace = time.Minute })
		s.onePass()
		s.later(13*time.Second, "a pod that was bound before the cordon starts")
		s.add("late")
		s.drain(time.Hour)
	},
	"an eviction that nothing comes of": func(s *story) {
		web := s.add("web")
		s.onePass()
		web.GraceEnds, web.ends, s.events = time.Time{}, time.Time{}, nil
		s.comment("a webhook has accepted the eviction, and does nothing")
		s.drain(time.Hour)
	},
	"calls that fail": func(s *story) {
		s.fails = func(kind drain.Kind, name string) bool { return name == "web" }
		s.add("web")
		s.add("other")
		s.drain(30 * time.Second)
		s.fails = nil
		s.comment("the API server is well again")
		s.drain(time.Hour)
	},
	"no eviction API": func(s *story) {
		s.noEviction = true
		s.protect("web", 1, 0)
		s.add("web")
		s.add("other")
		s.drain(time.Hour)
	},
	"a deletion fails": func(s *story) {
		s.noEviction = true
		s.fails = func(kind drain.Kind, name string) bool {
			return kind == drain.Deleted && s.now.Before(s.begun.Add(8*time.Second))
		}
		s.add("web")
		s.drain(time.Hour)
	},
	"a protected pod": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} })
		s.add("web", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "false"} })
		s.drain(time.Hour)
	},
	"a protected pod is left by policy": func(s *story) {
		s.policy.Timeout, s.policy.AtTimeout = 10*time.Minute, drain.LeavePods
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"millwright-go/do-not-disrupt": "true"} })
		s.drain(time.Hour)
	},
	"a protected pod is waited for without end by policy": func(s *story) {
		s.policy.Timeout, s.policy.AtTimeout = 10*time.Minute, drain.KeepWaiting
		batch := s.add("batch", func(p *pod) { p.Annotations = map[string]string{"millwright-go/do-not-disrupt": "1"} })
		s.drain(5 * time.Hour)
		s.remove(batch)
		s.comment("the pod has ended by itself")
		s.onePass()
	},
	"a pod protected for a time": func(s *story) {
		s.add("batch", func(p *pod) {
			p.Annotations, p.CreatedAt = map[string]string{"karpenter.sh/do-not-disrupt": "1h30m"}, s.now.Add(-time.Hour)
		})
		s.add("over", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "30m"} })
		s.add("both", func(p *pod) {
			p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "65m", "millwright-go/do-not-disrupt": "61m"}
		})
		s.drain(time.Hour)
	},
	"a pod protected for longer than the drain lasts": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "4h"} })
		s.add("age-unknown", func(p *pod) {
			p.Annotations, p.CreatedAt = map[string]string{"karpenter.sh/do-not-disrupt": "1s"}, time.Time{}
		})
		s.drain(time.Hour)
	},
	"a protection that nobody can read": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.add("never", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "Never"} })
		s.add("empty", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": ""} })
		s.add("long", func(p *pod) {
			p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": strings.Repeat("four hours\n", 30)}
		})
		s.drain(time.Hour)
	},
	"pods that are not safe to evict": func(s *story) {
		const key = "cluster-autoscaler.kubernetes.io/safe-to-evict"
		s.policy.Timeout, s.policy.Keys.SafeToEvict = 10*time.Minute, []string{key}
		for name, value := range map[string]string{"no": "false", "yes": "true", "unclear": "maybe"} {
			s.add(name, func(p *pod) { p.Annotations = map[string]string{key: value} })
		}
		s.drain(time.Hour)
	},
	"pods that are not safe to evict where that is not configured": func(s *story) {
		s.add("no", func(p *pod) {
			p.Annotations = map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
		})
		s.drain(time.Hour)
	},
	"a process dies and another goes on": func(s *story) {
		s.protect("db", 1, 0)
		s.add("db")
		s.add("slow", func(p *pod) { p.Grace = 90 * time.Second })
		s.drain(25 * time.Second)
		s.restartProcessAfter(2 * time.Second)
		s.budgets[0].DesiredHealthy = 0
		s.compute(s.budgets[0])
		s.comment("the budget of db lets it go now")
		s.drain(time.Hour)
	},
	"a new pod after a restart need not wait": func(s *story) {
		s.add("web", func(p *pod) { p.Grace = time.Minute })
		s.onePass()
		s.restartProcessAfter(3 * time.Second)
		s.later(2*time.Second, "a pod comes that no process before this one can have tried")
		s.add("late", func(p *pod) { p.CreatedAt = s.now })
		s.drain(time.Hour)
	},
	"caches are not filled yet": func(s *story) {
		s.add("web")
		s.incomplete = true
		s.onePass()
		s.incomplete = false
		s.later(3*time.Second, "the caches are filled")
		s.drain(time.Hour)
	},
}

var ruleStories = map[string]func(*story){
	"rules of order": func(s *story) {
		s.policy.Rules = []drain.Rule{
			{Selector: labelled("db"), Behaviour: drain.InOrder, Order: 10},
			{Selector: labelled("front"), Behaviour: drain.InOrder, Order: -1},
		}
		s.add("db")
		s.add("front")
		s.add("middle")
		s.drain(time.Hour)
	},
	"rules of order and a pod that is refused": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.policy.Rules = []drain.Rule{{Selector: labelled("db"), Behaviour: drain.InOrder, Order: 1}}
		s.protect("front", 1, 0)
		s.add("db")
		s.add("front")
		s.drain(time.Minute)
		s.comment("nine minutes later")
		s.shell.onPlan = nil
		s.drain(9*time.Minute - time.Second)
		s.shell.onPlan = s.step
		s.drain(time.Hour)
	},
	"a rule that skips": func(s *story) {
		s.policy.Rules = []drain.Rule{{Selector: labelled("agent"), Behaviour: drain.Skip}}
		s.add("agent")
		s.add("web")
		s.drain(time.Hour)
	},
	"a rule in one namespace": func(s *story) {
		s.policy.Rules = []drain.Rule{{Selector: labelled("agent"), Namespaces: []string{"kube-system"}, Behaviour: drain.Skip}}
		s.add("agent")
		s.add("agent", func(p *pod) { p.Namespace = "kube-system" })
		s.drain(time.Hour)
	},
	"a rule that waits for completion": func(s *story) {
		s.policy.Rules = []drain.Rule{{Selector: labelled("job"), Behaviour: drain.WaitCompleted}}
		job := s.add("job")
		s.add("web")
		s.drain(20 * time.Minute)
		job.Finished = true
		s.comment("the job has finished")
		s.drain(time.Hour)
	},
	"a job that is waited for does not hold up later orders": func(s *story) {
		s.policy.Rules = []drain.Rule{
			{Selector: labelled("job"), Behaviour: drain.WaitCompleted}, {Selector: labelled("web"), Behaviour: drain.InOrder, Order: 5},
		}
		s.add("job")
		s.add("web")
		s.drain(time.Minute)
	},
	"a job does not complete in time": func(s *story) {
		s.policy.Timeout = 10 * time.Minute
		s.policy.Rules = []drain.Rule{{Selector: labelled("job"), Behaviour: drain.WaitCompleted}}
		s.add("job")
		s.drain(time.Hour)
	},
}

func labelled(app string) object.Selector {
	return object.Selector{Labels: map[string]string{"app": app}}
}
