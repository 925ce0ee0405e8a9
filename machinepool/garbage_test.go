package machinepool_test

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

var (
	anyID    = rapid.SampledFrom([]string{"", "a", "b", "c", "d", "e"})
	anyCode  = rapid.SampledFrom([]codes.Code{codes.OK, codes.OK, codes.NotFound, codes.Unavailable, codes.InvalidArgument, codes.Unimplemented, 99})
	anyTime  = rapid.Custom(func(t *rapid.T) time.Time { return drawTime(t) })
	anySize  = rapid.SampledFrom([]int32{-1 << 31, -1, 0, 1, 2, 3, 7, 1<<31 - 1})
	anyPhase = rapid.SampledFrom([]machinepool.Phase{
		"", "Pending", "Provisioning", "Provisioned", "Running", "Failed", "Deleting", "Unknown", "running",
	})
	anyCall = rapid.SampledFrom([]machinepool.Call{
		"", machinepool.CreatePool, machinepool.UpdatePool, machinepool.ScalePool, machinepool.GetPoolStatus, machinepool.DeletePool,
		machinepool.DeleteInstances, machinepool.ReplaceInstance, machinepool.InstancesDrained, machinepool.DeleteBootstrap,
		machinepool.RenewToken, "Dance",
	})
)

func drawTime(t *rapid.T) time.Time {
	switch rapid.IntRange(0, 4).Draw(t, "time") {
	case 0:
		return time.Time{}
	case 1:
		return start.Add(-time.Duration(rapid.IntRange(0, 200).Draw(t, "past")) * time.Minute)
	case 2:
		return start.Add(time.Duration(rapid.IntRange(0, 100000).Draw(t, "future")) * time.Second)
	default:
		return start.Add(-time.Duration(rapid.IntRange(0, 90).Draw(t, "just")) * time.Second)
	}
}

func maybe[T any](t *rapid.T, name string, make func() T) *T {
	if rapid.IntRange(0, 2).Draw(t, name) == 0 {
		return nil
	}
	v := make()
	return &v
}

func anyStatus(t *rapid.T) machinepool.Status {
	s := machinepool.Status{
		Phase: anyPhase.Draw(t, "phase"), Since: anyTime.Draw(t, "since"),
		Replicas: anySize.Draw(t, "observed"), Ready: anySize.Draw(t, "ready"),
		BootstrapReady: rapid.Bool().Draw(t, "bootstrap"), InfrastructureReady: rapid.Bool().Draw(t, "infra"),
		FailureReason: rapid.SampledFrom([]machinepool.FailureReason{"", "X", machinepool.FailureProvider}).Draw(t, "reason"),
		GroupID:       anyID.Draw(t, "group"), NeverCreated: rapid.Bool().Draw(t, "never"),
		LastOperation: machinepool.Operation{
			Call: anyCall.Draw(t, "call"), Code: anyCode.Draw(t, "code"), Time: anyTime.Draw(t, "op"), Replicas: anySize.Draw(t, "ordered"),
			State:   rapid.SampledFrom([]machine.OperationState{"", machine.StateProcessing, machine.StateFailed, machine.StateSuccessful, "odd"}).Draw(t, "state"),
			Against: machinepool.Inputs{Pool: 1, Class: 1},
		},
	}
	for range rapid.IntRange(0, 3).Draw(t, "leaving") {
		s.Leaving = append(s.Leaving, machinepool.Leaving{
			ProviderID: anyID.Draw(t, "id"), Since: anyTime.Draw(t, "left"),
			Exit: rapid.SampledFrom([]machinepool.Exit{machinepool.ExitScaleDown, machinepool.ExitReplace, machinepool.ExitProvider, "", "Odd"}).Draw(t, "exit"),
		})
	}
	for range rapid.IntRange(0, 2).Draw(t, "refs") {
		s.NodeRefs = append(s.NodeRefs, machinepool.NodeRef{ProviderID: anyID.Draw(t, "ref")})
	}
	return s
}

func anyBound(t *rapid.T) rollout.IntOrPercent {
	return rollout.IntOrPercent{Value: rapid.SampledFrom([]int32{0, 1, 1, 50, 200, -1, math.MinInt32}).Draw(t, "bound"), Percent: rapid.Bool().Draw(t, "percent")}
}

