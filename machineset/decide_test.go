package machineset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

func TestCallersMistakes(t *testing.T) {
	p := machineset.DefaultPolicy()
	_, err := machineset.Decide(nil, p, morning)
	require.EqualError(t, err, "machineset.Decide: the observation has no set")
	_, err = machineset.Decide(&machineset.Observation{}, p, morning)
	require.EqualError(t, err, "machineset.Decide: the observation has no set")
	want, err := machineset.Decide(&machineset.Observation{Set: newSet(1)}, p, morning)
	require.NoError(t, err)
	for _, p := range []*machineset.Policy{nil, {}} {
		plan, err := machineset.Decide(&machineset.Observation{Set: newSet(1)}, p, morning)
		require.NoError(t, err)
		require.Equal(t, want, plan)
	}
}

func TestPolicyValidate(t *testing.T) {
	require.NoError(t, machineset.DefaultPolicy().Validate())
	for field, change := range map[string]func(*machineset.Policy){
		"policy.burst":            func(p *machineset.Policy) { p.Burst = -1 },
		"policy.requestTimeout":   func(p *machineset.Policy) { p.RequestTimeout = 9 * time.Second },
		"policy.settleWithin":     func(p *machineset.Policy) { p.SettleWithin = -1 },
		"policy.statusInterval":   func(p *machineset.Policy) { p.StatusInterval = -2 },
		"policy.progressInterval": func(p *machineset.Policy) { p.ProgressInterval = -1 },
		"policy.resync":           func(p *machineset.Policy) { p.Resync = 1 },
		"policy.retryBase":        func(p *machineset.Policy) { p.RetryBase = 1 },
		"policy.retryMax":         func(p *machineset.Policy) { p.RetryMax = p.RetryBase - 1 },
		"policy.age":              func(p *machineset.Policy) { p.Age = "Middle" },
	} {
		p := machineset.DefaultPolicy()
		change(p)
		_, err := machineset.Decide(&machineset.Observation{Set: newSet(1)}, p, morning)
		requireField(t, err, field)
	}
	p := machineset.DefaultPolicy()
	p.StatusInterval = object.Off
	require.NoError(t, p.Validate())
	p.Burst = 10_001
	requireField(t, p.Validate(), "policy.burst")
}

// TestPolicyOfChurn: replacements of machines that never ran wait not at all, or a second at least
// and no longer than CrashLoopMax.
func TestPolicyOfChurn(t *testing.T) {
	for _, line := range []struct {
		base, most time.Duration
		field      string // empty: both are valid
	}{
		{0, 0, ""},
		{object.Off, 0, ""},
		{object.Off, time.Second, ""},
		{time.Second, 0, ""},
		{time.Second, time.Second, ""},
		{time.Minute, time.Hour, ""},
		{-2, time.Hour, "policy.crashLoopBase"},
		{1, time.Hour, "policy.crashLoopBase"},
		{time.Second - 1, time.Hour, "policy.crashLoopBase"},
		{object.Off, -1, "policy.crashLoopMax"},
		{time.Minute, time.Minute - 1, "policy.crashLoopMax"},
		{time.Hour, 0, "policy.crashLoopMax"},
	} {
		p := machineset.DefaultPolicy()
		p.CrashLoopBase, p.CrashLoopMax = line.base, line.most
		if line.field == "" {
			require.NoError(t, p.Validate(), "%s, %s", line.base, line.most)
			continue
		}
		requireField(t, p.Validate(), line.field)
	}
}

func requireField(t *testing.T, err error, field string) {
	t.Helper()
	require.ErrorIs(t, err, object.ErrInvalid)
	var bad *object.FieldError
	require.True(t, errors.As(err, &bad))
	require.Equal(t, field, bad.Field)
}

