package machineset_test

import (
	"cmp"
	"fmt"
	"math"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

var phases = []machine.Phase{
	machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown,
	machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseTerminating, machine.PhaseInPlaceUpdating,
	machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed, "Confused",
}

const priorityKey = "machinepriority.machine.sapcloud.io"

// anyTime is some time around the morning, or one that makes no sense.
func anyTime(t *rapid.T, label string) time.Time {
	switch n := rapid.IntRange(-600, 620).Draw(t, label); {
	case n == 601:
		return time.Time{}
	case n == 602:
		return time.Unix(math.MaxInt64/2, 0)
	case n == 603:
		return time.Unix(math.MinInt64/2, 999)
	default:
		return morning.Add(time.Duration(n) * time.Second)
	}
}

// anyMachine returns a machine as storage may hold it. In most cases it belongs to the set.
func anyMachine(t *rapid.T, set *machineset.Set, i int) *machine.Machine {
	m := &machine.Machine{}
	m.Key = object.Key{Namespace: set.Namespace, Name: fmt.Sprintf("m-%d", i)}
	if rapid.Bool().Draw(t, "numbered") {
		m.Name = set.MachineName(int64(i))
	}
	m.UID = fmt.Sprintf("uid-%d", i)
	m.Labels = map[string]string{"pool": "web", "tier": "front"}
	m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: set.UID}
	m.Spec = set.Spec.Template.Spec.Clone()
	m.Spec.InPlace = rapid.SampledFrom([]machine.InPlaceRequest{"", "", machine.InPlaceCandidate, machine.InPlaceSelected}).Draw(t, "request")
	m.CreatedAt = morning.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "created")) * time.Second)
	m.Status.Phase = rapid.SampledFrom(phases).Draw(t, "phase")
	m.Status.Since = anyTime(t, "since")
	m.Status.LastOperation.State = rapid.SampledFrom([]machine.OperationState{
		"", machine.StateFailed, machine.StateSuccessful, machine.StateProcessing, "Perhaps"}).Draw(t, "state")
	if p := rapid.SampledFrom([]string{"", "", "1", "2", "3", "-7", "x", "99999999999999999999", "4294967299"}).Draw(t, "priority"); p != "" {
		m.Annotations = map[string]string{priorityKey: p}
	}
	switch rapid.IntRange(0, 30).Draw(t, "oddity") {
	case 0, 1, 2:
		m.DeletedAt = morning
	case 3:
		m.Owner = nil
	case 4:
		m.Owner = &object.Owner{Kind: machineset.OwnerKind, Name: set.Name, UID: "another"}
	case 5:
		m.Labels = map[string]string{"pool": "db"}
	case 6:
		m.Labels = nil
	case 7:
		delete(m.Labels, "tier")
	case 8:
		m.Spec.NodeTemplate = machine.NodeTemplate{}
	case 9:
		m.Spec.Config.DrainTimeout = -1
	}
	return m
}

func anyMachines(t *rapid.T, set *machineset.Set, most int) []*machine.Machine {
	machines := make([]*machine.Machine, rapid.IntRange(0, most).Draw(t, "machines"))
	for i := range machines {
		machines[i] = anyMachine(t, set, i+1)
	}
	return machines
}