func anyPool(t *rapid.T) *machinepool.Pool {
	p := newWorld().pool()
	p.Generation = 1
	p.Spec.Replicas = maybe(t, "replicas", func() int32 { return anySize.Draw(t, "n") })
	p.Spec.MinReady = time.Duration(rapid.SampledFrom([]int{0, 0, -1, 30}).Draw(t, "min ready")) * time.Second
	p.Spec.ClusterName = rapid.SampledFrom([]string{"blue", "blue", ""}).Draw(t, "cluster")
	p.Spec.FailureDomains = rapid.SliceOfN(anyID, 0, 2).Draw(t, "domains")
	p.Spec.RollingUpdate = maybe(t, "rolling update", func() machinepool.RollingUpdate {
		return machinepool.RollingUpdate{MaxSurge: anyBound(t), MaxUnavailable: anyBound(t)}
	})
	p.Spec.Template.Class.Name = rapid.SampledFrom([]string{"small", "small", ""}).Draw(t, "class")
	p.Spec.Template.Bootstrap.DataSecret = maybe(t, "secret", func() string { return rapid.SampledFrom([]string{"", "boot", " "}).Draw(t, "secret name") })
	p.Spec.Template.Bootstrap.Config = rapid.SampledFrom([]string{"", "kubeadm"}).Draw(t, "config")
	p.Spec.ProviderIDs = rapid.SliceOfN(anyID, 0, 4).Draw(t, "ids")
	if rapid.Bool().Draw(t, "autoscaled") {
		p.Annotations = map[string]string{"millwright-go/autoscaled": "true"}
	}
	if rapid.IntRange(0, 3).Draw(t, "finalizer") > 0 {
		p.AddFinalizer(machinepool.Finalizer)
	}
	if rapid.IntRange(0, 3).Draw(t, "deleted") == 0 {
		p.DeletedAt = start
	}
	p.Status = anyStatus(t)
	return p
}

func anyGroup(t *rapid.T, name string) *machinepool.Group {
	return maybe(t, name, func() machinepool.Group {
		g := machinepool.Group{
			Outcome: machine.Outcome{Code: anyCode.Draw(t, "code"), Message: "m"}, ID: anyID.Draw(t, "group id"),
			Target: anySize.Draw(t, "target"), Ready: rapid.Bool().Draw(t, "group ready"), At: anyTime.Draw(t, "at"),
			Failure: rapid.SampledFrom([]string{"", "", "broken"}).Draw(t, "failure"),
		}
		for range rapid.IntRange(0, 4).Draw(t, "instances") {
			g.Instances = append(g.Instances, machinepool.Instance{
				ProviderID: anyID.Draw(t, "instance"), Terminating: rapid.IntRange(0, 4).Draw(t, "going") == 0,
				AwaitsDrain: rapid.IntRange(0, 4).Draw(t, "awaits") == 0,
			})
		}
		return g
	})
}

func anyNodes(t *rapid.T) map[string]*machine.Node {
	if rapid.IntRange(0, 3).Draw(t, "nodes") == 0 {
		return nil
	}
	w := newWorld()
	nodes := map[string]*machine.Node{}
	for range rapid.IntRange(0, 4).Draw(t, "node count") {
		key := anyID.Draw(t, "under")
		switch rapid.IntRange(0, 5).Draw(t, "node") {
		case 0:
			nodes[key] = nil
		case 1:
			nodes[key] = w.newNode(anyID.Draw(t, "as"))
		case 2:
			nodes[key] = &machine.Node{ProviderID: key}
		case 3:
			nodes[key] = w.newNode(key)
			nodes[key].Annotations = map[string]string{"millwright-go/replace": "true"}
		default:
			nodes[key] = w.newNode(key)
		}
	}
	return nodes
}

func anyOutcome(t *rapid.T, name string) *machine.Outcome {
	return maybe(t, name, func() machine.Outcome { return machine.Outcome{Code: anyCode.Draw(t, "code"), Message: "m"} })
}

