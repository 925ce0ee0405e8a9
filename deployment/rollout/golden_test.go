package rollout_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/internal/testkit"
)

// story is one rollout told step by step. Between steps, machines that exist become available
// (except the broken ones), and then each set follows its order (except the slow and the starved
// ones).
type story struct {
	file, title        string
	replicas           int32
	surge, unavailable string
	sets               []rollout.Set
	broken             map[string]int32 // this many machines of the set never become available
	slow               map[string]bool  // the set removes nothing
	starved            map[string]bool  // the set creates nothing
	events             map[int]event    // by step
	lingering          bool             // a machine that is removed is terminating for a step

	// decides is Step, Resize or Recreate. Nil means Step.
	decides func(rollout.Fleet, []rollout.Scale) ([]rollout.Scale, rollout.Why)
}

// event is what happens before a step.
type event struct {
	says string
	does func(*story)
}

// longest is the most steps that a story may have. A story that has not converged after that many
// is a defect.
const longest = 40

func (s *story) fleet(t *testing.T) rollout.Fleet {
	return rollout.Fleet{
		Replicas: s.replicas,
		Bounds:   rollout.Fenceposts(setting(t, s.surge), setting(t, s.unavailable), s.replicas),
		Sets:     s.sets,
	}
}

func (s *story) set(name string) *rollout.Set {
	for i := range s.sets {
		if s.sets[i].Name == name {
			return &s.sets[i]
		}
	}
	return &rollout.Set{}
}

// want makes a set the new one. The set may be one that did not exist.
func (s *story) want(name string) {
	if s.set(name).Name == "" {
		s.sets = append(s.sets, rollout.Set{Name: name})
	}
	for i := range s.sets {
		s.sets[i].New = s.sets[i].Name == name
	}
}

// tick lets the machines and the sets act, and reports whether anything changed.
func (s *story) tick() bool {
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

func (s *story) tell(t *testing.T) string {
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
		tellStep(&b, step, f, orders, why)
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

func tellStep(b *strings.Builder, step int, f rollout.Fleet, orders []rollout.Scale, why rollout.Why) {
	fmt.Fprintf(b, "\nstep %d: %s\n", step, f)
	for _, order := range orders {
		fmt.Fprintf(b, "  %s from %d to %d: %s\n", order.Name, order.From, order.To, order.Why)
	}
	if len(orders) == 0 {
		fmt.Fprintf(b, "  no order: %s\n", why)
	}
}

func TestStories(t *testing.T) {
	require.GreaterOrEqual(t, len(stories()), 12)
	told := make(map[string]bool)
	for _, s := range stories() {
		t.Run(s.file, func(t *testing.T) {
			require.False(t, told[s.file], "two stories for one file")
			told[s.file] = true
			testkit.Golden(t, filepath.Join("testdata", s.file+".txt"), s.tell(t))
		})
	}
}
