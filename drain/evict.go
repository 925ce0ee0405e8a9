package drain

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// drain decides about a node that is cordoned, whose record is written and whose pods are all
// known, without force.
func (d *decider) drain() Plan {
	d.survey()
	d.surveyVolumes()
	if d.hooked = d.hook(); d.hooked != "" {
		plan := d.rest(true)
		plan.Why = decision.Why{Reason: reasonHook, Name: d.hooked}
		return plan
	}
	write, free, stuck := d.followTurn()
	if write.busy() {
		return write
	}
	if plan := d.choose(free); plan.busy() {
		return plan
	}
	held := !free && stuck.Reason != reasonReattaching
	write, last := d.lastVolumes()
	if write.busy() {
		return write
	}
	plan := d.rest(held || last != decision.Why{})
	switch {
	case stuck != decision.Why{}:
		d.noteStuck(&plan, stuck)
	case last != decision.Why{}:
		plan.Why = last
	}
	return plan
}

// hook returns the annotation of the node that holds the drain back.
func (d *decider) hook() string {
	prefix, first := d.p.Keys.PreDrainHook, ""
	if prefix == "" || d.past {
		return ""
	}
	for key := range d.o.Node.Annotations {
		if strings.HasPrefix(key, prefix) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// act is what the drain should do about one pod.
type act struct {
	delete bool
	reason decision.Reason
	from   time.Time // not before; zero: at once
}

// act decides about a pod that is staying or finished. The drain always tries eviction first, even
// if the slots are used up.
func (d *decider) act(p *Pod, s *standing) act {
	a := d.o.Memory.answer(p.UID)
	again := time.Time{}
	if a.Kind == Deleted || a.Kind == Killed {
		again = a.At.Add(d.p.RetryDelete)
	}
	switch {
	case s.state == finished:
		return act{true, reasonFinished, again}
	case d.o.Memory != nil && d.o.Memory.NoEviction:
		return act{true, reasonNoEviction, again}
	case a.Result != Refused && a.Result != Failed:
	case d.past:
		return act{true, reasonTimeUp, again}
	case d.slotsUsed() && !d.misconfigured(p):
		return act{true, reasonSlotsUsed, again}
	}
	return act{false, reasonEvict, d.nextAttempt(p, &a)}
}

// slotsUsed reports whether the limit of attempts is reached. No attempts are counted: a slot that
// has passed was one in which the drain could have tried the pod.
func (d *decider) slotsUsed() bool {
	most := d.mostSlots()
	return most > 0 && d.slotOf(d.now) >= most
}

// mostSlots returns how many slots a pod has. Zero: as many as come before the drain's end.
func (d *decider) mostSlots() int64 {
	if d.o.MaxEvictRetries > 0 {
		return int64(d.o.MaxEvictRetries)
	}
	return int64(d.p.MaxEvictRetries)
}

// slotOf returns the number of a time's slot, counted from the drain's start.
func (d *decider) slotOf(t time.Time) int64 {
	return max(int64(t.Sub(d.rec.Since)/Slot), 0)
}

func (d *decider) slotStart(n int64) time.Time {
	return d.rec.Since.Add(time.Duration(n) * Slot)
}

// nextAttempt returns when the drain may try to evict a pod: in a later slot than the last time,
// and no sooner after it than Slot, or than the server's Retry-After. Attempts of an earlier
// process are not known; one may have been made just now.
func (d *decider) nextAttempt(p *Pod, last *Answer) time.Time {
	if last.Result == "" {
		m := d.o.Memory
		if m == nil || m.From.IsZero() || p.CreatedAt.After(m.From) {
			return time.Time{}
		}
		from := m.From.Add(Slot)
		start := d.slotStart(d.slotOf(from))
		if start.Before(from) {
			start = start.Add(Slot)
		}
		return start
	}
	next := last.At.Add(max(Slot, last.RetryAfter))
	if start := d.slotStart(d.slotOf(last.At) + 1); next.Before(start) {
		return start
	}
	return next
}

// choose returns the orders that are due. Pods with followed volumes go one at a time, when the
// turn is free. The others go at once.
func (d *decider) choose(free bool) Plan {
	var deletes, evicts []int32
	next := -1
	var nextAct act
	for i, p := range d.o.Pods {
		s := &d.standings[i]
		if p == nil || !d.mayGo(s) {
			continue
		}
		a := d.act(p, s)
		s.doing, s.from = a.reason, a.from
		if a.from.After(d.now) {
			d.waitForAttempt(a.from)
			continue
		}
		switch {
		case d.inTurn(s):
			if free && (next < 0 || goesBefore(p, d.o.Pods[next])) {
				next, nextAct = i, a
			}
		case a.delete:
			deletes = append(deletes, int32(i))
		default:
			evicts = append(evicts, int32(i))
		}
	}
	switch {
	case len(deletes) > 0:
		return d.tell(deletes, true)
	case len(evicts) > 0:
		return d.tell(evicts, false)
	case next < 0:
		return Plan{}
	}
	d.taken = true
	if !nextAct.delete {
		d.standings[next].doing = reasonEvictVolumes
	}
	return d.tell([]int32{int32(next)}, nextAct.delete)
}

// tell returns the orders to evict or delete pods, or the record that has to be written before.
func (d *decider) tell(places []int32, deletes bool) Plan {
	d.byName(places)
	if plan := d.countRounds(places); plan.busy() {
		return plan
	}
	return d.orders(places, deletes)
}

// inTurn reports whether a pod is evicted alone, because of its volumes.
func (d *decider) inTurn(s *standing) bool {
	return s.state == staying && s.followed && !d.past
}

// mayGo reports whether a pod may be evicted or deleted now.
func (d *decider) mayGo(s *standing) bool {
	return s.state == finished || s.state == staying && (d.past || s.order == d.order)
}

// waitForAttempt requests the next look for when a pod may be tried, or when its attempts are used
// up, if that is sooner.
func (d *decider) waitForAttempt(t time.Time) {
	d.lookAgain(t)
	if most := d.mostSlots(); most > 0 {
		d.lookAgain(d.slotStart(most))
	}
}

// goesBefore compares pods with volumes by the order of their eviction.
func goesBefore(a, b *Pod) bool {
	if a.Priority != b.Priority {
		return a.Priority > b.Priority
	}
	return compareKeys(a.Namespace, a.Name, b.Namespace, b.Name) < 0
}

func compareKeys(aNamespace, aName, bNamespace, bName string) int {
	if c := strings.Compare(aNamespace, bNamespace); c != 0 {
		return c
	}
	return strings.Compare(aName, bName)
}

// byName sorts pods, given by their places, by namespace and name.
func (d *decider) byName(places []int32) {
	slices.SortFunc(places, func(i, j int32) int {
		a, b := d.o.Pods[i], d.o.Pods[j]
		if c := compareKeys(a.Namespace, a.Name, b.Namespace, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.UID, b.UID)
	})
}

// orders returns a plan of deletions or evictions of pods that are in the order of names, each pod
// once.
func (d *decider) orders(places []int32, deletes bool) Plan {
	list := make([]Order, 0, len(places))
	for _, i := range places {
		p := d.o.Pods[i]
		if n := len(list); n > 0 && list[n-1].UID == p.UID {
			continue
		}
		o := Order{Pod: p.Key, UID: p.UID, Why: decision.Why{Reason: d.standings[i].doing, Object: p.Key}}
		if d.inTurn(&d.standings[i]) {
			turn := d.newTurn(p, d.now)
			o.Turn = &turn
		}
		switch o.Why.Reason {
		case reasonForce:
			o.Now = true
		case reasonSlotsUsed:
			o.Why.Want = d.mostSlots()
		case reasonEvictVolumes:
			o.Why.Have = int64(p.Priority)
		}
		list = append(list, o)
	}
	if deletes {
		return Plan{Delete: list, Why: list[0].Why}
	}
	return Plan{Evict: list, Why: list[0].Why}
}

// rest waits, or ends the drain. held: the drain has to wait for something other than a pod.
func (d *decider) rest(held bool) Plan {
	done := d.live == 0 && !held
	if done && !d.o.Stays && d.warned == (decision.Why{}) {
		d.warnOfHeld()
	}
	plan := Plan{Blocked: d.blocked(), Warn: d.warned}
	n := d.o.Node
	switch {
	case done:
		plan.Done, plan.Why = true, decision.Why{Reason: reasonDrained, Name: n.Name}
		if d.left > 0 {
			plan.Why = decision.Why{Reason: reasonLeft, Name: n.Name, Have: d.left}
		}
		return plan
	case d.givesUp():
		plan.Done, plan.Why = true, decision.Why{Reason: reasonLeft, Name: n.Name, Have: d.live + d.left}
		return plan
	}
	plan.At = d.at
	plan.Why = decision.Why{Reason: ReasonWaiting, Name: n.Name, Have: d.live}
	return plan
}

// givesUp reports whether the tries after the drain's end have used up their time. From then on
// only pods that the policy waits for without end count.
func (d *decider) givesUp() bool {
	if !d.past {
		return false
	}
	end := d.deadline.Add(d.p.ForceBound)
	if d.now.Before(end) {
		d.lookAgain(end)
		return false
	}
	for i := range d.standings {
		if d.standings[i].state == holding {
			return false
		}
	}
	return true
}

// turnOf reports whether the record's turn is this pod's.
func turnOf(t *machine.DrainTurn, p *Pod) bool { return p != nil && p.UID != "" && t.UID == p.UID }

// A pod that is told to terminate may come back: its controller makes another, and if that one tolerates
// the cordon, the scheduler may bind it to this very node. So the drain tells pods that were made
// after it began to go in few rounds, and then leaves them alone, as those of a daemon set. All
// times that are compared here are of the cluster's clock.

const (
	// latestRounds is how often the drain tells those pods of a controller to terminate that came in spite
	// of the cordon: they were just being bound, or somebody uncordoned the node for a moment.
	latestRounds = 3
	// toleratingRounds is the same for pods that tolerate the cordon, which come back each time.
	toleratingRounds = 1
	// mostReturning is how many controllers the record counts rounds of. The late pods of others are
	// left alone.
	mostReturning = 32
)

// late reports whether a pod was made after the drain began.
func (d *decider) late(p *Pod) bool { return madeAfter(p, d.rec.Youngest) }

// madeAfter compares with a time that was stored, in whole seconds.
func madeAfter(p *Pod, t time.Time) bool { return p.CreatedAt.Truncate(time.Second).After(t) }

// youngest returns when the youngest pod here was made. Zero: there is none.
func (d *decider) youngest() (at time.Time) {
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, at) {
			at = p.CreatedAt.Truncate(time.Second)
		}
	}
	return at
}

