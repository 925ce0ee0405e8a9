package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

func TestPolicyValidate(t *testing.T) {
	require.NoError(t, drain.DefaultPolicy().Validate())
	web := labelled("web")
	for field, change := range map[string]func(*drain.Policy){
		"policy.timeout":            func(p *drain.Policy) { p.Timeout = time.Millisecond },
		"policy.timeout must":       func(p *drain.Policy) { p.Timeout = -time.Hour },
		"policy.maxEvictRetries":    func(p *drain.Policy) { p.MaxEvictRetries = -1 },
		"policy.terminationBuffer":  func(p *drain.Policy) { p.TerminationBuffer = -2 },
		"policy.detachTimeout":      func(p *drain.Policy) { p.DetachTimeout = object.Off },
		"policy.reattachTimeout":    func(p *drain.Policy) { p.ReattachTimeout = time.Second - 1 },
		"policy.forceBound":         func(p *drain.Policy) { p.ForceBound = 1 },
		"policy.retryDelete":        func(p *drain.Policy) { p.RetryDelete = 1 },
		"policy.unresponsive":       func(p *drain.Policy) { p.Unresponsive = 1 },
		"policy.atTimeout":          func(p *drain.Policy) { p.AtTimeout = "Shrug" },
		"policy.keys.safeToEvict":   func(p *drain.Policy) { p.Keys.SafeToEvict = []string{""} },
		"policy.keys.doNotDisrupt":  func(p *drain.Policy) { p.Keys.DoNotDisrupt = []string{"a", ""} },
		"policy.rules[0].behaviour": func(p *drain.Policy) { p.Rules = []drain.Rule{{Selector: web}} },
		"policy.rules[0].selector":  func(p *drain.Policy) { p.Rules = []drain.Rule{{Behaviour: drain.Skip}} },
		"policy.rules[1].order": func(p *drain.Policy) {
			p.Rules = []drain.Rule{{Selector: web, Behaviour: drain.InOrder, Order: 3}, {Selector: web, Behaviour: drain.Skip, Order: 3}}
		},
		"policy.rules[0].selector.req": func(p *drain.Policy) {
			p.Rules = []drain.Rule{{Behaviour: drain.Skip, Selector: object.Selector{Requirements: []object.Requirement{{Key: "a"}}}}}
		},
	} {
		p := drain.DefaultPolicy()
		change(p)
		assert.ErrorContains(t, p.Validate(), field)
		assert.ErrorIs(t, p.Validate(), object.ErrInvalid)
	}
	p := drain.DefaultPolicy()
	p.Timeout, p.TerminationBuffer = object.Off, object.Off
	assert.NoError(t, p.Validate(), "no end, on purpose")
}

func TestBudgetSelects(t *testing.T) {
	p := &drain.Pod{Key: object.Key{Namespace: "a", Name: "p"}, Labels: map[string]string{"app": "web"}}
	in := func(namespace string, s *object.Selector) *drain.Budget {
		return &drain.Budget{Key: object.Key{Namespace: namespace}, Selector: s}
	}
	web, db := labelled("web"), labelled("db")
	assert.True(t, in("a", &web).Selects(p))
	assert.False(t, in("b", &web).Selects(p), "another namespace")
	assert.False(t, in("a", &db).Selects(p))
	assert.True(t, in("a", &object.Selector{}).Selects(p), "an empty selector picks all of the namespace")
	assert.False(t, in("a", nil).Selects(p), "no selector picks none")
	assert.False(t, (*drain.Budget)(nil).Selects(p))
}

// Invariants: P22
func TestMisconfigured(t *testing.T) {
	bad := drain.Budget{Generation: 2, ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 3, DesiredHealthy: 3}
	assert.True(t, bad.Misconfigured())
	for what, change := range map[string]func(*drain.Budget){
		"stale":              func(b *drain.Budget) { b.ObservedGeneration = 1 },
		"nothing expected":   func(b *drain.Budget) { b.ExpectedPods, b.CurrentHealthy = 0, 0 },
		"one is not healthy": func(b *drain.Budget) { b.CurrentHealthy = 2 },
		"one is disrupted":   func(b *drain.Budget) { b.Disrupted = 1 },
		"one is allowed":     func(b *drain.Budget) { b.DisruptionsAllowed = 1 },
	} {
		b := bad
		change(&b)
		assert.False(t, b.Misconfigured(), what)
	}
}