// anyObservation draws an observation with anything, valid or not, that store, provider and caller may pass.
func anyObservation(t *rapid.T) *machinepool.Observation {
	o := &machinepool.Observation{
		Pool: anyPool(t), Class: newWorld().class, Nodes: anyNodes(t), Group: anyGroup(t, "known"),
		NoCluster: rapid.IntRange(0, 4).Draw(t, "no cluster") == 0, NoDrain: rapid.Bool().Draw(t, "no drain"),
		Frozen: rapid.IntRange(0, 6).Draw(t, "frozen") == 0, Fresh: rapid.Bool().Draw(t, "fresh"),
		Announced: rapid.Bool().Draw(t, "announced"),
		Looked:    rapid.Bool().Draw(t, "looked"), Failures: rapid.IntRange(-1, 9).Draw(t, "failures"),
		Features: machinepool.Features{DeleteInstances: rapid.Bool().Draw(t, "choose"), ReplaceInstance: rapid.Bool().Draw(t, "replace"), RollingUpdate: rapid.Bool().Draw(t, "rolls")},
		Kept:     anyOutcome(t, "kept"), BootstrapDeleted: anyOutcome(t, "boot deleted"),
		Bootstrap: maybe(t, "boot", func() machinepool.BootstrapAnswer {
			return machinepool.BootstrapAnswer{Ready: rapid.Bool().Draw(t, "b1"), Found: rapid.Bool().Draw(t, "b2"), TokenExpires: anyTime.Draw(t, "expires")}
		}),
		Drain: maybe(t, "drain", func() machinepool.DrainAnswer {
			return machinepool.DrainAnswer{Done: rapid.SliceOfN(anyID, 0, 3).Draw(t, "done"), At: anyTime.Draw(t, "drain at")}
		}),
	}
	if rapid.IntRange(0, 4).Draw(t, "no class") == 0 {
		o.Class = nil
	}
	switch rapid.IntRange(0, 9).Draw(t, "answer") {
	case 0:
		o.Created = anyGroup(t, "created")
	case 1:
		o.Updated = anyGroup(t, "updated")
	case 2:
		o.Scaled = anyGroup(t, "scaled")
	case 3:
		o.Deleted, o.Reported = anyGroup(t, "removed"), anyGroup(t, "told")
	case 4:
		o.GroupDeleted = anyGroup(t, "deleted")
	case 5:
		o.Renewed = anyOutcome(t, "renewed")
	}
	return o
}

// P11, P27: for any input Decide returns a plan, the same one each time, and does not change the input. The
// plan can be carried out.
// Invariants: P30 P31 P32 P33
func TestAnyObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := anyObservation(t)
		policy := machinepool.DefaultPolicy()
		policy.Autoscaled = rapid.IntRange(0, 5).Draw(t, "all autoscaled") == 0
		before := fmt.Sprintf("%+v %+v", *o, *o.Pool)
		plan, err := machinepool.Decide(o, policy, start)
		require.NoError(t, err)
		again, _ := machinepool.Decide(o, policy, start)
		require.Equal(t, plan, again)
		require.Equal(t, before, fmt.Sprintf("%+v %+v", *o, *o.Pool), "the observation was changed")
		require.False(t, plan.Write != nil && plan.Effect != nil)
		require.NotEmpty(t, plan.Why.String())
		require.NotContains(t, plan.Why.String(), "{", "a word is not filled in")
		require.NoError(t, states.Fire(t.Context(), o.Pool, changed(o.Pool, &plan), o, plan.Move))
		if plan.Write == nil && plan.Effect == nil && !plan.At.IsZero() {
			require.True(t, plan.At.After(start), "look again in the past: %v", plan.Why)
		}
		checkPlan(t, o, policy, plan)
	})
}

// checkOrder checks that a changing call was announced in its own pass, for a pool that may be acted upon.
func checkOrder(t *rapid.T, o *machinepool.Observation) {
	require.True(t, o.Announced, "not announced: the record may be stale")
	require.False(t, o.Frozen || o.Pool.Deleted() || boundsUnsupported(o))
}