// TestSetValidate: each field that can't be acted upon is named, in the error
// and in the condition, and the set is otherwise left alone.
func TestSetValidate(t *testing.T) {
	require.NoError(t, newSet(1).Validate())
	for field, change := range map[string]func(*machineset.Set){
		"metadata.name": func(s *machineset.Set) { s.Name = "" },
		"metadata.uid":  func(s *machineset.Set) { s.UID = "" },
		"spec.replicas": func(s *machineset.Set) { s.Spec.Replicas = -1 },
		"spec.minReady": func(s *machineset.Set) { s.Spec.MinReady = -1 },
		"spec.selector": func(s *machineset.Set) { s.Spec.Selector = object.Selector{} },
		"spec.selector.requirements[0].operator": func(s *machineset.Set) {
			s.Spec.Selector.Requirements = []object.Requirement{{Key: "pool", Operator: "Like"}}
		},
		"spec.template.labels":                      func(s *machineset.Set) { s.Spec.Template.Labels["pool"] = "db" },
		"spec.template.spec.class.name":             func(s *machineset.Set) { s.Spec.Template.Spec.Class.Name = "" },
		"spec.template.spec.providerID":             func(s *machineset.Set) { s.Spec.Template.Spec.ProviderID = "vm-1" },
		"spec.template.spec.nodeName":               func(s *machineset.Set) { s.Spec.Template.Spec.NodeName = "node-1" },
		"spec.template.spec.config.creationTimeout": func(s *machineset.Set) { s.Spec.Template.Spec.Config.CreationTimeout = -1 },
		"spec.template.spec.config.healthTimeout":   func(s *machineset.Set) { s.Spec.Template.Spec.Config.HealthTimeout = -1 },
		"spec.template.spec.config.drainTimeout":    func(s *machineset.Set) { s.Spec.Template.Spec.Config.DrainTimeout = -1 },
		"reservation":                               func(s *machineset.Set) { s.Instructions.Reservation.Settled = 1 },
	} {
		set := newSet(1)
		change(set)
		set.Generation = 7
		requireField(t, set.Validate(), field)

		o := &machineset.Observation{Set: set}
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		status := plan.Write.(*machineset.UpdateStatus).Status
		condition := object.FindCondition(status.Conditions, machineset.ConditionSpecValid)
		require.Equal(t, object.False, condition.Status)
		require.True(t, strings.HasPrefix(condition.Message, field+" "), condition.Message)
		require.Equal(t, int64(7), status.ObservedGeneration)
		require.Equal(t, plan.Why, plan.Warn)

		set.Status = status
		plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(time.Hour))
		require.NoError(t, err)
		require.Equal(t, machineset.Plan{Why: plan.Why}, plan)
	}
}

// TestMachineName: names of machines that exist depend on these.
func TestMachineName(t *testing.T) {
	set := newSet(1)
	require.Equal(t, "web-mrs7d-1", set.MachineName(1))
	require.Equal(t, "web-mrs7d-1000000", set.MachineName(1_000_000))
	seen := map[string]string{}
	for i := range 2000 {
		set.UID = fmt.Sprintf("3fa85f64-5717-4562-b3fc-2c963f66%04x", i)
		name := set.MachineName(1)
		require.Empty(t, seen[name], "%s and %s", seen[name], set.UID)
		seen[name] = set.UID
		require.NotRegexp(t, "^web-.*[aeiou01].*-1$", name)
	}
}

