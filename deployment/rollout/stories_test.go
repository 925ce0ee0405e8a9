package rollout_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
)

// scenario is a rollout whose steps are written down. Between steps, machines that exist become available (except the
// broken ones), and then each set gets its ordered size (except the slow and the starved ones).
type scenario struct {
	file, title        string
	replicas           int32
	surge, unavailable string
	sets               []rollout.Set
	broken             map[string]int32 // by set: how many machines never become available
	slow               map[string]bool  // the set removes nothing
	starved            map[string]bool  // the set creates nothing
	events             map[int]event    // by step
	lingering          bool             // a removed machine is terminating for one step

	// decides is Step, Resize or Recreate. Nil means Step.
	decides func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why)
}

// event is what happens before a step.
type event struct {
	says string
	does func(*scenario)
}

// longest is the maximum number of steps. A scenario that has not converged after that is a failure.
const longest = 40

func (s *scenario) fleet(t *testing.T) rollout.Fleet {
	return rollout.Fleet{
		Replicas: s.replicas,
		Bounds:   rollout.Fenceposts(setting(t, s.surge), setting(t, s.unavailable), s.replicas),
		Sets:     s.sets,
	}
}

func (s *scenario) set(name string) *rollout.Set {
	for i := range s.sets {
		if s.sets[i].Name == name {
			return &s.sets[i]
		}
	}
	return &rollout.Set{}
}

// want makes a set the new one. The set may be one that did not exist.
func (s *scenario) want(name string) {
	if s.set(name).Name == "" {
		s.sets = append(s.sets, rollout.Set{Name: name})
	}
	for i := range s.sets {
		s.sets[i].New = s.sets[i].Name == name
	}
}

// tick lets the machines and then the sets act. It reports whether anything changed.
func (s *scenario) tick() bool {
	changed := false
	for i := range s.sets {
		set := &s.sets[i]
		before := *set
		set.Terminating = 0
		set.Available = set.Actual - min(s.broken[set.Name], set.Actual)
		if k := set.Actual - set.Spec; k > 0 && !s.slow[set.Name] {
			set.Actual -= k
			if s.lingering {
				set.Terminating = k
			}
			if bad := min(k, s.broken[set.Name]); bad > 0 {
				s.broken[set.Name] -= bad
			}
			set.Available = min(set.Available, set.Actual)
		}
		if set.Spec > set.Actual && !s.starved[set.Name] {
			set.Actual = set.Spec
		}
		changed = changed || before != *set
	}
	return changed
}

// transcript plays the scenario and returns what happens.
func (s *scenario) transcript(t *testing.T) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n", s.title)
	fmt.Fprintf(&b, "surge %s, unavailable %s\n", s.surge, s.unavailable)
	last := 0
	for at := range s.events {
		last = max(last, at)
	}
	for step := 1; step <= longest; step++ {
		event, happens := s.events[step]
		if happens {
			fmt.Fprintf(&b, "\n* %s\n", event.says)
			event.does(s)
		}
		f := s.fleet(t)
		if s.decides == nil {
			s.decides = rollout.Step
		}
		orders, why := s.decides(f, nil)
		writeStep(&b, step, f, orders, why)
		for _, order := range orders {
			s.set(order.Name).Spec = order.To
		}
		if !s.tick() && len(orders) == 0 && step >= last {
			if !rollout.Done(f) {
				b.WriteString("\nNothing moves any more.\n")
			}
			return b.String()
		}
	}
	t.Fatalf("%s: no end after %d steps", s.file, longest)
	return ""
}

func writeStep(b *strings.Builder, step int, f rollout.Fleet, orders []rollout.Scale, why rollout.Why) {
	fmt.Fprintf(b, "\nstep %d: %s\n", step, f)
	for _, order := range orders {
		fmt.Fprintf(b, "  %s from %d to %d: %s\n", order.Name, order.From, order.To, order.Why)
	}
	if len(orders) == 0 {
		fmt.Fprintf(b, "  no order: %s\n", why)
	}
}

