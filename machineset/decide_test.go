package machineset_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
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

// TestCallersMistakes: an observation without a set is an error. A policy of nil, or the zero one, is the default.
func TestCallersMistakes(t *testing.T) {
	p := machineset.DefaultPolicy()
	_, err := machineset.Decide(nil, p, morning)
	require.ErrorIs(t, err, decision.ErrNoObservation)
	_, err = machineset.Decide(&machineset.Observation{}, p, morning)
	require.ErrorIs(t, err, decision.ErrNoObservation)
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

// TestLargePlans: a plan for a large set is a twentieth of it, up to 10,000 machines.
func TestLargePlans(t *testing.T) {
	for _, line := range []struct {
		replicas, burst int32
		want            int64
	}{
		{1_999, 0, 100},
		{3_000, 0, 150},
		{3_000, 200, 200},
		{400_000, 0, 10_000},
		{math.MaxInt32, 1, 10_000},
	} {
		s := newSet(line.replicas)
		s.Owner = &object.Owner{Kind: "Deployment", Name: "web", UID: "d"}
		s.Finalizers = []string{machineset.Finalizer}
		o := &machineset.Observation{Set: s, Read: decision.Freshness{Began: morning, Ended: morning}}
		plan, err := machineset.Decide(o, &machineset.Policy{Burst: line.burst}, morning)
		require.NoError(t, err)
		require.IsType(t, &machineset.Update{}, plan.Write)
		require.Equal(t, line.want, plan.Write.(*machineset.Update).Set.Instructions.Reservation.Reserved, line)
	}
}

// TestCrashLoopPolicy: CrashLoopBase is off, or at least a second and at most CrashLoopMax.
func TestCrashLoopPolicy(t *testing.T) {
	for _, line := range []struct {
		base, most time.Duration
		field      string // the invalid one; empty: both are valid
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

// TestSetValidate: the error and the condition name the invalid field. Nothing else is done for the set.
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
		"spec.template.spec.config.inPlaceTimeout":  func(s *machineset.Set) { s.Spec.Template.Spec.Config.InPlaceTimeout = -1 },
		"spec.template.spec.config.maxEvictRetries": func(s *machineset.Set) { s.Spec.Template.Spec.Config.MaxEvictRetries = -1 },
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

// TestMachineName: the names must stay as they are, because machines with such names exist.
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

// TestCreatedMachineIsComplete: a new machine has all fields of the template, and shares no memory with it.
func TestCreatedMachineIsComplete(t *testing.T) {
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

// TestTerminatingMachineHoldsItsName: the name of a machine is not used again while the machine is being deleted.
func TestTerminatingMachineHoldsItsName(t *testing.T) {
	o := fleet(2, 1, false)
	o.Machines[0] = o.Machines[0].Clone()
	o.Machines[0].DeletedAt = morning
	o.Set.Instructions.Reservation, o.Read = machineset.Reservation{Reserved: 2, At: morning}, decision.Freshness{Began: morning}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, []string{"web-mrs7d-2"}, names(plan.Create))
}

// TestPushKeepsOtherFields: a push copies only some fields of the template. The machine keeps all others.
func TestPushKeepsOtherFields(t *testing.T) {
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

// TestPushSharesNothing: a pushed machine shares no memory with the observed machine or the template.
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

// TestFailedMachineList: the status lists the newest ten failed machines, by name if they are of the same age,
// and counts all. It stays small even if machines have long messages and IDs.
// Invariants: P42
func TestFailedMachineList(t *testing.T) {
	o := fleet(150, 150, false)
	for i, m := range o.Machines {
		m.CreatedAt = morning.Add(time.Duration(i/4) * time.Second)
		m.Spec.ProviderID = strings.Repeat("i", 1_000_000)
		m.Status.LastOperation = machine.Operation{
			State: machine.StateFailed, Code: codes.Internal, Message: strings.Repeat("broken ", 100_000), Time: morning,
		}
	}
	o.Set.Status.Failed = make([]machineset.FailedMachine, 100) // a stored status may list more
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

// TestTimesInAnotherLocation: if a store returns times in another location, the status has not changed.
func TestTimesInAnotherLocation(t *testing.T) {
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

// TestSettledAllocatesNothing: a decision about a settled set, as most are, allocates no memory.
func TestSettledAllocatesNothing(t *testing.T) {
	o, p, now := fleet(100, 100, false), machineset.DefaultPolicy(), morning.Add(time.Hour)
	settle(t, o, now)
	require.Zero(t, testing.AllocsPerRun(10, func() { _, _ = machineset.Decide(o, p, now) }))
}

// TestNotYetAvailableIsDeletedFirst: of two running machines, the one that has not been ready for MinReady is
// deleted, although the other one is older.
func TestNotYetAvailableIsDeletedFirst(t *testing.T) {
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

// TestEqualMachinesAreDeletedByName: if machines differ in their names only, the first by name are deleted,
// whatever the order of the input.
// Invariants: P19
func TestEqualMachinesAreDeletedByName(t *testing.T) {
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

// TestMaxReplicas: a set that is larger than the policy's limit is invalid. The limit does not apply to the
// sets of a deployment.
func TestMaxReplicas(t *testing.T) {
	p, now := machineset.DefaultPolicy(), morning.Add(time.Hour)
	p.MaxReplicas = 5
	for replicas, refused := range map[int32]bool{5: false, 6: true, math.MaxInt32: true} {
		for _, owned := range []bool{false, true} {
			o := fleet(min(replicas, 6), 3, false)
			o.Set.Owner = nil
			if owned {
				o.Set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "d"}
			}
			o.Set.Spec.Replicas, o.Read = replicas, decision.Freshness{Began: now}
			plan, err := machineset.Decide(o, p, now)
			require.NoError(t, err)
			if !refused || owned {
				require.NotEqual(t, machineset.ReasonSpecInvalid, plan.Why.Reason, "%d replicas, with a deployment: %v", replicas, owned)
				continue
			}
			require.IsType(t, &machineset.UpdateStatus{}, plan.Write)
			status := plan.Write.(*machineset.UpdateStatus).Status
			c := object.FindCondition(status.Conditions, machineset.ConditionSpecValid)
			require.Equal(t, object.False, c.Status)
			require.Contains(t, c.Message, "spec.replicas must be at most 5, the policy's limit")
			require.Equal(t, plan.Why, plan.Warn)
			o.Set.Status = status
			plan, err = machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.Equal(t, machineset.Plan{Why: plan.Why}, plan, "it waits for a change")

			unlimited, err := machineset.Decide(o, &machineset.Policy{MaxReplicas: object.Off}, now)
			require.NoError(t, err)
			require.NotEqual(t, machineset.ReasonSpecInvalid, unlimited.Why.Reason, "no limit")

			usual, err := machineset.Decide(o, nil, now)
			require.NoError(t, err)
			require.Equal(t, replicas > 10_000, usual.Why.Reason == machineset.ReasonSpecInvalid, "the default")
		}
	}
	p.MaxReplicas = -2
	_, err := machineset.Decide(fleet(1, 1, false), p, now)
	require.ErrorIs(t, err, object.ErrInvalid)
}

// TestLongestName: the machine names of a set with the longest name fit into a host name.
func TestLongestName(t *testing.T) {
	s := &machineset.Set{}
	s.UID = "u"
	for range machineset.LongestName {
		s.Name += "n"
	}
	require.Len(t, s.MachineName(9_999_999), 63)
}

// TestMinReadyIgnored: with IgnoreMinReady, decisions are the same as for a set without MinReady.
func TestMinReadyIgnored(t *testing.T) {
	p := machineset.DefaultPolicy()
	p.IgnoreMinReady = true
	rapid.Check(t, func(rt *rapid.T) {
		o := anyObservation(rt)
		o.Set.Spec.MinReady = time.Duration(rapid.IntRange(0, 600).Draw(rt, "seconds")) * time.Second
		none := *o
		none.Set = o.Set.Clone()
		none.Set.Spec.MinReady = 0
		got, err := machineset.Decide(o, p, morning)
		want, wantErr := machineset.Decide(&none, machineset.DefaultPolicy(), morning)
		require.Equal(rt, wantErr, err)
		if update, ok := got.Write.(*machineset.Update); ok {
			set := update.Set.Clone()
			set.Spec.MinReady = 0
			update.Set = set
		}
		require.Equal(rt, want, got)
	})
}

// TestP8StrictQuotaStory: a failed machine's replacement waits until the failed
// one is gone.
func TestP8StrictQuotaStory(t *testing.T) {
	playScenario(t, "strict-quota", 3, func(s *scenario) {
		s.p.policy.StrictQuota = true
		s.runAll()
		s.comment("the second fails")
		s.w.phase(s.name(2), machine.PhaseFailed)
		s.pass()
		s.after(time.Minute)
		s.comment("it is gone")
		s.w.removeDeleted()
		s.after(time.Minute)
	})
}

// TestP8StrictQuota: under a strict quota, the number of machines never exceeds the set's size, even if those
// being deleted count, whatever happens to machines and to the size. In the end the set has its size.
// Invariants: P8
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := newWorld(newSet(rapid.Int32Range(0, 6).Draw(t, "replicas")))
		p := newProcess(w, machineset.DefaultPolicy())
		p.policy.StrictQuota = true
		p.cached = func(oldest, newest int) int { return rapid.IntRange(oldest, newest).Draw(t, "cache") }
		most := w.set.Spec.Replicas // the largest size so far: a create for it may be in flight
		w.created = func(*machine.Machine) {
			require.LessOrEqual(t, len(w.machines), int(most), "P8: more machines, with those being deleted, than replicas")
		}
		for range rapid.IntRange(1, 80).Draw(t, "steps") {
			names := machineNames(w.all())
			switch action := rapid.IntRange(0, 9).Draw(t, "action"); {
			case action < 6 || len(names) == 0:
				p.step()
			case action == 6:
				w.phase(rapid.SampledFrom(names).Draw(t, "failing"), machine.PhaseFailed)
			case action == 7:
				w.removeDeleted()
			case action == 8:
				w.phase(rapid.SampledFrom(names).Draw(t, "running"), machine.PhaseRunning)
			default:
				size := rapid.Int32Range(0, 6).Draw(t, "size")
				most = max(most, size)
				w.edit(func(s *machineset.Set) { s.Spec.Replicas = size })
			}
		}
		p.cached = nil
		p.die()
		for range 20 {
			require.True(t, p.run())
			w.removeDeleted()
			w.advance(10 * time.Minute)
		}
		require.Len(t, w.all(), int(w.set.Spec.Replicas))
	})
}

// TestProgressInterval: in the status of a deployment's set, new numbers of machines are written after
// ProgressInterval, other changes after StatusInterval. For a set without an owner there is no difference.
func TestProgressInterval(t *testing.T) {
	p := machineset.DefaultPolicy()
	p.ProgressInterval = time.Minute
	numbers := func(o *machineset.Observation) { o.Machines[0].Status.Phase = machine.PhaseUnknown }
	for name, c := range map[string]struct {
		change func(*machineset.Observation)
		lone   bool          // the set has no owner
		after  time.Duration // when the status is written
	}{
		"numbers":                        {numbers, false, time.Minute},
		"numbers and the generation":     {func(o *machineset.Observation) { numbers(o); o.Set.Generation++ }, false, time.Minute},
		"numbers of a set without owner": {numbers, true, time.Second},
		"a failure": {func(o *machineset.Observation) {
			o.Machines[0].Status.LastOperation.State = machine.StateFailed
		}, false, time.Second},
		"a condition": {func(o *machineset.Observation) { o.Frozen = true }, false, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			now := morning.Add(9 * time.Hour)
			o := fleet(3, 3, false)
			if !c.lone {
				o.Set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "deployment-1"}
			}
			settle(t, o, now)
			c.change(o)
			o.StatusWritten = now.Add(1 - c.after)
			plan, err := machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.Nil(t, plan.Write)
			require.Equal(t, now.Add(1), plan.At)
			o.StatusWritten = now.Add(-c.after)
			plan, err = machineset.Decide(o, p, now)
			require.NoError(t, err)
			require.IsType(t, &machineset.UpdateStatus{}, plan.Write)
		})
	}
}

// latestCreate returns the world of a set of two. Its process reserved both names at a time with a fraction of
// a second and created the first machine. It issued the second create at the last moment that is allowed, and
// died. This create is still in flight; it takes effect at arrival, the last moment that is possible.
func latestCreate(t require.TestingT, ms int) (w *world, arrival time.Time) {
	w = newWorld(newSet(2))
	w.now = morning.Add(time.Duration(ms) * time.Millisecond)
	p := newProcess(w, machineset.DefaultPolicy())
	p.delay = func() time.Duration { return p.policy.RequestTimeout - time.Millisecond }
	creates := 0
	p.fault = func(verb string) fault {
		if verb == "create" {
			creates++
		}
		if creates == 2 {
			return lateCrash
		}
		return fine
	}
	p.until(t, func() bool { return creates > 0 })
	w.advance(p.plan.Until.Sub(w.now) - time.Millisecond)
	require.True(t, p.run())
	require.Len(t, w.active(), 1)
	return w, w.late[0].at
}

// TestLatestCreate: whenever other processes look, they create no machine instead of one whose create may still
// take effect.
func TestLatestCreate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, arrival := latestCreate(t, rapid.IntRange(0, 999).Draw(t, "fraction"))
		p := newProcess(w, machineset.DefaultPolicy())
		look := []time.Duration{-2 * time.Minute, -time.Minute, -time.Millisecond, 0, time.Second}
		for range 3 {
			at := arrival.Add(rapid.SampledFrom(look).Draw(t, "look"))
			if at.After(w.now) {
				w.advance(at.Sub(w.now))
			}
			require.True(t, p.run())
		}
		w.advance(time.Hour)
		require.True(t, p.run())
		require.Len(t, w.active(), 2)
		require.Equal(t, int64(2), w.set.Instructions.Reservation.Reserved, "a third name was given out")
	})
}

