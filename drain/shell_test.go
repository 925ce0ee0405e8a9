package drain_test

import (
	"regexp"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/drain"
)

// mostDecisions limits the decisions of a pass, so that a mistake ends as a failure.
const mostDecisions = 400

// shell is a controller that carries out plans as drain's documentation says, in the modelled cluster.
type shell struct {
	*cluster
	t        require.TestingT
	policy   *drain.Policy
	memory   *drain.Memory
	asked    time.Time
	deadline time.Time
	forced   bool
	vmStays  bool
	limit    int           // MaxEvictRetries of the machine
	skew     time.Duration // how far the process's clock is ahead of the cluster's

	incomplete, resolved, noAttachments bool
	attached, known                     []string
	killed                              func() bool // asked before each call: does the process die in it?
	lost                                bool        // the call in which the process dies takes effect
	refuseWrites                        bool
	conflict                            func(*drain.Plan) bool // the write meets a conflict: the pass ends
	onPlan                              func(drain.Plan, []drain.Answer)
	observed                            func(*drain.Observation, *drain.Plan) // before a plan is carried out
	cache                               []*drain.Pod                          // not nil: a stale list of pods
}

func newShell(t require.TestingT) *shell {
	c := newCluster()
	return &shell{cluster: c, t: t, policy: drain.DefaultPolicy(), memory: drain.NewMemory(c.now)}
}

// local returns the time by the process's clock.
func (s *shell) local() time.Time { return s.now.Add(s.skew) }

// observe reads the caches.
func (s *shell) observe() *drain.Observation {
	o := &drain.Observation{
		Node: s.node, Complete: !s.incomplete, Asked: s.asked, Deadline: s.deadline, Forced: s.forced, Stays: s.vmStays, MaxEvictRetries: s.limit, Memory: s.memory,
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

// pass decides and carries out plans until there is nothing to carry out. died reports that the process was killed.
func (s *shell) pass() (plan drain.Plan, died bool) {
	done := map[string]bool{}
	failed := false
	for range mostDecisions {
		o := s.observe()
		s.memory.See(o.Pods, o.Complete, s.local())
		o.WriteFailed = failed
		plan, err := drain.Decide(o, s.policy, s.local())
		require.NoError(s.t, err)
		s.check(o, &plan)
		if s.observed != nil {
			s.observed(o, &plan)
		}
		if s.onPlan != nil && plan.Write != nil {
			s.onPlan(plan, nil)
		}
		switch {
		case plan.Write != nil:
			if s.dies() {
				if s.lost {
					s.node = plan.Write
				}
				return plan, true
			}
			if s.hitsConflict(&plan) {
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
			require.True(s.t, plan.At.IsZero() || plan.At.After(s.local()), "the plan waits for a time that has passed: %s", plan.Why)
			if s.onPlan != nil {
				s.onPlan(plan, nil)
			}
			return plan, false
		}
	}
	require.Fail(s.t, "a pass does not end")
	return drain.Plan{}, false
}

func (s *shell) hitsConflict(plan *drain.Plan) bool { return s.conflict != nil && s.conflict(plan) }

// store writes the node.
func (s *shell) store(plan *drain.Plan) {
	require.False(s.t, plan.Write.SpecEqual(s.node), "a write that changes nothing: %s", plan.Why)
	s.node = plan.Write
	s.writes++
	if plan.Begins {
		s.memory.Begun()
	}
}

// carryOut makes the calls of a plan. It requires that no pod gets the same call twice in a pass.
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
	if s.onPlan != nil {
		s.onPlan(*plan, answers)
	}
	return false
}

func (s *shell) dies() bool { return s.killed != nil && s.killed() }

// restart starts a new process.
func (s *shell) restart() { s.memory, s.killed = drain.NewMemory(s.local()), nil }

// unfilled matches a placeholder of a reason's sentence.
var unfilled = regexp.MustCompile(`\{(pod|budget|name|detail|have|want|all|for|until|ago|again)\}`)

// check checks the form of a plan.
func (s *shell) check(o *drain.Observation, plan *drain.Plan) {
	filled := 0
	for _, yes := range []bool{plan.Write != nil, len(plan.Evict) > 0, len(plan.Delete) > 0, len(plan.Detach) > 0, plan.Done} {
		if yes {
			filled++
		}
	}
	require.LessOrEqual(s.t, filled, 1, "a plan has at most one of Write, Evict, Delete, Detach and Done")
	require.True(s.t, filled == 0 || plan.At.IsZero(), "a plan with orders does not wait")
	require.NotEmpty(s.t, plan.Why.Reason)
	require.NotRegexp(s.t, unfilled, plan.Why.String(), "every placeholder is filled in")
	again, err := drain.Decide(o, s.policy, s.local())
	require.NoError(s.t, err)
	require.Equal(s.t, *plan, again, "P27: the same input gives the same plan")
}

// mostPasses limits the passes of a drain, so that a mistake ends as a failure.
const mostPasses = 20_000

// run makes passes until the drain has ended, at most until the given time. The next pass comes when the plan
// asks for it or when an event has happened in the cluster.
func (s *shell) run(until time.Time) drain.Plan {
	for passes := 0; ; passes++ {
		require.Less(s.t, passes, mostPasses, "the drain does not end")
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