func TestScenarios(t *testing.T) {
	require.GreaterOrEqual(t, len(scenarios()), 12)
	seen := make(map[string]bool)
	for _, s := range scenarios() {
		t.Run(s.file, func(t *testing.T) {
			require.False(t, seen[s.file], "two scenarios for one file")
			seen[s.file] = true
			testkit.Golden(t, filepath.Join("testdata", s.file+".txt"), s.transcript(t))
		})
	}
}

// full returns a set whose machines all exist and are available.
func full(name string, size int32) rollout.Set {
	return rollout.Set{Name: name, Spec: size, Actual: size, Available: size}
}

// partly returns a set in which only some machines are available.
func partly(name string, size, available int32) rollout.Set {
	return rollout.Set{Name: name, Spec: size, Actual: size, Available: available}
}

func wanted(set rollout.Set) rollout.Set {
	set.New = true
	return set
}

func scaleTo(replicas int32) func(*scenario) {
	return func(s *scenario) { s.replicas = replicas }
}

func scenarios() []*scenario {
	return slices.Concat(rollingStories(), scalingStories(), troubledStories(), pausedStories(), recreatingStories())
}

// rollingStories only change the template.
func rollingStories() []*scenario {
	return []*scenario{{
		file: "surge-of-one", title: "Three machines, one at a time, none missing in between.",
		replicas: 3, surge: "1", unavailable: "0",
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
	}, {
		file: "one-unavailable", title: "No surge: each new machine needs an old one to go first.",
		replicas: 3, surge: "0", unavailable: "1",
		sets: []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
	}, {
		file: "both-zero", title: "Percentages that come out as nothing still let one machine be unavailable.",
		replicas: 2, surge: "0", unavailable: "25%",
		sets: []rollout.Set{full("web-1", 2), wanted(full("web-2", 0))},
	}, {
		file: "percentages", title: "Ten machines with the usual percentages: three more, two fewer.",
		replicas: 10, surge: "25%", unavailable: "25%",
		sets: []rollout.Set{full("web-1", 10), wanted(full("web-2", 0))},
	}, {
		file: "all-at-once", title: "Everything may be missing and nothing may be doubled: out with the old, in with the new.",
		replicas: 4, surge: "0", unavailable: "100%",
		sets: []rollout.Set{full("web-1", 4), wanted(full("web-2", 0))},
	}, {
		file: "third-template", title: "The template changes again halfway: two old sets, the oldest gives first.",
		replicas: 6, surge: "2", unavailable: "1",
		sets: []rollout.Set{full("web-1", 6), wanted(full("web-2", 0))},
		events: map[int]event{3: {
			"the template changes again", func(s *scenario) { s.want("web-3") },
		}},
	}, {
		file: "rollback", title: "Back to the old template halfway: the old set is the new one, and grows from what it has left.",
		replicas: 6, surge: "2", unavailable: "1",
		sets: []rollout.Set{full("web-1", 6), wanted(full("web-2", 0))},
		events: map[int]event{3: {
			"the template is rolled back", func(s *scenario) { s.want("web-1") },
		}},
	}}
}

