package drain

import (
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
)

// blocked returns the pods that the drain waits for and has not told to terminate yet, and why. It also returns
// pods that still exist although the drain no longer waits for them, and pods that came back.
func (d *decider) blocked() []Blocked {
	var places []int32
	for i, p := range d.o.Pods {
		if p == nil || d.statuses[i].unlisted() {
			continue
		}
		if places == nil {
			places = make([]int32, 0, d.awaited+d.left)
		}
		places = append(places, int32(i))
	}
	if len(places) == 0 {
		return nil
	}
	d.byName(places)
	list := make([]Blocked, len(places))
	for n, i := range places {
		p, s := d.o.Pods[i], &d.statuses[i]
		entry := &list[n]
		*entry = Blocked{Pod: p.Key, UID: p.UID, Why: decision.Why{Reason: s.reason, Object: p.Key, Name: s.name}}
		switch s.state {
		case overdue:
			entry.Why.For = d.now.Sub(s.until)
		case notAwaited:
			entry.Why.For = plausible(s.until.Sub(d.now))
		case postponed:
			entry.Why.For, entry.Why.Detail = d.postponedFor(s), s.detail
		case finished, evictable:
			entry.Why, entry.Budgets = d.obstacle(p, s)
		case ignored, terminating:
		}
	}
	return list
}

// unlisted reports whether blocked leaves out a pod: the drain leaves it alone, or it is terminating.
func (s *podStatus) unlisted() bool {
	switch s.state {
	case ignored:
		return s.reason != reasonCameBack
	case notAwaited:
		return s.reason == (decision.Reason{})
	case terminating:
		return true
	case overdue, postponed, finished, evictable:
	}
	return false
}

// timeLeft returns the time until the drain's deadline. Zero: there is no deadline, or it has passed.
func (d *decider) timeLeft() time.Duration {
	if d.deadline.IsZero() {
		return 0
	}
	return max(d.deadline.Sub(d.now), 0)
}

// obstacle returns why a pod has not been evicted yet.
func (d *decider) obstacle(p *Pod, s *podStatus) (decision.Why, []*Budget) {
	why := decision.Why{Object: p.Key}
	a := d.o.Memory.answer(p.UID)
	if !s.from.IsZero() {
		why.For = max(s.from.Sub(d.now), 0)
	}
	switch {
	case d.hookKey != "":
		return decision.Why{Reason: reasonHook, Object: p.Key, Name: d.hookKey}, nil
	case a.Result == "" && why.For > 0:
		why.Reason = reasonNotYet
	case a.Result == Refused || a.Result == Failed && a.Kind == Evicted:
		return d.refusal(p, &a, why)
	case a.Result == Failed:
		why.Reason, why.Detail = reasonFailed, a.Message
	case !d.mayTerminate(s):
		why.Reason, why.Have, why.Want = reasonOrder, int64(d.order), int64(s.order)
	default:
		why.Reason = reasonInTurn
	}
	return why, nil
}

func (d *decider) nameOf(b *Budget) string {
	if d.names == nil {
		d.names = make(map[*Budget]string, len(d.o.Budgets))
	}
	name, known := d.names[b]
	if !known {
		name = b.Key.String()
		d.names[b] = name
	}
	return name
}

// refusal returns why an eviction was refused, and the budgets of the pod. If a budget can never be met, the
// reason names it.
func (d *decider) refusal(p *Pod, a *Answer, why decision.Why) (decision.Why, []*Budget) {
	budgets := d.budgetsOf(p)
	if len(budgets) == 0 {
		why.Reason = reasonRefused
		if a.Result == Failed {
			why.Reason, why.Detail = reasonFailed, a.Message
		}
		return why, nil
	}
	named := budgets[0]
	for _, b := range budgets {
		if b.Misconfigured() {
			named = b
			break
		}
	}
	why.Name = d.nameOf(named)
	why.Have, why.Want, why.All = int64(named.CurrentHealthy), int64(named.DesiredHealthy), int64(named.ExpectedPods)
	switch {
	case named.Misconfigured():
		why.Reason = reasonMisconfigured
	case len(budgets) > 1:
		why.Reason, why.Have, why.Want, why.All = reasonBudgets, int64(len(budgets)), 0, 0
	case a.Result == Failed:
		why.Reason, why.Detail = reasonFailed, a.Message
	case named.Stale():
		why.Reason = reasonBudgetStale
	case p.NotReady && !named.AlwaysAllow:
		why.Reason = reasonUnhealthy
	default:
		why.Reason = reasonBudget
	}
	return why, budgets
}

// misconfigured reports whether a pod has a budget that can never be met.
func (d *decider) misconfigured(p *Pod) bool {
	if p.Budgets != nil {
		return slices.ContainsFunc(p.Budgets, func(b *Budget) bool { return b != nil && b.Misconfigured() })
	}
	return slices.ContainsFunc(d.o.Budgets, func(b *Budget) bool { return b.Selects(p) && b.Misconfigured() })
}

// budgetsOf returns the budgets that apply to a pod: those that the caller resolved, or those found
// by selector.
func (d *decider) budgetsOf(p *Pod) []*Budget {
	if p.Budgets != nil {
		if slices.Contains(p.Budgets, nil) {
			return slices.DeleteFunc(slices.Clone(p.Budgets), func(b *Budget) bool { return b == nil })
		}
		return p.Budgets
	}
	var list []*Budget
	for _, b := range d.o.Budgets {
		if b.Selects(p) {
			list = append(list, b)
		}
	}
	return list
}
