package drain

import (
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// drain decides, without force, about a node that is cordoned, whose record is written and whose pods are all
// known.
func (d *decider) drain() Plan {
	d.surveyPods()
	d.surveyVolumes()
	if d.hookKey = d.hook(); d.hookKey != "" {
		plan := d.waitOrEnd(true)
		plan.Why = decision.Why{Reason: reasonHook, Name: d.hookKey}
		return plan
	}
	write, free, volumeWait := d.followTurn()
	if write.busy() {
		return write
	}
	if plan := d.dueOrders(free); plan.busy() {
		return plan
	}
	mustWait := !free && volumeWait.Reason != reasonReattaching
	write, last := d.lastVolumes()
	if write.busy() {
		return write
	}
	plan := d.waitOrEnd(mustWait || last != decision.Why{})
	switch {
	case volumeWait != decision.Why{}:
		d.reportVolumeWait(&plan, volumeWait)
	case last != decision.Why{}:
		plan.Why = last
	}
	return plan
}

// hook returns the first annotation of the node that blocks the drain. Empty: there is none.
func (d *decider) hook() string {
	prefix, first := d.p.Keys.PreDrainHook, ""
	if prefix == "" || d.pastDeadline {
		return ""
	}
	for key := range d.o.Node.Annotations {
		if strings.HasPrefix(key, prefix) && (first == "" || key < first) {
			first = key
		}
	}
	return first
}

// action is what the drain does next about one pod.
type action struct {
	delete bool // false: evict
	reason decision.Reason
	from   time.Time // when it is due; zero: at once
}

// nextAction decides about a pod that is evictable or finished. Except for a finished pod, and in a cluster
// without an eviction API, the drain always tries eviction first, even if the slots are used up.
func (d *decider) nextAction(p *Pod, s *podStatus) action {
	a := d.o.Memory.answer(p.UID)
	again := time.Time{}
	if a.Kind == Deleted || a.Kind == Killed {
		again = a.At.Add(d.p.RetryDelete)
	}
	switch {
	case s.state == finished:
		return action{true, reasonFinished, again}
	case d.o.Memory != nil && d.o.Memory.NoEviction:
		return action{true, reasonNoEviction, again}
	case a.Result != Refused && a.Result != Failed:
	case d.pastDeadline:
		return action{true, reasonTimeUp, again}
	case d.slotsUsed() && !d.misconfigured(p):
		return action{true, reasonSlotsUsed, again}
	}
	return action{false, reasonEvict, d.nextAttempt(p, &a)}
}

// slotsUsed reports whether the limit of attempts is reached. Slots are counted, and not attempts: each slot
// that has passed counts as one attempt.
func (d *decider) slotsUsed() bool {
	most := d.mostSlots()
	return most > 0 && d.slotOf(d.now) >= most
}

// mostSlots returns in how many slots the drain tries to evict a pod. Zero: in all until its deadline.
func (d *decider) mostSlots() int64 {
	if d.o.MaxEvictRetries > 0 {
		return int64(d.o.MaxEvictRetries)
	}
	return int64(d.p.MaxEvictRetries)
}

// slotOf returns the number of the slot that a time is in, counted from 0 at the drain's start.
func (d *decider) slotOf(t time.Time) int64 {
	return max(int64(t.Sub(d.rec.Since)/Slot), 0)
}

func (d *decider) slotStart(n int64) time.Time {
	return d.rec.Since.Add(time.Duration(n) * Slot)
}

// nextAttempt returns when the drain may try to evict a pod: in a later slot than the last attempt, and at
// least Slot, or the server's Retry-After, after it. Attempts of an earlier process are not known, so one may
// have been made just before this process began.
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

// dueOrders returns the orders that are due. Pods with followed volumes are evicted one at a time, if the turn is
// free. All others are evicted at once.
func (d *decider) dueOrders(free bool) Plan {
	var deletes, evicts []int32
	next := -1
	var turnAction action
	for i, p := range d.o.Pods {
		s := &d.statuses[i]
		if p == nil || !d.mayTerminate(s) {
			continue
		}
		a := d.nextAction(p, s)
		s.dueReason, s.from = a.reason, a.from
		if a.from.After(d.now) {
			d.waitForAttempt(a.from)
			continue
		}
		switch {
		case d.inTurn(s):
			if free && (next < 0 || goesBefore(p, d.o.Pods[next])) {
				next, turnAction = i, a
			}
		case a.delete:
			deletes = append(deletes, int32(i))
		default:
			evicts = append(evicts, int32(i))
		}
	}
	switch {
	case len(deletes) > 0:
		return d.terminate(deletes, true)
	case len(evicts) > 0:
		return d.terminate(evicts, false)
	case next < 0:
		return Plan{}
	}
	d.assumesNoTurn = true
	if !turnAction.delete {
		d.statuses[next].dueReason = reasonEvictVolumes
	}
	return d.terminate([]int32{int32(next)}, turnAction.delete)
}

// terminate returns the orders to evict or delete pods, or the record that has to be written before.
func (d *decider) terminate(places []int32, deletes bool) Plan {
	d.byName(places)
	if plan := d.countRounds(places); plan.busy() {
		return plan
	}
	return d.orders(places, deletes)
}

// inTurn reports whether a pod waits for its turn to be evicted, because of its volumes.
func (d *decider) inTurn(s *podStatus) bool {
	return s.state == evictable && s.followed && !d.pastDeadline
}

// mayTerminate reports whether a pod may be evicted or deleted now.
func (d *decider) mayTerminate(s *podStatus) bool {
	return s.state == finished || s.state == evictable && (d.pastDeadline || s.order == d.order)
}

// waitForAttempt requests the next decision for when a pod may be tried, or for when its attempts are used up,
// if that is sooner.
func (d *decider) waitForAttempt(t time.Time) {
	d.lookAgain(t)
	if most := d.mostSlots(); most > 0 {
		d.lookAgain(d.slotStart(most))
	}
}

// goesBefore reports whether a is evicted before b, if both have volumes.
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

// byName sorts pods by namespace and name. They are given by their places in Observation.Pods.
func (d *decider) byName(places []int32) {
	slices.SortFunc(places, func(i, j int32) int {
		a, b := d.o.Pods[i], d.o.Pods[j]
		if c := compareKeys(a.Namespace, a.Name, b.Namespace, b.Name); c != 0 {
			return c
		}
		return strings.Compare(a.UID, b.UID)
	})
}

// orders returns a plan of deletions or evictions. The places are sorted by byName, so that a pod that comes
// twice gets one order.
func (d *decider) orders(places []int32, deletes bool) Plan {
	list := make([]Order, 0, len(places))
	for _, i := range places {
		p := d.o.Pods[i]
		if n := len(list); n > 0 && list[n-1].UID == p.UID {
			continue
		}
		o := Order{Pod: p.Key, UID: p.UID, Why: decision.Why{Reason: d.statuses[i].dueReason, Object: p.Key}}
		if d.inTurn(&d.statuses[i]) {
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

// waitOrEnd returns a plan that waits, or one that ends the drain. mustWait: the drain has to wait for something
// other than a pod.
func (d *decider) waitOrEnd(mustWait bool) Plan {
	done := d.awaited == 0 && !mustWait
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
		plan.Done, plan.Why = true, decision.Why{Reason: reasonLeft, Name: n.Name, Have: d.awaited + d.left}
		return plan
	}
	plan.At = d.at
	plan.Why = decision.Why{Reason: ReasonWaiting, Name: n.Name, Have: d.awaited}
	return plan
}

// givesUp reports whether the attempts after the drain's deadline have used up their time. Then the drain ends,
// unless the policy waits for some pods without end.
func (d *decider) givesUp() bool {
	if !d.pastDeadline {
		return false
	}
	end := d.deadline.Add(d.p.ForceBound)
	if d.now.Before(end) {
		d.lookAgain(end)
		return false
	}
	for i := range d.statuses {
		if d.statuses[i].state == postponed {
			return false
		}
	}
	return true
}

// turnOf reports whether a turn is this pod's.
func turnOf(t *machine.DrainTurn, p *Pod) bool { return p != nil && p.UID != "" && t.UID == p.UID }

// A pod that is told to terminate may come back: its controller creates another, and if that one tolerates the
// cordon, the scheduler may bind it to this node again. So the drain evicts pods that were created after it
// began in a few rounds only, and then leaves them alone, like those of a daemon set. All times that are
// compared here are by the cluster's clock.

const (
	// latestRounds is how often the drain evicts late pods of a controller that don't tolerate the cordon.
	// They come if they were just being bound, or if somebody uncordoned the node for a moment.
	latestRounds = 3
	// toleratingRounds is the same for pods that tolerate the cordon, which come back each time.
	toleratingRounds = 1
	// mostReturning is for how many controllers the record counts rounds. Late pods of other controllers
	// are left alone.
	mostReturning = 32
)

// late reports whether a pod was created after the drain began.
func (d *decider) late(p *Pod) bool { return madeAfter(p, d.rec.Youngest) }

// madeAfter reports whether a pod was created after t. Both count in whole seconds, as t was stored.
func madeAfter(p *Pod, t time.Time) bool { return p.CreatedAt.Truncate(time.Second).After(t) }

// youngest returns when the youngest pod of the node was created. Zero: there is none.
func (d *decider) youngest() (at time.Time) {
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, at) {
			at = p.CreatedAt.Truncate(time.Second)
		}
	}
	return at
}

// controllerOf identifies the controller that creates another pod when p is gone. All pods of a namespace
// without a controller count as pods of one controller.
func controllerOf(p *Pod) string {
	if p.Owner != nil && p.Owner.UID != "" {
		return p.Owner.UID
	}
	return "namespace " + p.Namespace
}

// roundsOf returns the rounds in a record of the controller of a pod.
func roundsOf(rec *machine.DrainRecord, p *Pod) machine.DrainReturn {
	controller := controllerOf(p)
	i := slices.IndexFunc(rec.Returns, func(r machine.DrainReturn) bool { return r.Controller == controller })
	if i < 0 {
		return machine.DrainReturn{Controller: controller}
	}
	return rec.Returns[i]
}

// keepsReturning reports whether a pod is left alone because it came late, and the late pods of its controller
// have had all their rounds, or too many other controllers have late pods.
func (d *decider) keepsReturning(p *Pod) bool {
	if !d.late(p) {
		return false
	}
	r, limit := roundsOf(d.rec, p), int32(latestRounds)
	switch {
	case !madeAfter(p, r.Youngest): // it belongs to a round that was counted
		return false
	case p.ToleratesCordon:
		limit = toleratingRounds
	}
	return r.Rounds >= limit || r.Rounds == 0 && len(d.rec.Returns) >= mostReturning
}

// countRounds records another round for each controller that has late pods among those to be evicted. The record
// is stored before they are evicted.
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
	return d.writeRecord(rec, decision.Why{Reason: reasonCameLate, Object: first.Key})
}