func TestMemory(t *testing.T) {
	m := drain.NewMemory(epoch)
	m.Note("a", drain.Answer{Kind: drain.Evicted, Result: drain.Refused, At: epoch})
	m.Note("b", drain.Answer{Kind: drain.Deleted, Result: drain.NoEvictionAPI, At: epoch})
	assert.False(t, m.NoEviction, "a deletion says nothing of evictions")
	m.Note("b", drain.Answer{Kind: drain.Evicted, Result: drain.NoEvictionAPI, At: epoch})
	assert.True(t, m.NoEviction)
	m.Begun()
	assert.True(t, m.From.IsZero())
	assert.Len(t, m.Answers, 2, "answers of an earlier drain still delay the next attempts")
	m.See([]*drain.Pod{{UID: "a"}, nil}, true, epoch)
	assert.Len(t, m.Answers, 2, "there are no more answers than pods, so none is dropped")
	m.See([]*drain.Pod{{UID: "a"}}, true, epoch)
	assert.Len(t, m.Answers, 1)
	assert.Contains(t, m.Answers, "a")
}

// TestAttemptsKeepToSlots: after a restart, the first attempt comes in the first slot that begins at least a slot's
// length later. After a refusal, the next attempt comes at least a slot's length later, in a later slot.
// Invariants: P22
func TestAttemptsKeepToSlots(t *testing.T) {
	begun := epoch.Truncate(time.Second)
	for _, c := range []struct {
		restarted, refused, retry, want time.Duration
	}{
		{restarted: 7 * time.Second, want: 40 * time.Second},
		{restarted: 20 * time.Second, want: 40 * time.Second},
		{restarted: 20*time.Second + 1, want: time.Minute},
		{refused: time.Second, want: 21 * time.Second},
		{refused: 19 * time.Second, want: 39 * time.Second},
		{refused: 40 * time.Second, retry: 10 * time.Second, want: time.Minute},
		{refused: 40 * time.Second, retry: 50 * time.Second, want: 90 * time.Second},
	} {
		s := newShell(t)
		s.now = begun
		web := s.add("web")
		s.protect("web", 1, 0)
		s.onePass()
		s.memory = &drain.Memory{}
		if c.restarted > 0 {
			s.memory = drain.NewMemory(begun.Add(c.restarted))
		} else {
			s.memory.Note(web.UID, drain.Answer{Kind: drain.Evicted, Result: drain.Refused, At: begun.Add(c.refused), RetryAfter: c.retry})
		}
		s.now = begun.Add(max(c.restarted, c.refused))
		plan, _ := s.pass()
		assert.Equal(t, c.want, plan.At.Sub(begun), "%+v", c)
	}
}

// onePass makes one pass.
func (s *shell) onePass() { _, _ = s.pass() }

// TestHandlesAreComparedLiterally: a volume's handle is compared with the end of a name in the node's status,
// character by character.
func TestHandlesAreComparedLiterally(t *testing.T) {
	for attached, want := range map[string]bool{
		"kubernetes.io/csi/disk.example^vol.1":    true,
		"vol.1":                                   true,
		"kubernetes.io/aws-ebs/zone-a/vol.1":      true,
		"kubernetes.io/csi/disk.example^volx1":    false,
		"kubernetes.io/csi/disk.example^my-vol.1": false,
		"kubernetes.io/csi/disk.example^vol.1/":   false,
		"":                                        false,
	} {
		s := newShell(t)
		s.noAttachments, s.attached = true, []string{attached}
		s.add("db", s.volume("vol.1"))
		s.onePass()
		assert.Equal(t, want, s.node.Drain.Turn.UID != "", "%q", attached)
	}
}

