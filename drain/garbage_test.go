package drain_test

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// anyTime returns a time that storage may hold.
func anyTime(t *rapid.T, label string) time.Time {
	switch rapid.IntRange(0, 4).Draw(t, label) {
	case 0:
		return time.Time{}
	case 1:
		return time.Unix(math.MaxInt32*1000, 0).UTC()
	case 2:
		return time.Unix(-62135596800, 1).UTC()
	}
	return epoch.Add(time.Duration(rapid.IntRange(-8000, 8000).Draw(t, "seconds")) * time.Second).Truncate(time.Second)
}

func anyDuration(t *rapid.T, label string) time.Duration {
	return rapid.SampledFrom([]time.Duration{0, -1, time.Second, time.Hour, math.MaxInt64, math.MinInt64}).Draw(t, label)
}

var words = rapid.SampledFrom([]string{"", "a", "b", "{x}", "x/y^z", "ok"})

func word(t *rapid.T) string { return words.Draw(t, "word") }

func anyNode(t *rapid.T) *machine.Node {
	n := &machine.Node{Meta: object.Meta{Key: object.Key{Name: word(t)}}, Unschedulable: rapid.Bool().Draw(t, "cordoned")}
	n.Conditions = []object.Condition{{Type: machine.NodeReady, Status: object.ConditionStatus(word(t)), Since: anyTime(t, "since")}}
	if rapid.Bool().Draw(t, "record") {
		n.Drain = &machine.DrainRecord{
			Since: anyTime(t, "drain"), Cordoned: anyTime(t, "cordoned at"), Forced: anyTime(t, "forced at"), Fenced: rapid.Bool().Draw(t, "fenced"),
			Turn: machine.DrainTurn{
				UID: word(t), Since: anyTime(t, "turn"), Grace: anyDuration(t, "turn's grace"),
				Volumes: rapid.SliceOfN(words, 0, 3).Draw(t, "turn's volumes"), Detached: anyTime(t, "detached"),
			},
		}
	}
	return n
}

