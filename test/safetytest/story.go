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

// ErrKilled is the error of a pass whose process is killed.
var ErrKilled = errors.New("killed")

// Run runs a package's tests. rapid makes more checks than by default, because they are quick and the
// failures that they look for are rare.
func Run(m *testing.M) int { return testkit.Run(m, 1000) }

// Epoch is the time when simulations begin. It has a fraction of a second, which stores drop.
var Epoch = time.Date(2026, 3, 1, 9, 0, 0, 700_000_000, time.UTC)

// Journal is a log with one line for each decision: the time since Epoch, the state, the action and its
// reason.
type Journal struct {
	Now  time.Time
	text strings.Builder
}

// Since returns the time since Epoch, as the journal prints it.
func (j *Journal) Since(at time.Time) string {
	return "+" + at.Sub(Epoch).Round(time.Millisecond).String()
}

// Say adds a line about an event that is no decision.
func (j *Journal) Say(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s -- %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Line adds a line about a decision.
func (j *Journal) Line(state, action string, why fmt.Stringer) {
	fmt.Fprintf(&j.text, "%-9s %-22s %-44s %s\n", j.Since(j.Now), state, action, why)
}

// Printf adds a line with the time and a text.
func (j *Journal) Printf(format string, args ...any) {
	fmt.Fprintf(&j.text, "%-9s %s\n", j.Since(j.Now), fmt.Sprintf(format, args...))
}

// Warn adds a line for each warning. A zero Why is no warning.
func (j *Journal) Warn(all ...decision.Why) {
	for _, why := range all {
		if why != (decision.Why{}) {
			fmt.Fprintf(&j.text, "%-9s warning: %s\n", "", why)
		}
	}
}

// Compare compares a journal with its golden file.
func Compare(t *testing.T, name string, j *Journal) {
	t.Helper()
	testkit.Story(t, name, j.text.String())
}
