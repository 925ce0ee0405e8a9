package deployment_test

import (
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
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/test/fuzzing"
)

func decide(t require.TestingT, o *deployment.Observation, now time.Time) deployment.Plan {
	plan, err := deployment.Decide(o, deployment.DefaultPolicy(), now)
	require.NoError(t, err)
	return plan
}

// size returns the ordered size of an observed set.
func size(c deployment.Children) int {
	if c.Set.Deleted() {
		return 0
	}
	return int(c.Set.Spec.Replicas)
}

// totals returns how many machines there may be, and how many are available once the sets have their sizes.
func totals(o *deployment.Observation, now time.Time) (total, usable int) {
	for _, c := range o.Sets {
		actual, isAvailable := 0, 0
		for _, m := range c.Machines {
			if !m.Deleted() {
				actual++
				if available(m, o.Deployment.Spec.MinReady, now) {
					isAvailable++
				}
			}
		}
		total += max(size(c), actual)
		usable += min(size(c), isAvailable)
	}
	return total, usable
}

// mostDecisions limits loops in tests, so that a mistake ends as a failure.
const mostDecisions = 1000

// upToScale carries out plans until one resizes a set, writes, or waits, and returns that one.
func upToScale(t require.TestingT, o *deployment.Observation) deployment.Plan {
	for decisions := 0; ; decisions++ {
		require.Less(t, decisions, mostDecisions, "no plan resizes, writes or waits")
		plan := decide(t, o, begin)
		if plan.Write != nil || !plan.At.IsZero() || len(plan.Scale) > 0 {
			return plan
		}
		follow(t, o, plan)
	}
}

// apply carries out one resizing in the observation.
func apply(o *deployment.Observation, order deployment.Order) {
	for i := range o.Sets {
		if o.Sets[i].Set.UID == order.Set.UID {
			o.Sets[i].Set = order.Set
		}
	}
}

// TestP2P7P9OneDecision: from any state, even if scaling and rolling are both due, the orders of a decision keep the
// bounds if they are carried out one after the other. Each size is from 0 to R + S. No order is for a set that is
// being deleted.
// Invariants: P2
func TestP2P7P9OneDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		spec := &o.Deployment.Spec
		ceiling, floor := limitsOf(spec)
		for _, order := range upToScale(t, o).Scale {
			total, usable := totals(o, begin)
			apply(o, order)
			totalThen, usableThen := totals(o, begin)
			require.LessOrEqual(t, totalThen, max(total, ceiling), "P7: %s", order.Why)
			require.GreaterOrEqual(t, usableThen, min(usable, floor), "P7: %s", order.Why)
			require.GreaterOrEqual(t, order.Set.Spec.Replicas, int32(0), "P9")
			require.LessOrEqual(t, int(order.Set.Spec.Replicas), ceiling, "P9")
			require.False(t, order.Set.Deleted())
		}
	})
}

// TestP5PendingOrders: when the orders are carried out and the sets have not acted yet, nothing more is ordered.
// Invariants: P5
func TestP5PendingOrders(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		plan := upToScale(t, o)
		if len(plan.Scale) == 0 {
			t.Skip("nothing to scale")
		}
		for _, order := range plan.Scale {
			apply(o, order)
		}
		again := decide(t, o, begin)
		require.Empty(t, again.Scale, "P5: %s", again.Why)
	})
}