// anySet returns a set as storage may hold it. In most cases it is valid.
func anySet(t *rapid.T) *machineset.Set {
	set := newSet(int32(rapid.IntRange(0, 6).Draw(t, "replicas")))
	set.Generation = 3
	set.Finalizers = []string{machineset.Finalizer}
	set.Spec.MinReady = rapid.SampledFrom([]time.Duration{0, 30 * time.Second, 10 * time.Minute}).Draw(t, "minReady")
	switch rapid.IntRange(0, 30).Draw(t, "oddity") {
	case 0:
		set.Spec.Replicas = rapid.Int32().Draw(t, "odd replicas")
	case 1:
		set.Spec.Selector = object.Selector{}
	case 2:
		set.Spec.Selector.Requirements = []object.Requirement{{Key: "pool", Operator: "Like"}}
	case 3:
		set.Spec.Template = machineset.Template{}
	case 4:
		set.UID = ""
	case 5:
		set.Finalizers = nil
	case 6, 7:
		set.DeletedAt = morning
	case 8:
		set.Spec.MinReady = time.Duration(rapid.Int64().Draw(t, "minReady"))
	case 9:
		set.Labels = map[string]string{"node.machine.sapcloud.io/scale-up-disabled": "true"}
	}
	if rapid.IntRange(0, 3).Draw(t, "owned") == 0 {
		set.Owner = &object.Owner{Kind: "MachineDeployment", Name: "web", UID: "deployment-1"}
	}
	names := rapid.SliceOfN(rapid.SampledFrom([]string{"m-1", "m-2", set.MachineName(1), set.MachineName(3), "nobody", ""}), 0, 3)
	if rapid.IntRange(0, 2).Draw(t, "moving") == 0 {
		set.Instructions.Handover = machineset.Handover{
			Arriving: names.Draw(t, "arriving"), Leaving: names.Draw(t, "leaving"), Closed: rapid.Bool().Draw(t, "closed"),
		}
	}
	settled := int64(rapid.IntRange(0, 6).Draw(t, "settled"))
	set.Instructions.Reservation = machineset.Reservation{
		Settled: settled, Reserved: settled + int64(rapid.IntRange(0, 4).Draw(t, "reserved")), At: anyTime(t, "at"),
	}
	if rapid.IntRange(0, 20).Draw(t, "odd reservation") == 0 {
		set.Instructions.Reservation.Settled, set.Instructions.Reservation.Reserved = rapid.Int64().Draw(t, "odd settled"), rapid.Int64().Draw(t, "odd reserved")
	}
	if rapid.Bool().Draw(t, "failed before") {
		set.Status.LastOperation = machine.Operation{State: machine.StateFailed, Time: anyTime(t, "failed at"),
			Against: machine.Inputs{Machine: int64(rapid.IntRange(2, 3).Draw(t, "against"))}}
		set.Status.Conditions = []object.Condition{{Type: machineset.ConditionReplicaFailure}, {Type: machineset.ConditionSpecValid}, {}}
	}
	return set
}

func anyObservation(t *rapid.T) *machineset.Observation {
	set := anySet(t)
	o := &machineset.Observation{Set: set, Machines: anyMachines(t, set, 10), Orphans: anyMachines(t, set, 3)}
	for i, m := range o.Orphans {
		if m.UID = fmt.Sprintf("orphan-%d", i); rapid.Bool().Draw(t, "orphan") {
			m.Owner = nil
		}
	}
	o.Machines, o.Orphans = append(o.Machines, nil), append(o.Orphans, nil)
	if rapid.Bool().Draw(t, "live") {
		o.Read = decision.Freshness{Began: anyTime(t, "live since")}
	}
	o.Frozen = rapid.IntRange(0, 5).Draw(t, "frozen") == 0
	o.Failures = rapid.IntRange(-1, 99).Draw(t, "failures")
	o.Created = rapid.SampledFrom([]int64{0, 0, 1, 2, 5, math.MaxInt64, math.MinInt64}).Draw(t, "answered")
	o.StatusWritten = anyTime(t, "status written")
	refused := func(label string) *machine.Outcome {
		if rapid.IntRange(0, 5).Draw(t, label) > 0 {
			return nil
		}
		return &machine.Outcome{Message: "no"}
	}
	o.Refused = machineset.Refused{Change: refused("change refused"), Delete: refused("delete refused"), Create: refused("create refused")}
	return o
}

func anyPolicy(t *rapid.T) *machineset.Policy {
	p := machineset.DefaultPolicy()
	p.Burst = rapid.SampledFrom([]int32{1, 2, 100, 10_000}).Draw(t, "burst")
	p.Age = rapid.SampledFrom([]machineset.AgeOrder{machineset.OldestFirst, machineset.NewestFirst, machineset.RandomAge}).Draw(t, "age")
	p.Seed = rapid.Uint64Range(0, 3).Draw(t, "seed")
	return p
}

func copied(o *machineset.Observation) *machineset.Observation {
	c := *o
	c.Set = o.Set.Clone()
	clone := func(machines []*machine.Machine) []*machine.Machine {
		out := slices.Clone(machines)
		for i, m := range out {
			if m != nil {
				out[i] = m.Clone()
			}
		}
		return out
	}
	c.Machines, c.Orphans = clone(o.Machines), clone(o.Orphans)
	return &c
}

// TestAnyObservation: whatever storage holds, Decide does not panic and returns no plan that it must not return.
// It returns the same plan again for the same arguments, and does not change them.
// Invariants: P8 P10 P11 P27
func TestAnyObservation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		before := copied(o)
		plan, err := machineset.Decide(o, p, morning)
		require.NoError(t, err)
		require.Empty(t, planFault(o, &plan))
		require.NotContains(t, plan.Why.String(), "{")
		again, err := machineset.Decide(copied(o), p, morning)
		require.NoError(t, err)
		require.True(t, reflect.DeepEqual(plan, again), "P27: %+v\n%+v", plan, again)
		require.True(t, reflect.DeepEqual(before, o), "Decide changed its arguments")
	})
}

