package safetytest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/internal/testkit"
)

// ErrKilled is how a pass ends whose process is killed.
var ErrKilled = errors.New("killed")

// Run runs a package's tests. They are quick, and what they look for is rare: rapid tries harder
// than it does by default.
func Run(m *testing.M) int { return testkit.Run(m, 1000) }

// Epoch is when worlds begin. It has a fraction of a second, which stores drop.
var Epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

// Journal writes down what happens, one line for each decision: the time since the beginning, the
// action and its reason.
type Journal struct {
	Now  time.Time
	text strings.Builder
}

// Since returns a time as the journal prints it.
func (j *Journal) Since(at time.Time) string {
	return "+" + at.Sub(Epoch).Round(time.Millisecond).String()
}

// Say notes an event from outside.
func (j *Journal) Say(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s -- %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Line notes a decision.
func (j *Journal) Line(state, action string, why fmt.Stringer) {
	fmt.Fprintf(&j.text, "%-9s %-22s %-44s %s\n", j.Since(j.Now), state, action, why)
}

// Printf notes a line of another form, after the time.
func (j *Journal) Printf(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Warn notes warnings. The zero Why is none.
func (j *Journal) Warn(all ...decision.Why) {
	for _, why := range all {
		if why != (decision.Why{}) {
			fmt.Fprintf(&j.text, "%-9s warning: %s\n", "", why)
		}
	}
}

// Compare compares a journal with its file.
func Compare(t *testing.T, name string, j *Journal) {
	t.Helper()
	testkit.Story(t, name, j.text.String())
}