// TestBornComplete: a new machine holds all that the template says, and shares
// none of it.
func TestBornComplete(t *testing.T) {
	o := fleet(1, 0, false)
	o.Set.Instructions.Reservation, o.Read = machineset.Reservation{Reserved: 1, At: morning}, decision.Freshness{Began: morning}
	o.Set.Spec.Template.Spec.NodeTemplate.Taints = []object.Taint{{Key: "a", Effect: object.NoSchedule}}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Create, 1)
	m := plan.Create[0].Machine
	want := &machine.Machine{
		Meta: object.Meta{
			Key: object.Key{Namespace: namespace, Name: "web-mrs7d-1"}, Labels: map[string]string{"pool": "web", "tier": "front"},
			Annotations: map[string]string{"made-by": "set"}, Finalizers: []string{machine.Finalizer},
			Owner: &object.Owner{Kind: machineset.OwnerKind, Name: "web", UID: "set-1"},
		},
		Spec: o.Set.Spec.Template.Spec,
	}
	require.Equal(t, want, m)
	m.Labels["pool"], m.Annotations["made-by"], m.Spec.NodeTemplate.Labels["zone"] = "x", "x", "x"
	m.Spec.NodeTemplate.Taints[0].Key = "x"
	require.Equal(t, newSet(0).Spec.Template.Labels, o.Set.Spec.Template.Labels)
	require.Equal(t, newSet(0).Spec.Template.Annotations, o.Set.Spec.Template.Annotations)
	require.Equal(t, "a", o.Set.Spec.Template.Spec.NodeTemplate.Labels["zone"])
	require.Equal(t, "a", o.Set.Spec.Template.Spec.NodeTemplate.Taints[0].Key)
}

// TestTerminatingMachineHoldsItsName: a name is in use until its machine is gone.
func TestTerminatingMachineHoldsItsName(t *testing.T) {
	o := fleet(2, 1, false)
	o.Machines[0] = o.Machines[0].Clone()
	o.Machines[0].DeletedAt = morning
	o.Set.Instructions.Reservation, o.Read = machineset.Reservation{Reserved: 2, At: morning}, decision.Freshness{Began: morning}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{"web-mrs7d-2"}, names(plan.Create))
}

// TestPushLeavesTheRest: what is pushed is not all of the template, and nothing
// of the machine's own is lost.
func TestPushLeavesTheRest(t *testing.T) {
	o := fleet(1, 1, false)
	spec := &o.Set.Spec.Template.Spec
	spec.Class = machine.ClassRef{APIGroup: "new.example", Kind: "NewClass", Name: "large"}
	spec.Config.HealthTimeout = time.Hour
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Push, 1)
	want := o.Machines[0].Clone()
	want.Spec.Class.Kind = "NewClass"
	want.Spec.Config.HealthTimeout = time.Hour
	require.Equal(t, want, plan.Push[0].Machine)
}

// TestPushSharesNothing: neither with the machine nor with the template.
func TestPushSharesNothing(t *testing.T) {
	o := fleet(1, 1, false)
	spec := &o.Set.Spec.Template.Spec
	spec.NodeTemplate.Labels, spec.Config.NodeConditions = map[string]string{"zone": "b"}, []string{"a"}
	o.Machines[0].Status.Conditions = []object.Condition{{Type: "Ready"}}
	set, before := o.Set.Clone(), o.Machines[0].Clone()
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Len(t, plan.Push, 1)
	m := plan.Push[0].Machine
	m.Labels["pool"], m.Owner.Name, m.Spec.NodeTemplate.Labels["zone"] = "x", "x", "x"
	m.Spec.Config.NodeConditions[0], m.Status.Conditions[0].Type = "x", "x"
	require.Equal(t, set, o.Set)
	require.Equal(t, before, o.Machines[0])
}

// TestFailedSummaries: the newest ten, by name where they are of one age, however
// long the messages and IDs are that they were stored with; and the number of all.
func TestFailedSummaries(t *testing.T) {
	o := fleet(150, 150, false)
	for i, m := range o.Machines {
		m.CreatedAt = morning.Add(time.Duration(i/4) * time.Second)
		m.Spec.ProviderID = strings.Repeat("i", 1_000_000)
		m.Status.LastOperation = machine.Operation{
			State: machine.StateFailed, Code: codes.Internal, Message: strings.Repeat("broken ", 100_000), Time: morning,
		}
	}
	o.Set.Status.Failed = make([]machineset.FailedMachine, 100) // as it was stored before
	settle(t, o, morning.Add(time.Hour))
	failed := o.Set.Status.Failed
	require.Equal(t, int32(150), o.Set.Status.Failing)
	var names []string
	for _, f := range failed {
		names = append(names, f.Name)
	}
	require.Equal(t, []string{
		"web-mrs7d-149", "web-mrs7d-150", "web-mrs7d-145", "web-mrs7d-146", "web-mrs7d-147", "web-mrs7d-148",
		"web-mrs7d-141", "web-mrs7d-142", "web-mrs7d-143", "web-mrs7d-144",
	}, names)
	stored, err := json.Marshal(o.Set.Status)
	require.NoError(t, err)
	require.Less(t, len(stored), 20_000)
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(time.Hour))
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonSettled, plan.Why.Reason)
}

