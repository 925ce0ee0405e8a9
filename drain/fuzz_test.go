package drain_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

// form reads bytes as observations of drains. The corpus depends on the order of the words.
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
	return &fuzzed{Form: form, Policy: drain.DefaultPolicy, Decide: decide, Check: proper}
}

// proper checks the form of a plan for any observation.
func proper(t testing.TB, o *drain.Observation, plan drain.Plan) {
	require.NotEmpty(t, plan.Why.Reason)
	require.NotEmpty(t, plan.Why.String())
	for _, b := range plan.Blocked {
		require.NotEmpty(t, b.Why.String())
	}
	require.True(t, plan.At.IsZero() || plan.At.After(form.Now), "a wait that is over: %s", plan.Why)
	for _, order := range append(plan.Evict, plan.Delete...) {
		require.NotEmpty(t, order.UID, "P17: an empty UID means nobody")
	}
}

// told returns the first observation of the stories for each reason.
func told(f *testing.F, d *fuzzed) [][]byte {
	seeds := map[decision.Reason][]byte{}
	for _, chapter := range chapters() {
		for _, name := range slices.Sorted(maps.Keys(chapter)) {
			s := &story{shell: newShell(f)}
			s.now = epoch.Truncate(time.Second)
			s.begun, s.asked = s.now, s.now
			s.memory = drain.NewMemory(s.now)
			s.shell.told = s.step
			s.observed = func(o *drain.Observation, plan *drain.Plan) {
				if seeds[plan.Why.Reason] == nil {
					seeds[plan.Why.Reason] = d.Seed(o, s.policy, s.now)
				}
			}
			chapter[name](s)
		}
	}
	var list [][]byte
	for _, reason := range slices.SortedFunc(maps.Keys(seeds), func(a, b decision.Reason) int { return strings.Compare(a.String(), b.String()) }) {
		list = append(list, seeds[reason])
	}
	return list
}

func FuzzDecide(f *testing.F) {
	d := newFuzzed(drain.Decide)
	d.Fuzz(f, told(f, d)...)
}

func FuzzDetach(f *testing.F) {
	d := newFuzzed(drain.Detach)
	d.Fuzz(f, told(f, d)...)
}

func FuzzUndo(f *testing.F) {
	d := newFuzzed(drain.Undo)
	d.Fuzz(f, told(f, d)...)
}

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
	d.Fuzz(f, told(f, newFuzzed(drain.Decide))...)
}
