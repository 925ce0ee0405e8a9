package safety_test

import (
	"fmt"
	"math"
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
)

// herd is a deployment, unless it is lone, with sets of some sizes, in a store
// that compares and swaps.
type herd struct {
	journal
	t          require.TestingT
	policy     *safety.Policy
	deployment *deployment.Deployment
	sets       []*machineset.Set
	sizes      []int
	writes     int
}

func newHerd(t require.TestingT, replicas int32, sizes ...int) *herd {
	h := &herd{journal: journal{now: epoch}, t: t, policy: safety.DefaultPolicy(), sizes: sizes}
	h.deployment = &deployment.Deployment{Meta: object.Meta{Key: object.Key{Name: "web"}, UID: "d", Version: "0"}}
	h.deployment.Spec.Replicas = replicas
	h.deployment.Spec.Strategy.MaxSurge = rollout.IntOrPercent{Value: 1}
	for i := range sizes {
		s := &machineset.Set{Meta: object.Meta{Key: object.Key{Name: "web-" + strconv.Itoa(i+1)}, UID: "s" + strconv.Itoa(i), Version: "0"}}
		s.Owner = &object.Owner{UID: "d"}
		s.Spec.Replicas = replicas
		h.sets = append(h.sets, s)
	}
	return h
}

func newLoneHerd(t require.TestingT, replicas int32, size int) *herd {
	h := newHerd(t, replicas, size)
	h.deployment, h.sets[0].Owner = nil, nil
	return h
}

// observe is what a cache shows that is up to date.
func (h *herd) observe() *safety.OvershootObservation {
	o := &safety.OvershootObservation{Deployment: h.deployment}
	for i, s := range h.sets {
		c := deployment.Children{Set: s}
		for n := range h.sizes[i] {
			m := &machine.Machine{Meta: object.Meta{Key: object.Key{Name: fmt.Sprint(s.Name, "-", n)}, Owner: &object.Owner{UID: s.UID}}}
			c.Machines = append(c.Machines, m)
		}
		going := &machine.Machine{Meta: object.Meta{DeletedAt: epoch, Owner: &object.Owner{UID: s.UID}}}
		c.Machines = append(c.Machines, nil, going, &machine.Machine{Meta: object.Meta{Owner: &object.Owner{UID: "another"}}})
		o.Sets = append(o.Sets, c)
	}
	return o
}

// write carries out a plan; false: a conflict.
func (h *herd) write(w safety.OvershootWrite) bool {
	h.writes++
	next := strconv.Itoa(h.writes)
	switch w := w.(type) {
	case *safety.LabelDeployment:
		if w.Deployment.Version != h.deployment.Version {
			return false
		}
		h.deployment = w.Deployment.Clone()
		h.deployment.Version = next
	case *safety.TellDeployment:
		h.deployment = h.deployment.Clone()
		h.deployment.Status, h.deployment.Version = w.Status, next
	case *safety.LabelSet:
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
		plan, err := safety.DecideOvershoot(h.observe(), h.policy, h.now)
		require.NoError(h.t, err)
		action := "nothing to do"
		if plan.Write != nil {
			require.True(h.t, h.write(plan.Write))
			action = fmt.Sprintf("%T", plan.Write)[len("*safety."):]
		}
		h.line(h.state(), action, plan.Why)
		h.warn(plan.Warn)
		if plan.Write == nil {
			return
		}
	}
	require.Fail(h.t, "the pass does not end")
}

// agreed holds deployment, condition and sets to saying the same.
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

var overshootStories = map[string]func(*herd){
	"overshoot freezes and thaws": func(h *herd) {
		h.pass()
		h.sizes[1] = 6
		h.say("a set has 6 machines, where 3 are wanted")
		h.pass()
		h.sizes[1] = 5
		h.say("one of them goes")
		h.pass()
	},
	"overshoot half frozen": func(h *herd) {
		h.sizes[1] = 6
		plan, err := safety.DecideOvershoot(h.observe(), h.policy, h.now)
		require.NoError(h.t, err)
		h.write(plan.Write)
		h.line(h.state(), "LabelDeployment", plan.Why)
		h.policy.SafetyDown = 3
		h.sizes[1] = 5
		h.say("the process dies; when the next one looks, the number is between the limits")
		h.pass()
		h.sizes[1] = 3
		h.say("it falls further")
		h.pass()
	},
	"overshoot unfrozen by annotation": func(h *herd) {
		h.sizes[0] = 7
		h.pass()
		h.deployment.Annotations = map[string]string{h.policy.Keys.Unfreeze: ""}
		h.say("somebody annotates the deployment")
		h.pass()
		h.sizes[0] = 3
		h.say("the surplus is gone")
		h.pass()
		h.sizes[0] = 7
		h.say("and back again: this is another overshoot")
		h.pass()
	},
}

func tellOvershoot(t *testing.T) {
	for name, run := range overshootStories {
		t.Run(name, func(t *testing.T) {
			h := newHerd(t, 3, 0, 3)
			run(h)
			compare(t, name, &h.journal)
		})
	}
	t.Run("overshoot of a lone set", func(t *testing.T) {
		h := newLoneHerd(t, 3, 7)
		h.pass()
		h.sizes[0] = 8
		h.say("8 machines, where 3 are wanted and 6 may be")
		h.pass()
		h.sizes[0] = 7
		h.say("one of them goes")
		h.pass()
		compare(t, "overshoot of a lone set", &h.journal)
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

// Whatever labels are there, whoever writes in between, wherever a process
// dies or reads what is old: once left alone a deployment and its sets agree,
// frozen if a set is too large, thawed if none is large.
func TestFrozenTogether(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 9)
		h := newHerd(t, 3, rapid.SliceOfN(size, 1, 3).Draw(t, "sizes")...)
		h.policy.SafetyDown = rapid.Int32Range(1, 3).Draw(t, "down")
		old := h.observe()
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			h.now = h.now.Add(time.Second)
			switch rapid.IntRange(0, 5).Draw(t, "act") {
			case 0:
				h.sizes[rapid.IntRange(0, len(h.sizes)-1).Draw(t, "set")] = size.Draw(t, "size")
			case 1:
				i := rapid.IntRange(0, len(h.sets)-1).Draw(t, "labelled")
				changed := h.sets[i].Clone()
				changed.Labels = map[string]string{"freeze": rapid.SampledFrom([]string{"True", "true", "no", ""}).Draw(t, "label")}
				h.write(&safety.LabelSet{Set: changed})
			case 2:
				old = h.observe()
			case 3:
				plan, err := safety.DecideOvershoot(old, h.policy, h.now)
				require.NoError(t, err)
				if plan.Write != nil {
					h.write(plan.Write)
				}
			default:
				plan, err := safety.DecideOvershoot(h.observe(), h.policy, h.now)
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
		plan, err := safety.DecideOvershoot(h.observe(), h.policy, h.now)
		require.NoError(t, err)
		assert.IsType(t, &safety.LabelDeployment{}, plan.Write)
		h.pass()
	}
}

// What is being deleted is left alone; and without a key nothing is watched.
func TestOvershootLeftAlone(t *testing.T) {
	h := newHerd(t, 3, 9)
	h.deployment.DeletedAt = epoch
	h.pass()
	h.agreed(false)
	h = newLoneHerd(t, 3, 9)
	h.sets[0].DeletedAt = epoch
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9)
	h.policy.Keys.Freeze = ""
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9, 1)
	h.sets[0].DeletedAt = epoch
	h.pass()
	h.agreed(false)
	h = newHerd(t, 3, 9)
	h.sets[0].Owner.UID = "another"
	h.pass()
	h.agreed(false)
}
