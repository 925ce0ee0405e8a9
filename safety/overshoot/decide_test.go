package overshoot_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/overshoot"
	"github.com/millwright-go/millwright/test/safetytest"
)

// fleet is a deployment with sets of some sizes, or a set without a deployment, in a store that compares and swaps.
type fleet struct {
	safetytest.Journal
	t          require.TestingT
	policy     *safety.Policy
	deployment *deployment.Deployment
	sets       []*machineset.Set
	sizes      []int
	writes     int
	// name returns the name of a set's machine of that number.
	name func(*machineset.Set, int) string
	// created returns when a set's machine of that number was stored. Nil: not known.
	created func(set, n int) time.Time
}

func newFleet(t require.TestingT, replicas int32, sizes ...int) *fleet {
	h := &fleet{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), sizes: sizes}
	h.name = func(s *machineset.Set, n int) string { return s.MachineName(int64(n + 1)) }
	h.deployment = &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}, UID: "d", Version: "0"}}
	h.deployment.Spec.Replicas = replicas
	h.deployment.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 1}
	for i := range sizes {
		s := &machineset.Set{Meta: object.Meta{Key: object.Key{Name: "web-" + strconv.Itoa(i+1)}, UID: "s" + strconv.Itoa(i), Version: "0"}}
		s.Owner = &object.Owner{UID: "d"}
		s.Spec.Replicas, s.Instructions.Reservation.Reserved = replicas, 1000
		h.sets = append(h.sets, s)
	}
	return h
}

func newLoneSet(t require.TestingT, replicas int32, size int) *fleet {
	h := newFleet(t, replicas, size)
	h.deployment, h.sets[0].Owner = nil, nil
	return h
}

// observe returns what an up-to-date cache shows.
func (h *fleet) observe() *overshoot.Observation {
	o := &overshoot.Observation{Deployment: h.deployment}
	for i, s := range h.sets {
		c := deployment.Children{Set: s}
		for n := range h.sizes[i] {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: h.name(s, n)}, Owner: &object.Owner{UID: s.UID}}}
			if h.created != nil {
				m.CreatedAt = h.created(i, n)
			}
			c.Machines = append(c.Machines, m)
		}
		deleted := &machine.Machine{Meta: object.Meta{DeletedAt: safetytest.Epoch, Owner: &object.Owner{UID: s.UID}}}
		c.Machines = append(c.Machines, nil, deleted, &machine.Machine{Meta: object.Meta{Owner: &object.Owner{UID: "another"}}})
		o.Sets = append(o.Sets, c)
	}
	return o
}

// write carries out a plan. It returns false after a conflict.
func (h *fleet) write(w overshoot.Write) bool {
	h.writes++
	next := strconv.Itoa(h.writes)
	switch w := w.(type) {
	case *overshoot.LabelDeployment:
		if w.Deployment.Version != h.deployment.Version {
			return false
		}
		h.deployment = w.Deployment.Clone()
		h.deployment.Version = next
	case *overshoot.TellDeployment:
		h.deployment = h.deployment.Clone()
		h.deployment.Status, h.deployment.Version = w.Status, next
	case *overshoot.LabelSet:
		for i, s := range h.sets {
			if s.Name != w.Set.Name {
				continue
			}
			if s.Version != w.Set.Version {
				return false
			}
			h.sets[i] = w.Set.Clone()
			h.sets[i].Version = next
		}
	}
	return true
}

// state shows which objects are frozen: F or - for the deployment and for each set, and ! for the condition.
func (h *fleet) state() string {
	mark := func(m *object.Meta) string {
		if h.policy.Frozen(m) {
			return "F"
		}
		return "-"
	}
	text := ""
	if h.deployment != nil {
		condition := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen) != nil
		text = mark(&h.deployment.Meta) + map[bool]string{true: "!", false: ""}[condition] + " "
	}
	for _, s := range h.sets {
		text += mark(&s.Meta)
	}
	return text
}