// nextRound counts one more round, with all pods of the controller that are on the node now.
func (d *decider) nextRound(r machine.DrainReturn) machine.DrainReturn {
	r.Rounds++
	for _, p := range d.o.Pods {
		if p != nil && madeAfter(p, r.Youngest) && controllerOf(p) == r.Controller {
			r.Youngest = p.CreatedAt.Truncate(time.Second)
		}
	}
	return r
}

// force deletes every pod that is not exempt (exemptFromForce) with grace 0, at once. It does not wait for
// budgets, volumes or pods. It ends when the deletions were accepted, or after Policy.ForceBound.
func (d *decider) force() Plan {
	bound := d.rec.Forced.Add(d.p.ForceBound)
	if d.o.WriteFailed {
		bound = d.now // the start is not stored, so a later process could not count from it
	}
	due, failed := d.forceDeletions(bound)
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
	if p := d.firstNotAccepted(); p != nil {
		why = decision.Why{Reason: reasonFailed, Object: p.Key, Detail: d.o.Memory.answer(p.UID).Message, For: max(d.at.Sub(d.now), 0)}
	}
	return Plan{At: d.at, Why: why, Warn: d.warned}
}

// firstNotAccepted returns the first pod, by its key, whose deletion was not accepted. Nil: there is none.
func (d *decider) firstNotAccepted() (first *Pod) {
	for _, p := range d.o.Pods {
		if p == nil || d.exemptFromForce(p) {
			continue
		}
		a := d.o.Memory.answer(p.UID)
		if a.Kind == Killed && a.Result != NotFound && a.Result != Accepted && (first == nil || p.Key.String() < first.Key.String()) {
			first = p
		}
	}
	return first
}

// forceDeletions returns the deletions that are due, and the number of those that were not accepted. Each is
// tried at least once, even after the bound. Pods that came after the drain began are the exception, because
// more of them may come each time.
func (d *decider) forceDeletions(bound time.Time) (due []int32, failed int64) {
	d.statuses = make([]podStatus, len(d.o.Pods))
	for i, p := range d.o.Pods {
		if p == nil || p.UID == "" || d.exemptFromForce(p) {
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
		d.statuses[i].dueReason = reasonForce
		due = append(due, int32(i))
	}
	return due, failed
}

// exemptFromForce reports whether even force leaves a pod alone: static pods, pods of daemon sets, pods that
// a rule skips, and pods that would come back.
func (d *decider) exemptFromForce(p *Pod) bool {
	if _, left := d.leftAlone(p); left || p.ToleratesCordon && d.late(p) || d.keepsReturning(p) {
		return true
	}
	rule := d.p.rule(p)
	return rule != nil && rule.Behaviour == Skip
}