func anyGarbage(t *rapid.T) *drain.Observation {
	o := &drain.Observation{
		Complete: rapid.IntRange(0, 9).Draw(t, "complete") > 0, Forced: rapid.IntRange(0, 4).Draw(t, "forced") == 0,
		Asked: anyTime(t, "asked"), Deadline: anyTime(t, "deadline"), WriteFailed: rapid.IntRange(0, 9).Draw(t, "write failed") == 0, PodsCached: rapid.Bool().Draw(t, "pods cached"),
	}
	if rapid.IntRange(0, 9).Draw(t, "node") > 0 {
		o.Node = anyNode(t)
	}
	for range rapid.IntRange(0, 4).Draw(t, "pods") {
		o.Pods = append(o.Pods, garbagePod(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "budgets") {
		o.Budgets = append(o.Budgets, garbageBudget(t))
	}
	for range rapid.IntRange(0, 2).Draw(t, "volumes") {
		o.Volumes = append(o.Volumes, &drain.Volume{Name: word(t), Claim: object.Key{Name: word(t)}, Handle: word(t)}, nil)
	}
	for range rapid.IntRange(0, 2).Draw(t, "attachments") {
		o.Attachments = append(o.Attachments, &drain.Attachment{Name: word(t), Volume: word(t), Node: word(t), DeletedAt: anyTime(t, "deleted")}, nil)
	}
	o.Attached = rapid.SliceOfN(words, 0, 2).Draw(t, "attached")
	if rapid.Bool().Draw(t, "memory") {
		o.Memory = drain.NewMemory(anyTime(t, "from"))
		o.Memory.Begin(drain.Order{Turn: &machine.DrainTurn{
			UID: word(t), Since: anyTime(t, "told"), Grace: anyDuration(t, "told's grace"), Volumes: rapid.SliceOfN(words, 0, 2).Draw(t, "told's volumes"),
		}})
		for range rapid.IntRange(0, 3).Draw(t, "answers") {
			o.Memory.Note(word(t), drain.Answer{
				Kind:   rapid.SampledFrom([]drain.Kind{"", drain.Evicted, drain.Deleted, drain.Killed}).Draw(t, "kind"),
				Result: rapid.SampledFrom([]drain.Result{"", "?", drain.Accepted, drain.Refused, drain.Failed, drain.NotFound}).Draw(t, "result"),
				At:     anyTime(t, "answered"), RetryAfter: anyDuration(t, "retry after"), Message: word(t),
			})
		}
	}
	return o
}

func garbagePod(t *rapid.T) *drain.Pod {
	if rapid.IntRange(0, 9).Draw(t, "nil") == 0 {
		return nil
	}
	p := &drain.Pod{
		Key: object.Key{Name: word(t)}, UID: word(t), Finished: rapid.Bool().Draw(t, "finished"), CreatedAt: anyTime(t, "created"),
		Grace: anyDuration(t, "grace"), GraceEnds: anyTime(t, "grace ends"), Claims: rapid.SliceOfN(words, 0, 2).Draw(t, "claims"),
		Labels: map[string]string{"app": word(t)}, Annotations: map[string]string{"karpenter.sh/do-not-disrupt": rapid.SampledFrom([]string{"", "true", "?", "4h", "-9223372036854775808ns", "2562047h"}).Draw(t, "mark")},
	}
	if rapid.IntRange(0, 3).Draw(t, "resolved") == 0 {
		p.Budgets = []*drain.Budget{nil, garbageBudget(t)}
	}
	return p
}

func garbageBudget(t *rapid.T) *drain.Budget {
	if rapid.IntRange(0, 9).Draw(t, "nil") == 0 {
		return nil
	}
	n := rapid.SampledFrom([]int32{0, 1, -1, math.MaxInt32, math.MinInt32})
	return &drain.Budget{
		Selector:           rapid.SampledFrom([]*object.Selector{nil, {}, {Labels: map[string]string{"app": "a"}}}).Draw(t, "selector"),
		DisruptionsAllowed: n.Draw(t, "allowed"), CurrentHealthy: n.Draw(t, "healthy"), ExpectedPods: n.Draw(t, "expected"), Disrupted: n.Draw(t, "disrupted"),
	}
}

func anyPolicy(t *rapid.T) *drain.Policy {
	p := drain.DefaultPolicy()
	p.Timeout = rapid.SampledFrom([]time.Duration{object.Off, 0, time.Minute, 2 * time.Minute}).Draw(t, "timeout")
	p.MaxEvictRetries = rapid.SampledFrom([]int{0, 1, 5, math.MaxInt}).Draw(t, "limit")
	p.OutOfService = rapid.Bool().Draw(t, "out of service")
	p.AtTimeout = rapid.SampledFrom([]drain.Treatment{drain.DeletePods, drain.KeepWaiting, drain.LeavePods}).Draw(t, "treatment")
	p.Rules = rapid.SampledFrom([][]drain.Rule{
		nil, {{Selector: labelled("a"), Behaviour: drain.Skip}}, {{Selector: labelled("a"), Behaviour: drain.WaitCompleted}},
		{{Selector: labelled("a"), Behaviour: drain.InOrder, Order: math.MinInt32}, {Selector: labelled("b"), Behaviour: drain.InOrder, Order: math.MaxInt32}},
	}).Draw(t, "rules")
	return p
}

// TestP11AnyObservationGetsAPlan: every observation, however wrong, gets a well-formed plan.
// Invariants: P11 P27
func TestP11AnyObservationGetsAPlan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyGarbage(t), anyPolicy(t)
		for _, decide := range []func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error){drain.Decide, drain.Detach, drain.Undo} {
			plan, err := decide(o, p, epoch)
			require.NoError(t, err)
			require.NotEmpty(t, plan.Why.Reason)
			require.NotContains(t, fmt.Sprint(plan.Why.String()), "{name}")
			require.True(t, plan.At.IsZero() || plan.At.After(epoch), "the plan waits for a time that has passed: %s", plan.Why)
			again, err := decide(o, p, epoch)
			require.NoError(t, err)
			require.Equal(t, plan, again)
			for _, order := range append(plan.Evict, plan.Delete...) {
				require.NotEmpty(t, order.UID, "P17: an order names its pod by UID")
			}
			if !o.Complete && !o.Forced && plan.Done {
				known := !o.Asked.IsZero() || o.Node != nil // the time to detach has passed, or there is nothing to undo
				require.True(t, known, "a drain is done although its list of pods is incomplete")
			}
		}
		f, err := drain.Predict(o, p, drain.Assumptions{Limit: time.Hour}, epoch)
		require.NoError(t, err)
		require.NotEmpty(t, drain.Explain(f))
		for _, s := range f.Steps {
			require.NotEqual(t, drain.ReasonNoProgress, s.Why.Reason, drain.Explain(f))
		}
	})
}

// TestP21DrainsOfAnyNodeEnd: whatever is stored about a drain, its writes end (P28), and so does its waiting,
// unless the policy is to keep waiting (P21).
// Invariants: P21
func TestP21DrainsOfAnyNodeEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := newShell(t)
		anyCluster(t, s)
		s.policy = anyPolicy(t)
		s.policy.Timeout = time.Minute
		s.node = anyNode(t)
		s.node.Name = here
		s.forced = rapid.Bool().Draw(t, "forced")
		plan := s.run(s.now.Add(30 * time.Minute))
		if s.policy.AtTimeout == drain.KeepWaiting && !plan.Done {
			require.NotEmpty(t, plan.Blocked)
			return
		}
		require.True(t, plan.Done, "%s", plan.Why)
	})
}

func TestCallersMistakesAreErrors(t *testing.T) {
	for _, decide := range []func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error){drain.Decide, drain.Detach, drain.Undo} {
		_, err := decide(nil, drain.DefaultPolicy(), epoch)
		assert.ErrorIs(t, err, decision.ErrNoObservation)
		_, err = decide(&drain.Observation{}, &drain.Policy{Timeout: 1}, epoch)
		assert.ErrorIs(t, err, object.ErrInvalid)
	}
	_, err := drain.Predict(nil, nil, drain.Assumptions{}, epoch)
	assert.ErrorIs(t, err, decision.ErrNoObservation)
}

