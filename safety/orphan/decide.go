package orphan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/brake"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides what to do next about VMs that no machine owns. It changes none of its arguments,
// and returns the same plan for the same arguments. Only a caller's mistake is an error.
//
// A VM is deleted if two listings show it, and a live read of the machines after each listing shows
// no owner. The second listing is asked for at least OrphanGap after the first live read. The
// policy's brake limits how many VMs are deleted within an OrphanPeriod. While the store is empty none
// is deleted. A VM whose ID or name is a machine's in another spelling (object.Alike) is left alone. So are
// all VMs that a class lists while it or another class is blind (Class.Blind), unless the class lists one of
// its available machines.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil {
		return Plan{}, fmt.Errorf("orphan.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	d := decider{o: o, p: p, now: now, classes: classesOf(o.Classes), tries: make(map[string]*Try, len(o.Tries))}
	if o.NoCluster {
		d.used = usedBy(o.Machines)
	}
	if o.LookOnly {
		d.classes = slices.DeleteFunc(d.classes, func(c *Class) bool { return !d.used[c.Key] })
	}
	for i := range o.Tries {
		d.tries[o.Tries[i].ProviderID] = &o.Tries[i]
	}
	period := brake.Period(p.OrphanPeriod)
	d.brake = brake.New(p, o.Spent, d.listed(), !now.Before(o.Began.Add(period)), period, now)
	d.unlistedVMs, d.sighted, d.unhealthyVMs = o.Unlisted, o.Sighted, o.Unhealthy
	for _, c := range d.classes {
		if c.Blind {
			d.blind = append(d.blind, c.Key)
		}
	}
	plan := d.decide()
	plan.Spent, plan.Unlisted, plan.Sighted, plan.Blind = d.brake.Orders(), d.unlistedVMs, d.sighted, d.blind
	plan.Unhealthy = d.unhealthyVMs
	if o.Groups {
		plan.aboutGroups()
	}
	return plan, nil
}

func (d *decider) decide() Plan {
	o := d.o
	if o.Frozen {
		return Plan{Candidates: o.Candidates, At: d.now.Add(d.p.CheckPeriod), Why: decision.Why{Reason: reasonFrozen}}
	}
	if orders := d.list(); len(orders) > 0 {
		return Plan{List: orders, Candidates: o.Candidates, Why: orders[0].Why}
	}
	d.unlistedVMs, d.unhealthyVMs = d.unlisted(), d.unhealthy()
	if o.LookOnly {
		return d.waitForNext(nil)
	}
	owners := d.findSuspects()
	if len(d.suspects) > 0 && !d.live() {
		why := decision.Why{Reason: reasonReadMachines, Have: int64(len(d.suspects))}
		return Plan{ReadMachines: true, Candidates: o.Candidates, Why: why}
	}
	if len(d.suspects) > 0 && d.emptyStore() {
		why := decision.Why{Reason: reasonEmptyStore, Have: int64(len(d.suspects))}
		d.warn = append(d.warn, why)
		plan := d.waitForNext(nil) // what was found while the store was empty does not count
		plan.Why = why
		return plan
	}
	d.dropSimilarlySpelled(&owners)
	candidates := d.keepCandidates()
	if orders := d.planDeletions(); len(orders) > 0 {
		return Plan{Delete: orders, Candidates: candidates, Warn: d.warnings(), Why: orders[0].Why}
	}
	return d.waitForNext(candidates)
}

// decider is one call of Decide.
type decider struct {
	o       *Observation
	p       *safety.Policy
	now     time.Time
	classes []*Class        // by key, each once
	tries   map[string]*Try // by provider ID

	brake        *brake.Brake
	suspects     []suspect // by provider ID
	unlistedVMs  []Unlisted
	sighted      []string // provider IDs, see Observation.Sighted
	unhealthyVMs []Unhealthy
	used         map[object.Key]bool // classes with machines that work; without a cluster only
	blind        []object.Key        // classes, see Class.Blind
	heldBack     int64               // how many deletions the brake does not allow now
	warn         []decision.Why
}

// suspect is a listed VM without an owner as far as the observation shows.
type suspect struct {
	class    *Class
	id, name string
	reason   decision.Reason
	since    time.Time // Candidate.Since; zero: it is found for the first time
}

