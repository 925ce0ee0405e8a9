package scenario

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/sim"
)

// Shrink looks for a smaller scenario that breaks the same rule: with fewer steps, deployments, pools and
// apps, fewer kinds of faults, fewer machines, and less time between steps. It plays at most tries
// scenarios, and returns the smallest one that it found, or s itself. s is not changed.
func Shrink(s *sim.Scenario, rule string, tries int) *sim.Scenario {
	k := &shrinking{best: s, rule: rule, triesLeft: tries}
	k.try(func(*sim.Scenario) bool { return true }) // to know when s breaks the rule
	for again := true; again && k.triesLeft > 0; {
		again = k.round()
	}
	return k.best
}

// shrinking is a search for a smaller scenario.
type shrinking struct {
	best      *sim.Scenario
	rule      string
	triesLeft int
	end       time.Time // scenarios are played until then; one that breaks the rule later is no improvement
}

// slack is how much later a smaller scenario may break the rule, because its random events differ.
const slack = time.Hour

// round tries all changes once, and reports whether any of them gave a better scenario.
func (k *shrinking) round() bool {
	before := k.best
	k.shorten(func(s *sim.Scenario) int { return len(s.Steps) }, func(s *sim.Scenario, i, j int) { s.Steps = slices.Delete(s.Steps, i, j) })
	k.shorten(func(s *sim.Scenario) int { return len(s.Deployments) }, func(s *sim.Scenario, i, j int) { s.Deployments = slices.Delete(s.Deployments, i, j) })
	k.shorten(func(s *sim.Scenario) int { return len(s.Pools) }, func(s *sim.Scenario, i, j int) { s.Pools = slices.Delete(s.Pools, i, j) })
	k.shorten(func(s *sim.Scenario) int { return len(s.Apps) }, func(s *sim.Scenario, i, j int) { s.Apps = slices.Delete(s.Apps, i, j) })
	for i := range reflect.TypeFor[sim.Faults]().NumField() {
		k.try(func(s *sim.Scenario) bool { return cleared(reflect.ValueOf(&s.Options.Faults).Elem().Field(i)) })
	}
	lowerNumber(k, 1, func(s *sim.Scenario) *int { return &s.Options.Faults.Kills })
	for i := range k.best.Deployments {
		lowerNumber(k, 1, func(s *sim.Scenario) *int32 { return &s.Deployments[i].Spec.Replicas })
	}
	for i := range k.best.Steps {
		lowerNumber(k, time.Second, func(s *sim.Scenario) *time.Duration { return &s.Steps[i].After })
		lowerNumber(k, 1, func(s *sim.Scenario) *int { return &s.Steps[i].N })
	}
	for i := range k.best.Apps {
		lowerNumber(k, 1, func(s *sim.Scenario) *int { return &s.Apps[i].Replicas })
	}
	lowerNumber(k, time.Second, func(s *sim.Scenario) *time.Duration { return &s.FaultsAfterSteps })
	return k.best != before
}

// cleared sets a field to its zero value, and reports whether that changed it.
func cleared(field reflect.Value) bool {
	if field.IsZero() {
		return false
	}
	field.SetZero()
	return true
}

// try plays the best scenario with a change. The changed scenario becomes the best if it still
// breaks the rule. Because a change also changes the random events, try plays several seeds.
func (k *shrinking) try(change func(*sim.Scenario) bool) bool {
	smaller := clone(k.best)
	if k.triesLeft <= 0 || !change(smaller) {
		return false
	}
	for _, seed := range [...]uint64{smaller.Options.Seed, 1, 2} {
		if k.triesLeft <= 0 {
			return false
		}
		k.triesLeft--
		smaller.Options.Seed = seed
		if r, err := sim.PlayUntil(smaller, k.end); err == nil && r.Violation != nil && r.Violation.Rule == k.rule {
			k.best, k.end = smaller, r.Violation.At.Add(slack)
			return true
		}
	}
	return false
}

// shorten tries to leave out parts of a list: first long parts, then short ones.
func (k *shrinking) shorten(length func(*sim.Scenario) int, cut func(s *sim.Scenario, i, j int)) {
	for size := length(k.best); size > 0; size /= 2 {
		for i := 0; i < length(k.best); {
			j := min(i+size, length(k.best))
			if !k.try(func(s *sim.Scenario) bool { cut(s, i, j); return true }) {
				i = j
			}
		}
	}
}

// lowerable is the type of a number that lowerNumber can lower.
type lowerable interface{ ~int | ~int32 | ~int64 }

// lowerNumber tries to lower a number of a scenario: to zero, to a half, or by one unit.
func lowerNumber[N lowerable](k *shrinking, unit N, of func(*sim.Scenario) *N) {
	to := func(n func(N) N) bool {
		return k.try(func(s *sim.Scenario) bool {
			at := of(s)
			was := *at
			*at = n(was)
			return *at != was
		})
	}
	if to(func(N) N { return 0 }) {
		return
	}
	for to(func(n N) N { return n / unit / 2 * unit }) {
	}
	to(func(n N) N { return max(n-unit, 0) })
}

// clone returns a scenario that can be changed without changing s.
func clone(s *sim.Scenario) *sim.Scenario {
	c := *s
	c.Steps, c.Apps, c.Classes = slices.Clone(s.Steps), slices.Clone(s.Apps), slices.Clone(s.Classes)
	c.Deployments = make([]*deployment.Deployment, len(s.Deployments))
	for i, d := range s.Deployments {
		c.Deployments[i] = d.Clone()
	}
	c.Pools = slices.Clone(s.Pools) // nothing changes the pools themselves
	return &c
}

// Summary describes a scenario in one line: its seed, fleets, pools, apps, steps and faults.
func Summary(s *sim.Scenario) string {
	var what []string
	for _, d := range s.Deployments {
		kind := cmp.Or(d.Spec.Strategy.Kind, deployment.RollingUpdate)
		what = append(what, fmt.Sprintf("%s of %d by %s", d.Name, d.Spec.Replicas, kind))
	}
	for _, p := range s.Pools {
		what = append(what, fmt.Sprintf("pool %s of %d", p.Name, p.Spec.Wanted()))
	}
	return fmt.Sprintf("seed %d: %s; %d apps, %d steps, faults: %s",
		s.Options.Seed, strings.Join(what, ", "), len(s.Apps), len(s.Steps), &s.Options.Faults)
}

// Trace plays a scenario and returns what happened in it, in lines that begin with the time since the
// beginning. The error is that of sim.Play.
func Trace(s *sim.Scenario) (lines []string, err error) {
	traced := *s
	var began time.Time
	traced.Options.Tell = func(at time.Time, what string) {
		if began.IsZero() {
			began = at
		}
		lines = append(lines, fmt.Sprintf("%12s  %s", at.Sub(began).Round(time.Millisecond), what))
	}
	_, err = sim.Play(&traced)
	return lines, err
}