// TestSurplusDeletionOrder: the surplus machines to delete are the first in the deletion order, of which
// deletionOrder is a second implementation. The order of the input does not matter.
// Invariants: P19
func TestSurplusDeletionOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o, p := anyObservation(t), anyPolicy(t)
		plan, _ := machineset.Decide(o, p, morning)
		shuffled := *o
		shuffled.Machines = rapid.Permutation(o.Machines).Draw(t, "shuffled")
		again, _ := machineset.Decide(&shuffled, p, morning)
		require.Equal(t, names(plan.Delete), names(again.Delete))
		if plan.Why.Reason != machineset.ReasonDeleteSurplus {
			return
		}
		all := slices.DeleteFunc(slices.Clone(o.Machines), func(m *machine.Machine) bool {
			return m == nil || !m.OwnedBy(o.Set.UID) || m.Deleted() || m.Labels["pool"] != "web" || m.Status.Phase == machine.PhaseFailed ||
				o.Set.Owner != nil && slices.Contains(o.Set.Instructions.Handover.Leaving, m.Name)
		})
		slices.SortFunc(all, deletionOrder(p.Age, o.Set.Spec.MinReady))
		surplus := len(all) - int(o.Set.Spec.Replicas)
		burst := max(int(p.Burst), len(o.Machines)/20, int(o.Set.Spec.Replicas)/20)
		want := all[:min(surplus, burst)]
		require.Len(t, plan.Delete, len(want))
		for i, m := range want {
			got := plan.Delete[i].Machine
			require.Equal(t, m.Priority(priorityKey), got.Priority(priorityKey))
			require.Equal(t, slices.Index(phaseOrder, m.Status.Phase), slices.Index(phaseOrder, got.Status.Phase))
			if p.Age != machineset.RandomAge {
				require.Equal(t, m.Name, got.Name)
			}
		}
	})
}

func names(orders []machineset.Order) []string {
	var out []string
	for _, order := range orders {
		out = append(out, order.Machine.Name)
	}
	return out
}

// phaseOrder is the deletion order of phases. Any other phase comes before these.
var phaseOrder = []machine.Phase{
	machine.PhaseFailed, machine.PhaseCrashLoopBackOff, machine.PhaseNew, machine.PhaseUnknown,
	machine.PhasePending, machine.PhaseAvailable, machine.PhaseInPlaceUpdateFailed,
	machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdating, machine.PhaseRunning,
}

// deletionOrder returns the deletion order as a simple and slow comparison.
func deletionOrder(age machineset.AgeOrder, minReady time.Duration) func(a, b *machine.Machine) int {
	priority := func(m *machine.Machine) int { return min(max(m.Priority(priorityKey), math.MinInt32), math.MaxInt32) }
	phase := func(m *machine.Machine) int { return slices.Index(phaseOrder, m.Status.Phase) }
	available := func(m *machine.Machine) int {
		if at := m.AvailableAt(minReady); at.IsZero() || morning.Before(at) || m.Spec.InPlace == machine.InPlaceSelected {
			return 0
		}
		return 1
	}
	created := func(a, b *machine.Machine) int {
		if age == machineset.NewestFirst {
			a, b = b, a
		}
		return a.CreatedAt.Compare(b.CreatedAt)
	}
	return func(a, b *machine.Machine) int {
		return cmp.Or(cmp.Compare(priority(a), priority(b)), cmp.Compare(phase(a), phase(b)),
			cmp.Compare(available(a), available(b)), created(a, b), cmp.Compare(a.Name, b.Name))
	}
}

// planFault says which rule for all plans a plan breaks. Empty: none.
func planFault(o *machineset.Observation, plan *machineset.Plan) string {
	n := countActions(plan)
	creates := len(plan.Create) > 0 || reserves(o, plan)
	needsLive := creates || len(plan.Delete)+len(plan.Adopt)+len(plan.Release) > 0
	switch {
	case n > 1:
		return fmt.Sprintf("P8: a plan of %d actions at once: %+v", n, plan)
	case n == 0 && plan.At.IsZero() && !waitsForever[plan.Why.Reason]:
		return "P21: waits without a time: " + plan.Why.String()
	case (len(plan.Create)+len(plan.Delete) > 0) == plan.Until.IsZero():
		return "Until is for creates and deletes, and they need one"
	case creates && (o.Frozen || o.Set.Deleted()):
		return "P25: creation by a set that is frozen or being deleted"
	case needsLive && !o.Read.Live():
		return "orders without a live read: " + plan.Why.String()
	}
	if what := brokenHandover(o, plan); what != "" {
		return what
	}
	return wrongTarget(o, plan)
}