// TestForceDoesNotKillGonePods: a pod that the API server did not find is not killed, although a cache shows it.
func TestForceDoesNotKillGonePods(t *testing.T) {
	s := newShell(t)
	s.forced = true
	web := s.add("web")
	s.memory.Note(web.UID, drain.Answer{Kind: drain.Evicted, Result: drain.NotFound, At: s.now})
	plan, _ := s.pass()
	assert.True(t, plan.Done)
	assert.Empty(t, s.calls)
}

// TestDetachOnlyThisNode: Detach deletes only attachments of its node, and none that is being deleted.
func TestDetachOnlyThisNode(t *testing.T) {
	s := newShell(t)
	s.asked, s.forced = s.now, true
	s.attachments = []*drain.Attachment{
		{Name: "mine", Volume: "a", Node: here}, {Name: "going", Volume: "b", Node: here, DeletedAt: s.now}, {Name: "other", Volume: "c", Node: there},
	}
	plan, err := drain.Detach(s.observe(), s.policy, s.now)
	require.NoError(t, err)
	require.Len(t, plan.Detach, 1)
	assert.Equal(t, "mine", plan.Detach[0].Name)
	s.attachments = s.attachments[2:]
	plan, err = drain.Detach(s.observe(), s.policy, s.now)
	require.NoError(t, err)
	assert.True(t, plan.Done)
	s.incomplete = true
	plan, err = drain.Detach(s.observe(), s.policy, s.now)
	require.NoError(t, err)
	assert.False(t, plan.Done)
	assert.Equal(t, s.now.Add(2*time.Minute), plan.At)
	plan, err = drain.Detach(s.observe(), s.policy, s.now.Add(2*time.Minute))
	require.NoError(t, err)
	assert.True(t, plan.Done, "a cache that never fills delays a deletion no longer than volumes do")
}

// TestDetachEnds: volumes delay a deletion for the timeout and no longer, with force and without.
// Invariants: P21
func TestDetachEnds(t *testing.T) {
	for _, forced := range []bool{false, true} {
		s := newShell(t)
		s.asked, s.forced = s.now, forced
		s.attachments = []*drain.Attachment{{Name: "mine", Volume: "a", Node: here, DeletedAt: s.now}}
		end := s.now.Add(s.policy.DetachTimeout)
		plan, err := drain.Detach(s.observe(), s.policy, end.Add(-time.Second))
		require.NoError(t, err)
		assert.False(t, plan.Done)
		assert.Equal(t, end, plan.At)
		plan, err = drain.Detach(s.observe(), s.policy, end)
		require.NoError(t, err)
		assert.True(t, plan.Done)
		assert.Equal(t, drain.ReasonDetachEnded, plan.Why.Reason)
	}
}

// TestForecastOfBudgets: in a forecast, a budget recovers only from evictions of pods that a controller replaces.
// Pods share the budgets that the caller has resolved for them.
func TestForecastOfBudgets(t *testing.T) {
	for _, owned := range []bool{true, false} {
		s := newShell(t)
		s.resolved = true
		s.protect("web", 1, 0)
		for _, name := range []string{"web-1", "web-2"} {
			s.add(name, func(p *pod) {
				p.Labels["app"] = "web"
				if !owned {
					p.Owner = nil
				}
			})
		}
		f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
		require.NoError(t, err)
		assert.Equal(t, []string{"default/web"}, f.Budgets(), "the second pod is refused at first")
		assert.Equal(t, owned, len(f.Left) == 0)
	}
}

// TestForecastFromACache: a forecast treats a cached observation like a live one, because it has no live node to
// read.
// Invariants: P21
func TestForecastFromACache(t *testing.T) {
	s := newShell(t)
	s.add("db-1", s.volume("vol-1"))
	o := s.observe()
	live, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.True(t, live.Done)
	o.Cached = true
	cached, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.Equal(t, live, cached)
	require.True(t, o.Cached)
}

