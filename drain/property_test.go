package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// anyCluster fills a cluster with pods, budgets and volumes at random.
func anyCluster(t *rapid.T, s *shell) {
	apps := []string{"a", "b", "c", "d"}
	for i := range rapid.IntRange(0, 3).Draw(t, "budgets") {
		s.protect(apps[i], rapid.Int32Range(0, 3).Draw(t, "desired"), rapid.Int32Range(0, 3).Draw(t, "elsewhere"), func(b *budget) {
			b.lag = time.Duration(rapid.IntRange(0, 30).Draw(t, "lag")) * time.Second
			b.heals = time.Duration(rapid.IntRange(1, 60).Draw(t, "heals")) * time.Second
			b.ExpectedPods = rapid.Int32Range(0, 4).Draw(t, "expected")
			b.AlwaysAllow = rapid.Bool().Draw(t, "always allow")
		})
	}
	if rapid.IntRange(0, 5).Draw(t, "overlap") == 0 {
		s.protect("a", 0, 1, func(b *budget) { b.Name = "second" })
	}
	for i := range rapid.IntRange(0, 9).Draw(t, "pods") {
		app := rapid.SampledFrom(apps).Draw(t, "app")
		s.add(fmt.Sprintf("%s-%d", app, i), func(p *pod) { anyPod(t, s, p, app) })
	}
	s.detachAfterPodEnd = time.Duration(rapid.IntRange(-1, 200).Draw(t, "detach")) * time.Second
	s.reattachAfterDetach = time.Duration(rapid.IntRange(-1, 200).Draw(t, "reattach")) * time.Second
}

func anyPod(t *rapid.T, s *shell, p *pod, app string) {
	p.Labels["app"] = app
	p.Priority = rapid.Int32Range(0, 2).Draw(t, "priority")
	p.Grace = time.Duration(rapid.IntRange(0, 90).Draw(t, "grace")) * time.Second
	p.lasts = time.Duration(rapid.IntRange(0, 100).Draw(t, "lasts")) * time.Second
	p.objectStays = time.Duration(rapid.SampledFrom([]int{0, 1, 5, 100}).Draw(t, "stays")) * time.Second
	switch rapid.IntRange(0, 12).Draw(t, "special") {
	case 0:
		p.Mirror = true
	case 1:
		p.Owner.Kind = drain.DaemonSet
	case 2:
		p.Finished = true
	case 3:
		p.stuck = true
	case 4:
		p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"}
	}
	p.Pending = rapid.IntRange(0, 9).Draw(t, "pending") == 0
	p.NotReady = p.Pending || rapid.IntRange(0, 4).Draw(t, "not ready") == 0
	for range rapid.IntRange(0, 2).Draw(t, "volumes") {
		s.volume(fmt.Sprintf("vol-%d", rapid.IntRange(0, 12).Draw(t, "volume")))(p)
	}
}

// untouchable reports whether no drain may touch a pod.
func untouchable(p *pod) bool { return p.Mirror || p.Owner.Kind == drain.DaemonSet }

// runWithFaults runs a drain with restarts and stale lists of pods. It returns all pods that ever existed.
func runWithFaults(t *rapid.T, s *shell, until time.Time) (map[string]*pod, drain.Plan) {
	all := map[string]*pod{}
	s.resolved = rapid.Bool().Draw(t, "resolved")
	for passes := 0; ; passes++ {
		require.Less(t, passes, mostPasses, "the drain does not end")
		for _, p := range s.pods {
			all[p.UID] = p
		}
		s.cache = nil
		if rapid.IntRange(0, 3).Draw(t, "stale") == 0 {
			s.cache = s.snapshot() // not brought up to date in this pass
		}
		if rapid.IntRange(0, 19).Draw(t, "restart") == 0 {
			s.restart()
		}
		if n := rapid.IntRange(0, 40).Draw(t, "kill"); n > 0 && n < 5 {
			s.killed = func() bool { n--; return n == 0 }
		}
		plan, died := s.pass()
		s.killed = nil
		if died {
			s.restart()
			continue
		}
		if plan.Done || !s.now.Before(until) {
			return all, plan
		}
		if rapid.IntRange(0, 19).Draw(t, "arrival") == 0 && len(all) < 12 {
			s.add(fmt.Sprintf("late-%d", len(all)), func(p *pod) { anyPod(t, s, p, "a"); p.CreatedAt = s.now.Truncate(time.Second) })
		}
		next := s.now.Add(time.Duration(rapid.IntRange(1, 30000).Draw(t, "pause")) * time.Millisecond)
		if !plan.At.IsZero() && plan.At.Before(next) {
			next = plan.At.Add(time.Duration(rapid.IntRange(0, 2000).Draw(t, "jitter")) * time.Millisecond)
		}
		s.advance(next)
	}
}