// waitsForever are the reasons of plans without a time: only a change of the set ends the wait.
var waitsForever = map[decision.Reason]bool{
	machineset.ReasonSpecInvalid: true, machineset.ReasonNotOurs: true,
}

// countActions counts the kinds of actions that a plan asks for.
func countActions(plan *machineset.Plan) int {
	n := 0
	for _, orders := range [][]machineset.Order{plan.Create, plan.Delete, plan.Adopt, plan.Release, plan.Push} {
		if len(orders) > 0 {
			n++
		}
	}
	if plan.Write != nil {
		n++
	}
	if plan.ReadLive {
		n++
	}
	return n
}

func reserves(o *machineset.Observation, plan *machineset.Plan) bool {
	write, ok := plan.Write.(*machineset.Update)
	return ok && write.Set.Instructions.Reservation.Reserved > o.Set.Instructions.Reservation.Reserved
}

// wrongTarget says which order is for a machine that the set must not touch. Empty: none.
func wrongTarget(o *machineset.Observation, plan *machineset.Plan) string {
	for rule, broken := range map[string]struct {
		orders []machineset.Order
		allows func(*machineset.Observation, machineset.Order) bool
	}{
		"P10: not ours, or already being deleted":       {slices.Concat(plan.Delete, plan.Push), ours},
		"P10, P14: without owner, finalizer or number":  {plan.Create, validCreate},
		"P10: adopted, but not an orphan that matches":  {plan.Adopt, adoptable},
		"P10: released, but it matches, or is not ours": {plan.Release, releasable},
	} {
		for _, order := range broken.orders {
			if !broken.allows(o, order) {
				return rule + ": " + order.Machine.Name
			}
		}
	}
	return ""
}

func ours(o *machineset.Observation, order machineset.Order) bool {
	return order.Machine.OwnedBy(o.Set.UID) && !order.Machine.Deleted()
}

func validCreate(o *machineset.Observation, order machineset.Order) bool {
	m := order.Machine
	return m.OwnedBy(o.Set.UID) && m.HasFinalizer(machine.Finalizer) && m.Name == o.Set.MachineName(order.Ordinal)
}

func adoptable(o *machineset.Observation, order machineset.Order) bool {
	was := byUID(o.Orphans, order.Machine.UID)
	return was != nil && was.Owner == nil && !was.Deleted() &&
		order.Machine.OwnedBy(o.Set.UID) && o.Set.Spec.Selector.Matches(was.Labels)
}

func releasable(o *machineset.Observation, order machineset.Order) bool {
	was := byUID(o.Machines, order.Machine.UID)
	return was != nil && was.OwnedBy(o.Set.UID) && !was.Deleted() &&
		order.Machine.Owner == nil && !o.Set.Spec.Selector.Matches(was.Labels)
}

func byUID(machines []*machine.Machine, uid string) *machine.Machine {
	for _, m := range machines {
		if m != nil && m.UID == uid {
			return m
		}
	}
	return nil
}

// form makes observations of sets from the bytes of a fuzz test. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: morning, Words: []string{
	"", namespace, "web", "set-1", "pool", "tier", "front", "uid-1", "uid-2", "m-1", "m-2", machineset.OwnerKind,
	machineset.Finalizer, machine.Finalizer, priorityKey, "1", "2", "true", "small",
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.PhaseInPlaceUpdateSuccessful), string(machine.PhaseInPlaceUpdateFailed),
	string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	string(machine.InPlaceCandidate), string(machine.InPlaceSelected),
	"node.machine.sapcloud.io/scale-up-disabled", "node.machine.sapcloud.io/preserve", "now", "when-failed", "auto-preserved",
	string(machineset.OldestFirst), string(machineset.NewestFirst), string(machineset.RandomAge),
}}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[machineset.Observation, *machineset.Policy, machineset.Plan]{
		Form: form, Policy: machineset.DefaultPolicy, Decide: machineset.Decide,
		Whole: func(o *machineset.Observation) {
			if o.Set == nil {
				o.Set = newSet(3)
			}
		},
		Check: func(t testing.TB, o *machineset.Observation, plan machineset.Plan) {
			require.Empty(t, planFault(o, &plan))
			require.NotEmpty(t, plan.Why.String())
		},
	}
	d.Fuzz(f, d.Drawn(40, func(t *rapid.T) (*machineset.Observation, *machineset.Policy) { return anyObservation(t), anyPolicy(t) })...)
}
