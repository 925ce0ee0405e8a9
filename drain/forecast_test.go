package drain_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/internal/testkit"
	"github.com/millwright-go/millwright/object"
)

// forecast returns the forecast of a drain of the node, also as text.
func forecast(t *testing.T, s *shell) (*drain.Forecast, string) {
	t.Helper()
	f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	require.True(t, f.Done)
	return f, drain.Explain(f)
}

// TestForecastOfPodsThatComeBack: a forecast assumes that pods which tolerate the cordon come back (P49). It says
// how often they are evicted, and that they stay in the end, with their volumes.
// Invariants: P49
func TestForecastOfPodsThatComeBack(t *testing.T) {
	for _, kind := range []string{"ReplicaSet", "StatefulSet"} {
		s := newShell(t)
		s.add("op", s.volume("vol-1"), func(p *pod) { p.ToleratesCordon, p.returns, p.Owner.Kind = true, true, kind })
		f, text := forecast(t, s)
		plan := s.run(s.now.Add(time.Hour))
		require.True(t, plan.Done)
		assert.InDelta(t, s.now.Sub(epoch).Seconds(), f.Took.Seconds(), 2)
		assert.Contains(t, text, "1 pod, 2 evicted, 2 left alone;", "the pod, and its volume")
		assert.Contains(t, text, "was scheduled despite the cordon")
		assert.Contains(t, text, "volume vol-1 stays attached here: default/op uses it and is left alone")
		assert.Empty(t, f.Left)
		assert.Equal(t, []string{"vol-1"}, s.attachmentsHere())
		assert.Equal(t, drain.ReasonCameBack, plan.Blocked[0].Why.Reason)
	}
}

// TestForecastOfUnusedVolumes: a forecast waits for attached volumes that no pod uses (P51), also if only the node's
// status names them.
// Invariants: P51
func TestForecastOfUnusedVolumes(t *testing.T) {
	s := newShell(t)
	s.volumes = append(s.volumes, &drain.Volume{Name: "vol-x", Claim: object.Key{Namespace: "default", Name: "gone"}, Handle: "vol-x"})
	s.attachments = append(s.attachments, &drain.Attachment{Name: "x", Volume: "vol-x", Node: here, Attached: true})
	f, text := forecast(t, s)
	assert.Equal(t, 10*time.Second, f.Took)
	assert.Contains(t, text, "volume vol-x is still attached here, and no pod uses it; waiting at most 2m0s")
	s.noAttachments, s.attached = true, []string{"kubernetes.io/csi/disk.example^vol-x"}
	f, text = forecast(t, s)
	assert.Equal(t, 10*time.Second, f.Took)
	assert.Contains(t, text, "vol-x is still attached here")
	s.vmStays = true
	f, _ = forecast(t, s)
	assert.Zero(t, f.Took, "a drain waits for no volume if the VM stays")
}

// TestP57ForecastOfFirstEvictions: a forecast answers evictions as the API server does. So it evicts the same pods
// at the beginning as a drain.
// Invariants: P57
func TestP57ForecastOfFirstEvictions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		for _, b := range s.budgets {
			b.Generation += int64(rapid.IntRange(0, 5).Draw(t, "stale") / 5)
		}
		f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
		require.NoError(t, err)
		var foretold, evicted []string
		for i := range f.Steps {
			if f.Steps[i].At == 0 && f.Steps[i].Action == drain.Evict {
				foretold = append(foretold, f.Steps[i].Pod.Name)
			}
		}
		s.pass()
		for _, c := range s.calls {
			if c.kind == drain.Evicted && c.result == drain.Accepted {
				evicted = append(evicted, c.name)
			}
		}
		require.Equal(t, evicted, foretold)
	})
}

