package drain_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/object"
)

// comingBack adds the pods of an app, each of which comes back when it was told to go.
func comingBack(t *rapid.T, s *shell, app string, replicas int, tolerates bool) {
	owner := &object.Owner{Kind: rapid.SampledFrom([]string{"ReplicaSet", "StatefulSet"}).Draw(t, "kind"), Name: app, UID: "uid-" + app}
	if rapid.IntRange(0, 3).Draw(t, "bare") == 0 {
		owner = &object.Owner{Kind: owner.Kind} // as good as none
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

// P49: a drain ends although pods come back to its node each time: the evictions of the pods of one
// controller are bounded, also over restarts, and by a clock that is not the cluster's.
// Invariants: P49
func TestP49PodsThatComeBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		s.skew = anySkew(t)
		s.restart()
		s.detach = time.Duration(rapid.IntRange(-1, 60).Draw(t, "detach")) * time.Second
		replicas, tolerates := map[string]int{}, map[string]bool{}
		for a := range rapid.IntRange(1, 3).Draw(t, "apps") {
			app := fmt.Sprintf("app-%d", a)
			replicas[app], tolerates[app] = rapid.IntRange(1, 3).Draw(t, "replicas"), rapid.Bool().Draw(t, "tolerates")
			comingBack(t, s, app, replicas[app], tolerates[app])
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
			require.Less(t, s.now.Sub(begun), time.Hour, "the drain takes no end: %s %v", plan.Why, plan.Blocked)
		}
		told := map[string]int{}
		for _, c := range s.calls {
			if c.result == drain.Accepted {
				told[all[c.uid].Labels["app"]]++
			}
		}
		for app, n := range told {
			rounds := 1 + 3
			if tolerates[app] {
				rounds = 1 + 1
			}
			require.LessOrEqual(t, n, rounds*replicas[app], "pods of %s were told to go: %v", app, s.calls)
		}
		for _, p := range s.pods {
			require.True(t, !p.ends.IsZero() || len(plan.Blocked) > 0, "%s is there, and the last plan does not say it", p.Name)
		}
	})
}

// P49: force ends although pods come back at once.
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
			assert.Len(t, s.calls, 5, "force leaves those that come back alone")
		}
	}
}

// Many controllers that come and go, each with a pod that tolerates the cordon, hold no drain up.
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
	s.look()
	s.at(0, next)
	plan := s.run(s.now.Add(time.Hour))
	require.True(t, plan.Done, "%s", plan.Why)
	assert.Less(t, s.now.Sub(epoch), 10*time.Minute)
	assert.LessOrEqual(t, len(s.node.Drain.Returns), 32)
}

// A pod that was made before the drain began is no later one, although it tolerates the cordon, its
// eviction is refused for long, and the clock of the process is far off.
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