// pass decides until there is nothing to write.
func (h *fleet) pass() {
	for range 20 {
		plan, err := overshoot.Decide(h.observe(), h.policy, h.Now)
		require.NoError(h.t, err)
		action := "nothing to do"
		if plan.Write != nil {
			require.True(h.t, h.write(plan.Write))
			action = fmt.Sprintf("%T", plan.Write)[len("*overshoot."):]
		}
		h.Line(h.state(), action, plan.Why)
		h.Warn(plan.Warn)
		if plan.Write == nil {
			return
		}
	}
	require.Fail(h.t, "the pass does not end")
}

// requireFrozen requires that the deployment, its condition and its sets are frozen, or that none of them is.
func (h *fleet) requireFrozen(frozen bool) {
	if h.deployment != nil {
		require.Equal(h.t, frozen, h.policy.Frozen(&h.deployment.Meta))
		c := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen)
		require.Equal(h.t, frozen, c != nil && c.Status == object.True)
	}
	for _, s := range h.sets {
		require.Equal(h.t, frozen, h.policy.Frozen(&s.Meta), s.Name)
	}
}

var stories = map[string]func(*fleet){
	"overshoot freezes and thaws": func(h *fleet) {
		h.pass()
		h.sizes[1] = 6
		h.Say("a set has 6 machines, where 3 are wanted")
		h.pass()
		h.sizes[1] = 5
		h.Say("one of them goes")
		h.pass()
	},
	"overshoot half frozen": func(h *fleet) {
		h.sizes[1] = 6
		plan, err := overshoot.Decide(h.observe(), h.policy, h.Now)
		require.NoError(h.t, err)
		h.write(plan.Write)
		h.Line(h.state(), "LabelDeployment", plan.Why)
		h.policy.SafetyDown = 3
		h.sizes[1] = 5
		h.Say("the process dies; when the next one looks, the number is between the limits")
		h.pass()
		h.sizes[1] = 3
		h.Say("it falls further")
		h.pass()
	},
	"overshoot and a scale-down": func(h *fleet) {
		h.sizes[1] = 30
		h.setSize(30, 30)
		h.pass()
		h.deployment.Spec.Replicas = 3
		h.Say("30 machines are to be 3; the sets have not been told yet")
		h.pass()
		h.setSize(3, 30)
		h.Say("they have")
		h.pass()
		h.sizes[1] = 12
		h.Say("18 are gone")
		h.pass()
		h.setSize(3, 11)
		h.Say("one of the 12 is new: nobody has ordered it")
		h.pass()
		h.sizes[1] = 5
		h.Say("7 are gone")
		h.pass()
	},
	"overshoot unfrozen by annotation": func(h *fleet) {
		h.sizes[0] = 7
		h.pass()
		h.deployment.Annotations = map[string]string{h.policy.Keys.Unfreeze: ""}
		h.Say("somebody annotates the deployment")
		h.pass()
		h.sizes[0] = 3
		h.Say("the surplus is gone")
		h.pass()
		h.sizes[0] = 7
		h.Say("and back again: this is another overshoot")
		h.pass()
	},
}

// setSize gives the deployment a size, which its status records now. The first old machines of the largest set, and
// all machines of the other sets, were created before; the others are created later.
func (h *fleet) setSize(to int32, old int) {
	h.deployment.Spec.Replicas = to
	h.deployment.Status.Wanted, h.deployment.Status.WantedSince = to, h.Now
	since := h.Now
	h.created = func(set, n int) time.Time {
		if n < old || h.sizes[set] < slices.Max(h.sizes) {
			return since.Add(-time.Minute)
		}
		return since.Add(time.Minute)
	}
}

// TestStories compares what is written with the files in testdata.
func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			h := newFleet(t, 3, 0, 3)
			run(h)
			safetytest.Compare(t, name, &h.Journal)
		})
	}
	t.Run("overshoot of a lone set", func(t *testing.T) {
		h := newLoneSet(t, 3, 7)
		h.pass()
		h.sizes[0] = 8
		h.Say("8 machines, where 3 are wanted and 6 may be")
		h.pass()
		h.sizes[0] = 7
		h.Say("one of them goes")
		h.pass()
		safetytest.Compare(t, "overshoot of a lone set", &h.Journal)
	})
}

