package conformance

import (
	"slices"
	"strings"
	"testing"
)

// Duties is what a suite says about its checks, each of them named Group/Name.
type Duties struct {
	// Basis is the check that every other one builds on, except those of the groups in Apart.
	Basis string
	Apart []string
	// Needs lists, by check, the further checks that it builds on: it would fail if one of those did, and
	// show nothing new.
	Needs map[string][]string
	// Why says, by check or by group, why a duty matters to those who use a driver.
	Why map[string]string
}

// Check returns a check with what it needs and why it matters.
func (d Duties) Check(group, name string) Check {
	c := Check{Group: group, Name: name}
	if c.title() != d.Basis && !slices.Contains(d.Apart, group) {
		c.Needs = append([]string{d.Basis}, d.Needs[c.title()]...)
	}
	c.Why = d.Why[c.title()]
	if c.Why == "" {
		c.Why = d.Why[group]
	}
	return c
}

// Judge checks a suite: a check comes after those that it builds on, each says why it matters, and
// nothing is said about checks that the suite does not have.
func (d Duties) Judge(t *testing.T, checks []Check) {
	t.Helper()
	var before []string
	for _, c := range checks {
		if c.Why == "" {
			t.Errorf("nothing says why %s matters", c.title())
		}
		for _, need := range c.Needs {
			if !slices.Contains(before, need) {
				t.Errorf("%s comes before %s, which it needs", c.title(), need)
			}
		}
		before = append(before, c.title())
	}
	for of := range d.Why {
		if !slices.ContainsFunc(before, func(check string) bool { return check == of || strings.HasPrefix(check, of+"/") }) {
			t.Errorf("Why names %q, which is neither a check nor a group", of)
		}
	}
	for check := range d.Needs {
		if !slices.Contains(before, check) {
			t.Errorf("Needs names %q, which is no check", check)
		}
	}
}

// FailsOnly requires that a driver with one bug fails this check and no other, with a text that
// contains says.
func FailsOnly(t *testing.T, checks []Check, check, says string) {
	t.Helper()
	all := InOrder(t, checks)
	if failed := Failures(all); !slices.Equal(failed, []string{check}) {
		t.Errorf("failing are %q, not %q", failed, check)
	}
	for _, o := range all {
		if o.Check == check && !strings.Contains(o.Text, says) {
			t.Errorf("%s does not say %q but\n%s", o.Check, says, o.Text)
		}
	}
}