// TestReadTooEarly: a name is given up on a live read made after the last moment at which its create can take
// effect. A live read from earlier in the same pass does not suffice.
func TestReadTooEarly(t *testing.T) {
	w, arrival := latestCreate(t, 900)
	w.advance(arrival.Sub(w.now) - time.Millisecond)
	w.phase(newSet(0).MachineName(1), machine.PhaseFailed) // makes a live read necessary
	p := newProcess(w, machineset.DefaultPolicy())
	p.until(t, func() bool { return len(p.plan.Delete) > 0 })
	w.advance(time.Minute)
	require.True(t, p.run())
	w.removeDeleted()
	require.True(t, p.run())
	require.Len(t, w.active(), 2, "the second machine and the replacement of the first")
	require.Equal(t, int64(3), w.set.Instructions.Reservation.Reserved)
}

// TestReadTooEarlyToRemoveFinalizer is the same for a set that is being deleted.
func TestReadTooEarlyToRemoveFinalizer(t *testing.T) {
	w, arrival := latestCreate(t, 900)
	w.edit(func(s *machineset.Set) { s.DeletedAt = w.now.Truncate(time.Second) })
	w.change(newSet(0).MachineName(1), func(m *machine.Machine) { m.Finalizers = nil })
	w.advance(arrival.Sub(w.now) - time.Millisecond)
	p := newProcess(w, machineset.DefaultPolicy())
	p.until(t, func() bool { return len(p.plan.Delete) > 0 })
	p.step()
	p.o.Machines = nil // the first machine has no finalizer, so it was gone at once
	w.removeDeleted()
	w.advance(time.Minute)
	require.True(t, p.run())
	require.NotNil(t, w.set, "the second create took effect meanwhile")
	w.removeDeleted()
	require.True(t, p.run())
	require.Nil(t, w.set)
	require.Empty(t, w.all())
}