// TestP4NoRollout: while the template stays the same, no other set is created or used, whatever else changes in the
// spec.
// Invariants: P4
func TestP4NoRollout(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, false)
		require.GreaterOrEqual(t, c.converge(), 0)
		name := c.sets[0].Name
		for range rapid.IntRange(1, 6).Draw(t, "edits") {
			c.edit(func(s *deployment.Spec) {
				s.Replicas = rapid.Int32Range(0, 9).Draw(t, "replicas")
				s.Strategy = drawStrategy(t)
				s.MinReady = time.Duration(rapid.IntRange(0, 5).Draw(t, "min ready")) * time.Second
				s.Template.Spec.Class.Kind = rapid.SampledFrom([]string{"", "Foreign"}).Draw(t, "class kind")
				s.Template.Spec.NodeTemplate.Labels = map[string]string{"pool": rapid.SampledFrom(classes).Draw(t, "pool")}
				s.Template.Spec.Config.DrainTimeout = time.Duration(rapid.IntRange(0, 3).Draw(t, "drain")) * time.Minute
				s.Template.Labels = map[string]string{"app": "web", "machine-template-hash": rapid.SampledFrom(classes).Draw(t, "hash")}
			})
			require.GreaterOrEqual(t, c.converge(), 0)
			require.Len(t, c.sets, 1, "P4")
			require.Equal(t, 1, c.setsCreated, "P4")
			require.Equal(t, name, c.sets[0].Name)
			require.Equal(t, c.deployment.Spec.Replicas, c.sets[0].Spec.Replicas)
			have, want := c.sets[0].Spec.Template.Spec, c.deployment.Spec.Template.Spec
			require.Equal(t, want, have, "pushed to the set")
		}
	})
}

// TestP10Counting: each machine counts only for the set that owns it, even if it is listed with another set or twice.
// Sets of other owners do not count.
// Invariants: P10
func TestP10Counting(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		want := decide(t, o, begin)
		var all []*machine.Machine
		for _, c := range o.Sets {
			all = append(all, c.Machines...)
		}
		for i := range o.Sets {
			o.Sets[i].Machines = all
		}
		foreign := drawChildren(t, o.Deployment, 9)
		foreign.Set.Owner = rapid.SampledFrom([]*object.Owner{nil, {}, {UID: "other"}}).Draw(t, "owner")
		o.Sets = append(o.Sets, foreign)
		o.Sets = append(o.Sets, o.Sets[0]) // listed twice
		require.Equal(t, want, decide(t, o, begin), "P10")
	})
}

// TestP11AnyInput: for any input, Decide does not panic, and returns a proper plan. (A deployment without UID, which
// is the caller's mistake, is not among these inputs.)
// Invariants: P11
func TestP11AnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := drawGarbage(t)
		plan, err := deployment.Decide(o, deployment.DefaultPolicy(), begin)
		require.NoError(t, err)
		requireSentence(t, plan.Why)
		kinds := 0
		for kind, orders := range ordersOf(&plan) {
			if len(orders) > 0 {
				kinds++
			}
			for _, order := range orders {
				require.NotNil(t, order.Set, kind)
				requireSentence(t, order.Why)
				require.True(t, o.Read.Live(), "%s without a live read", kind)
				require.False(t, o.Deployment.Deleted() && kind != "delete", "P25: %s", kind)
			}
		}
		if plan.Write != nil {
			kinds++
		}
		if plan.ReadLive {
			kinds++
		}
		require.LessOrEqual(t, kinds, 1)
	})
}

// requireSentence requires a reason whose text has all its parts filled in.
func requireSentence(t require.TestingT, why decision.Why) {
	require.NotEmpty(t, why.Reason)
	require.NotEqual(t, why.Reason.String(), why.String())
	require.NotContains(t, why.String(), "{")
}

// TestP27Deterministic: the same observation gives the same plan, whatever the order of sets and machines, and a
// decision does not change the observation.
// Invariants: P27
func TestP27Deterministic(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := rapid.OneOf(rapid.Custom(drawLive), rapid.Custom(drawGarbage)).Draw(t, "observation")
		before := copyOf(o)
		plan := decide(t, o, begin)
		require.Equal(t, before, copyOf(o), "Decide changed the observation")
		require.Equal(t, plan, decide(t, copyOf(o), begin), "P27")
	})
	rapid.Check(t, func(t *rapid.T) {
		o := drawLive(t)
		plan := decide(t, o, begin)
		shuffled := copyOf(o)
		slices.Reverse(shuffled.Sets)
		for i := range shuffled.Sets {
			slices.Reverse(shuffled.Sets[i].Machines)
		}
		require.Equal(t, plan, decide(t, shuffled, begin), "P27: the plan depends on the order of sets or machines")
	})
}

