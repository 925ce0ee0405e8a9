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

// herd is a deployment with sets of some sizes, or a lone set, in a store that compares and swaps.
type herd struct {
	safetytest.Journal
	t          require.TestingT
	policy     *safety.Policy
	deployment *deployment.Deployment
	sets       []*machineset.Set
	sizes      []int
	writes     int
	// name is a machine's name.
	name func(*machineset.Set, int) string
	// made is when a set's machine of that number was stored. Nil: not known.
	made func(set, n int) time.Time
}

func newHerd(t require.TestingT, replicas int32, sizes ...int) *herd {
	h := &herd{Journal: safetytest.Journal{Now: safetytest.Epoch}, t: t, policy: safety.DefaultPolicy(), sizes: sizes}
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

func newLoneHerd(t require.TestingT, replicas int32, size int) *herd {
	h := newHerd(t, replicas, size)
	h.deployment, h.sets[0].Owner = nil, nil
	return h
}

// observe returns what an up-to-date cache shows.
func (h *herd) observe() *overshoot.Observation {
	o := &overshoot.Observation{Deployment: h.deployment}
	for i, s := range h.sets {
		c := deployment.Children{Set: s}
		for n := range h.sizes[i] {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: h.name(s, n)}, Owner: &object.Owner{UID: s.UID}}}
			if h.made != nil {
				m.CreatedAt = h.made(i, n)
			}
			c.Machines = append(c.Machines, m)
		}
		going := &machine.Machine{Meta: object.Meta{DeletedAt: safetytest.Epoch, Owner: &object.Owner{UID: s.UID}}}
		c.Machines = append(c.Machines, nil, going, &machine.Machine{Meta: object.Meta{Owner: &object.Owner{UID: "another"}}})
		o.Sets = append(o.Sets, c)
	}
	return o
}

// write carries out a plan. It returns false after a conflict.
func (h *herd) write(w overshoot.Write) bool {
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

func (h *herd) state() string {
	mark := func(m *object.Meta) string {
		if h.policy.Frozen(m) {
			return "F"
		}
		return "-"
	}
	text := ""
	if h.deployment != nil {
		told := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen) != nil
		text = mark(&h.deployment.Meta) + map[bool]string{true: "!", false: ""}[told] + " "
	}
	for _, s := range h.sets {
		text += mark(&s.Meta)
	}
	return text
}

// pass decides until there is nothing to write.
func (h *herd) pass() {
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

// agreed requires that deployment, condition and sets say the same.
func (h *herd) agreed(frozen bool) {
	if h.deployment != nil {
		require.Equal(h.t, frozen, h.policy.Frozen(&h.deployment.Meta))
		c := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen)
		require.Equal(h.t, frozen, c != nil && c.Status == object.True)
	}
	for _, s := range h.sets {
		require.Equal(h.t, frozen, h.policy.Frozen(&s.Meta), s.Name)
	}
}