func classesOf(all []Class) []*Class {
	classes := make([]*Class, 0, len(all))
	for i := range all {
		if all[i].Key.Name != "" {
			classes = append(classes, &all[i])
		}
	}
	slices.SortStableFunc(classes, func(a, b *Class) int { return byKey(a.Key, b.Key) })
	return slices.CompactFunc(classes, func(a, b *Class) bool { return a.Key == b.Key })
}

func byKey(a, b object.Key) int {
	return cmp.Or(cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name))
}

// list asks for the VMs of each class that is due and has no answer in this pass.
func (d *decider) list() []ListVMs {
	var orders []ListVMs
	for _, c := range d.classes {
		if c.Listing == nil && !d.now.Before(d.dueAt(c)) {
			orders = append(orders, ListVMs{c.Key, decision.Why{Reason: reasonList, Name: c.Key.String()}})
		}
	}
	return orders[:min(len(orders), d.p.Burst)]
}

// dueAt returns when the VMs of a class are to be listed next. Zero means now.
func (d *decider) dueAt(c *Class) time.Time { return times.Later(d.wantedAt(c), c.NotBefore) }

// wantedAt is dueAt without a limit of the rate of calls.
func (d *decider) wantedAt(c *Class) time.Time {
	if c.Asked.IsZero() || c.Asked.After(d.now) {
		return time.Time{}
	}
	if c.Code != codes.OK {
		wait := codes.RecoveryFor(codes.ListMachines, c.Code).Backoff(c.Failures, 0)
		if c.Code == codes.Unimplemented {
			wait = max(wait, d.p.OrphanPeriod)
		}
		return c.Asked.Add(max(wait, d.p.OrphanGap))
	}
	at, free := c.Asked.Add(d.p.OrphanPeriod), d.brake.FreeAt()
	for i := range d.o.Candidates {
		if s := &d.o.Candidates[i]; s.Class == c.Key {
			due := times.Later(s.Since.Add(d.p.OrphanGap), d.retryAt(s.ProviderID))
			if !d.brake.Counts(s.ProviderID) {
				due = times.Later(due, free)
			}
			at = times.Earlier(at, due)
		}
	}
	at = times.Earlier(times.Earlier(at, d.unlistedDue(c)), d.watchDue(c))
	for _, h := range d.o.Hints {
		if h.Class != c.Key || h.At.Before(c.Asked) || h.At.After(d.now) {
			continue
		}
		if h.Several == "" {
			h.At = h.At.Add(max(d.p.OrphanSoon, 0))
		}
		at = times.Earlier(at, h.At)
	}
	return times.Later(at, c.Asked.Add(d.p.OrphanGap))
}

// retryAt returns when a failed delete may be tried again. Zero means at any time.
func (d *decider) retryAt(id string) time.Time {
	t := d.tries[id]
	switch {
	case t == nil || t.At.After(d.now):
		return time.Time{}
	case t.Failures == 0:
		return t.NotBefore
	}
	recovery := codes.RecoveryFor(codes.DeleteMachine, t.Code)
	if recovery.Class == codes.None || recovery.Class == codes.Requeue {
		recovery.Class = codes.Short
	}
	return times.Later(t.At.Add(recovery.Backoff(t.Failures, 0)), t.NotBefore)
}

// findSuspects finds the VMs that no machine owns, and adds warnings about other VMs. It returns the owners, if
// there is a listing in this pass.
func (d *decider) findSuspects() (owners owners) {
	for _, c := range d.classes {
		if c.Listing == nil {
			continue
		}
		if l := c.Listing; l.Code != codes.OK {
			d.warn = append(d.warn, decision.Why{Reason: reasonListFailed, Name: c.Key.String(), Code: l.Code, Detail: l.Message})
			continue
		}
		if owners.ids == nil {
			owners = d.owners()
		}
		d.search(c, &owners)
	}
	slices.SortStableFunc(d.suspects, func(a, b suspect) int { return cmp.Compare(a.id, b.id) })
	d.suspects = slices.CompactFunc(d.suspects, func(a, b suspect) bool { return a.id == b.id })
	d.suspects = slices.DeleteFunc(d.suspects, func(s suspect) bool { return d.claimedElsewhere(&s, &owners) })
	return owners
}