// controllerOf returns what makes another pod when p is gone. All pods of a namespace
// that have no controller count as those of one.
func controllerOf(p *Pod) string {
	if p.Owner != nil && p.Owner.UID != "" {
		return p.Owner.UID
	}
	return "namespace " + p.Namespace
}

// roundsOf returns what a record says of the controller of a pod.
func roundsOf(rec *machine.DrainRecord, p *Pod) machine.DrainReturn {
	controller := controllerOf(p)
	i := slices.IndexFunc(rec.Returns, func(r machine.DrainReturn) bool { return r.Controller == controller })
	if i < 0 {
		return machine.DrainReturn{Controller: controller}
	}
	return rec.Returns[i]
}

// keepsComing reports whether a pod is left alone because it came late, as others of its controller
// did that were told to terminate.
func (d *decider) keepsComing(p *Pod) bool {
	if !d.late(p) {
		return false
	}
	r, limit := roundsOf(d.rec, p), int32(latestRounds)
	switch {
	case !madeAfter(p, r.Youngest): // of a round that was counted
		return false
	case p.ToleratesCordon:
		limit = toleratingRounds
	}
	return r.Rounds >= limit || r.Rounds == 0 && len(d.rec.Returns) >= mostReturning
}

// countRounds records a round of each controller that has late pods among those to be told to terminate.
// That is stored before they are told.
func (d *decider) countRounds(places []int32) Plan {
	rec := d.rec.Clone()
	var first *Pod
	for _, i := range places {
		p := d.o.Pods[i]
		r := roundsOf(rec, p)
		if !d.late(p) || !madeAfter(p, r.Youngest) {
			continue
		}
		if first == nil {
			first = p
		}
		rec.Returns = slices.DeleteFunc(rec.Returns, func(old machine.DrainReturn) bool { return old.Controller == r.Controller })
		rec.Returns = append(rec.Returns, d.nextRound(r))
	}
	if first == nil {
		return Plan{}
	}
	slices.SortFunc(rec.Returns, func(a, b machine.DrainReturn) int { return strings.Compare(a.Controller, b.Controller) })
	return d.writeRecord(rec, decision.Why{Reason: reasonCame, Object: first.Key})
}

