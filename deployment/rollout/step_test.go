package rollout_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment/rollout"
)

func setting(t *testing.T, s string) rollout.IntOrPercent {
	t.Helper()
	v, err := rollout.Parse(s)
	require.NoError(t, err)
	return v
}

// TestFenceposts has settings and results that are well known from Kubernetes' deployments.
func TestFenceposts(t *testing.T) {
	for _, c := range []struct {
		surge, unavailable string
		replicas           int32
		want               rollout.Bounds
	}{
		{"0%", "0%", 0, rollout.Bounds{Unavailable: 1}},
		{"0", "0", 10, rollout.Bounds{Unavailable: 1}},
		{"39%", "39%", 10, rollout.Bounds{Surge: 4, Unavailable: 3}},
		{"25%", "25%", 1, rollout.Bounds{Surge: 1}},
		{"25%", "25%", 3, rollout.Bounds{Surge: 1}},
		{"25%", "25%", 4, rollout.Bounds{Surge: 1, Unavailable: 1}},
		{"25%", "25%", 10, rollout.Bounds{Surge: 3, Unavailable: 2}},
		{"0%", "5%", 10, rollout.Bounds{Unavailable: 1}},
		{"1%", "99%", 1, rollout.Bounds{Surge: 1}},
		{"5", "1", 7, rollout.Bounds{Surge: 5, Unavailable: 1}},
		{"100%", "0", 7, rollout.Bounds{Surge: 7}},
		{"150%", "150%", 7, rollout.Bounds{Surge: 11, Unavailable: 10}},
		{"25%", "25%", 0, rollout.Bounds{Unavailable: 1}},
		{"25%", "25%", -8, rollout.Bounds{Unavailable: 1}},
	} {
		got := rollout.Fenceposts(setting(t, c.surge), setting(t, c.unavailable), c.replicas)
		require.Equal(t, c.want, got, "%s, %s of %d", c.surge, c.unavailable, c.replicas)
	}
}

// TestP9FencepostsNeverBothZero: surge and unavailable are never both zero, and never negative; unavailable is no more
// than the setting says.
// Invariants: P9
func TestP9FencepostsNeverBothZero(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) rollout.IntOrPercent {
			return rollout.IntOrPercent{Value: rapid.Int32().Draw(t, name), Percent: rapid.Bool().Draw(t, name+" percent")}
		}
		surge, unavailable, replicas := draw("surge"), draw("unavailable"), rapid.Int32().Draw(t, "replicas")
		got := rollout.Fenceposts(surge, unavailable, replicas)
		require.GreaterOrEqual(t, got.Surge, int32(0))
		require.GreaterOrEqual(t, got.Unavailable, int32(0))
		require.Positive(t, int64(got.Surge)+int64(got.Unavailable))
		require.Equal(t, surge.Ceil(replicas), got.Surge)
		require.LessOrEqual(t, got.Unavailable, max(unavailable.Floor(replicas), 1))
	})
}

// fleetOf returns a fleet of one old and one new set. Each has as many machines as ordered.
func fleetOf(replicas, surge, unavailable int32, old, current rollout.Set) rollout.Fleet {
	old.Name, old.Actual = "old", old.Spec
	current.Name, current.Actual, current.New = "new", current.Spec, true
	return rollout.Fleet{
		Replicas: replicas, Bounds: rollout.Bounds{Surge: surge, Unavailable: unavailable}, Sets: []rollout.Set{old, current},
	}
}

