package drain_test

import (
	"regexp"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
)

// bound is the most decisions of a pass.
const bound = 400

// shell carries plans out, as drain's documentation says.
type shell struct {
	*cluster
	t        require.TestingT
	policy   *drain.Policy
	memory   *drain.Memory
	asked    time.Time
	deadline time.Time
	forced   bool
	stays    bool
	limit    int           // of the machine: slots of attempts
	skew     time.Duration // how far the process's clock is ahead of the cluster's

	incomplete, resolved, noAttachments bool
	attached, known                     []string
	killed                              func() bool // before each call: is it the process's last?
	lost                                bool        // the call it dies in takes effect
	refuseWrites                        bool
	conflict                            func(*drain.Plan) bool // another writer: the pass ends
	told                                func(drain.Plan, []drain.Answer)
	observed                            func(*drain.Observation, *drain.Plan) // before a plan is carried out
	cache                               []*drain.Pod                          // not nil: the pods some time ago
}

func newShell(t require.TestingT) *shell {
	c := newCluster()
	return &shell{cluster: c, t: t, policy: drain.DefaultPolicy(), memory: drain.NewMemory(c.now)}
}

// local is what the process's clock shows.
func (s *shell) local() time.Time { return s.now.Add(s.skew) }

// observe reads the caches.
func (s *shell) observe() *drain.Observation {
	o := &drain.Observation{
		Node: s.node, Complete: !s.incomplete, Asked: s.asked, Deadline: s.deadline, Forced: s.forced, Stays: s.stays, MaxEvictRetries: s.limit, Memory: s.memory,
		Attached: s.attached, Known: s.known, Pods: s.cache,
	}
	for _, b := range s.budgets {
		status := b.Budget
		o.Budgets = append(o.Budgets, &status)
	}
	if o.Pods == nil {
		o.Pods = s.snapshot()
	}
	if s.resolved {
		s.resolve(o)
	}
	o.Volumes = append(o.Volumes, s.volumes...)
	if !s.noAttachments {
		o.Attachments = append([]*drain.Attachment{}, s.attachments...)
	}
	return o
}

func (s *shell) snapshot() []*drain.Pod {
	pods := []*drain.Pod{}
	for _, p := range s.pods {
		seen := p.Pod
		pods = append(pods, &seen)
	}
	return pods
}

// resolve sets the budgets of each pod.
func (s *shell) resolve(o *drain.Observation) {
	for _, p := range o.Pods {
		p.Budgets = []*drain.Budget{}
		for _, b := range o.Budgets {
			if b.Selects(p) {
				p.Budgets = append(p.Budgets, b)
			}
		}
	}
	o.Budgets = nil
}

// pass decides and carries out until there is nothing to carry out. died: the process was killed.
func (s *shell) pass() (plan drain.Plan, died bool) {
	done := map[string]bool{}
	failed := false
	for range bound {
		o := s.observe()
		s.memory.See(o.Pods, o.Complete, s.local())
		o.WriteFailed = failed
		plan, err := drain.Decide(o, s.policy, s.local())
		require.NoError(s.t, err)
		s.check(o, &plan)
		if s.observed != nil {
			s.observed(o, &plan)
		}
		if s.told != nil && plan.Write != nil {
			s.told(plan, nil)
		}
		switch {
		case plan.Write != nil:
			if s.dies() {
				if s.lost {
					s.node = plan.Write
				}
				return plan, true
			}
			if s.meets(&plan) {
				return plan, false
			}
			if failed = s.refuseWrites; !failed {
				s.store(&plan)
			}
		case len(plan.Evict)+len(plan.Delete) > 0:
			if s.carryOut(&plan, done) {
				return plan, true
			}
		default:
			require.True(s.t, plan.At.IsZero() || plan.At.After(s.local()), "a wait that is over: %s", plan.Why)
			if s.told != nil {
				s.told(plan, nil)
			}
			return plan, false
		}
	}
	require.Fail(s.t, "a pass does not end")
	return drain.Plan{}, false
}

func (s *shell) meets(plan *drain.Plan) bool { return s.conflict != nil && s.conflict(plan) }

// store writes the node.
func (s *shell) store(plan *drain.Plan) {
	require.False(s.t, plan.Write.SpecEqual(s.node), "a write that changes nothing: %s", plan.Why)
	s.node = plan.Write
	s.writes++
	if plan.Begins {
		s.memory.Begun()
	}
}

// carryOut makes the calls of a plan. No pod gets the same call twice in a pass.
func (s *shell) carryOut(plan *drain.Plan, done map[string]bool) (died bool) {
	kind, list := drain.Evicted, plan.Evict
	if len(plan.Delete) > 0 {
		kind, list = drain.Deleted, plan.Delete
	}
	var answers []drain.Answer
	for _, o := range list {
		k := kind
		if o.Now {
			k = drain.Killed
		}
		require.False(s.t, done[o.UID+string(k)], "%s of %s twice in a pass", k, o.Pod)
		done[o.UID+string(k)] = true
		s.memory.Begin(o)
		if s.dies() {
			if s.lost {
				s.call(k, o)
			}
			return true
		}
		a := s.call(k, o)
		a.At = s.local()
		s.memory.Note(o.UID, a)
		answers = append(answers, a)
	}
	if s.told != nil {
		s.told(*plan, answers)
	}
	return false
}

func (s *shell) dies() bool { return s.killed != nil && s.killed() }

// restart starts a new process.
func (s *shell) restart() { s.memory, s.killed = drain.NewMemory(s.local()), nil }

// unfilled is a word of a sentence that was not filled in.
var unfilled = regexp.MustCompile(`\{(pod|budget|name|detail|have|want|all|for|until|ago|again)\}`)

// check checks the form of a plan.
func (s *shell) check(o *drain.Observation, plan *drain.Plan) {
	filled := 0
	for _, yes := range []bool{plan.Write != nil, len(plan.Evict) > 0, len(plan.Delete) > 0, len(plan.Detach) > 0, plan.Done} {
		if yes {
			filled++
		}
	}
	require.LessOrEqual(s.t, filled, 1, "a plan holds one thing")
	require.True(s.t, filled == 0 || plan.At.IsZero(), "a plan with orders does not wait")
	require.NotEmpty(s.t, plan.Why.Reason)
	require.NotRegexp(s.t, unfilled, plan.Why.String(), "every word is filled in")
	again, err := drain.Decide(o, s.policy, s.local())
	require.NoError(s.t, err)
	require.Equal(s.t, *plan, again, "P27: the same input gives the same plan")
}

// mostPasses limits the passes of a drain, so that a mistake ends as a failure.
const mostPasses = 20_000

// run makes passes until the drain has ended, at most until a time. It wakes up when a plan asks
// for it and when something has happened.
func (s *shell) run(until time.Time) drain.Plan {
	for passes := 0; ; passes++ {
		require.Less(s.t, passes, mostPasses, "the drain takes no end")
		plan, died := s.pass()
		if died {
			s.restart()
			continue
		}
		if plan.Done || !s.now.Before(until) {
			return plan
		}
		next := s.next()
		if at := plan.At.Add(-s.skew); !plan.At.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
		if next.IsZero() || next.After(until) {
			next = until
		}
		s.advance(next)
	}
}
