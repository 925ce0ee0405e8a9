package conformance

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// memory is what one run remembers of its checks, so that it reports each cause once.
type memory struct {
	mu      sync.Mutex
	started int
	failed  map[string]string // by check: the check that failed, which is itself or one that it needs
	seen    map[string]string // by cause of a breach, see Trial.breach: the check that reported it
	omitted []omission
}

// omission is why checks were not run, or not wholly.
type omission struct {
	reason string
	checks []string
}

func newMemory() *memory { return &memory{failed: map[string]string{}, seen: map[string]string{}} }

// try runs a check, unless one that it needs has failed, and remembers how it ended.
func (m *memory) try(t *testing.T, tb testing.TB, c Check) {
	tb.Helper()
	m.started++
	for _, need := range c.Needs {
		if cause := m.failed[need]; cause != "" {
			m.failed[c.title()] = cause
			m.omit(cause+" failed", c)
			tb.Skip("not run: it builds on " + cause + ", which failed")
		}
	}
	trial, run := c.Start(t, tb)
	trial.memory, trial.check = m, c.title()
	trial.coda = "\n  duty: " + c.Group + " " + c.Name
	if c.Why != "" {
		trial.coda += "\n  why it matters: " + c.Why
	}
	defer func() {
		switch {
		case trial.broken.Load():
			m.failed[c.title()] = c.title()
		case trial.Left != "":
			m.omit(trial.Left, c)
		}
	}()
	run()
	trial.conclude()
}

func (m *memory) omit(reason string, c Check) {
	i := slices.IndexFunc(m.omitted, func(o omission) bool { return o.reason == reason })
	if i < 0 {
		i = len(m.omitted)
		m.omitted = append(m.omitted, omission{reason: reason})
	}
	m.omitted[i].checks = append(m.omitted[i].checks, c.title())
}

// omittedFor returns why a check was not run, or only in part. Empty: it was run.
func (m *memory) omittedFor(c Check) string {
	for _, o := range m.omitted {
		if slices.Contains(o.checks, c.title()) {
			return o.reason
		}
	}
	return ""
}

// first returns the check that saw a cause first. isNew says that this is the first time.
func (m *memory) first(cause, check string) (where string, isNew bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if where, ok := m.seen[cause]; ok {
		return where, false
	}
	m.seen[cause] = check
	return check, true
}

// summary says how many duties were checked, and why others were not.
func (m *memory) summary() string {
	var omitted int
	var text strings.Builder
	for _, o := range m.omitted {
		omitted += len(o.checks)
		fmt.Fprintf(&text, "\n  because %s:", o.reason)
		for _, check := range o.checks {
			fmt.Fprintf(&text, "\n    %s", check)
		}
	}
	checked := fmt.Sprintf("%d of %d duties checked", m.started-omitted, m.started)
	if omitted == 0 {
		return checked
	}
	return checked + "; not checked, or not wholly:" + text.String()
}