// TestStepDecidesLikeKubernetes has decisions that are well known from Kubernetes' deployments, whose rules are the
// same. (There the new set and the old sets are resized in two decisions, so each case is about one of them.)
func TestStepDecidesLikeKubernetes(t *testing.T) {
	type set = rollout.Set
	for _, c := range []struct {
		name      string
		fleet     rollout.Fleet
		old, want int32 // sizes afterwards
	}{
		{"new: no surge and no room", fleetOf(10, 0, 0, set{Spec: 10}, set{}), 9, 0},
		{"new: up to the surge", fleetOf(10, 2, 0, set{Spec: 10, Available: 10}, set{}), 10, 2},
		{"new: surge and what is missing", fleetOf(10, 2, 0, set{Spec: 5, Available: 5}, set{}), 5, 7},
		{"new: surge in use", fleetOf(10, 2, 0, set{Spec: 10, Available: 10}, set{Spec: 2}), 10, 2},
		{"new: above the wanted number", fleetOf(10, 2, 0, set{Spec: 2, Available: 2}, set{Spec: 11, Available: 10}), 0, 10},
		{"new: not more than wanted", fleetOf(6, 10, 0, set{}, set{Spec: 2, Available: 2}), 0, 6},
		{"new: alone and too large", fleetOf(1, 1, 0, set{}, set{Spec: 5, Available: 5}), 0, 1},
		{"old: neither surge nor unavailable is one unavailable", fleetOf(10, 0, 0, set{Spec: 10, Available: 10}, set{}), 9, 0},
		{"old: down to the floor", fleetOf(10, 0, 2, set{Spec: 10, Available: 10}, set{}), 8, 0},
		{"old: unavailable ones first", fleetOf(10, 0, 2, set{Spec: 10, Available: 8}, set{}), 8, 0},
		{"old: unavailable ones and then available ones", fleetOf(10, 0, 2, set{Spec: 10, Available: 9}, set{}), 8, 0},
		{"old: new ones are not available", fleetOf(10, 0, 2, set{Spec: 8, Available: 8}, set{Spec: 2}), 8, 2},
		{"old: new ones are available", fleetOf(10, 0, 2, set{Spec: 8, Available: 8}, set{Spec: 2, Available: 2}), 6, 2},
		{"old: too few available", fleetOf(10, 2, 0, set{Spec: 8, Available: 4}, set{Spec: 4, Available: 4}), 6, 4},
		{"old: to zero once the new set is complete", fleetOf(10, 2, 0, set{Spec: 2, Available: 1}, set{Spec: 10, Available: 10}), 0, 10},
	} {
		t.Run(c.name, func(t *testing.T) {
			orders, _ := rollout.Step(c.fleet, nil)
			after := carriedOut(c.fleet, orders)
			require.Equal(t, []int32{c.old, c.want}, []int32{after.Sets[0].Spec, after.Sets[1].Spec})
		})
	}
}

// TestStepWaitsForSurplusOfNewSet: a new set with a surplus does not grow while old sets have machines. The numbers of
// machines alone would allow it.
func TestStepWaitsForSurplusOfNewSet(t *testing.T) {
	f := fleetOf(10, 2, 0, rollout.Set{Spec: 4, Available: 4}, rollout.Set{Spec: 3})
	f.Sets[1].Actual, f.Sets[1].Available = 6, 6 // three of them are about to be removed
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.Why{Reason: rollout.ReasonRemoval, Set: "new", Count: 3}, why)

	f.Sets[1].Actual, f.Sets[1].Available = 3, 3
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1)
	require.EqualValues(t, 8, orders[0].To)
}

func TestStepRaisesNewSetWithoutOldMachines(t *testing.T) {
	f := fleetOf(100, 1, 0, rollout.Set{}, rollout.Set{Spec: 10})
	f.Sets[1].Actual, f.Sets[1].Available = 100, 100
	orders, _ := rollout.Step(f, nil)
	require.Len(t, orders, 1)
	require.EqualValues(t, 100, orders[0].To)
}

func TestStepGivesRoomOfMissingMachinesToNewSet(t *testing.T) {
	f := fleetOf(10, 0, 5, rollout.Set{Spec: 5}, rollout.Set{Spec: 5, Available: 5})
	f.Sets[0].Actual, f.Sets[0].Available = 3, 3
	orders, _ := rollout.Step(f, nil)
	after := carriedOut(f, orders)
	require.Equal(t, []int32{0, 7}, []int32{after.Sets[0].Spec, after.Sets[1].Spec})
	require.Equal(t, "old", orders[0].Name, "the old set must make room before the new one grows")
}