// checkAttemptGaps checks that attempts to evict a pod are at least a slot apart.
func checkAttemptGaps(t require.TestingT, calls []call) {
	last := map[string]time.Time{}
	for _, c := range calls {
		if c.kind != drain.Evicted {
			continue
		}
		if before, tried := last[c.uid]; tried {
			require.GreaterOrEqual(t, c.at.Sub(before), drain.Slot, "P22: %s tried again too soon", c.name)
		}
		last[c.uid] = c.at
	}
}

// TestP22OnlyEvicted: without force and before its deadline, a drain evicts pods, and deletes only finished ones.
// Attempts are a slot apart, also over restarts, and no budget is violated.
// Invariants: P22 P27
func TestP22OnlyEvicted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		end := s.now.Add(20 * time.Minute)
		s.deadline = s.now.Add(2 * time.Hour)
		all, plan := runWithFaults(t, s, end)
		for _, c := range s.calls {
			p := all[c.uid]
			require.False(t, untouchable(p), "%s of %s, which is to be left alone", c.kind, c.name)
			require.True(t, c.kind == drain.Evicted || c.kind == drain.Deleted && c.finished, "P22: %s of %s", c.kind, c.name)
			require.True(t, c.kind != drain.Evicted || !c.finished, "a finished pod is not evicted")
			require.Nil(t, p.Annotations, "%s is protected", c.name)
		}
		checkAttemptGaps(t, s.calls)
		for _, b := range s.budgets {
			if evicted := s.counted(b, all); evicted > 0 {
				require.GreaterOrEqual(t, s.healthy(b), b.DesiredHealthy, "budget %s is violated", b.Name)
			}
		}
		checkExplained(t, s, &plan)
	})
}

// counted returns how many of a budget's evicted pods counted as healthy.
func (c *cluster) counted(b *budget, all map[string]*pod) (n int) {
	for _, p := range all {
		if b.Selects(&p.Pod) && (!p.Finished || p.ended) && !p.unhealthy() && !p.ends.IsZero() {
			n++
		}
	}
	return n
}

// checkExplained checks that the plan names each pod that still runs, with a reason, and names all budgets of a
// pod whose eviction was refused.
func checkExplained(t *rapid.T, s *shell, plan *drain.Plan) {
	if s.cache != nil {
		return
	}
	named := map[string]drain.Blocked{}
	for _, b := range plan.Blocked {
		named[b.UID] = b
		require.NotEmpty(t, b.Why.Reason, "%s without a reason", b.Pod)
		require.NotContains(t, b.Why.String(), "{")
	}
	for _, p := range s.pods {
		if untouchable(p) || p.Finished || !p.ends.IsZero() {
			continue
		}
		b, ok := named[p.UID]
		require.True(t, ok, "the plan does not say why %s is still there: %s", p.Name, plan.Why)
		require.False(t, plan.Done, "the drain is done, and %s was never evicted", p.Name)
		if s.memory.Answers[p.UID].Result != drain.Refused {
			continue
		}
		var want []string
		for _, budget := range s.budgets {
			if budget.Selects(&p.Pod) {
				want = append(want, budget.Name)
			}
		}
		var got []string
		for _, budget := range b.Budgets {
			got = append(got, budget.Name)
		}
		require.Equal(t, want, got, "the budgets of %s", p.Name)
	}
}

// TestDrainsEndWhereTheyCan: if every budget allows evictions, and no annotation protects a pod, the drain ends.
// Only pods that no drain may touch and pods that do not end in time are left.
func TestDrainsEndWhereTheyCan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		for _, p := range s.pods {
			p.Annotations = nil
		}
		s.budgets = s.budgets[:min(len(s.budgets), 1)]
		for _, b := range s.budgets {
			// A budget with no healthy pod that requires none refuses pods that are not ready for ever.
			b.elsewhere = max(b.DesiredHealthy, b.elsewhere, 1)
			s.compute(b)
		}
		plan := s.run(s.now.Add(110 * time.Minute))
		require.True(t, plan.Done, "%s %v", plan.Why, plan.Blocked)
		overdue := false
		for _, b := range plan.Blocked {
			require.Contains(t, []decision.Reason{drain.ReasonOverdue, drain.ReasonDetachLate}, b.Why.Reason)
			overdue = overdue || b.Why.Reason == drain.ReasonOverdue
		}
		require.Equal(t, !overdue, plan.Why.Reason == drain.ReasonDrained)
		for _, p := range s.pods {
			late := p.stuck || p.Finished || p.lasts >= p.Grace+s.policy.TerminationBuffer-time.Second
			require.True(t, untouchable(p) || late && !p.ends.IsZero(), "%s is still there", p.Name)
		}
	})
}