// TestOvershootLimits has sizes just below and at the limit, and extreme numbers.
func TestOvershootLimits(t *testing.T) {
	for _, c := range []struct {
		replicas int32
		surge    rollout.IntOrPercent
		lone     bool
		size     int
		frozen   bool
	}{
		{3, rollout.IntOrPercent{Value: 1}, false, 5, false},
		{3, rollout.IntOrPercent{Value: 1}, false, 6, true},
		{10, rollout.IntOrPercent{Value: 25, Percent: true}, false, 14, false},
		{10, rollout.IntOrPercent{Value: 25, Percent: true}, false, 15, true},
		{0, rollout.IntOrPercent{}, false, 1, false},
		{0, rollout.IntOrPercent{}, false, 2, true},
		{-5, rollout.IntOrPercent{}, false, 2, true},
		{math.MaxInt32, rollout.IntOrPercent{Value: math.MaxInt32}, false, 50, false},
		{math.MinInt32, rollout.IntOrPercent{Value: math.MinInt32}, false, 1, false},
		{3, rollout.IntOrPercent{}, true, 7, false},
		{3, rollout.IntOrPercent{}, true, 8, true},
		{-1, rollout.IntOrPercent{}, true, 2, true},
		{math.MaxInt32, rollout.IntOrPercent{}, true, 50, false},
	} {
		h := newFleet(t, c.replicas, c.size)
		if c.lone {
			h = newLoneSet(t, c.replicas, c.size)
		} else {
			h.deployment.Spec.Strategy.MaxSurge = c.surge
			h.deployment.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 1}
		}
		h.pass()
		h.requireFrozen(c.frozen)
	}
}

// TestFrozenTogether: other programs write labels, and processes die and read old state. After an undisturbed pass,
// a deployment and its sets are frozen together if a set is too large, and thawed together if no set is large.
func TestFrozenTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 9)
		h := newFleet(t, 3, rapid.SliceOfN(size, 1, 3).Draw(t, "sizes")...)
		h.policy.SafetyDown = rapid.Int32Range(1, 3).Draw(t, "down")
		old := h.observe()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h.Now = h.Now.Add(time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "act") {
			case 0:
				h.sizes[rapid.IntRange(0, len(h.sizes)-1).Draw(t, "set")] = size.Draw(t, "size")
			case 1:
				i := rapid.IntRange(0, len(h.sets)-1).Draw(t, "labelled")
				changed := h.sets[i].Clone()
				changed.Labels = map[string]string{"freeze": rapid.SampledFrom([]string{"True", "true", "no", ""}).Draw(t, "label")}
				h.write(&overshoot.LabelSet{Set: changed})
			case 2:
				old = h.observe()
			case 3:
				plan, err := overshoot.Decide(old, h.policy, h.Now)
				require.NoError(t, err)
				if plan.Write != nil {
					h.write(plan.Write)
				}
			default:
				plan, err := overshoot.Decide(h.observe(), h.policy, h.Now)
				require.NoError(t, err)
				if plan.Write != nil {
					require.True(t, h.write(plan.Write))
				}
			}
		}
		h.pass()
		largest := 0
		for _, n := range h.sizes {
			largest = max(largest, n)
		}
		frozen := h.policy.Frozen(&h.deployment.Meta)
		h.requireFrozen(frozen)
		if largest >= 6 {
			require.True(t, frozen)
		}
		if largest <= 6-int(h.policy.SafetyDown) {
			require.False(t, frozen)
		}
	})
}

// TestDeploymentIsWrittenFirst: the deployment is written before its sets, when it freezes and when it thaws.
func TestDeploymentIsWrittenFirst(t *testing.T) {
	h := newFleet(t, 3, 6, 1)
	for _, size := range []int{6, 0} {
		h.sizes[0] = size
		plan, err := overshoot.Decide(h.observe(), h.policy, h.Now)
		require.NoError(t, err)
		assert.IsType(t, &overshoot.LabelDeployment{}, plan.Write)
		h.pass()
	}
}