// TestForecastWithoutProgress: a forecast ends when decisions repeat the same order endlessly, and says so.
// Invariants: P21
func TestForecastWithoutProgress(t *testing.T) {
	s := newShell(t)
	s.onePass()
	web := s.add("web")
	decisions := 0
	again := func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error) {
		why := decision.Why{Reason: drain.ReasonEvict, Object: web.Key}
		if decisions++; decisions == 1 {
			return drain.Plan{At: s.now.Add(time.Minute), Why: why}, nil
		}
		return drain.Plan{Evict: []drain.Order{{Pod: web.Key, UID: "nobody", Why: why}}, Why: why}, nil
	}
	f, err := drain.PredictBy(again, s.observe(), s.policy, s.now)
	require.NoError(t, err)
	require.False(t, f.Done)
	require.Equal(t, time.Minute, f.Took)
	require.Less(t, decisions, 30)
	last := f.Steps[len(f.Steps)-1]
	require.Equal(t, drain.End, last.Action)
	require.Equal(t, "the forecast for node node-1 makes no progress; last decision: evicting default/web", last.Why.String())
	require.Contains(t, drain.Explain(f), "no end in sight after 1m0s")
}

// TestForecastWithoutProgressAtOneTime: a forecast also ends when plans that change nothing alternate with plans
// that wait until the present time.
func TestForecastWithoutProgressAtOneTime(t *testing.T) {
	s := newShell(t)
	s.onePass()
	web := s.add("web")
	decisions := 0
	again := func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error) {
		why := decision.Why{Reason: drain.ReasonEvict, Object: web.Key}
		switch decisions++; {
		case decisions > 100:
			return drain.Plan{Done: true, Why: why}, nil
		case decisions%2 == 0:
			return drain.Plan{At: s.now, Why: why}, nil
		}
		return drain.Plan{Evict: []drain.Order{{Pod: web.Key, UID: "nobody", Why: why}}, Why: why}, nil
	}
	f, err := drain.PredictBy(again, s.observe(), s.policy, s.now)
	require.NoError(t, err)
	require.False(t, f.Done)
	require.Zero(t, f.Took)
	require.Less(t, decisions, 60)
}

// staleObservation returns the observation of a cache that has the current pods, and the node as it was before a
// turn was recorded.
func (s *shell) staleObservation() *drain.Observation {
	o := s.observe()
	o.Node = o.Node.Clone()
	o.Node.Drain = o.Node.Drain.Clone()
	o.Node.Drain.Turn = machine.DrainTurn{}
	o.Cached = true
	return o
}

func decide(t *testing.T, s *shell, o *drain.Observation) drain.Plan {
	t.Helper()
	plan, err := drain.Decide(o, s.policy, s.now)
	require.NoError(t, err)
	return plan
}

// TestTurnsNeedALiveRead: a cache may show that a pod is gone before it shows the record of the pod's turn. So the
// drain reads the node live before it evicts the next pod with volumes (P22).
// Invariants: P22
func TestTurnsNeedALiveRead(t *testing.T) {
	s, first, second := twoDatabases(t)
	s.detachAfterPodEnd = -1
	s.advance(first.ends.Add(time.Second))
	s.memory = drain.NewMemory(s.now.Add(-time.Hour)) // another process
	plan := decide(t, s, s.staleObservation())
	assert.True(t, plan.Look, "%s", plan.Why)
	assert.Empty(t, plan.Evict)
	assert.Equal(t, drain.ReasonLook, plan.Why.Reason)

	live := s.observe()
	live.Cached = true
	plan = decide(t, s, live)
	assert.Empty(t, plan.Evict, "the record is there already")
	assert.False(t, plan.Look, "no live read is needed when the cache shows the record")

	s.node = s.staleObservation().Node
	plan = decide(t, s, s.observe())
	require.Len(t, plan.Evict, 1, "if no turn is recorded on the live node, the next pod is evicted")
	assert.Equal(t, second.Key, plan.Evict[0].Pod)
}