// TestStepWithSeveralNewSets: of several new sets the last one counts.
func TestStepWithSeveralNewSets(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Surge: 3}, Sets: []rollout.Set{
		{Name: "a", New: true, Spec: 3, Actual: 3, Available: 3}, {Name: "b", New: true},
	}}
	require.False(t, rollout.Done(f))
	orders, _ := rollout.Step(f, nil)
	require.Len(t, orders, 1)
	require.Equal(t, "b", orders[0].Name)
}

func TestDone(t *testing.T) {
	full := rollout.Set{New: true, Spec: 3, Actual: 3, Available: 3}
	for _, c := range []struct {
		name string
		sets []rollout.Set
		want bool
	}{
		{"no set", nil, false},
		{"no new set", []rollout.Set{{Spec: 3, Actual: 3, Available: 3}}, false},
		{"complete", []rollout.Set{full}, true},
		{"complete, old sets empty", []rollout.Set{{}, full, {Spec: -1, Actual: -1, Available: 5}}, true},
		{"an old order", []rollout.Set{{Spec: 1}, full}, false},
		{"an old machine", []rollout.Set{{Actual: 1}, full}, false},
		{"not ordered", []rollout.Set{{New: true, Spec: 2, Actual: 3, Available: 3}}, false},
		{"not there", []rollout.Set{{New: true, Spec: 3, Actual: 2, Available: 3}}, false},
		{"too many there", []rollout.Set{{New: true, Spec: 3, Actual: 4, Available: 3}}, false},
		{"not available", []rollout.Set{{New: true, Spec: 3, Actual: 3, Available: 2}}, false},
	} {
		require.Equal(t, c.want, rollout.Done(rollout.Fleet{Replicas: 3, Sets: c.sets}), c.name)
	}
	require.True(t, rollout.Done(rollout.Fleet{Replicas: -3, Sets: []rollout.Set{{New: true}}}))
}

// TestStepAllocations: with a large enough buffer Step allocates nothing, without one it allocates once.
func TestStepAllocations(t *testing.T) {
	for _, f := range []rollout.Fleet{tenSets(200, 40, 30), tenSets(110, 40, 30), tenSets(220, 60, 0)} {
		buffer := make([]rollout.Scale, 0, len(f.Sets))
		require.Zero(t, testing.AllocsPerRun(100, func() { buffer, _ = rollout.Step(f, buffer) }))
		require.LessOrEqual(t, testing.AllocsPerRun(100, func() { rollout.Step(f, nil) }), 1.0)
	}
}

// disagreement says for which set the sizes of Step and of the oracle differ. Empty: they agree.
func disagreement(f rollout.Fleet, orders []rollout.Scale) string {
	o := newOracle(f)
	before := make(map[string]int64, len(f.Sets))
	for _, c := range o.sets() {
		before[c.name] = c.spec
	}
	o.run()
	ordered := make(map[string]rollout.Scale, len(orders))
	for _, order := range orders {
		if _, twice := ordered[order.Name]; twice {
			return "two orders for " + order.Name
		}
		ordered[order.Name] = order
	}
	for _, c := range o.sets() {
		order, changed := ordered[c.name]
		switch {
		case changed && (int64(order.From) != before[c.name] || order.From == order.To):
			return "order for " + c.name + " does not start at its size, or changes nothing"
		case changed && int64(order.To) != c.spec, !changed && c.spec != before[c.name]:
			return "other size for " + c.name
		}
	}
	return ""
}

func compareWithOracle(t *testing.T, f rollout.Fleet, buffer []rollout.Scale) []rollout.Scale {
	t.Helper()
	orders, _ := rollout.Step(f, buffer)
	if what := disagreement(f, orders); what != "" {
		o := newOracle(f)
		o.run()
		t.Fatalf("%s\nfleet  %+v\norders %+v\noracle %v", what, f, orders, sizesOf(o.sets()))
	}
	return orders
}

