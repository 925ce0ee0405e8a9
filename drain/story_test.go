package drain_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/internal/testkit"
)

// story is a drain whose decisions are written down, one line each: the time since the beginning, the action, and
// its reason.
type story struct {
	*shell
	begun time.Time
	text  strings.Builder
	last  drain.Plan
}

// playStory runs a story and compares its text with its file.
func playStory(t *testing.T, name string, run func(*story)) {
	t.Run(name, func(t *testing.T) {
		s := &story{shell: newShell(t)}
		s.now = epoch.Truncate(time.Second)
		s.begun, s.asked = s.now, s.now
		s.memory = drain.NewMemory(s.now)
		s.shell.onPlan = s.step
		run(s)
		testkit.Story(t, name, s.text.String())
	})
}

func (s *story) elapsed(at time.Time) string { return "+" + at.Sub(s.begun).String() }

// comment writes down an event that no decision caused.
func (s *story) comment(format string, args ...any) {
	fmt.Fprintf(&s.text, "%-9s -- %s\n", s.elapsed(s.now), fmt.Sprintf(format, args...))
}

func (s *story) line(action, why string) {
	fmt.Fprintf(&s.text, "%-9s %-40s %s\n", s.elapsed(s.now), action, why)
}

func (s *story) step(plan drain.Plan, answers []drain.Answer) {
	switch {
	case plan.Write != nil:
		s.line("write node", plan.Why.String())
	case len(answers) > 0:
		list, verb := plan.Evict, "evict "
		if len(plan.Delete) > 0 {
			list, verb = plan.Delete, "delete "
		}
		for i, o := range list {
			answer := string(answers[i].Result)
			if answers[i].Message != "" {
				answer += " (" + answers[i].Message + ")"
			}
			s.line(verb+o.Pod.Name+": "+answer, o.Why.String())
		}
	case plan.Done:
		s.line("done", plan.Why.String())
	case plan.At.IsZero():
		s.line("wait for a change", plan.Why.String())
	default:
		s.line("wait until "+s.elapsed(plan.At), plan.Why.String())
	}
	for _, b := range plan.Blocked {
		waits := slices.Contains([]string{"LaterOrder", "NotYet", "WaitingForTurn"}, b.Why.Reason.String())
		require.Equal(s.t, waits, b.InTurn(), "%s", b.Why)
		fmt.Fprintf(&s.text, "%-9s   %s\n", "", b.Why)
		if len(b.Budgets) > 1 {
			var names []string
			for _, budget := range b.Budgets {
				names = append(names, budget.String())
			}
			fmt.Fprintf(&s.text, "%-9s     budgets: %s\n", "", strings.Join(names, ", "))
		}
	}
	if plan.Warn != (decision.Why{}) {
		fmt.Fprintf(&s.text, "%-9s warning: %s\n", "", plan.Warn)
	}
}

// drain makes passes until the drain has ended, at most for the given time.
func (s *story) drain(limit time.Duration) { s.last = s.run(s.now.Add(limit)) }

// onePass makes one pass.
func (s *story) onePass() { s.last, _ = s.pass() }

// later lets time pass without a pass.
func (s *story) later(d time.Duration, what string, args ...any) {
	s.advance(s.now.Add(d))
	if what != "" {
		s.comment(what, args...)
	}
}

// restartProcessAfter starts a new process, after some time.
func (s *story) restartProcessAfter(after time.Duration) {
	s.advance(s.now.Add(after))
	s.restart()
	s.comment("the process was killed; a new one starts")
}

// TestStories compares what drains decide with the files in testdata/stories.
func TestStories(t *testing.T) {
	for _, stories := range allStories() {
		for name, run := range stories {
			playStory(t, name, run)
		}
	}
}

func allStories() []map[string]func(*story) {
	return []map[string]func(*story){podStories, budgetStories, volumeStories, forceStories, nodeStories, ruleStories}
}