// nextRound counts one more round, of all the controller's pods that are here now.
func (d *decider) nextRound(r machine.DrainReturn) machine.DrainReturn {
	r.Rounds++
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, r.Youngest) && controllerOf(p) == r.Controller {
			r.Youngest = p.CreatedAt.Truncate(time.Second)
		}
	}
	return r
}

// force deletes every pod with grace 0, at once. It waits for no budget, no volume and no pod, and
// ends when the deletions were accepted, or after its bound.
func (d *decider) force() Plan {
	bound := d.rec.Forced.Add(d.p.ForceBound)
	if d.o.WriteFailed {
		bound = d.now // nothing that a later process could count from
	}
	due, failed := d.kills(bound)
	if len(due) > 0 {
		d.byName(due)
		return d.orders(due, true)
	}
	n := d.o.Node
	switch {
	case failed == 0 && d.o.Complete:
		return Plan{Done: true, Why: decision.Why{Reason: reasonForced, Name: n.Name}}
	case !d.now.Before(bound):
		return Plan{Done: true, Why: decision.Why{Reason: reasonForceEnded, Name: n.Name, Have: failed, For: d.p.ForceBound}}
	}
	d.lookAgain(bound)
	why := decision.Why{Reason: reasonIncomplete}
	if p := d.resisting(); p != nil {
		why = decision.Why{Reason: reasonFailed, Object: p.Key, Detail: d.o.Memory.answer(p.UID).Message, For: max(d.at.Sub(d.now), 0)}
	}
	return Plan{At: d.at, Why: why, Warn: d.warned}
}