// TestStepAgreesWithOracleExhaustively: one old and one new set, with all combinations of small numbers.
func TestStepAgreesWithOracleExhaustively(t *testing.T) {
	var states []rollout.Set
	for spec := range int32(5) {
		for actual := range int32(5) {
			for available := range actual + 1 {
				states = append(states, rollout.Set{Spec: spec, Actual: actual, Available: available})
			}
		}
	}
	var orders []rollout.Scale
	for n := range int32(4 * 3 * 3) {
		f := rollout.Fleet{Replicas: n % 4, Bounds: rollout.Bounds{Surge: n / 4 % 3, Unavailable: n / 12}}
		f.Sets = make([]rollout.Set, 2)
		for _, old := range states {
			for _, current := range states {
				f.Sets[0], f.Sets[1] = old, current
				f.Sets[0].Name, f.Sets[1].Name, f.Sets[1].New = "old", "new", true
				orders = compareWithOracle(t, f, orders)
			}
		}
	}
}

func TestStepAgreesWithOracleOnSmallFleets(t *testing.T) {
	cases := 800_000
	if testing.Short() {
		cases = 100_000
	}
	n := smallNumbers(rand.New(rand.NewPCG(1, 2)))
	var orders []rollout.Scale
	for range cases {
		orders = compareWithOracle(t, n.fleet(4), orders)
	}
}

// Invariants: P9
func TestStepAgreesWithOracleOnAnyInt32(t *testing.T) {
	cases := 100_000
	if testing.Short() {
		cases = 10_000
	}
	n := extremeNumbers(rand.New(rand.NewPCG(3, 4)))
	var orders []rollout.Scale
	for range cases {
		orders = compareWithOracle(t, n.fleet(5), orders)
	}
}

// TestStepAgreesWithOracleOnManySets: there are more sets than fit into the storage on the stack.
func TestStepAgreesWithOracleOnManySets(t *testing.T) {
	n := smallNumbers(rand.New(rand.NewPCG(5, 6)))
	var orders []rollout.Scale
	for range 2_000 {
		orders = compareWithOracle(t, n.fleet(60), orders)
	}
}

// TestP8StrictQuota: under a strict quota, no order of any strategy raises the number of machines, including
// terminating ones, above R + S. If there is no order and the rollout is not done, the reason says what it waits
// for.
// Invariants: P8
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleets().Draw(t, "fleet")
		f.Strict = true
		for i := range f.Sets {
			f.Sets[i].Terminating = rapid.SampledFrom([]int32{0, 0, 1, 2, 5, -1}).Draw(t, "terminating")
		}
		onHold, recreated := f, f
		onHold.StopAfter, onHold.Failed = 1, 1
		recreated.Bounds = rollout.Bounds{Unavailable: math.MaxInt32}
		strategy := rapid.SampledFrom([]struct {
			decide rule
			checks rollout.Fleet
		}{{rollout.Step, f}, {rollout.Resize, onHold}, {rollout.Recreate, recreated}}).Draw(t, "strategy")
		orders, why := strategy.decide(f, nil)
		require.NoError(t, rollout.Check(strategy.checks, orders), "P8: %v", f)
		require.NotEmpty(t, why.String())
		if why.Reason == rollout.ReasonDone {
			require.True(t, rollout.Done(f), "the reason is Done, but the rollout is not done")
		}
	})
}

// TestP8StrictQuotaSaysWhatItWaitsFor: the reason says so if no machine can be created because terminating ones count.
func TestP8StrictQuotaSaysWhatItWaitsFor(t *testing.T) {
	f := rollout.Fleet{Replicas: 3, Bounds: rollout.Bounds{Surge: 1}, Strict: true, Sets: []rollout.Set{
		{Name: "old", Spec: 2, Actual: 2, Available: 2, Terminating: 1},
		{Name: "new", New: true, Spec: 1, Actual: 1, Available: 1},
	}}
	orders, why := rollout.Step(f, nil)
	require.Empty(t, orders)
	require.Equal(t, "1 machine of set new; waiting for 1 terminating machine to be gone, which count: ceiling is 4", why.String())
	orders, why = rollout.Resize(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.ReasonHeld, why.Reason, "three are ordered already")
	f.Sets[0].Terminating = 0
	orders, _ = rollout.Step(f, nil)
	require.Len(t, orders, 1)
	f.Sets[0] = rollout.Set{Name: "old", Spec: 1, Actual: 1, Available: 1, Terminating: 2}
	orders, why = rollout.Resize(f, nil)
	require.Empty(t, orders)
	require.Equal(t, rollout.ReasonQuota, why.Reason)
}
