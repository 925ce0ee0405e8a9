package rollout

import "fmt"

// Rule names a rule for orders, in one word for programs.
type Rule string

// These are the rules of [Check].
const (
	// RuleName: one set of the fleet has the order's name.
	RuleName Rule = "Name"
	// RuleOnce: a set gets one order at most.
	RuleOnce Rule = "Once"
	// RuleHeld: a set that is paused or being deleted gets no order.
	RuleHeld Rule = "Held"
	// RuleFrom: From is the present ordered size.
	RuleFrom Rule = "From"
	// RuleChange: To is not From.
	RuleChange Rule = "Change"
	// RuleSize: To lies between 0 and R + S. The new set is not raised above R.
	RuleSize Rule = "Size"
	// RuleOld: an old set is raised only while fewer machines than the floor are available.
	RuleOld Rule = "Old"
	// RuleKept: an old set is raised only as far as it has available machines. With
	// [Fleet.NoRestore] it is not raised at all.
	RuleKept Rule = "Kept"
	// RuleCeiling: a raise leaves at most R + S machines, or no more than there were before. In each
	// set the larger of ordered and existing machines counts.
	RuleCeiling Rule = "Ceiling"
	// RuleFloor: an order that removes available machines leaves at least R − U secure ones; see the
	// documentation of the package.
	RuleFloor Rule = "Floor"
)

// OrderError says which order breaks which rule. It is what [Check] returns.
type OrderError struct {
	Order Scale
	Rule  Rule
	// Is is the number that breaks the rule, Limit the one that it is compared with. By rule, Is and
	// Limit are:
	//
	//   - Name: how many sets have the name; 1
	//   - Once: how many orders the set has; 1
	//   - Held: To; the ordered size, which stays
	//   - From: From; the ordered size
	//   - Change: To; the ordered size
	//   - Size: To; the largest or smallest size allowed
	//   - Old: how many machines are available; R − U
	//   - Kept: To; the size up to which the set may be raised
	//   - Ceiling: how many machines there may be once the order is carried out; R + S
	//   - Floor: how many secure machines are left then; R − U
	Is, Limit int64
}

// Error names set, rule and numbers, as in "rollout: web-2 from 2 to 6: 14 machines ordered or still
// there, ceiling is 12".
func (e *OrderError) Error() string {
	return fmt.Sprintf("rollout: %s from %d to %d: %s", e.Order.Name, e.Order.From, e.Order.To, e.breach())
}

func (e *OrderError) breach() string {
	switch e.Rule {
	case RuleName:
		return fmt.Sprintf("%d sets of the fleet have this name", e.Is)
	case RuleOnce:
		return fmt.Sprintf("order %d for this set, and a set gets one", e.Is)
	case RuleHeld:
		return fmt.Sprintf("the set is paused or being deleted, and stays at %d", e.Limit)
	case RuleFrom:
		return fmt.Sprintf("the size ordered until now is %d", e.Limit)
	case RuleChange:
		return "changes nothing"
	case RuleSize:
		return fmt.Sprintf("%d is beyond %d", e.Is, e.Limit)
	case RuleOld:
		return fmt.Sprintf("%s available, floor is %d: no old set may grow", machines(e.Is, ""), e.Limit)
	case RuleKept:
		return fmt.Sprintf("an old set that may keep %s", machines(e.Limit, ""))
	case RuleCeiling:
		return fmt.Sprintf("%s ordered or still there, ceiling is %d", machines(e.Is, ""), e.Limit)
	case RuleFloor:
		return fmt.Sprintf("%s sure to stay available, floor is %d", machines(e.Is, ""), e.Limit)
	}
	return string(e.Rule)
}

// Check returns an [*OrderError] about the first of a fleet's orders that breaks a bound of [Step] if the orders
// are carried out one after the other. Nil: all orders keep the bounds. Check is for the tests of another
// implementation, whose orders may differ from Step's: it may order less, or remove machines of other sets.
// Reasons are not checked. The orders of Step and [InPlace] pass. Those of [Resize] pass if the fleet is
// [Fleet.Stopped], and those of [Recreate] pass with a Surge of 0 and an Unavailable of R.
//
// An empty list of orders always passes, so Check does not show whether a rollout makes progress. If Step orders
// something for a fleet and the other implementation does not, its rollout may be stuck.
func Check(f Fleet, orders []Scale) error {
	storage := make([]member, len(f.Sets))
	var d decision
	d.old = storage[:d.open(f, storage, f.newSet())]
	given := make(map[string]int64, len(orders))
	for _, o := range orders {
		given[o.Name]++
		m, named := d.named(f, o.Name)
		refuse := func(rule Rule, is, limit int64) error {
			return &OrderError{Order: o, Rule: rule, Is: is, Limit: limit}
		}
		from, to := int64(o.From), int64(o.To)
		switch {
		case named != 1:
			return refuse(RuleName, named, 1)
		case given[o.Name] > 1:
			return refuse(RuleOnce, given[o.Name], 1)
		case m.paused || m.deleted:
			return refuse(RuleHeld, to, m.spec)
		case from != m.spec:
			return refuse(RuleFrom, from, m.spec)
		case to == from:
			return refuse(RuleChange, to, from)
		}
		if rule, is, limit := d.breach(f, m, to); rule != "" {
			return refuse(rule, is, limit)
		}
		m.spec = to
	}
	return nil
}

// named returns the set with this name, and how many sets have it.
func (d *decision) named(f Fleet, name string) (found *member, n int64) {
	for i := range len(f.Sets) {
		if m := d.at(i); f.Sets[m.index].Name == name {
			found, n = m, n+1
		}
	}
	return found, n
}

// breach returns the rule that giving a set this size breaks, with its numbers. Empty: none.
func (d *decision) breach(f Fleet, m *member, size int64) (rule Rule, is, limit int64) {
	changed := *m
	changed.spec = size
	most := d.ceiling
	if m == &d.current && size > m.spec {
		most = d.replicas
	}
	switch {
	case size < 0:
		return RuleSize, size, 0
	case size > most:
		return RuleSize, size, most
	case size > m.spec:
		return d.breachOfRaise(f, m, &changed)
	}
	if stays := d.secure() - m.secure() + changed.usable(); changed.usable() < m.usable() && stays < d.floor {
		return RuleFloor, stays, d.floor
	}
	return "", 0, 0
}

func (d *decision) breachOfRaise(f Fleet, m, changed *member) (rule Rule, is, limit int64) {
	if m != &d.current && !f.Stopped() {
		kept := m.available
		if f.NoRestore {
			kept = m.spec
		}
		switch _, usable := d.totals(); {
		case usable >= d.floor:
			return RuleOld, usable, d.floor
		case changed.spec > kept:
			return RuleKept, changed.spec, kept
		}
	}
	present := d.current.present()
	for i := range d.old {
		present += d.old[i].present()
	}
	if after := present - m.present() + changed.present(); after > max(present, d.ceiling) {
		return RuleCeiling, after, d.ceiling
	}
	return "", 0, 0
}