// TestDrainsEndOnALiveNode: a drain whose pods are gone ends on a cached node only if no volume can be left.
// Invariants: P22
func TestDrainsEndOnALiveNode(t *testing.T) {
	s, first, second := twoDatabases(t)
	s.detachAfterPodEnd = -1
	s.advance(first.ends.Add(time.Second))
	s.pods = nil
	_ = second
	s.node = s.node.Clone()
	s.node.Drain.Emptied = s.now.Add(-time.Hour)      // the volumes have had their time
	s.memory = drain.NewMemory(s.now.Add(-time.Hour)) // another process: this one would record the turn
	require.True(t, decide(t, s, s.staleObservation()).Look)
	for what, o := range map[string]func(*drain.Observation){
		"attached elsewhere": func(o *drain.Observation) { o.Attachments[0].Node, o.Attachments[1].Node = there, there },
		"none":               func(o *drain.Observation) { o.Attachments = []*drain.Attachment{nil} },
		"the node says none": func(o *drain.Observation) { o.Attachments, o.Attached = nil, []string{} },
		"read live":          func(o *drain.Observation) { o.Cached = false },
		"the time is over":   func(o *drain.Observation) { o.Deadline = s.now },
	} {
		seen := s.staleObservation()
		o(seen)
		plan := decide(t, s, seen)
		assert.True(t, plan.Done && !plan.Look, "%s: %s", what, plan.Why)
	}
	for what, o := range map[string]func(*drain.Observation){
		"nobody knows":       func(o *drain.Observation) { o.Attachments = nil },
		"the node says some": func(o *drain.Observation) { o.Attachments, o.Attached = nil, []string{"vol-1"} },
	} {
		seen := s.staleObservation()
		o(seen)
		assert.True(t, decide(t, s, seen).Look, what)
	}
}

// TestDrainsEndOnALiveListOfPods: a pod that was bound just before the cordon may be missing in a cache. So a drain
// ends only on a live list of pods, except at its deadline and by force (P22).
// Invariants: P22
func TestDrainsEndOnALiveListOfPods(t *testing.T) {
	s, _, _ := twoDatabases(t)
	s.pods = nil
	seen := s.observe()
	seen.Attachments, seen.PodsCached = nil, true
	seen.Attached = []string{}
	plan := decide(t, s, seen)
	require.Equal(t, drain.ReasonLookPods, plan.Why.Reason)
	require.True(t, plan.Look && !plan.Done)
	seen.Deadline = s.now
	require.True(t, decide(t, s, seen).Done)
	seen.Deadline, seen.PodsCached = time.Time{}, false
	require.True(t, decide(t, s, seen).Done)
}

// TestUndoNeedsALiveRead: a drain that has just begun may be missing in a cache. Only a live read shows that there
// is no drain to undo (P23).
func TestUndoNeedsALiveRead(t *testing.T) {
	s, _, _ := twoDatabases(t)
	seen := s.staleObservation()
	seen.Node.Drain = nil
	plan, err := drain.Undo(seen, s.policy, s.now)
	require.NoError(t, err)
	require.True(t, plan.Look && !plan.Done, "%s", plan.Why)
	seen.Cached = false
	plan, err = drain.Undo(seen, s.policy, s.now)
	require.NoError(t, err)
	require.True(t, plan.Done && !plan.Look, "%s", plan.Why)
}

// anySkew returns how far a process's clock is ahead of the cluster's.
func anySkew(t *rapid.T) time.Duration {
	seconds := rapid.OneOf(rapid.SampledFrom([]int{0, -3600, -95, 31, 85, 95, 300, 3600}), rapid.IntRange(-3600, 3600))
	return time.Duration(seconds.Draw(t, "skew")) * time.Second
}

