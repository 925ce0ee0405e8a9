package drain_test

import (
	"time"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

var budgetStories = map[string]func(*story){
	"a budget that lets one go at a time": func(s *story) {
		s.protect("web", 2, 0)
		for _, n := range []string{"web-1", "web-2", "web-3"} {
			s.add(n, func(p *pod) { p.Labels["app"] = "web" })
		}
		s.compute(s.budgets[0])
		s.drain(time.Hour)
	},
	"a budget refuses for a while": func(s *story) {
		s.protect("db", 2, 1, func(b *budget) { b.ExpectedPods = 3 })
		s.add("db")
		s.drain(70 * time.Second)
		s.budgets[0].elsewhere++
		s.recomputeBudgetsOf(s.pods[0])
		s.comment("the third pod of the database is healthy again")
		s.drain(time.Hour)
	},
	"a misconfigured budget": func(s *story) {
		s.protect("db", 1, 0)
		s.add("db")
		s.add("web")
		s.drain(45 * time.Second)
		s.budgets[0].DesiredHealthy, s.budgets[0].Generation = 0, 2
		s.comment("its owner corrects the budget; the status is of the old one still")
		s.drain(30 * time.Second)
		s.compute(s.budgets[0])
		s.comment("the status is computed")
		s.drain(time.Hour)
	},
	"a stale budget is not a misconfigured one": func(s *story) {
		s.protect("db", 1, 0)
		s.add("db")
		s.budgets[0].Generation = 2
		s.onePass()
	},
	"a budget whose pod is being disrupted is not misconfigured": func(s *story) {
		s.protect("db", 1, 1, func(b *budget) { b.lag = 5 * time.Minute; b.heals = 0 })
		s.add("db-1", func(p *pod) { p.Labels["app"] = "db" })
		s.add("db-2", func(p *pod) { p.Labels["app"] = "db" })
		s.budgets[0].elsewhere = 0
		s.compute(s.budgets[0])
		s.onePass()
	},
	"several budgets on one pod": func(s *story) {
		s.protect("web", 0, 0)
		s.protect("web", 1, 1, func(b *budget) { b.Name = "all"; b.Selector = &object.Selector{} })
		s.add("web")
		s.drain(time.Minute)
		s.budgets = s.budgets[:1]
		s.comment("somebody deletes the second one")
		s.drain(time.Hour)
	},
	"several budgets and one of them misconfigured": func(s *story) {
		s.protect("web", 0, 0)
		s.protect("web", 1, 0, func(b *budget) { b.Name = "strict" })
		s.add("web")
		s.onePass()
	},
	"the server wants to be left alone": func(s *story) {
		s.protect("db", 1, 0, func(b *budget) { b.frozen = true })
		s.add("db")
		s.budgets[0].ObservedGeneration = 0
		s.budgets[0].Generation = 1
		s.onePass()
		answer := s.memory.Answers[s.pods[0].UID]
		answer.RetryAfter = time.Minute
		s.memory.Note(s.pods[0].UID, answer)
		s.comment("Retry-After: 60")
		s.drain(90 * time.Second)
	},
	"a refusal without a budget": func(s *story) {
		s.protect("db", 1, 0, func(b *budget) { b.ExpectedPods = 2 })
		db := s.add("db")
		s.onePass()
		s.budgets = nil
		s.comment("the budget goes")
		s.memory.Note(db.UID, s.memory.Answers[db.UID])
		s.onePass()
		s.drain(time.Hour)
	},
	"attempts are used up": func(s *story) {
		s.policy.MaxEvictRetries = 3
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		s.add("db")
		s.drain(time.Hour)
	},
	"attempts that a machine allows are used up": func(s *story) {
		s.policy.MaxEvictRetries, s.limit = 30, 2
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		s.add("db")
		s.drain(time.Hour)
	},
	"attempts are used up before the server wants to be asked again": func(s *story) {
		s.policy.MaxEvictRetries = 3
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		db := s.add("db")
		s.onePass()
		answer := s.memory.Answers[db.UID]
		answer.RetryAfter = time.Hour
		s.memory.Note(db.UID, answer)
		s.comment("Retry-After: 3600")
		s.drain(time.Hour)
	},
	"attempts are used up but the budget is misconfigured": func(s *story) {
		s.policy.MaxEvictRetries, s.policy.Timeout = 2, 100*time.Second
		s.protect("db", 1, 0)
		s.add("db")
		s.drain(time.Hour)
	},
	"a pod that comes when attempts are used up is evicted first": func(s *story) {
		s.policy.MaxEvictRetries = 2
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		s.add("slow", func(p *pod) { p.Grace = 3 * time.Minute })
		s.drain(time.Minute)
		s.comment("a pod comes")
		s.add("db")
		s.drain(time.Hour)
	},
	"the time is over": func(s *story) {
		s.policy.Timeout = time.Minute
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		s.add("db")
		s.add("slow", func(p *pod) { p.Grace = 10 * time.Minute })
		s.drain(time.Hour)
	},
	"the time is over and deletions fail": func(s *story) {
		s.policy.Timeout = 30 * time.Second
		s.fails = func(drain.Kind, string) bool { return true }
		s.add("web")
		s.drain(40 * time.Second)
		s.shell.onPlan = nil
		s.drain(49 * time.Second)
		s.shell.onPlan = s.step
		s.drain(time.Hour)
	},
	"an in place drain and its deadline": func(s *story) {
		s.deadline = s.now.Add(3 * time.Minute)
		s.protect("db", 2, 0, func(b *budget) { b.ExpectedPods = 3 })
		s.add("db")
		s.drain(time.Minute)
		s.restartProcessAfter(time.Second)
		s.shell.onPlan = nil
		s.drain(s.deadline.Sub(s.now) - time.Second)
		s.shell.onPlan = s.step
		s.comment("a second before the deadline")
		s.drain(time.Hour)
		s.undo()
		s.undo()
	},
}

// undo carries out what Undo decides.
func (s *story) undo() {
	plan, err := drain.Undo(&drain.Observation{Node: s.node}, s.policy, s.now)
	if err != nil {
		s.t.Errorf("undo: %v", err)
		return
	}
	if plan.Write != nil {
		s.node = plan.Write
	}
	s.step(plan, nil)
	s.comment("unschedulable: %t, taints: %d", s.node.Unschedulable, len(s.node.Taints))
}