// TestP58FreezeSaysHowManyThereAre: while a fleet is frozen, the condition has the current number of machines.
// Invariants: P58
func TestP58FreezeSaysHowManyThereAre(t *testing.T) {
	h := newFleet(t, 3, 6, 1)
	for _, size := range []int{6, 8, 7} {
		h.sizes[0] = size
		h.pass()
		c := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen)
		assert.Contains(t, c.Message, fmt.Sprintf("has %d machines", size))
	}
}

// TestOvershootLeftAlone: objects that are being deleted are not frozen. Without a key for the label nothing is.
func TestOvershootLeftAlone(t *testing.T) {
	h := newFleet(t, 3, 9)
	h.deployment.DeletedAt = safetytest.Epoch
	h.pass()
	h.requireFrozen(false)
	h = newLoneSet(t, 3, 9)
	h.sets[0].DeletedAt = safetytest.Epoch
	h.pass()
	h.requireFrozen(false)
	h = newFleet(t, 3, 9)
	h.policy.Keys.Freeze = ""
	h.pass()
	h.requireFrozen(false)
	h = newFleet(t, 3, 9, 1)
	h.sets[0].DeletedAt = safetytest.Epoch
	h.pass()
	h.requireFrozen(false)
	h = newFleet(t, 3, 9)
	h.sets[0].Owner.UID = "another"
	h.pass()
	h.requireFrozen(false)
}

// TestScaleDownFreezesNothing: surplus machines of a scale-down freeze nothing, in any number and at any point of the
// scale-down. One machine more than were ever ordered freezes.
// Invariants: P25
func TestScaleDownFreezesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 200).Draw(t, "from")
		to := rapid.Int32Range(0, int32(from)).Draw(t, "to")
		h := newFleet(t, int32(from), from, rapid.IntRange(0, from).Draw(t, "others"))
		h.setSize(int32(from), from)
		h.deployment.Spec.Replicas = to
		for left := from; left >= int(to); left -= rapid.IntRange(1, 20).Draw(t, "gone") {
			h.sizes[0] = left
			h.pass()
			h.requireFrozen(false)
			if rapid.Bool().Draw(t, "recorded") {
				h.setSize(to, from)
			}
		}
		h.setSize(to, from)
		h.sizes[0] = from
		h.pass()
		h.requireFrozen(false)
		h.sizes[0], h.sizes[1] = max(from, int(to)+2)+1, 0
		h.pass()
		h.requireFrozen(true)
	})
}

// TestMachinesCreatedAfterTheSizeChanged: a machine that was ordered before the size changed may be stored a little
// later. It counts as a new machine if its set has reserved names since, or if its name is not one of its set's.
// Invariants: P25
func TestMachinesCreatedAfterTheSizeChanged(t *testing.T) {
	for _, c := range []struct {
		late, named time.Duration
		foreign     bool
		frozen      bool
	}{
		{0, 0, false, false}, {10 * time.Second, 0, false, false}, {11 * time.Second, 0, false, true},
		{0, time.Second, false, false}, {time.Second, time.Second, false, true},
		{0, 0, true, false}, {time.Second, 0, true, true},
	} {
		h := newFleet(t, 3, 30)
		h.setSize(3, 0)
		since := h.Now
		h.created = func(int, int) time.Time { return since.Add(c.late) }
		if c.foreign {
			h.name = func(_ *machineset.Set, n int) string { return fmt.Sprint("smuggled-", n) }
		}
		h.sets[0].Instructions.Reservation.At = since.Add(c.named)
		h.pass()
		h.requireFrozen(c.frozen)
	}
}