// TestNoCreateAfterUntil: no create is ordered later than RequestTimeout after its reservation, and a plan says
// until when its orders may be issued.
// Invariants: P17
func TestNoCreateAfterUntil(t *testing.T) {
	o := fleet(3, 1, false)
	o.Set.Instructions.Reservation = machineset.Reservation{Settled: 1, Reserved: 3, At: morning}
	p := machineset.DefaultPolicy()
	end := morning.Add(p.RequestTimeout)
	o.Read = decision.Freshness{Began: morning}

	plan, err := machineset.Decide(o, p, end.Add(-time.Nanosecond))
	require.NoError(t, err)
	require.Len(t, plan.Create, 2)
	require.Equal(t, end, plan.Until)
	plan, err = machineset.Decide(o, p, end)
	require.NoError(t, err)
	require.Empty(t, plan.Create)

	o.Set.Instructions.Reservation.At = end.Add(time.Hour) // no clock is so far ahead
	plan, err = machineset.Decide(o, p, morning)
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonReserve, plan.Why.Reason)
}

// TestDeletedSetSettlesFirst: a set that is deleted just after it has created its machines settles its
// reservation first. Otherwise, once the machines are gone, it would wait for creates that were answered.
func TestDeletedSetSettlesFirst(t *testing.T) {
	set := newSet(2)
	set.Instructions.Reservation = machineset.Reservation{Reserved: 2, At: morning}
	set.DeletedAt = morning
	o := liveObservation(set, 2)
	for i, m := range o.Machines {
		m.Name = o.Set.MachineName(int64(i) + 1)
	}
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	write, is := plan.Write.(*machineset.Update)
	require.True(t, is, "%s", plan.Why)
	require.Equal(t, int64(2), write.Set.Instructions.Reservation.Settled)

	o.Set, o.Machines = write.Set, nil
	plan, err = machineset.Decide(o, machineset.DefaultPolicy(), morning.Add(time.Second))
	require.NoError(t, err)
	require.Equal(t, machineset.ReasonSetReleased, plan.Why.Reason)
}