// TestP21EveryDrainEnds: every drain ends a minute after its deadline, even if everything fails.
// Invariants: P21
func TestP21EveryDrainEnds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.policy.Timeout = time.Duration(rapid.IntRange(1, 600).Draw(t, "timeout")) * time.Second
		s.policy.MaxEvictRetries = rapid.IntRange(0, 10).Draw(t, "limit")
		s.limit = rapid.IntRange(0, 10).Draw(t, "limit of the machine")
		if rapid.Bool().Draw(t, "failing") {
			s.fails = func(kind drain.Kind, name string) bool { return len(name)%2 == 0 || kind == drain.Deleted }
		}
		s.noEviction = rapid.IntRange(0, 4).Draw(t, "no eviction") == 0
		begun := s.now.Truncate(time.Second)
		plan := s.run(s.now.Add(2 * time.Hour))
		require.True(t, plan.Done, "%s", plan.Why)
		require.LessOrEqual(t, s.now.Sub(begun), s.policy.Timeout+s.policy.ForceBound)
		checkAttemptGaps(t, s.calls)
	})
}

// TestP22ForceEndsWithinItsBound: force waits for no budget, no volume and no grace.
// Invariants: P22
func TestP22ForceEndsWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.policy.OutOfService = rapid.Bool().Draw(t, "fence")
		s.node.Conditions[0].Status = rapid.SampledFrom([]object.ConditionStatus{object.True, object.Unknown}).Draw(t, "ready")
		s.advance(s.now.Add(time.Duration(rapid.IntRange(0, 10).Draw(t, "before")) * time.Minute))
		before := rapid.IntRange(0, 1).Draw(t, "drained before") * rapid.IntRange(0, 300).Draw(t, "seconds before")
		if before > 0 {
			s.run(s.now.Add(time.Duration(before) * time.Second))
		}
		s.forced, s.calls = true, nil
		failing := rapid.IntRange(0, 2).Draw(t, "failing")
		s.fails = func(_ drain.Kind, name string) bool { return failing > 0 && (failing == 2 || name[0] == 'a') }
		due := s.now
		plan := s.run(s.now.Add(time.Hour))
		require.True(t, plan.Done)
		require.LessOrEqual(t, s.now.Sub(due), s.policy.ForceBound)
		if failing == 0 {
			require.Equal(t, due, s.now, "P22: force waits for nothing")
		}
		for _, c := range s.calls {
			require.Equal(t, drain.Killed, c.kind)
		}
		s.advance(s.now)
		for _, p := range s.pods {
			require.True(t, untouchable(p) || failing > 0 || p.stuck, "%s is left", p.Name)
		}
	})
}

// TestP28NoRequestIsRepeated: a drain does not repeat a request while nothing changes.
// Invariants: P28
func TestP28NoRequestIsRepeated(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.forced = rapid.IntRange(0, 3).Draw(t, "forced") == 0
		s.run(s.now.Add(time.Duration(rapid.IntRange(0, 600).Draw(t, "seconds")) * time.Second))
		calls, writes := len(s.calls), s.writes
		plan, _ := s.pass()
		again, _ := s.pass()
		require.Equal(t, calls, len(s.calls))
		require.Equal(t, writes, s.writes)
		require.Equal(t, plan, again)
	})
}

// TestFewWrites: a drain writes the node once for the cordon, and at most twice for each pod with volumes.
func TestFewWrites(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		followed := 0
		for _, p := range s.pods {
			if len(p.Claims) > 0 {
				followed++
			}
		}
		s.run(s.now.Add(3 * time.Hour))
		require.LessOrEqual(t, s.writes, 1+2*followed)
	})
}

// terminationOrder returns the pods with volumes, in the order in which they were first evicted.
func terminationOrder(s *shell, all map[string]*pod) (order []string) {
	seen := map[string]bool{}
	for _, c := range s.calls {
		if p := all[c.uid]; c.result == drain.Accepted && len(p.Claims) > 0 && !seen[c.uid] {
			seen[c.uid] = true
			order = append(order, c.name)
		}
	}
	return order
}