// TestLoneSetScaledDown: a set without a deployment that has more machines than it may have, but no more than before,
// was scaled down. It does not freeze.
// Invariants: P25
func TestLoneSetScaledDown(t *testing.T) {
	h := newLoneSet(t, 3, 100)
	h.sets[0].Status.Replicas = 100
	for _, size := range []int{100, 60, 8, 3} {
		h.sizes[0] = size
		h.pass()
		h.requireFrozen(false)
		h.sets[0].Status.Replicas = int32(size)
	}
	h.sets[0].Status.Replicas = 60
	h.sizes[0] = 61
	h.pass()
	h.requireFrozen(true)
	h.sets[0].Status.Replicas = 61
	h.pass()
	h.requireFrozen(true)
}

// TestLoneSetScaledDownBeforeItWasCounted: a set that is scaled down right after its creation may have more machines
// than its status says. All of them were ordered, so it freezes only when it grows afterwards.
func TestLoneSetScaledDownBeforeItWasCounted(t *testing.T) {
	h := newLoneSet(t, 3, 10)
	set := h.sets[0]
	set.Generation, set.Status.ObservedGeneration, set.Status.Replicas = 2, 1, 8
	h.pass()
	h.requireFrozen(false)
	set = h.sets[0]
	set.Status.ObservedGeneration, set.Status.Replicas = 2, 10
	h.pass()
	h.requireFrozen(false)
	h.sizes[0] = 11
	h.pass()
	h.requireFrozen(true)
}

// TestUnfreezeEndsWhereItThaws: the annotation that unfreezes is removed when the number of machines falls to the
// number that thaws. A fleet that grows again freezes again.
// Invariants: P25
func TestUnfreezeEndsWhereItThaws(t *testing.T) {
	h := newFleet(t, 3, 6)
	h.deployment.Annotations = map[string]string{h.policy.Keys.Unfreeze: ""}
	h.pass()
	h.requireFrozen(false)
	require.Contains(t, h.deployment.Annotations, h.policy.Keys.Unfreeze)
	h.sizes[0] = 5
	h.pass()
	require.NotContains(t, h.deployment.Annotations, h.policy.Keys.Unfreeze)
	h.sizes[0] = 6
	h.pass()
	h.requireFrozen(true)
}

// TestFreezesAtTheUpperBoundOnly: a fleet freezes when it has replicas + surge + SafetyUp machines, and not before. It
// thaws when it has SafetyDown machines fewer, and not before.
// Invariants: P25
func TestFreezesAtTheUpperBoundOnly(t *testing.T) {
	h := newFleet(t, 3, 3)
	h.policy = safety.DefaultPolicy()
	h.policy.SafetyUp, h.policy.SafetyDown = 4, 3
	for _, step := range []struct {
		size   int
		frozen bool
	}{{5, false}, {7, false}, {8, true}, {7, true}, {6, true}, {5, false}, {7, false}} {
		h.sizes[0] = step.size
		h.pass()
		h.requireFrozen(step.frozen)
	}
}

func anyObservation(t *rapid.T) *overshoot.Observation {
	machines := safetytest.List(t, "machines", safetytest.AnyMachine)
	children := safetytest.List(t, "sets", func(t *rapid.T) deployment.Children {
		return deployment.Children{Set: safetytest.AnySet(t), Machines: machines}
	})
	return &overshoot.Observation{Deployment: safetytest.AnyDeployment(t), Sets: children}
}

// Invariants: P11 P27
func TestP11P27AnythingHasOnePlan(t *testing.T) {
	safetytest.OnePlan(t, overshoot.Decide, anyObservation)
}

// Invariants: P11 P27
func FuzzDecide(f *testing.F) {
	safetytest.Fuzz(f, overshoot.Decide, anyObservation, func(t testing.TB, p overshoot.Plan) { safetytest.Explained(t, time.Time{}, p.Why) }, func(o *overshoot.Observation) {
		if o.Deployment == nil && len(o.Sets) == 0 {
			o.Deployment = &deployment.Deployment{}
		}
	})
}

func TestMain(m *testing.M) { os.Exit(safetytest.Run(m)) }