// TestDeletionOrder: a set that is scaled to zero deletes its machines in this order. There is one machine for
// each rule of the deletion order.
func TestDeletionOrder(t *testing.T) {
	annotated := func(key, value string) func(*machine.Machine) {
		return func(m *machine.Machine) { m.Annotations = map[string]string{key: value} }
	}
	phase := func(p machine.Phase) func(*machine.Machine) {
		return func(m *machine.Machine) { m.Status.Phase = p }
	}
	order := []struct {
		name   string
		change func(*machine.Machine)
	}{
		{"chosen by an autoscaler", func(*machine.Machine) {}},
		{"unavailable, to be replaced", func(m *machine.Machine) {
			m.Status.Since = morning
			annotated(replaceKey, "true")(m)
		}},
		{"of a low priority, though it is available", annotated(priorityKey, "1")},
		{"in a crash loop", phase(machine.PhaseCrashLoopBackOff)},
		{"new", phase(machine.PhaseNew)},
		{"unknown", phase(machine.PhaseUnknown)},
		{"pending", phase(machine.PhasePending)},
		{"available, without a cluster, not for long enough", func(m *machine.Machine) {
			m.Status.Phase, m.Status.Since = machine.PhaseAvailable, morning
		}},
		{"failed to be updated", phase(machine.PhaseInPlaceUpdateFailed)},
		{"updated", phase(machine.PhaseInPlaceUpdateSuccessful)},
		{"being updated", phase(machine.PhaseInPlaceUpdating)},
		{"running, not for long enough", func(m *machine.Machine) { m.Status.Since = morning }},
		{"running, to be replaced", annotated(replaceKey, "true")},
		{"running, the oldest", func(m *machine.Machine) { m.CreatedAt = m.CreatedAt.Add(-time.Minute) }},
		{"running, a", func(*machine.Machine) {}},
		{"running, b", func(*machine.Machine) {}},
		{"of a high priority, though it is pending", func(m *machine.Machine) {
			annotated(priorityKey, "9")(m)
			m.Status.Phase = machine.PhasePending
		}},
		{"kept by a user", func(m *machine.Machine) {
			annotated(preserveKey, machine.PreserveNow)(m)
			m.Status.Preservation = machine.Preservation{Request: machine.PreserveNow, Since: morning, Until: morning.Add(time.Hour)}
		}},
	}
	set := newSet(0)
	set.Owner = &object.Owner{UID: "deployment"} // no surge allowance: requests delete no machine
	set.Spec.MinReady = time.Minute
	o := liveObservation(set, len(order))
	var want []string
	for i, m := range o.Machines {
		m.Name, m.CreatedAt, m.Status.Since = order[i].name, morning.Add(-time.Hour), morning.Add(-time.Hour)
		order[i].change(m)
		want = append(want, m.Name)
	}
	set.Instructions.DeletionCandidates = []machineset.DeletionCandidate{{Name: want[0], At: morning}}
	slices.Reverse(o.Machines)
	plan, err := machineset.Decide(o, machineset.DefaultPolicy(), morning)
	require.NoError(t, err)
	require.Equal(t, want, names(plan.Delete), "%s", plan.Why)
}
