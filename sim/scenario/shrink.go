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

// Shrink looks for a smaller scenario that breaks the same rule: with fewer steps, deployments and
// apps, fewer kinds of faults, fewer machines, and less time between. It plays at most tries of
// them. It returns the last one that it found, or s itself if it found none. s is not changed.
func Shrink(s *sim.Scenario, rule string, tries int) *sim.Scenario {
	k := &shrinking{best: s, rule: rule, left: tries}
	k.try(func(*sim.Scenario) bool { return true }) // to know when it breaks
	for again := true; again && k.left > 0; {
		again = k.round()
	}
	return k.best
}

type shrinking struct {
	best *sim.Scenario
	rule string
	left int
	end  time.Time // a scenario that takes longer is no better than the best one
}

// slack is how much later a smaller scenario may break the rule, because its random events differ.
const slack = time.Hour

// round tries everything once, and reports whether any change was of use.
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

// cleared sets a field to its zero value, unless it has it.
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
	if k.left <= 0 || !change(smaller) {
		return false
	}
	for _, seed := range [...]uint64{smaller.Options.Seed, 1, 2} {
		if k.left <= 0 {
			return false
		}
		k.left--
		smaller.Options.Seed = seed
		if r, err := sim.PlayUntil(smaller, k.end); err == nil && r.Violation != nil && r.Violation.Rule == k.rule {
			k.best, k.end = smaller, r.Violation.At.Add(slack)
			return true
		}
	}
	return false
}

// shorten leaves out parts of a list: first long ones, then short ones.
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

// lowerable is anything that may be lower.
type lowerable interface{ ~int | ~int32 | ~int64 }

// lowerNumber lowers a number of a scenario: to zero, to a half, or by one unit.
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
	c.Pools = slices.Clone(s.Pools) // a world takes its own copies
	return &c
}

// Summary returns what a scenario consists of, in one line: its seed, fleets, pools, apps, steps and
// faults.
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

// Trace plays a scenario and returns what happened in it, a line each with the time since its
// beginning. The error is that of sim.Play.
func Trace(s *sim.Scenario) (lines []string, err error) {
	told := *s
	var began time.Time
	told.Options.Tell = func(at time.Time, what string) {
		if began.IsZero() {
			began = at
		}
		lines = append(lines, fmt.Sprintf("%12s  %s", at.Sub(began).Round(time.Millisecond), what))
	}
	_, err = sim.Play(&told)
	return lines, err
}