// TestP50GraceByAnyClock: no pod loses its grace because the clocks of the process and of the cluster differ by up
// to an hour. That holds whether the drain or another program evicted the pod, and if the next process has another
// clock.
// Invariants: P50
func TestP50GraceByAnyClock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.policy.Timeout = 6 * time.Hour // by the clock of the process that began the drain
		s.skew = anySkew(t)
		s.restart()
		for i := range rapid.IntRange(1, 5).Draw(t, "pods") {
			p := s.add(fmt.Sprintf("p-%d", i), func(p *pod) {
				p.Grace = time.Duration(rapid.IntRange(0, 600).Draw(t, "grace")) * time.Second
				p.lasts = time.Duration(rapid.IntRange(0, int(p.Grace/time.Second)).Draw(t, "lasts")) * time.Second
				p.stuck = rapid.IntRange(0, 4).Draw(t, "stuck") == 0
			})
			switch rapid.IntRange(0, 3).Draw(t, "evicted by others") {
			case 0:
				s.terminate(p, p.Grace)
			case 1:
				s.at(time.Duration(rapid.IntRange(1, 60).Draw(t, "after"))*time.Second, func() {
					if p.ends.IsZero() {
						s.terminate(p, p.Grace)
					}
				})
			}
		}
		restarts := rapid.IntRange(0, 3).Draw(t, "restarts")
		begun := s.now
		plan, _ := s.pass()
		for !plan.Done {
			until := s.now.Add(2 * time.Hour)
			if restarts > 0 {
				until = s.now.Add(time.Duration(rapid.IntRange(1, 700).Draw(t, "lives")) * time.Second)
			}
			if plan = s.run(until); !plan.Done && restarts > 0 {
				restarts--
				s.skew = anySkew(t)
				s.restart()
			}
			require.Less(t, s.now.Sub(begun), 4*time.Hour, "the drain does not end: %s", plan.Why)
		}
		for _, p := range s.pods {
			require.False(t, s.now.Before(p.ends), "%s is there, has %s of its grace left, and the drain is over: %s",
				p.Name, p.ends.Sub(s.now), plan.Why)
		}
	})
}

// TestP50StuckPodsEndByAnyClock: each new process that finds a stuck pod past its grace waits for it once more, and
// whatever the clocks, at most an hour longer.
// Invariants: P50
func TestP50StuckPodsEndByAnyClock(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, -time.Minute, 0, time.Minute, time.Hour} {
		s := newShell(t)
		s.skew = skew
		s.restart()
		s.add("stuck", func(p *pod) { p.stuck = true })
		begun := s.now
		plan := s.run(s.now.Add(2 * time.Hour))
		require.True(t, plan.Done)
		require.Equal(t, drain.ReasonOverdue, plan.Blocked[0].Why.Reason)
		require.InDelta(t, (time.Minute + max(-skew, 0)).Seconds(), s.now.Sub(begun).Seconds(), 2, "clock %s ahead", skew)
	}
}

// addReturningPods adds the pods of an app. Each of them comes back after its eviction.
func addReturningPods(t *rapid.T, s *shell, app string, replicas int, tolerates bool) {
	owner := &object.Owner{Kind: rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet"}).Draw(t, "kind"), Name: app, UID: "uid-" + app}
	if rapid.IntRange(0, 3).Draw(t, "bare") == 0 {
		owner = &object.Owner{Kind: owner.Kind} // an owner without a UID counts as none
	}
	grace, volumes := rapid.IntRange(0, 60).Draw(t, "grace"), rapid.IntRange(0, 1).Draw(t, "volumes")
	for i := range replicas {
		s.add(fmt.Sprintf("%s-%d", app, i), func(p *pod) {
			p.Labels["app"], p.Namespace, p.Owner = app, app, owner
			p.Grace, p.ToleratesCordon, p.returns = time.Duration(grace)*time.Second, tolerates, true
			for range volumes {
				s.volume("vol-" + p.Name)(p)
			}
		})
	}
	if rapid.IntRange(0, 2).Draw(t, "budget") == 0 {
		s.protect(app, int32(replicas-1), 0, func(b *budget) { b.Namespace = app })
	}
}

// TestP49PodsThatComeBack: a drain ends although its pods come back to the node each time. The evictions of one
// controller's pods are limited, also over restarts and if the clocks of process and cluster differ.
// Invariants: P49
func TestP49PodsThatComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.skew = anySkew(t)
		s.restart()
		s.detachAfterPodEnd = time.Duration(rapid.IntRange(-1, 60).Draw(t, "detach")) * time.Second
		replicas, tolerates := map[string]int{}, map[string]bool{}
		for a := range rapid.IntRange(1, 3).Draw(t, "apps") {
			app := fmt.Sprintf("app-%d", a)
			replicas[app], tolerates[app] = rapid.IntRange(1, 3).Draw(t, "replicas"), rapid.Bool().Draw(t, "tolerates")
			addReturningPods(t, s, app, replicas[app], tolerates[app])
		}
		all := map[string]*pod{}
		s.observed = func(*drain.Observation, *drain.Plan) {
			for _, p := range s.pods {
				all[p.UID] = p
			}
		}
		restarts := rapid.IntRange(0, 5).Draw(t, "restarts")
		begun, plan := s.now, drain.Plan{}
		for !plan.Done {
			until := s.now.Add(time.Hour)
			if restarts > 0 {
				until = s.now.Add(time.Duration(rapid.IntRange(1, 120).Draw(t, "lives")) * time.Second)
			}
			if plan = s.run(until); !plan.Done && restarts > 0 {
				restarts--
				s.restart()
			}
			require.Less(t, s.now.Sub(begun), time.Hour, "the drain does not end: %s %v", plan.Why, plan.Blocked)
		}
		evictions := map[string]int{}
		for _, c := range s.calls {
			if c.result == drain.Accepted {
				evictions[all[c.uid].Labels["app"]]++
			}
		}
		for app, n := range evictions {
			rounds := 1 + 3
			if tolerates[app] {
				rounds = 1 + 1
			}
			require.LessOrEqual(t, n, rounds*replicas[app], "too many evictions of pods of %s: %v", app, s.calls)
		}
		for _, p := range s.pods {
			require.True(t, !p.ends.IsZero() || len(plan.Blocked) > 0, "%s is left, and the last plan does not name a blocked pod", p.Name)
		}
	})
}