// TestCallersMistakes: a missing observation, a deployment without UID, and an invalid policy are errors.
func TestCallersMistakes(t *testing.T) {
	o := &deployment.Observation{Deployment: web(1)}
	_, err := deployment.Decide(nil, deployment.DefaultPolicy(), begin)
	require.ErrorIs(t, err, decision.ErrNoObservation)
	_, err = deployment.Decide(&deployment.Observation{}, deployment.DefaultPolicy(), begin)
	require.ErrorIs(t, err, decision.ErrNoObservation)
	for _, p := range []*deployment.Policy{nil, {}, deployment.DefaultPolicy()} {
		_, err = deployment.Decide(o, p, begin)
		require.ErrorIs(t, err, object.ErrInvalid)
		require.EqualError(t, err, "deployment fleet/web: metadata.uid must not be empty")
	}

	for field, change := range map[string]func(*deployment.Policy){
		"policy.statusInterval":    func(p *deployment.Policy) { p.StatusInterval = -2 },
		"policy.progressInterval":  func(p *deployment.Policy) { p.ProgressInterval = -1 },
		"policy.gather":            func(p *deployment.Policy) { p.Gather = -1 },
		"policy.names":             func(p *deployment.Policy) { p.Names = 1001 },
		"policy.resync":            func(p *deployment.Policy) { p.Resync = time.Second - 1 },
		"policy.retry":             func(p *deployment.Policy) { p.Retry = codes.Requeue },
		"policy.failedSummaries":   func(p *deployment.Policy) { p.FailedSummaries = -2 },
		"policy.keys.templateHash": func(p *deployment.Policy) { p.Keys.TemplateHash = "" },
	} {
		p := deployment.DefaultPolicy()
		change(p)
		_, err := deployment.Decide(o, p, begin)
		var bad *object.FieldError
		require.ErrorAs(t, err, &bad)
		require.Equal(t, field, bad.Field)
	}
}

// TestMaxReplicas: a deployment that is larger than the policy's limit is invalid: nothing is ordered, and its status
// says why. Its machines are still counted.
func TestMaxReplicas(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.MaxReplicas = 5
	for replicas, refused := range map[int32]bool{5: false, 6: true, math.MaxInt32: true} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Replicas = replicas
		plan, err := deployment.Decide(o, p, begin)
		require.NoError(t, err)
		require.Equal(t, !refused, len(plan.Scale) > 0, plan.Why)
		if !refused {
			continue
		}
		status := statusOf(t, plan)
		c := object.FindCondition(status.Conditions, deployment.ConditionSpecValid)
		require.Equal(t, object.False, c.Status)
		require.Contains(t, c.Message, "spec.replicas must be at most 5, the policy's limit")
		require.Equal(t, int32(3), status.Replicas)
		o.Deployment.Status = status
		plan, err = deployment.Decide(o, p, begin)
		require.NoError(t, err)
		require.Nil(t, plan.Write)
		require.Contains(t, plan.Why.String(), "at most 5")

		plan, err = deployment.Decide(o, &deployment.Policy{MaxReplicas: object.Off}, begin)
		require.NoError(t, err)
		require.NotEmpty(t, plan.Scale, "no limit")
	}
	for replicas, refused := range map[int32]bool{10_000: false, 10_001: true} {
		o := settledObservation(t, 3)
		o.Deployment.Spec.Replicas = replicas
		plan, err := deployment.Decide(o, nil, begin)
		require.NoError(t, err)
		require.Equal(t, refused, len(plan.Scale) == 0, "the default")
	}
	p.MaxReplicas = -2
	_, err := deployment.Decide(settledObservation(t, 1), p, begin)
	require.ErrorIs(t, err, object.ErrInvalid)
}

// TestLongNames: the names of new sets are short enough for the names of their machines. An existing set keeps its
// name.
func TestLongNames(t *testing.T) {
	for name, begins := range map[string]string{
		"web":                          "web-",
		strings.Repeat("n", 38):        strings.Repeat("n", 38) + "-",
		strings.Repeat("n", 39):        strings.Repeat("n", 38) + "-",
		strings.Repeat("n", 37) + "-b": strings.Repeat("n", 37) + "-",
		strings.Repeat("n", 63):        strings.Repeat("n", 38) + "-",
	} {
		d := stored(3)
		d.Name = name
		plan := decide(t, &deployment.Observation{Deployment: d, Read: live}, begin)
		require.Len(t, plan.Create, 1)
		created := plan.Create[0].Set
		require.True(t, strings.HasPrefix(created.Name, begins), created.Name)
		require.Len(t, created.Name, len(begins)+10)
		require.LessOrEqual(t, len(created.Name), machineset.LongestName)
		created.UID = "u"
		require.LessOrEqual(t, len(created.MachineName(9_999_999)), 63)

		own := ownSet(d, name+"-0123456789", 3)
		plan = decide(t, &deployment.Observation{Deployment: d, Read: live, Sets: []deployment.Children{own}}, begin)
		require.Empty(t, plan.Create)
	}
}