// resisting returns the first pod, by its key, whose deletion was not accepted. Nil: there is none.
func (d *decider) resisting() (first *Pod) {
	for _, p := range d.o.Pods {
		if p == nil || d.spared(p) {
			continue
		}
		a := d.o.Memory.answer(p.UID)
		if a.Kind == Killed && a.Result != NotFound && a.Result != Accepted && (first == nil || p.Key.String() < first.Key.String()) {
			first = p
		}
	}
	return first
}

// kills returns the deletions that are due, and the number of those that were not accepted. Each is
// tried at least once, regardless of the bound. Only pods that came after the drain began are not:
// there may be another one each time.
func (d *decider) kills(bound time.Time) (due []int32, failed int64) {
	d.standings = make([]standing, len(d.o.Pods))
	for i, p := range d.o.Pods {
		if p == nil || p.UID == "" || d.spared(p) {
			continue
		}
		a := d.o.Memory.answer(p.UID)
		if a.Result == NotFound || a.Kind == Killed && a.Result == Accepted {
			continue
		}
		if a.Kind != Killed && d.late(p) && !d.now.Before(bound) {
			failed++
			continue
		}
		if a.Kind == Killed {
			again := a.At.Add(d.p.RetryDelete)
			if d.now.Before(again) || !d.now.Before(bound) {
				failed++
				d.lookAgain(again)
				continue
			}
		}
		d.standings[i].doing = reasonForce
		due = append(due, int32(i))
	}
	return due, failed
}

// spared reports whether even force leaves a pod alone: static pods, pods of daemon sets, pods that
// a rule skips, and those that would come back.
func (d *decider) spared(p *Pod) bool {
	if _, left := d.leftAlone(p); left || p.ToleratesCordon && d.late(p) || d.keepsComing(p) {
		return true
	}
	rule := d.p.rule(p)
	return rule != nil && rule.Behaviour == Skip
}