var stories = map[string]func(*herd){
	"overshoot freezes and thaws": func(h *herd) {
		h.pass()
		h.sizes[1] = 6
		h.Say("a set has 6 machines, where 3 are wanted")
		h.pass()
		h.sizes[1] = 5
		h.Say("one of them goes")
		h.pass()
	},
	"overshoot half frozen": func(h *herd) {
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
	"overshoot and a scale-down": func(h *herd) {
		h.sizes[1] = 30
		h.lowered(30, 30)
		h.pass()
		h.deployment.Spec.Replicas = 3
		h.Say("30 machines are to be 3; the sets have not been told yet")
		h.pass()
		h.lowered(3, 30)
		h.Say("they have")
		h.pass()
		h.sizes[1] = 12
		h.Say("18 are gone")
		h.pass()
		h.lowered(3, 11)
		h.Say("one of the 12 is new: nobody has ordered it")
		h.pass()
		h.sizes[1] = 5
		h.Say("7 are gone")
		h.pass()
	},
	"overshoot unfrozen by annotation": func(h *herd) {
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

// lowered gives the herd a size that its status knows since now. The machines up to the number old,
// and all machines of sets other than the largest, were made before.
func (h *herd) lowered(to int32, old int) {
	h.deployment.Spec.Replicas = to
	h.deployment.Status.Wanted, h.deployment.Status.WantedSince = to, h.Now
	since := h.Now
	h.made = func(set, n int) time.Time {
		if n < old || h.sizes[set] < slices.Max(h.sizes) {
			return since.Add(-time.Minute)
		}
		return since.Add(time.Minute)
	}
}

func TestStories(t *testing.T) {
	for name, run := range stories {
		t.Run(name, func(t *testing.T) {
			h := newHerd(t, 3, 0, 3)
			run(h)
			safetytest.Compare(t, name, &h.Journal)
		})
	}
	t.Run("overshoot of a lone set", func(t *testing.T) {
		h := newLoneHerd(t, 3, 7)
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

// The limits, and any int32.
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
		h := newHerd(t, c.replicas, c.size)
		if c.lone {
			h = newLoneHerd(t, c.replicas, c.size)
		} else {
			h.deployment.Spec.Strategy.MaxSurge = c.surge
			h.deployment.Spec.Strategy.MaxUnavailable = rollout.IntOrPercent{Value: 1}
		}
		h.pass()
		h.agreed(c.frozen)
	}
}

// Labels are arbitrary, other programs write in between, and processes die and read old state. Once
// left alone, a deployment and its sets agree: frozen if a set is too large, thawed if none is
// large.
func TestFrozenTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 9)
		h := newHerd(t, 3, rapid.SliceOfN(size, 1, 3).Draw(t, "sizes")...)
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
		h.agreed(frozen)
		if largest >= 6 {
			require.True(t, frozen)
		}
		if largest <= 6-int(h.policy.SafetyDown) {
			require.False(t, frozen)
		}
	})
}

// The deployment is written before its sets, in both directions.
func TestDeploymentLeads(t *testing.T) {
	h := newHerd(t, 3, 6, 1)
	for _, size := range []int{6, 0} {
		h.sizes[0] = size
		plan, err := overshoot.Decide(h.observe(), h.policy, h.Now)
		require.NoError(t, err)
		assert.IsType(t, &overshoot.LabelDeployment{}, plan.Write)
		h.pass()
	}
}

// TestP58FreezeSaysHowManyThereAre: the condition's number follows the machines for as long as the freeze
// lasts.
// Invariants: P58
func TestP58FreezeSaysHowManyThereAre(t *testing.T) {
	h := newHerd(t, 3, 6, 1)
	for _, size := range []int{6, 8, 7} {
		h.sizes[0] = size
		h.pass()
		c := object.FindCondition(h.deployment.Status.Conditions, machineset.ConditionFrozen)
		assert.Contains(t, c.Message, fmt.Sprintf("has %d machines", size))
	}
}

// Objects that are being deleted are left alone. Without a key nothing is watched.
func TestOvershootLeftAlone(t *testing.T) {
	h := newHerd(t, 3, 9)
	h.deployment.DeletedAt = safetytest.Epoch
	h.pass()
	h.agreed(false)
	h = newLoneHerd(t, 3, 9)
	h.sets[0].DeletedAt = safetytest.Epoch
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9)
	h.policy.Keys.Freeze = ""
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9, 1)
	h.sets[0].DeletedAt = safetytest.Epoch
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9)
	h.sets[0].Owner.UID = "another"
	h.pass()
	h.agreed(false)
}

// Machines that a smaller size has made surplus freeze nothing, in any number and at any point of
// the scale-down. One more than were ever ordered freezes.
// Invariants: P25
func TestScaleDownFreezesNothing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, 200).Draw(t, "from")
		to := rapid.Int32Range(0, int32(from)).Draw(t, "to")
		h := newHerd(t, int32(from), from, rapid.IntRange(0, from).Draw(t, "others"))
		h.lowered(int32(from), from)
		h.deployment.Spec.Replicas = to
		for left := from; left >= int(to); left -= rapid.IntRange(1, 20).Draw(t, "gone") {
			h.sizes[0] = left
			h.pass()
			h.agreed(false)
			if rapid.Bool().Draw(t, "told") {
				h.lowered(to, from)
			}
		}
		h.lowered(to, from)
		h.sizes[0] = from
		h.pass()
		h.agreed(false)
		h.sizes[0], h.sizes[1] = max(from, int(to)+2)+1, 0
		h.pass()
		h.agreed(true)
	})
}