// TestMinReadyIgnored: with IgnoreMinReady, decisions are the same as for a deployment without MinReady. Only the
// field itself stays, and is copied to sets.
func TestMinReadyIgnored(t *testing.T) {
	p := deployment.DefaultPolicy()
	p.IgnoreMinReady = true
	without := func(plan deployment.Plan) deployment.Plan {
		for _, orders := range ordersOf(&plan) {
			for i := range orders {
				orders[i].Set = orders[i].Set.Clone()
				orders[i].Set.Spec.MinReady = 0
			}
		}
		if update, ok := plan.Write.(*deployment.Update); ok {
			d := update.Deployment.Clone()
			d.Spec.MinReady = 0
			plan.Write = &deployment.Update{Deployment: d, Event: update.Event}
		}
		return plan
	}
	rapid.Check(t, func(rt *rapid.T) {
		o := drawLive(rt)
		minReady := o.Deployment.Spec.MinReady
		got, err := deployment.Decide(o, p, begin)
		require.NoError(rt, err)
		for _, order := range got.Create {
			require.Equal(rt, minReady, order.Set.Spec.MinReady)
		}
		none := copyOf(o)
		none.Deployment.Spec.MinReady = 0
		for i := range none.Sets {
			none.Sets[i].Set.Spec.MinReady = 0
		}
		require.Equal(rt, without(decide(rt, none, begin)), without(got))
	})
}

func init() { scenarios["strict-quota"] = strictQuota }

func strictQuota(t *testing.T) *scenario {
	s := settled(t, web(2))
	s.strict, s.shell.p.StrictQuota = true, true
	s.comment("another class is wanted, and all machines take their time to go")
	s.edit(class("large"))
	s.decide()
	s.runSetControllers()
	for _, m := range s.machines {
		s.advanceMachine(m)
	}
	s.decide()
	s.runSetControllers()
	s.pass(time.Minute)
	s.decide()
	s.comment("the first is gone")
	s.advanceMachines()
	s.decide()
	return s
}

// TestP8StrictQuota: under a strict quota, the number of all machines, including terminating ones and those about to be
// created, never exceeds R + S, whatever the order of events in a rollout. The rollout converges.
// Invariants: P8
func TestP8StrictQuota(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		c.strict = true
		startShell := func() { c.startShell(); c.shell.p.StrictQuota = true }
		startShell()
		require.GreaterOrEqual(t, c.converge(), 0)
		startShell()
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.randomStep()
			ceiling, _ := limitsOf(&c.deployment.Spec)
			all := 0
			for _, s := range c.setsOf(c.deployment.UID) {
				all += len(c.machinesOf(s.UID)) + len(c.reserved[s.UID])
			}
			require.LessOrEqual(t, all, ceiling, "P8: more machines, with those being deleted, than R + S: %s", c)
		}
		c.observe = func(_ *deployment.Observation, p deployment.Plan) {
			if !p.At.IsZero() {
				require.NotEmpty(t, p.Why.String())
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0, "P3: never converges: %s", c)
		requireComplete(t, c.world)
	})
}