// scalingStories change the wanted number as well.
func scalingStories() []*scenario {
	return []*scenario{{
		file: "scale-alone", title: "One set alone follows the wanted number: up, down to zero, and up from zero.",
		replicas: 3, surge: "1", unavailable: "0",
		sets: []rollout.Set{full("web-1", 0), wanted(full("web-2", 3))},
		events: map[int]event{
			2: {"scaled to 8", scaleTo(8)},
			4: {"scaled to 0", scaleTo(0)},
			6: {"scaled to 2", scaleTo(2)},
		},
	}, {
		file: "scale-down-regretted", title: "Down to one and back before a machine was removed: nothing is lost.",
		replicas: 5, surge: "1", unavailable: "0",
		sets: []rollout.Set{wanted(full("web-1", 5))},
		slow: map[string]bool{"web-1": true},
		events: map[int]event{
			2: {"scaled to 1", scaleTo(1)},
			4: {"scaled to 5", scaleTo(5)},
		},
	}, {
		file: "scale-up-amid-rollout", title: "More machines wanted halfway: they are new ones.",
		replicas: 6, surge: "2", unavailable: "1",
		sets: []rollout.Set{full("web-1", 4), wanted(full("web-2", 3))},
		events: map[int]event{1: {
			"scaled from 6 to 12", scaleTo(12),
		}},
	}, {
		file: "scale-down-amid-rollout", title: "Fewer machines wanted halfway: all sets give up their share.",
		replicas: 20, surge: "3", unavailable: "2",
		sets: []rollout.Set{full("web-1", 12), full("web-2", 6), wanted(full("web-3", 5))},
		events: map[int]event{1: {
			"scaled from 20 to 10", scaleTo(10),
		}},
	}, {
		file: "scale-down-at-the-floor", title: "Shares that would take too many available machines move to sets with unavailable ones.",
		replicas: 12, surge: "0", unavailable: "1",
		sets:   []rollout.Set{partly("web-1", 6, 0), full("web-2", 4), wanted(full("web-3", 4))},
		broken: map[string]int32{"web-1": 6},
		events: map[int]event{1: {
			"scaled from 14 to 8", scaleTo(8),
		}},
	}, {
		file: "scale-to-zero-amid-rollout", title: "No machines wanted halfway: all go, available or not.",
		replicas: 6, surge: "2", unavailable: "1",
		sets: []rollout.Set{full("web-1", 4), wanted(partly("web-2", 3, 1))},
		events: map[int]event{1: {
			"scaled from 6 to 0", scaleTo(0),
		}},
	}}
}

// troubledStories have machines that fail, stay, or never come.
func troubledStories() []*scenario {
	return []*scenario{{
		file: "new-machines-fail", title: "The new template does not work: the rollout stops at the floor, until it is rolled back.",
		replicas: 5, surge: "1", unavailable: "1",
		sets:   []rollout.Set{full("web-1", 5), wanted(full("web-2", 0))},
		broken: map[string]int32{"web-2": 9},
		events: map[int]event{6: {
			"the template is rolled back", func(s *scenario) { s.want("web-1") },
		}},
	}, {
		file: "new-machines-fail-for-good", title: "The new template does not work, and nobody does anything about it.",
		replicas: 3, surge: "1", unavailable: "0",
		sets:   []rollout.Set{full("web-1", 3), wanted(full("web-2", 0))},
		broken: map[string]int32{"web-2": 9},
	}, {
		file: "old-machines-fail", title: "Old machines that are not available go first, for they are no loss.",
		replicas: 6, surge: "1", unavailable: "1",
		sets:   []rollout.Set{partly("web-1", 2, 2), partly("web-2", 5, 3), wanted(full("web-3", 0))},
		broken: map[string]int32{"web-2": 2},
	}, {
		file: "below-the-floor", title: "Too few machines are available already: no available one goes, broken ones do.",
		replicas: 5, surge: "0", unavailable: "1",
		sets:   []rollout.Set{partly("web-1", 5, 2), wanted(full("web-2", 0))},
		broken: map[string]int32{"web-1": 3},
	}, {
		file: "slow-removal", title: "Old machines take long to go: without room no new one comes.",
		replicas: 4, surge: "0", unavailable: "2",
		sets: []rollout.Set{full("web-1", 4), wanted(full("web-2", 0))},
		slow: map[string]bool{"web-1": true},
		events: map[int]event{4: {
			"web-1 removes machines again", func(s *scenario) { s.slow = nil },
		}},
	}, {
		file: "never-created", title: "Old machines that were ordered and never came give their room to new ones at once.",
		replicas: 6, surge: "0", unavailable: "2",
		sets: []rollout.Set{
			{Name: "web-1", Spec: 6, Actual: 4, Available: 4}, wanted(full("web-2", 0)),
		},
		starved: map[string]bool{"web-1": true},
	}, {
		file: "no-new-set", title: "Without a new set there is no rolling, only a scale-down to what may be.",
		replicas: 4, surge: "1", unavailable: "0",
		sets: []rollout.Set{full("web-1", 4), full("web-2", 3)},
		events: map[int]event{3: {
			"a set with the wanted template is made", func(s *scenario) { s.want("web-3") },
		}},
	}}
}