// checkPlan checks that a plan does nothing forbidden.
func checkPlan(t *rapid.T, o *machinepool.Observation, policy *machinepool.Policy, plan machinepool.Plan) {
	p := o.Pool
	external := policy.Autoscaled || p.Annotations["millwright-go/autoscaled"] == "true"
	switch e := plan.Effect.(type) {
	case machinepool.CreateGroup:
		checkOrder(t, o)
		require.True(t, p.HasFinalizer(machinepool.Finalizer))
		require.Equal(t, p.Spec.Wanted(), e.Replicas)
	case machinepool.ScaleGroup:
		checkOrder(t, o)
		require.True(t, o.Looked)
		require.False(t, external, "the size is the provider's")
		require.GreaterOrEqual(t, e.To, int32(0))
		require.Less(t, int64(e.To), max(int64(p.Spec.Wanted())+1, int64(o.Group.Target)), "above what is wanted, and not lowered")
	case *machinepool.RemoveInstances:
		checkOrder(t, o)
		require.False(t, external, "the size is the provider's")
		require.Equal(t, []bool{true, true}, []bool{o.Looked, o.Features.DeleteInstances})
		require.LessOrEqual(t, len(e.ProviderIDs), int(o.Group.Target-p.Spec.Wanted()))
		for _, id := range e.ProviderIDs {
			require.True(t, slices.ContainsFunc(o.Group.Instances, func(i machinepool.Instance) bool { return i.ProviderID == id }))
		}
	case machinepool.UpdateGroup, machinepool.ReplaceOne, *machinepool.ReportDrained:
		checkOrder(t, o)
	case machinepool.DeleteGroup, machinepool.RemoveBootstrap:
		require.True(t, p.Deleted())
		require.Equal(t, machinepool.PhaseDeleting, p.Status.Phase)
	}
	checkWrite(t, o, plan)
}

// checkWrite checks that a plan's write names each instance once.
func checkWrite(t *rapid.T, o *machinepool.Observation, plan machinepool.Plan) {
	p := o.Pool
	require.False(t, plan.Announces && plan.Write == nil)
	switch w := plan.Write.(type) {
	case *machinepool.Update:
		ids := w.Pool.Spec.ProviderIDs
		if !p.HasFinalizer(machinepool.Finalizer) || p.Deleted() {
			return
		}
		require.True(t, slices.IsSorted(ids) && len(slices.Compact(slices.Clone(ids))) == len(ids), "%q are not sorted, each once", ids)
		require.NotContains(t, ids, "")
	case *machinepool.UpdateStatus:
		if !counted(o) {
			return // what is stored stays
		}
		seen := map[string]bool{"": true}
		for _, ref := range w.Status.NodeRefs {
			require.False(t, seen[ref.ProviderID], "%v", w.Status.NodeRefs)
			seen[ref.ProviderID] = true
		}
	}
}

// counted reports whether a decision counts the nodes, which it does if it knows the group.
func counted(o *machinepool.Observation) bool {
	known := o.Group != nil && (o.Group.Code == codes.OK || o.Group.Code == codes.NotFound)
	return known && (o.Nodes != nil || o.NoCluster) && !o.Pool.Deleted() && o.Pool.Validate() == nil && !boundsUnsupported(o)
}

// boundsUnsupported reports whether a pool has bounds for updates that its driver does not support.
func boundsUnsupported(o *machinepool.Observation) bool {
	return o.Pool.Spec.RollingUpdate != nil && !o.Features.RollingUpdate
}

func TestCallersMistakes(t *testing.T) {
	policy := machinepool.DefaultPolicy()
	_, err := machinepool.Decide(nil, policy, start)
	assert.ErrorIs(t, err, decision.ErrNoObservation)
	_, err = machinepool.Decide(&machinepool.Observation{}, policy, start)
	assert.ErrorIs(t, err, decision.ErrNoObservation)
	o := &machinepool.Observation{Pool: newWorld().pool()}
	want, err := machinepool.Decide(o, policy, start)
	assert.NoError(t, err)
	for _, p := range []*machinepool.Policy{nil, {}} {
		plan, err := machinepool.Decide(o, p, start)
		assert.NoError(t, err)
		assert.Equal(t, want, plan)
	}
	for field, spoil := range map[string]func(*machinepool.Policy){
		"policy.period":       func(p *machinepool.Policy) { p.Period = 1 },
		"policy.poll":         func(p *machinepool.Policy) { p.Poll = time.Millisecond },
		"policy.drainTimeout": func(p *machinepool.Policy) { p.DrainTimeout = 1 },
		"policy.tokenRenew":   func(p *machinepool.Policy) { p.TokenRenew = 1 },
		"policy.tokenTTL":     func(p *machinepool.Policy) { p.TokenTTL = p.TokenRenew },
		"policy.quotaRetry":   func(p *machinepool.Policy) { p.QuotaRetry = time.Millisecond },
	} {
		p := machinepool.DefaultPolicy()
		spoil(p)
		_, err := machinepool.Decide(o, p, start)
		var bad *object.FieldError
		require.ErrorAs(t, err, &bad)
		assert.Equal(t, field, bad.Field)
	}
	assert.Equal(t, 15*time.Minute, policy.TokenTTL)
}