// TestStrategyNotSet: the zero strategy means 25% surge and 25% unavailable. A strategy with only a kind has neither,
// which counts as one unavailable machine, with a warning.
func TestStrategyNotSet(t *testing.T) {
	kind := deployment.Strategy{Kind: deployment.RollingUpdate}
	more := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Value: 2}}
	none := deployment.Strategy{MaxSurge: rollout.IntOrPercent{Percent: true}, MaxUnavailable: rollout.IntOrPercent{Percent: true}}
	for _, c := range []struct {
		strategy deployment.Strategy
		replicas int32
		want     rollout.Bounds
		warns    bool
	}{
		{deployment.Strategy{}, 10, rollout.Bounds{Surge: 3, Unavailable: 2}, false},
		{deployment.Strategy{}, 1, rollout.Bounds{Surge: 1}, false},
		{deployment.Strategy{}, 0, rollout.Bounds{Unavailable: 1}, false},
		{deployment.Strategy{}, -4, rollout.Bounds{Unavailable: 1}, false},
		{kind, 10, rollout.Bounds{Unavailable: 1}, true},
		{none, 10, rollout.Bounds{Unavailable: 1}, true},
		{deployment.Strategy{Kind: deployment.InPlaceUpdate}, 10, rollout.Bounds{Unavailable: 1}, true},
		{more, 10, rollout.Bounds{Surge: 2}, false},
		{deployment.Rolling(rollout.IntOrPercent{}, rollout.IntOrPercent{}), 10, rollout.Bounds{Unavailable: 1}, true},
		{deployment.Rolling(rollout.IntOrPercent{Value: 2}, rollout.IntOrPercent{}), 10, rollout.Bounds{Surge: 2}, false},
		{deployment.Rolling(rollout.IntOrPercent{}, rollout.IntOrPercent{Value: 20, Percent: true}), 10, rollout.Bounds{Unavailable: 2}, false},
		{deployment.Strategy{Kind: deployment.Recreate}, 10, rollout.Bounds{Unavailable: 10}, false},
		{deployment.Strategy{Kind: deployment.Recreate}, -10, rollout.Bounds{}, false},
	} {
		require.Equal(t, c.want, c.strategy.Bounds(c.replicas), "%+v of %d", c.strategy, c.replicas)
		if c.replicas < 0 {
			continue // it is invalid, so there is no warning about the strategy
		}
		o := settledObservation(t, int(c.replicas))
		o.Deployment.Spec.Strategy = c.strategy
		plan := decide(t, o, begin)
		if plan.Write != nil { // a condition has the bounds
			o.Deployment.Status = statusOf(t, plan)
			plan = decide(t, o, begin)
		}
		if !c.warns {
			require.Equal(t, decision.Why{}, plan.Warn, "%+v", c.strategy)
			continue
		}
		require.Contains(t, plan.Warn.String(), "maxSurge and maxUnavailable are both 0", "%+v", c.strategy)
	}
}

// invalidTemplate gives the node template a label that no API server accepts.
func invalidTemplate(spec *deployment.Spec) {
	spec.Template.Spec.NodeTemplate.Labels = map[string]string{"spoilt": strings.Repeat("x", 70)}
}

func validTemplate(spec *deployment.Spec) { spec.Template.Spec.NodeTemplate.Labels = nil }

// TestInvalidEntriesAreTakenBackFromAllSets: a set gets a node template that no API server accepts, and becomes an old
// set before that is corrected. Its machines that have no VM yet wait for a valid template. So the set gets the
// corrected one, with any strategy, paused or not.
func TestInvalidEntriesAreTakenBackFromAllSets(t *testing.T) {
	for _, kind := range []deployment.StrategyKind{deployment.InPlaceUpdate, deployment.RollingUpdate, deployment.Recreate} {
		for _, paused := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s paused %t", kind, paused), func(t *testing.T) {
				d := inPlace(3, 0, 1)
				d.Spec.Strategy.Kind = kind
				s := settled(t, d)
				s.edit(class("large"))
				s.decide()
				s.edit(invalidTemplate)
				s.runRounds(1)
				require.NotNil(t, s.sets[1].Spec.Template.InvalidEntry())
				s.edit(class("small"))
				s.runRounds(1)
				for _, set := range s.sets {
					require.NotNil(t, set.Spec.Template.InvalidEntry(), "%s", set.Name)
				}
				s.edit(func(spec *deployment.Spec) { spec.Paused = paused })
				s.edit(validTemplate)
				s.pass(time.Minute)
				s.decide()
				for _, set := range s.sets {
					require.Nil(t, set.Spec.Template.InvalidEntry(), "%s", set.Name)
				}
			})
		}
	}
}