// TestDefaultPolicy: without a policy, and with the zero one, each decision is as with the default one.
func TestDefaultPolicy(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyGarbage(t)
		for _, decide := range []func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error){drain.Decide, drain.Detach, drain.Undo} {
			want, err := decide(o, drain.DefaultPolicy(), epoch)
			require.NoError(t, err)
			for _, p := range []*drain.Policy{nil, {}} {
				plan, err := decide(o, p, epoch)
				require.NoError(t, err)
				require.Equal(t, want, plan)
			}
		}
	})
}

// form reads bytes as observations of drains. The fuzz corpus depends on the order of the words.
var form = fuzzing.Form{Now: epoch.Truncate(time.Second), Words: []string{
	"", here, there, "node-uid", "default", "db-1-1", "db-2-2", "db-1", "db-2", "web", "a", "b",
	"vol-1", "vol-2", "claim-vol-1", "claim-vol-2", "att-vol-1", "att-vol-2", "zone-a/vol-1", "zone-a/vol-2",
	"ReplicaSet", drain.DaemonSet, "app", "late", "true", "4h", "karpenter.sh/do-not-disrupt", "millwright-go/do-not-disrupt",
	string(drain.Evicted), string(drain.Deleted), string(drain.Killed),
	string(drain.Accepted), string(drain.Refused), string(drain.NotFound), string(drain.NoEvictionAPI), string(drain.Failed),
	machine.NodeReady, machine.NodeReadonlyFilesystem, string(object.True), string(object.False), string(object.Unknown),
	"node.kubernetes.io/out-of-service", "nodeshutdown", string(object.NoExecute),
	string(drain.Skip), string(drain.WaitCompleted), string(drain.InOrder),
	string(drain.DeletePods), string(drain.KeepWaiting), string(drain.LeavePods),
}}

type fuzzed = fuzzing.Decision[drain.Observation, *drain.Policy, drain.Plan]

func newFuzzed(decide func(*drain.Observation, *drain.Policy, time.Time) (drain.Plan, error)) *fuzzed {
	return &fuzzed{Form: form, Policy: drain.DefaultPolicy, Decide: decide, Check: checkPlan}
}

// checkPlan checks the form of a plan for any observation.
func checkPlan(t testing.TB, o *drain.Observation, plan drain.Plan) {
	require.NotEmpty(t, plan.Why.Reason)
	require.NotEmpty(t, plan.Why.String())
	for _, b := range plan.Blocked {
		require.NotEmpty(t, b.Why.String())
	}
	require.True(t, plan.At.IsZero() || plan.At.After(form.Now), "the plan waits for a time that has passed: %s", plan.Why)
	for _, order := range append(plan.Evict, plan.Delete...) {
		require.NotEmpty(t, order.UID, "P17: an order names its pod by UID")
	}
}

// observationsByReason returns, for each reason, the first observation in the stories that leads to it.
func observationsByReason(f *testing.F, d *fuzzed) [][]byte {
	seeds := map[decision.Reason][]byte{}
	for _, stories := range allStories() {
		for _, name := range slices.Sorted(maps.Keys(stories)) {
			s := &story{shell: newShell(f)}
			s.now = epoch.Truncate(time.Second)
			s.begun, s.asked = s.now, s.now
			s.memory = drain.NewMemory(s.now)
			s.shell.onPlan = s.step
			s.observed = func(o *drain.Observation, plan *drain.Plan) {
				if seeds[plan.Why.Reason] == nil {
					seeds[plan.Why.Reason] = d.Seed(o, s.policy, s.now)
				}
			}
			stories[name](s)
		}
	}
	var list [][]byte
	for _, reason := range slices.SortedFunc(maps.Keys(seeds), func(a, b decision.Reason) int { return strings.Compare(a.String(), b.String()) }) {
		list = append(list, seeds[reason])
	}
	return list
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := newFuzzed(drain.Decide)
	d.Fuzz(f, observationsByReason(f, d)...)
}

// Invariants: P11 P27
func FuzzDetach(f *testing.F) {
	d := newFuzzed(drain.Detach)
	d.Fuzz(f, observationsByReason(f, d)...)
}

// Invariants: P11 P27
func FuzzUndo(f *testing.F) {
	d := newFuzzed(drain.Undo)
	d.Fuzz(f, observationsByReason(f, d)...)
}

// Invariants: P11 P27
func FuzzPredict(f *testing.F) {
	d := &fuzzing.Decision[drain.Observation, *drain.Policy, *drain.Forecast]{
		Form: form, Policy: drain.DefaultPolicy,
		Decide: func(o *drain.Observation, p *drain.Policy, now time.Time) (*drain.Forecast, error) {
			return drain.Predict(o, p, drain.Assumptions{Limit: time.Hour}, now)
		},
		Check: func(t testing.TB, _ *drain.Observation, f *drain.Forecast) {
			require.NotEmpty(t, drain.Explain(f))
		},
	}
	d.Fuzz(f, observationsByReason(f, newFuzzed(drain.Decide))...)
}