func TestValidate(t *testing.T) {
	for want, spoil := range map[string]func(*machinepool.Pool){
		"pool fleet: metadata.name must not be empty":        func(p *machinepool.Pool) { p.Key = object.Key{Name: "", Namespace: "fleet"} },
		"pool fleet/web: spec.clusterName must not be empty": func(p *machinepool.Pool) { p.Spec.ClusterName = "" },
		"pool fleet/web: spec.replicas must not be negative": func(p *machinepool.Pool) { n := int32(-1); p.Spec.Replicas = &n },
		"pool fleet/web: spec.minReady must not be negative": func(p *machinepool.Pool) { p.Spec.MinReady = -1 },
		"pool fleet/web: spec.rollingUpdate.maxSurge must be a whole number, such as 3, or a whole percentage, such as 20%": func(p *machinepool.Pool) {
			p.Spec.RollingUpdate = &machinepool.RollingUpdate{MaxSurge: rollout.Unreadable}
		},
		"pool fleet/web: spec.rollingUpdate.maxSurge must not be negative": func(p *machinepool.Pool) {
			p.Spec.RollingUpdate = &machinepool.RollingUpdate{MaxSurge: rollout.IntOrPercent{Value: -1}}
		},
		"pool fleet/web: spec.rollingUpdate.maxUnavailable must not be negative": func(p *machinepool.Pool) {
			p.Spec.RollingUpdate = &machinepool.RollingUpdate{MaxUnavailable: rollout.IntOrPercent{Value: -1, Percent: true}}
		},
		"pool fleet/web: spec.failureDomains[1] must not be empty":         func(p *machinepool.Pool) { p.Spec.FailureDomains = []string{"a", ""} },
		"pool fleet/web: spec.failureDomains[1] must not be named twice":   func(p *machinepool.Pool) { p.Spec.FailureDomains = []string{"a", "a"} },
		"pool fleet/web: spec.template.bootstrap.dataSecret must not be b": func(p *machinepool.Pool) { b := " "; p.Spec.Template.Bootstrap.DataSecret = &b },
	} {
		p := newWorld().pool()
		require.NoError(t, p.Validate())
		spoil(p)
		err := p.Validate()
		if p.Name == "" {
			assert.ErrorContains(t, err, "metadata.name must not be empty")
			continue
		}
		assert.ErrorContains(t, err, want)
		assert.ErrorIs(t, err, object.ErrInvalid)
	}
	p := newWorld().pool()
	p.Spec.Replicas = nil
	assert.NoError(t, p.Validate())
	assert.Equal(t, int32(1), p.Spec.Wanted(), "the default")
}

// form reads bytes as observations of pools. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: start, Words: []string{
	"", "fleet", "web", "u1", "blue", "boot", "small", "a", "b", "c", "d", machinepool.Finalizer, machine.NodeFinalizer,
	machine.NodeReady, "True", "False", "Unknown",
}}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machinepool.Observation, *machinepool.Policy, machinepool.Plan]{
		Form: form, Policy: machinepool.DefaultPolicy, Decide: machinepool.Decide,
		Whole: func(o *machinepool.Observation) {
			if o.Pool == nil {
				o.Pool = newWorld().pool()
			}
		},
		Check: func(t testing.TB, _ *machinepool.Observation, plan machinepool.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.False(t, plan.Write != nil && plan.Effect != nil)
			if plan.Write == nil && plan.Effect == nil {
				require.True(t, plan.At.IsZero() || plan.At.After(start), "a wait that is over: %v", plan.At)
			}
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machinepool.Observation, *machinepool.Policy) {
		return anyObservation(t), machinepool.DefaultPolicy()
	})...)
}