// TestP57ForecastOfUnhealthyPods has a case for each rule of the eviction API about pods that are pending or not
// ready.
// Invariants: P57
func TestP57ForecastOfUnhealthyPods(t *testing.T) {
	pending := func(p *drain.Pod) { p.Pending, p.NotReady = true, true }
	notReady := func(p *drain.Pod) { p.NotReady = true }
	ready := func(*drain.Pod) {}
	for name, c := range map[string]struct {
		pod                       func(*drain.Pod)
		always, stale             bool
		current, desired, allowed int32
		disrupted                 int32
		others                    int
		want                      string // part of the forecast; empty: the pod is evicted at once
	}{
		"ready, room":                        {pod: ready, current: 2, desired: 1, allowed: 1},
		"ready, no room":                     {pod: ready, current: 1, desired: 1, want: "does not allow the eviction"},
		"ready, no room, AlwaysAllow":        {pod: ready, always: true, current: 1, desired: 1, want: "does not allow the eviction"},
		"ready, stale":                       {pod: ready, stale: true, current: 2, desired: 1, allowed: 1, want: "out of date"},
		"ready, negative":                    {pod: ready, current: 2, desired: 1, allowed: -1, want: "disruptions allowed is negative"},
		"ready, too many unconfirmed":        {pod: ready, current: 2, desired: 1, allowed: 1, disrupted: 2001, want: "too many evictions"},
		"pending":                            {pod: pending, current: 1, desired: 1},
		"pending, stale":                     {pod: pending, stale: true, current: 0, desired: 1},
		"pending, several budgets":           {pod: pending, current: 0, desired: 1, others: 1},
		"not ready, AlwaysAllow":             {pod: notReady, always: true, current: 0, desired: 1},
		"not ready, AlwaysAllow, stale":      {pod: notReady, always: true, stale: true, current: 0, desired: 1},
		"not ready, several budgets":         {pod: notReady, always: true, current: 0, desired: 1, others: 1, want: "2 budgets match"},
		"not ready, application healthy":     {pod: notReady, current: 2, desired: 2},
		"not ready, application disrupted":   {pod: notReady, current: 1, desired: 2, want: "AlwaysAllow would allow it"},
		"not ready, none is wanted, no room": {pod: notReady, current: 0, desired: 0, want: "AlwaysAllow would allow it"},
		"not ready, none is wanted, room":    {pod: notReady, current: 1, desired: 0, allowed: 1},
	} {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			p := s.add("web")
			c.pod(&p.Pod)
			o := s.observe()
			o.Budgets = nil
			for i := range 1 + c.others {
				b := &drain.Budget{
					Key: object.Key{Namespace: "default", Name: fmt.Sprint("b-", i)}, Selector: &object.Selector{}, AlwaysAllow: c.always, Generation: 1,
					ObservedGeneration: 1, DisruptionsAllowed: c.allowed, CurrentHealthy: c.current, DesiredHealthy: c.desired, ExpectedPods: 3, Disrupted: c.disrupted,
				}
				if c.stale {
					b.ObservedGeneration = 0
				}
				o.Budgets = append(o.Budgets, b)
			}
			f, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
			require.NoError(t, err)
			text := drain.Explain(f)
			if c.want == "" {
				assert.Equal(t, 30*time.Second, f.Took, text)
				assert.Empty(t, f.Budgets(), text)
				return
			}
			assert.Greater(t, f.Took, 2*time.Hour-time.Second, text)
			assert.Contains(t, text, c.want)
		})
	}
}

// TestForecastCountsUnhealthyPodsOnce: evicting a pod that is not ready does not reduce its budget's allowance, and
// its replacement counts as healthy. The ready pod waits for the replacement, and not longer.
func TestForecastCountsUnhealthyPodsOnce(t *testing.T) {
	s := newShell(t)
	s.add("bad", func(p *pod) { p.NotReady, p.Labels["app"] = true, "web" })
	s.add("good", func(p *pod) { p.Labels["app"] = "web" })
	s.protect("web", 2, 1, func(b *budget) { b.ExpectedPods = 3 })
	f, text := forecast(t, s)
	assert.Equal(t, 2*time.Minute+10*time.Second, f.Took, text)
	assert.Contains(t, text, "+0s     evict   default/bad ")
	assert.Contains(t, text, "+1m40s  evict   default/good ", "30 s of grace, a minute to heal, and the next slot")
}

// TestForecastOfPodsThatComeBackUnderABudget: a pod that came back is evicted while it is pending, when no budget is
// checked. The budget does not count it twice.
func TestForecastOfPodsThatComeBackUnderABudget(t *testing.T) {
	s := newShell(t)
	s.add("op", func(p *pod) { p.ToleratesCordon = true })
	s.add("op-2", func(p *pod) { p.Labels["app"] = "op" })
	s.protect("op", 1, 0)
	f, text := forecast(t, s)
	assert.Contains(t, text, "+1s     evict   default/op ", "the pod that came back is evicted without its budget")
	assert.Less(t, f.Took, 3*time.Minute, text)
	assert.Empty(t, f.Left)
}

// TestForecastOfOneUID: pods with the same UID count as one pod. A caller that joins lists may pass a pod twice.
func TestForecastOfOneUID(t *testing.T) {
	s := newShell(t)
	s.add("web")
	o := s.observe()
	o.Pods = append(o.Pods, o.Pods[0], &drain.Pod{Key: object.Key{Namespace: "default", Name: "z"}, UID: o.Pods[0].UID, Grace: time.Hour})
	f, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	assert.Equal(t, 1, strings.Count(drain.Explain(f), "evict "), drain.Explain(f))
	assert.Equal(t, 30*time.Second, f.Took)
	assert.Equal(t, 1, f.Pods)
}