// TestP26KilledAnywhere kills a process at each of its calls, whether the call takes effect or not. A new process
// without memory continues: it evicts the pods in the same order, and starts no wait again. The drain takes at
// most two slots of attempts longer, because the new process does not know the earlier attempts, and fractions of
// seconds, because stored times are cut to seconds.
// Invariants: P26
func TestP26KilledAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := rapid.IntRange(1, 5).Draw(t, "pods")
		priorities := rapid.SliceOfN(rapid.Int32Range(0, 2), pods, pods).Draw(t, "priorities")
		graces := rapid.SliceOfN(rapid.IntRange(0, 60), pods, pods).Draw(t, "graces")
		volumes := rapid.SliceOfN(rapid.IntRange(0, 2), pods, pods).Draw(t, "volumes")
		// Not near the timeouts: there a fraction of a second decides which wait comes next.
		seconds := rapid.SampledFrom([]int{1, 10, 60, 105, 150, 200})
		detach, reattach := seconds.Draw(t, "detach"), seconds.Draw(t, "reattach")
		newDrain := func() (*shell, map[string]*pod) {
			s := newShell(t)
			s.detachAfterPodEnd, s.reattachAfterDetach = time.Duration(detach)*time.Second, time.Duration(reattach)*time.Second
			all := map[string]*pod{}
			for i := range pods {
				p := s.add(fmt.Sprintf("p-%d", i), func(p *pod) {
					p.Priority, p.Grace = priorities[i], time.Duration(graces[i])*time.Second
				})
				for v := range volumes[i] {
					s.volume(fmt.Sprintf("vol-%d-%d", i, v))(p)
				}
				all[p.UID] = p
			}
			return s, all
		}
		undisturbed, all := newDrain()
		plan := undisturbed.run(undisturbed.now.Add(3 * time.Hour))
		require.True(t, plan.Done)
		want, took := terminationOrder(undisturbed, all), undisturbed.now.Sub(epoch)
		for n := 1; n <= undisturbed.writes+len(undisturbed.calls); n++ {
			s, all := newDrain()
			s.lost = rapid.Bool().Draw(t, "lost")
			left := n
			s.killed = func() bool { left--; return left == 0 }
			plan := s.run(s.now.Add(3 * time.Hour))
			require.True(t, plan.Done)
			require.Equal(t, want, terminationOrder(s, all), "killed at call %d", n)
			require.LessOrEqual(t, s.now.Sub(epoch)-took, 2*drain.Slot+time.Duration(1+2*pods)*time.Second, "killed at call %d", n)
			checkAttemptGaps(t, s.calls)
		}
	})
}

// TestP26KilledAgainAndAgain starts a new process every seven seconds. However often that happens, no wait for
// pods or volumes starts again.
// Invariants: P26
func TestP26KilledAgainAndAgain(t *testing.T) {
	s := newShell(t)
	s.detachAfterPodEnd = -1
	s.add("db", s.volume("vol-1"))
	s.onePass()
	begun := s.now
	for {
		s.advance(s.now.Add(7 * time.Second))
		s.restart()
		plan, _ := s.pass()
		if plan.Done {
			break
		}
		require.Less(t, s.now.Sub(begun), 3*time.Minute, "%s", plan.Why)
	}
	require.GreaterOrEqual(t, s.now.Sub(begun), 2*time.Minute+29*time.Second)
}

// TestP23UndoReversesOnlyTheDrain: Undo reverses what the drain did, and nothing else.
// Invariants: P23
func TestP23UndoReversesOnlyTheDrain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.policy.OutOfService = true
		s.forced = rapid.Bool().Draw(t, "forced")
		s.node.Unschedulable = rapid.Bool().Draw(t, "cordoned")
		if rapid.Bool().Draw(t, "silent") {
			s.node.Conditions[0].Status = object.Unknown
		}
		if rapid.Bool().Draw(t, "tainted") {
			s.node.Taints = []object.Taint{{Key: "node.kubernetes.io/out-of-service", Value: "nodeshutdown", Effect: object.NoExecute}, {Key: "mine"}}
		}
		s.advance(s.now.Add(10 * time.Minute))
		before := s.node.Clone()
		require.True(t, s.run(s.now.Add(time.Hour)).Done)
		require.True(t, s.node.Unschedulable)
		require.NotNil(t, s.node.Drain)
		plan, err := drain.Undo(&drain.Observation{Node: s.node}, s.policy, s.now)
		require.NoError(t, err)
		require.True(t, plan.Write.SpecEqual(before), "%+v is not %+v", plan.Write, before)
	})
}