// A machine that was ordered before the size changed may be stored a little later. It counts as new
// if its set has given out names since, or has not named it.
// Invariants: P25
func TestMadeLate(t *testing.T) {
	for _, c := range []struct {
		late, named time.Duration
		foreign     bool
		frozen      bool
	}{
		{0, 0, false, false}, {10 * time.Second, 0, false, false}, {11 * time.Second, 0, false, true},
		{0, time.Second, false, false}, {time.Second, time.Second, false, true},
		{0, 0, true, false}, {time.Second, 0, true, true},
	} {
		h := newHerd(t, 3, 30)
		h.lowered(3, 0)
		since := h.Now
		h.made = func(int, int) time.Time { return since.Add(c.late) }
		if c.foreign {
			h.name = func(_ *machineset.Set, n int) string { return fmt.Sprint("smuggled-", n) }
		}
		h.sets[0].Instructions.Reservation.At = since.Add(c.named)
		h.pass()
		h.agreed(c.frozen)
	}
}

// A set without a deployment was made smaller if it has more machines than it may have, but no more
// than it had.
// Invariants: P25
func TestLoneSetScaledDown(t *testing.T) {
	h := newLoneHerd(t, 3, 100)
	h.sets[0].Status.Replicas = 100
	for _, size := range []int{100, 60, 8, 3} {
		h.sizes[0] = size
		h.pass()
		h.agreed(false)
		h.sets[0].Status.Replicas = int32(size)
	}
	h.sets[0].Status.Replicas = 60
	h.sizes[0] = 61
	h.pass()
	h.agreed(true)
	h.sets[0].Status.Replicas = 61
	h.pass()
	h.agreed(true)
}

// TestLoneSetScaledDownBeforeItWasCounted: a set that is scaled down right after its creation has
// more machines than its status says, all of them ordered. It freezes once it has grown since.
func TestLoneSetScaledDownBeforeItWasCounted(t *testing.T) {
	h := newLoneHerd(t, 3, 10)
	set := h.sets[0]
	set.Generation, set.Status.ObservedGeneration, set.Status.Replicas = 2, 1, 8
	h.pass()
	h.agreed(false)
	set = h.sets[0]
	set.Status.ObservedGeneration, set.Status.Replicas = 2, 10
	h.pass()
	h.agreed(false)
	h.sizes[0] = 11
	h.pass()
	h.agreed(true)
}

// At the number that thaws, the annotation is removed: a fleet that stays there freezes again.
// Invariants: P25
func TestUnfreezeEndsWhereItThaws(t *testing.T) {
	h := newHerd(t, 3, 6)
	h.deployment.Annotations = map[string]string{h.policy.Keys.Unfreeze: ""}
	h.pass()
	h.agreed(false)
	require.Contains(t, h.deployment.Annotations, h.policy.Keys.Unfreeze)
	h.sizes[0] = 5
	h.pass()
	require.NotContains(t, h.deployment.Annotations, h.policy.Keys.Unfreeze)
	h.sizes[0] = 6
	h.pass()
	h.agreed(true)
}

// TestFreezesAtTheUpperBoundOnly: a set freezes at replicas + surge + SafetyUp machines and not
// before. It thaws SafetyDown below that and not before.
// Invariants: P25
func TestFreezesAtTheUpperBoundOnly(t *testing.T) {
	h := newHerd(t, 3, 3)
	h.policy = safety.DefaultPolicy()
	h.policy.SafetyUp, h.policy.SafetyDown = 4, 3
	for _, step := range []struct {
		size   int
		frozen bool
	}{{5, false}, {7, false}, {8, true}, {7, true}, {6, true}, {5, false}, {7, false}} {
		h.sizes[0] = step.size
		h.pass()
		h.agreed(step.frozen)
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