// TestForecastOfADeletionInTheFarFuture: a drain waits for a pod with an absurdly long grace until its deadline. The
// forecast does not print the absurd duration.
func TestForecastOfADeletionInTheFarFuture(t *testing.T) {
	s := newShell(t)
	p := s.add("far")
	p.GraceEnds = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	f, text := forecast(t, s)
	assert.InDelta(t, 2*time.Hour, f.Took, float64(time.Second))
	assert.Contains(t, text, "default/far is terminating; waiting at most 2h0m0s")
	assert.Contains(t, text, "\nNot gone:\n  default/far is still terminating, and the drain deadline has passed\n")
	s.policy.Timeout = object.Off
	f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
	require.NoError(t, err)
	assert.NotContains(t, drain.Explain(f), "2562047h")
}

// TestNegativeGrace: a negative grace counts as one second, as in the API server.
func TestNegativeGrace(t *testing.T) {
	s := newShell(t)
	s.add("web", func(p *pod) { p.Grace = -time.Hour })
	f, _ := forecast(t, s)
	assert.Equal(t, time.Second, f.Took)
}

var forecasts = map[string]func(*shell){
	"quiet": func(s *shell) { s.add("web"); s.add("api", func(p *pod) { p.Grace = 2 * time.Minute }) },
	"empty": func(*shell) {},
	"mixed": func(s *shell) {
		s.policy.Timeout = 30 * time.Minute
		s.policy.Rules = []drain.Rule{{Selector: labelled("log"), Behaviour: drain.Skip}}
		s.protect("web", 2, 0)
		for _, n := range []string{"web-1", "web-2", "web-3"} {
			s.add(n, func(p *pod) { p.Labels["app"] = "web" })
		}
		s.protect("mq", 1, 0)
		s.add("mq")
		s.protect("api", 0, 0)
		s.protect("api", 0, 0, func(b *budget) { b.Name = "api-too" })
		s.add("api")
		s.add("db-1", s.volume("vol-1"), func(p *pod) { p.Priority = 10 })
		s.add("db-2", s.volume("vol-2"))
		s.add("log")
		s.add("kube-proxy", func(p *pod) { p.Owner.Kind = drain.DaemonSet })
		s.add("etcd", func(p *pod) { p.Mirror = true })
		s.add("job", func(p *pod) { p.Finished = true })
		s.add("batch", func(p *pod) { p.Annotations = map[string]string{"karpenter.sh/do-not-disrupt": "true"} })
		gone := s.add("gone")
		s.terminate(gone, gone.Grace)
	},
	"forced": func(s *shell) {
		s.forced = true
		s.protect("mq", 1, 0)
		s.add("mq")
		s.add("web")
	},
	"endless": func(s *shell) {
		s.policy.Timeout = object.Off
		s.protect("mq", 1, 0)
		s.add("mq")
	},
}

func TestExplain(t *testing.T) {
	for name, fill := range forecasts {
		t.Run(name, func(t *testing.T) {
			s := newShell(t)
			fill(s)
			f, err := drain.Predict(s.observe(), s.policy, drain.Assumptions{}, s.now)
			require.NoError(t, err)
			testkit.Golden(t, filepath.Join("testdata", "explain", name+".txt"), drain.Explain(f))
		})
	}
}

// TestForecastOfAnything: a forecast of any node ends, names each pod, and does not change its arguments.
func TestForecastOfAnything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.resolved = rapid.Bool().Draw(t, "resolved")
		s.forced = rapid.IntRange(0, 3).Draw(t, "forced") == 0
		for _, p := range s.pods {
			if rapid.IntRange(0, 5).Draw(t, "going") == 0 && !p.Finished {
				s.terminate(p, p.Grace)
			}
		}
		o, same := s.observe(), s.observe()
		f, err := drain.Predict(o, s.policy, drain.Assumptions{}, s.now)
		require.NoError(t, err)
		require.Equal(t, same, o)
		require.True(t, f.Done)
		text := drain.Explain(f)
		require.NotContains(t, text, "{")
		for _, p := range s.pods {
			require.True(t, strings.Contains(text, p.Key.String()), "%s is not named in\n%s", p.Key, text)
		}
		for i := range f.Steps {
			require.True(t, i == 0 || f.Steps[i].At >= f.Steps[i-1].At, "steps are ordered by time")
		}
	})
}