// waitsFor are the reasons of a wait before the rollout is done.
var waitsFor = map[rollout.Reason]bool{
	rollout.ReasonFloor: true, rollout.ReasonRemoval: true, rollout.ReasonNewUnavailable: true,
	rollout.ReasonOldPresent: true, rollout.ReasonUpdating: true, rollout.ReasonUnselected: true, rollout.ReasonUnfit: true, rollout.ReasonPaused: true,
	rollout.ReasonUnseen: true, rollout.ReasonStopped: true,
}

// TestP7UnderFaults: each order keeps the rules of chaos.check in any order of events, with stale reads, crashes,
// refusals and users who change objects: P7 and P9 for sizes, P10 for owners, P12 for new sets, P25 during a deletion.
// Invariants: P6 P7 P10
func TestP7UnderFaults(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.randomStep()
		}
	})
}

// TestP7EndToEnd: without failures, and while R and the bounds stay the same, the fleet itself never leaves the bounds
// in any order of events, not even for a moment.
// Invariants: P7
func TestP7EndToEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, false, true)
		require.GreaterOrEqual(t, c.converge(), 0)
		c.startShell()
		spec := &c.deployment.Spec
		ceiling, floor := limitsOf(spec)
		for range rapid.IntRange(1, 300).Draw(t, "steps") {
			c.randomStep()
			total, usable, now := c.sums()
			require.LessOrEqual(t, total, ceiling, "P7: more machines than R + S: %s", c)
			require.GreaterOrEqual(t, now, floor, "P7: fewer machines available than R - U: %s", c)
			require.GreaterOrEqual(t, usable, floor, "P7: fewer machines available than R - U once the sets have their sizes: %s", c)
		}
	})
}

// TestP3Converges: once faults stop, the fleet gets the wanted template and size in a bounded number of decisions. Each
// pass that ends without an order says that the rollout is done, or what it waits for.
// Invariants: P3 P21
func TestP3Converges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 200).Draw(t, "steps") {
			c.randomStep()
		}
		c.observe = func(o *deployment.Observation, p deployment.Plan) {
			if p.At.IsZero() {
				return
			}
			switch {
			case p.Why.Reason == deployment.ReasonThrottled, deployment.RolloutOf(p.Why).Reason == rollout.ReasonDone:
				total, usable := totals(o, c.now)
				require.Equal(t, int(o.Deployment.Spec.Replicas), total, "P3: reported as done, but with another number of machines: %s", c)
				require.Equal(t, total, usable, "P3: reported as done, but some are not available: %s", c)
			case p.Why.Reason == deployment.ReasonBatched:
				require.False(t, p.At.After(c.now.Add(c.gather)), "P21: orders gather for longer than they may")
			case p.Why.Reason == deployment.ReasonSeen, p.Why.Reason == deployment.ReasonNameFree:
			case o.Deployment.Spec.Paused: // a user continues a rollout that has stopped
			case !waitsFor[deployment.RolloutOf(p.Why).Reason]:
				t.Fatalf("P3: waiting for nothing: %s", p.Why)
			}
			require.False(t, p.At.Before(c.now), "P21: waiting until a time in the past")
			require.False(t, p.At.After(c.now.Add(c.shell.p.Resync)), "P21: waiting for longer than Resync")
		}
		decisions := c.converge()
		require.GreaterOrEqual(t, decisions, 0, "P3: never converges: %s", c)
		// Each machine takes one or two passes, of at most 6 decisions.
		require.LessOrEqual(t, decisions, 12*(len(c.sets)+9+4))
		requireComplete(t, c.world)
	})
}

// requireComplete requires all machines of the deployment in one set of the wanted template, and a
// status that says so.
func requireComplete(t require.TestingT, w *world) {
	d := w.deployment
	sets := 0
	for _, s := range w.setsOf(d.UID) {
		n := w.numbers(s)
		if s.Spec.Template.Spec.Class == d.Spec.Template.Spec.Class && n.spec == int(d.Spec.Replicas) {
			sets++
		} else if n.spec != 0 || n.actual != 0 {
			require.Fail(t, "P3: an old set has machines left: "+w.String())
			continue
		}
		if n.spec == int(d.Spec.Replicas) && n.spec > 0 {
			require.Equal(t, n.spec, n.available, "P3: %s", w)
		}
	}
	require.Positive(t, sets, "P3: no set of the wanted template: %s", w)
	require.Equal(t, d.Spec.Replicas, d.Status.Updated)
	require.Equal(t, d.Spec.Replicas, d.Status.Available)
	require.Equal(t, d.Generation, d.Status.ObservedGeneration)
}