// search adds the suspects and warnings of one listing.
func (d *decider) search(c *Class, owners *owners) {
	outOfRange := d.outOfRange()
	for id, name := range c.Listing.VMs {
		switch {
		case blank(id):
			d.warn = append(d.warn, decision.Why{Reason: reasonNoID, Name: c.Key.String(), Detail: name})
			continue
		case blank(name) || !strings.HasPrefix(d.ownName(name), d.p.OrphanPrefix):
			d.warnLeftAlone(c, id, name, owners)
			continue
		}
		switch reason, orphan := owners.judge(id, name, outOfRange); {
		case orphan:
			d.suspects = append(d.suspects, suspect{class: c, id: id, name: name, reason: reason})
		case reason != (decision.Reason{}):
			d.warn = append(d.warn, decision.Why{Reason: reason, Name: id, Detail: name})
		}
	}
}

// ownName returns a name without the namespace that the name of a pool begins with.
func (d *decider) ownName(name string) string {
	if !d.o.Groups {
		return name
	}
	return name[strings.LastIndexByte(name, '/')+1:]
}

// blank reports whether a name or an ID is empty, or only white space.
func blank(s string) bool { return strings.TrimSpace(s) == "" }

// lists reports whether a VM was listed in this pass.
func (d *decider) lists(id string) bool {
	for _, c := range d.classes {
		if c.Listing != nil && c.Listing.Code == codes.OK {
			if _, yes := c.Listing.VMs[id]; yes {
				return true
			}
		}
	}
	return false
}

// warnLeftAlone warns about a VM that matches no machine and can't be identified as this fleet's.
func (d *decider) warnLeftAlone(c *Class, id, name string, owners *owners) {
	if _, owned := owners.ids[id]; owned {
		return
	}
	why := decision.Why{Reason: reasonNoName, Name: c.Key.String(), Detail: id}
	if !blank(name) {
		why = decision.Why{Reason: reasonOtherPrefix, Name: id, Detail: name}
	}
	d.warn = append(d.warn, why)
}

// outOfRange returns the machines for which GetMachineStatus has reported several VMs, and when.
func (d *decider) outOfRange() map[string]time.Time {
	at := make(map[string]time.Time)
	for _, h := range d.o.Hints {
		if h.Several != "" && h.At.After(at[h.Several]) {
			at[h.Several] = h.At
		}
	}
	return at
}

// claimedElsewhere reports whether another class lists the VM under another name with which it is no orphan,
// or without a name.
func (d *decider) claimedElsewhere(s *suspect, owners *owners) bool {
	for _, c := range d.classes {
		if c.Listing == nil {
			continue
		}
		name, listed := c.Listing.VMs[s.id]
		if !listed || name == s.name {
			continue
		}
		if _, orphan := owners.judge(s.id, name, d.outOfRange()); !orphan || blank(name) {
			return true
		}
	}
	return false
}

// live reports whether the machines were read live after every listing.
func (d *decider) live() bool {
	if !d.o.Read.Live() {
		return false
	}
	for _, c := range d.classes {
		if c.Listing != nil && !d.o.Read.Covers(c.Listing.Answered) {
			return false
		}
	}
	return true
}

// keepCandidates returns the candidates for the next plan: the suspects, and candidates of classes without a listing
// in this pass.
func (d *decider) keepCandidates() []Candidate {
	before := make(map[string]*Candidate, len(d.o.Candidates))
	for i := range d.o.Candidates {
		s := &d.o.Candidates[i]
		if !s.Since.After(d.now) {
			before[s.ProviderID] = s
		}
	}
	var kept []Candidate
	for i := range d.suspects {
		s := &d.suspects[i]
		seen := before[s.id]
		delete(before, s.id)
		if seen != nil && seen.Name == s.name {
			s.since = seen.Since
		} else if d.o.Deleted[s.id] {
			continue // it was deleted after the listing
		}
		kept = append(kept, Candidate{s.class.Key, s.id, s.name, times.Later(s.since, d.firstSeen(s))})
	}
	for _, s := range before {
		if c := d.classOf(s.Class); c != nil && (c.Listing == nil || c.Listing.Code != codes.OK) {
			kept = append(kept, *s)
		}
	}
	slices.SortFunc(kept, func(a, b Candidate) int { return cmp.Compare(a.ProviderID, b.ProviderID) })
	return kept
}

// firstSeen returns the Since of a VM that is found for the first time. Zero: it was found before.
func (d *decider) firstSeen(s *suspect) time.Time {
	if s.since.IsZero() {
		return d.o.Read.Began
	}
	return time.Time{}
}

func (d *decider) classOf(key object.Key) *Class {
	for _, c := range d.classes {
		if c.Key == key {
			return c
		}
	}
	return nil
}