// TestP49ForceIsBounded: a forced drain ends although pods come back at once.
// Invariants: P49
func TestP49ForceIsBounded(t *testing.T) {
	for _, tolerates := range []bool{false, true} {
		s := newShell(t)
		for i := range 5 {
			s.add(fmt.Sprint("p-", i), func(p *pod) { p.ToleratesCordon, p.returns = tolerates, true })
		}
		s.forced = true
		plan, _ := s.pass()
		for range 1000 {
			s.advance(s.now.Add(time.Second))
			plan, _ = s.pass()
		}
		require.True(t, plan.Done)
		assert.LessOrEqual(t, len(s.calls), 5*61)
		if tolerates {
			assert.Len(t, s.calls, 5, "force leaves returned pods alone that tolerate the cordon")
		}
	}
}

// TestP49ManyControllers: a drain ends although new controllers keep creating pods that tolerate the cordon.
// Invariants: P49
func TestP49ManyControllers(t *testing.T) {
	s := newShell(t)
	n := 0
	var next func()
	next = func() {
		n++
		s.add(fmt.Sprint("job-", n), func(p *pod) {
			p.CreatedAt, p.Grace, p.ToleratesCordon, p.Owner = s.now.Truncate(time.Second), 8*time.Second, true, &object.Owner{Kind: "Job", UID: fmt.Sprint("job-", n)}
		})
		s.at(5*time.Second, next)
	}
	next()
	s.onePass()
	s.at(0, next)
	plan := s.run(s.now.Add(time.Hour))
	require.True(t, plan.Done, "%s", plan.Why)
	assert.Less(t, s.now.Sub(epoch), 10*time.Minute)
	assert.LessOrEqual(t, len(s.node.Drain.Returns), 32)
}

// TestTolerantPodsAreEvicted: a pod that was created before the drain began and tolerates the cordon is evicted. It
// does not count as one that came back, even if its eviction is refused for long and the process's clock is wrong.
func TestTolerantPodsAreEvicted(t *testing.T) {
	for _, skew := range []time.Duration{-time.Hour, 0, time.Hour} {
		s := newShell(t)
		s.skew = skew
		s.restart()
		s.protect("web", 1, 0)
		p := s.add("web", func(p *pod) { p.ToleratesCordon = true })
		require.False(t, s.run(s.now.Add(10*time.Minute)).Done)
		s.restart()
		s.budgets[0].elsewhere++
		s.compute(s.budgets[0])
		require.True(t, s.run(s.now.Add(2*time.Minute)).Done)
		assert.False(t, p.ends.IsZero())
	}
}