// TestTimesFromAnotherPlace: a store may return the same instants in another
// location, and that is no change.
func TestTimesFromAnotherPlace(t *testing.T) {
	o := fleet(2, 2, false)
	o.Frozen = true
	o.Machines[0].Status.LastOperation = machine.Operation{State: machine.StateFailed, Time: morning}
	settle(t, o, morning.Add(time.Hour))
	zone := time.FixedZone("here", 3600)
	status := &o.Set.Status
	status.Failed[0].LastOperation.Time = status.Failed[0].LastOperation.Time.In(zone)
	status.Conditions[0].Since = status.Conditions[0].Since.In(zone)
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(time.Hour))
	require.NoError(t, err)
	require.Nil(t, plan.Write)
}

// TestSettledAllocatesNothing: most looks at a set find nothing to do.
func TestSettledAllocatesNothing(t *testing.T) {
	o, p, now := fleet(100, 100, false), machineset.DefaultPolicy(), morning.Add(time.Hour)
	settle(t, o, now)
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = machineset.Decide(o, p, now) }))
}

// TestYoungGoBeforeAvailable: of machines that run, the one that has not been
// ready for long enough goes, though it is the newer one.
func TestYoungGoBeforeAvailable(t *testing.T) {
	set := newSet(1)
	set.Spec.MinReady = time.Hour
	set.Finalizers = []string{machineset.Finalizer}
	o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}}
	for i, since := range []time.Time{morning.Add(-2 * time.Hour), morning.Add(-time.Minute)} {
		m := &machine.Machine{Meta: object.Meta{
			Key: object.Key{Namespace: set.Namespace, Name: fmt.Sprint("m", i)}, UID: fmt.Sprint(i),
			CreatedAt: since, Labels: set.Spec.Template.Labels,
			Owner: &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID},
		}}
		m.Spec = set.Spec.Template.Spec
		m.Status = machine.Status{Phase: machine.PhaseRunning, Since: since}
		o.Machines = append(o.Machines, m)
	}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{"m1"}, names(plan.Delete), "%s", plan.Why)
}

// TestEqualVictimsGoByName is P19 where nothing but the name tells machines
// apart: for any order of the input, the same ones are deleted.
func TestEqualVictimsGoByName(t *testing.T) {
	set := newSet(3)
	set.Finalizers = []string{machineset.Finalizer}
	all := make([]*machine.Machine, 7)
	for i := range all {
		all[i] = &machine.Machine{Meta: object.Meta{
			Key: object.Key{Namespace: set.Namespace, Name: fmt.Sprint("m", i)}, UID: fmt.Sprint(9 - i),
			CreatedAt: morning, Labels: set.Spec.Template.Labels,
			Owner: &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID},
		}}
		all[i].Spec = set.Spec.Template.Spec
		all[i].Status = machine.Status{Phase: machine.PhaseRunning, Since: morning}
	}
	rapid.Check(t, func(t *rapid.T) {
		o := &machineset.Observation{Set: set, Read: decision.Freshness{Began: morning}, Machines: rapid.Permutation(all).Draw(t, "machines")}
		plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
		require.NoError(t, err)
		require.Equal(t, []string{"m0", "m1", "m2", "m3"}, names(plan.Delete))
	})
}