// waitForNext waits until the next class is due. candidates are those for the next plan.
func (d *decider) waitForNext(candidates []Candidate) Plan {
	next := *d.o
	next.Candidates, next.Unlisted = candidates, d.unlistedVMs
	after := decider{o: &next, p: d.p, now: d.now, tries: d.tries, brake: d.brake, used: d.used}
	at := d.now.Add(d.p.OrphanPeriod)
	if d.watchesVMs() { // a class may get its first machine that works
		at = times.Earlier(at, d.now.Add(d.p.VMPeriod))
	}
	for _, c := range d.classes {
		at = times.Earlier(at, after.dueAt(c))
	}
	plan := Plan{Candidates: candidates, Warn: d.warnings(), At: at, Why: decision.Why{Reason: reasonNoOrphans}}
	if len(candidates) > 0 {
		plan.Why = decision.Why{Reason: reasonSecondLook, Have: int64(len(candidates)), For: at.Sub(d.now)}
	}
	if d.heldBack > 0 {
		plan.Why = d.braked()
	}
	if failed, code := d.failures(candidates); failed > 0 {
		plan.Why = decision.Why{Reason: ReasonDeleteFailed, Have: failed, Code: code, For: at.Sub(d.now)}
	}
	return plan
}

// failures counts the orphans whose last delete has failed, and returns the code of the last one in the list.
func (d *decider) failures(candidates []Candidate) (n int64, last codes.Code) {
	for i := range candidates {
		if t := d.tries[candidates[i].ProviderID]; t != nil && t.Failures > 0 {
			n, last = n+1, t.Code
		}
	}
	return n, last
}

// warnings returns the warnings of this call, sorted.
func (d *decider) warnings() []decision.Why {
	slices.SortStableFunc(d.warn, func(a, b decision.Why) int {
		return cmp.Or(cmp.Compare(a.Reason.String(), b.Reason.String()), cmp.Compare(a.Name, b.Name), cmp.Compare(a.Detail, b.Detail))
	})
	return d.warn[:min(len(d.warn), d.p.Burst)]
}

// planDeletions orders the deletion of VMs that were found twice, as far as the brake allows. VMs with the fewest
// failures come first, so that VMs that can't be deleted do not block others.
func (d *decider) planDeletions() []Delete {
	var due []*suspect
	for i := range d.suspects {
		s := &d.suspects[i]
		twice := !s.since.IsZero() && !s.class.Listing.Asked.Before(s.since.Add(d.p.OrphanGap))
		if twice && !d.o.Deleted[s.id] && !d.now.Before(d.retryAt(s.id)) {
			due = append(due, s)
		}
	}
	slices.SortStableFunc(due, func(a, b *suspect) int { return cmp.Compare(d.tried(a.id), d.tried(b.id)) })
	var orders []Delete
	for _, s := range due {
		if len(orders) == d.p.Burst {
			break
		}
		if !d.brake.Take(s.id) {
			d.heldBack++
			continue
		}
		orders = append(orders, Delete{
			Class: s.class.Key, ProviderID: s.id, Name: s.name, Several: s.reason == reasonSeveral,
			Why: decision.Why{Reason: s.reason, Name: s.id, Detail: s.name}, paused: d.p.Keys.Paused,
		})
	}
	if d.heldBack > 0 {
		d.warn = append(d.warn, d.braked())
	}
	return orders
}

// tried returns how often the delete of a VM has failed in a row.
func (d *decider) tried(id string) int {
	if t := d.tries[id]; t != nil {
		return t.Failures
	}
	return 0
}

func (d *decider) braked() decision.Why {
	return decision.Why{Reason: reasonBraked, Have: d.heldBack, Want: int64(d.brake.Most), For: brake.Period(d.p.OrphanPeriod)}
}

// listed returns how many VMs the largest listing has. Classes may list the same VMs, so their numbers can't be
// added.
func (d *decider) listed() int {
	most := 0
	for _, c := range d.classes {
		n := c.Listed
		if c.Listing != nil && c.Listing.Code == codes.OK {
			n = len(c.Listing.VMs)
		}
		most = max(most, n)
	}
	return most
}

// emptyStore reports whether the store is empty, so that it may be the wrong one. False if the policy
// says that this does not matter.
func (d *decider) emptyStore() bool {
	if d.p.OrphansOfEmptyStore || d.o.Owners > 0 {
		return false
	}
	return !slices.ContainsFunc(d.o.Machines, func(m *machine.Machine) bool { return m != nil }) &&
		!slices.ContainsFunc(d.o.Pools, func(p *machinepool.Pool) bool { return p != nil })
}