// TestP28SettledIsQuiet: while the deployment is settled and unchanged, nothing is written, ordered or read live.
// Invariants: P28
func TestP28SettledIsQuiet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 100).Draw(t, "steps") {
			c.randomStep()
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		c.observe = func(_ *deployment.Observation, p deployment.Plan) {
			require.Nil(t, p.Write, "P28: %s", p.Why)
			require.False(t, p.ReadLive, "P28: %s", p.Why)
			for kind, orders := range ordersOf(&p) {
				require.Empty(t, orders, "P28: %s", kind)
			}
		}
		for range 3 {
			plan := c.shell.pass()
			c.now = plan.At
		}
		c.startShell() // neither after a restart
		c.shell.age = nil
		c.shell.pass()
	})
}

// TestP25Deleted: a deployment that is being deleted only deletes, and is gone after its sets, whatever faults occur.
// Invariants: P25
func TestP25Deleted(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t, true, false)
		for range rapid.IntRange(1, 60).Draw(t, "steps before") {
			c.randomStep()
		}
		uid := c.deployment.UID
		c.deleteDeployment()
		for range rapid.IntRange(1, 60).Draw(t, "steps after") {
			c.randomStep()
			if c.deployment == nil {
				break
			}
		}
		require.GreaterOrEqual(t, c.converge(), 0)
		require.Nil(t, c.deployment)
		require.Empty(t, c.setsOf(uid))
	})
}

// form reads bytes as observations of deployments. The corpus depends on the order of the words.
var form = fuzzing.Form{Now: begin, Words: []string{
	"", namespace, "web", "web-uid", "app", "machine-template-hash", "web-0", "web-1", "set-0", "set-1", "small", "large",
	deployment.OwnerKind, machineset.OwnerKind, deployment.Finalizer, machineset.Finalizer, machine.Finalizer,
	string(deployment.RollingUpdate), string(deployment.Recreate), string(deployment.InPlaceUpdate),
	string(machine.PhasePending), string(machine.PhaseAvailable), string(machine.PhaseRunning), string(machine.PhaseUnknown),
	string(machine.PhaseFailed), string(machine.PhaseCrashLoopBackOff), string(machine.PhaseTerminating),
	string(machine.PhaseInPlaceUpdating), string(machine.PhaseInPlaceUpdateSuccessful), string(machine.PhaseInPlaceUpdateFailed),
	string(machine.StateProcessing), string(machine.StateFailed), string(machine.StateSuccessful),
	string(machine.InPlaceCandidate), string(machine.InPlaceWaiting), string(machine.InPlaceSelected), deployment.ConditionProgressing,
	"node.machine.sapcloud.io/trigger-deletion-by-mcm", "node.machine.sapcloud.io/preserve", "web-0-1,web-0-2", "now", "when-failed",
}}

func drawn(t *rapid.T) (*deployment.Observation, *deployment.Policy) {
	o := drawGarbage(t)
	if o.Deployment.UID == "" {
		o.Deployment.UID = "web-uid"
	}
	return o, deployment.DefaultPolicy()
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	d := fuzzing.Decision[deployment.Observation, *deployment.Policy, deployment.Plan]{
		Form: form, Policy: deployment.DefaultPolicy, Decide: deployment.Decide,
		Whole: func(o *deployment.Observation) {
			if o.Deployment == nil {
				o.Deployment = web(3)
			}
			if o.Deployment.UID == "" { // no store has a deployment without one
				o.Deployment.UID = "web-uid"
			}
		},
		Check: func(t testing.TB, _ *deployment.Observation, plan deployment.Plan) {
			require.NotEmpty(t, plan.Why.String())
			require.True(t, plan.At.IsZero() || plan.At.After(begin), "a wait that is over: %v", plan.At)
		},
	}
	d.Fuzz(f, d.Drawn(40, drawn)...)
}
