package drain

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Assumptions are what a forecast assumes about a cluster. The zero value stands for the defaults.
type Assumptions struct {
	// Heal is the time from a pod's end until its replacement counts as healthy for the budgets.
	// Zero: 1 min. A pod without an owner is not replaced.
	Heal time.Duration
	// Detach is the time from a pod's end until its volumes are detached. Zero: 10 s.
	Detach time.Duration
	// Reattach is the time from there until they are attached elsewhere. Zero: 10 s.
	Reattach time.Duration
	// Limit is how far to look ahead. Zero: a day.
	Limit time.Duration
}

// Action is the kind of a step of a forecast.
type Action string

// The actions.
const (
	Cordon Action = "cordon"
	Evict  Action = "evict"
	Delete Action = "delete"
	Kill   Action = "kill" // a deletion with grace 0
	Wait   Action = "wait"
	Stay   Action = "stay"
	End    Action = "end"
)

// Step is one step of a forecast.
type Step struct {
	At     time.Duration // from now
	Action Action
	Pod    object.Key // zero for cordon and end
	Why    decision.Why
	// Budgets that apply to a pod whose eviction would be refused.
	Budgets []object.Key
}

// Forecast is how a drain would go.
type Forecast struct {
	Node  string
	Pods  int // on the node now
	Steps []Step
	// Left are the pods that would remain at the end, by namespace and name. Pods that the drain
	// leaves alone are not included.
	Left []Blocked
	// Done: the drain would end within the limit, after Took.
	Done bool
	Took time.Duration
}

// Predict returns how a drain would go. It runs the real decisions. It assumes that pods go when
// their grace ends, that those which tolerate the cordon come back to the node, that budgets recover
// when the replacement is there, and that nothing else changes. It does not change o. The observation counts as complete and read live: Complete and
// Cached are ignored.
//
// A forecast ends without Done at the limit. It ends with ReasonNoProgress if decisions repeat
// themselves and change nothing; that is a fault of this package.
//
// Only a caller's mistake is an error, as for Decide.
func Predict(o *Observation, p *Policy, a Assumptions, now time.Time) (*Forecast, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return nil, err
	}
	return newFuture(d, a).run(Decide)
}

// run adds steps until the drain ends, the limit is reached, or decisions no longer change
// anything.
func (f *future) run(decide func(*Observation, *Policy, time.Time) (Plan, error)) (*Forecast, error) {
	f.stays()
	for {
		plan, err := decide(&f.o, f.p, f.now)
		if err != nil {
			return nil, err
		}
		switch {
		case plan.busy() && f.spins():
			return f.end(&plan, decision.Why{Reason: reasonNoProgress, Name: f.out.Node, Detail: plan.Why.String()}), nil
		case plan.busy():
			f.carryOut(&plan)
			continue
		case f.follow():
			continue
		case plan.Done:
			f.out.Done = true
			return f.end(&plan, plan.Why), nil
		}
		f.explain(&plan)
		next := f.next(plan.At)
		if next.IsZero() || next.Sub(f.began) > f.a.Limit {
			return f.end(&plan, decision.Why{}), nil
		}
		f.advance(next)
	}
}

// spins reports whether more plans were carried out at this time than a drain can need: some for
// the node, and a few for each pod that was there at first.
func (f *future) spins() bool {
	f.busy++
	return f.busy > 16+8*f.out.Pods
}

// end closes the forecast, with a last step unless there is nothing to say.
func (f *future) end(plan *Plan, why decision.Why) *Forecast {
	f.explain(plan)
	if plan.Done && plan.Warn != (decision.Why{}) {
		f.say(Step{Action: Stay, Pod: plan.Warn.Object, Why: plan.Warn})
	}
	if why != (decision.Why{}) {
		f.say(Step{Action: End, Why: why})
	}
	f.out.Left = slices.DeleteFunc(slices.Clone(plan.Blocked), func(b Blocked) bool { return b.Why.Reason == reasonCameBack })
	f.out.Took = f.now.Sub(f.began)
	return f.out
}

// future is a cluster that behaves as a forecast assumes.
type future struct {
	o       Observation
	a       Assumptions
	p       *Policy
	began   time.Time
	now     time.Time
	busy    int // plans that were carried out at now
	events  happenings
	serial  int
	pods    map[string]*Pod // by UID
	gone    map[*Pod]bool
	users   map[object.Key]int // of a claim: pods that are there and have not finished
	bound   map[object.Key][]*Volume
	then    []func()                   // what follows from the calls that were made now
	said    map[string]decision.Reason // of each pod, why it waits
	budgets map[*Budget]*Budget
	came    map[string]bool // UIDs of pods that came in spite of the cordon
	out     *Forecast
}

type happening struct {
	at     time.Time
	serial int // among those of one time
	do     func()
}

// happenings are a heap: the next one first.
type happenings []happening

func (h happenings) Len() int { return len(h) }
func (h happenings) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].serial < h[j].serial
}
func (h happenings) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *happenings) Push(x any)   { *h = append(*h, x.(happening)) }
func (h *happenings) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newFuture(d *decider, a Assumptions) *future {
	f := &future{
		o: *d.o, p: d.p, began: d.now, now: d.now, said: map[string]decision.Reason{}, budgets: map[*Budget]*Budget{}, came: map[string]bool{},
		a:    Assumptions{or(a.Heal, time.Minute), or(a.Detach, 10*time.Second), or(a.Reattach, 10*time.Second), or(a.Limit, 24*time.Hour)},
		out:  &Forecast{},
		pods: map[string]*Pod{}, gone: map[*Pod]bool{}, users: map[object.Key]int{}, bound: map[object.Key][]*Volume{},
	}
	memory := Memory{}
	if d.o.Memory != nil {
		memory = *d.o.Memory
		memory.Answers = map[string]Answer{}
		for uid, answer := range d.o.Memory.Answers {
			memory.Answers[uid] = answer
		}
	}
	f.o.Memory, f.o.Complete, f.o.Cached = &memory, true, false
	f.o.Budgets = f.copied(d.o.Budgets)
	f.o.Attachments, f.o.Attached = slices.Clone(d.o.Attachments), slices.Clone(d.o.Attached)
	f.o.Pods = nil
	for _, v := range d.o.Volumes {
		if v != nil {
			f.bound[v.Claim] = append(f.bound[v.Claim], v)
		}
	}
	for _, p := range d.o.Pods {
		if p == nil || p.UID != "" && f.pods[p.UID] != nil {
			continue
		}
		c := *p
		if c.Budgets = f.copied(p.Budgets); p.Budgets == nil {
			c.Budgets = f.selecting(p)
		}
		f.add(&c)
		if !c.GraceEnds.IsZero() {
			f.at(c.GraceEnds, func() { f.remove(&c) })
		}
	}
	slices.SortStableFunc(f.o.Pods, func(a, b *Pod) int { return compareKeys(a.Namespace, a.Name, b.Namespace, b.Name) })
	f.o.Memory.See(f.o.Pods, true, f.now)
	f.out.Pods = len(f.o.Pods)
	if d.o.Node != nil {
		f.out.Node = d.o.Node.Name
		f.detachUnused()
	}
	return f
}

func or(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

func (f *future) copied(budgets []*Budget) []*Budget {
	list := make([]*Budget, 0, len(budgets))
	for _, b := range budgets {
		if b == nil {
			continue
		}
		if f.budgets[b] == nil {
			c := *b
			f.budgets[b] = &c
		}
		list = append(list, f.budgets[b])
	}
	return list
}

// selecting returns the budgets that select a pod.
func (f *future) selecting(p *Pod) []*Budget {
	list := []*Budget{}
	for _, b := range f.o.Budgets {
		if b.Selects(p) {
			list = append(list, b)
		}
	}
	return list
}

func (f *future) say(s Step) {
	s.At = f.now.Sub(f.began)
	f.out.Steps = append(f.out.Steps, s)
}

// stays adds steps for the pods that are left where they are, and those that are going already.
func (f *future) stays() {
	d := decider{o: &f.o, p: f.p, now: f.now}
	for _, p := range f.o.Pods {
		s, alone := d.leftAlone(p)
		if rule := f.p.rule(p); !alone && rule != nil && rule.Behaviour == Skip {
			s, alone = standing{reason: reasonSkipped}, true
		}
		switch {
		case alone:
			f.say(Step{Action: Stay, Pod: p.Key, Why: decision.Why{Reason: s.reason, Object: p.Key, Detail: s.name}})
		case !p.GraceEnds.IsZero() && !p.Finished:
			left := sensible(p.GraceEnds.Add(f.p.terminationBuffer()).Sub(f.now))
			if end := f.ends(); end > 0 && (left == 0 || end < left) && f.now.Before(p.GraceEnds) {
				left = end
			}
			f.say(Step{Action: Wait, Pod: p.Key, Why: decision.Why{Reason: reasonLeaving, Object: p.Key, For: left}})
		}
	}
}

// ends returns how long a drain that begins now may take. Zero: it has no end, or that is over.
func (f *future) ends() time.Duration {
	if f.o.Deadline.IsZero() {
		return max(f.p.Timeout, 0)
	}
	return max(f.o.Deadline.Sub(f.now), 0)
}

// sensible returns a wait as people are told of it. Zero: there is none, or it is so long that a stamp
// is wrong.
func sensible(wait time.Duration) time.Duration {
	if wait > 10*365*24*time.Hour {
		return 0
	}
	return max(wait, 0)
}

// explain adds steps for why pods wait or stay, and for which volumes the drain waits, if the reason
// is new.
func (f *future) explain(plan *Plan) {
	if volume := "volume " + plan.Why.Name; plan.Why.Reason == reasonAttached && f.said[volume] != reasonAttached {
		f.said[volume] = reasonAttached
		f.say(Step{Action: Wait, Why: plan.Why})
	}
	for i := range plan.Blocked {
		b := &plan.Blocked[i]
		if f.said[b.UID] == b.Why.Reason || plan.Done && b.Why.Reason != reasonCameBack {
			continue
		}
		f.said[b.UID] = b.Why.Reason
		step := Step{Action: Wait, Pod: b.Pod, Why: b.Why}
		if b.Why.Reason == reasonCameBack {
			step.Action = Stay
		}
		for _, budget := range b.Budgets {
			step.Budgets = append(step.Budgets, budget.Key)
		}
		f.say(step)
	}
}

// next returns when something happens or the drain decides again. Zero: never.
func (f *future) next(at time.Time) time.Time {
	if len(f.events) > 0 && (at.IsZero() || f.events[0].at.Before(at)) {
		return f.events[0].at
	}
	return at
}

func (f *future) at(at time.Time, do func()) {
	if at.Before(f.now) {
		at = f.now
	}
	f.serial++
	heap.Push(&f.events, happening{at, f.serial, do})
}

func (f *future) advance(to time.Time) {
	if to.After(f.now) {
		f.busy = 0
	}
	f.now = to
	before := len(f.gone)
	for len(f.events) > 0 && !f.events[0].at.After(f.now) {
		heap.Pop(&f.events).(happening).do()
	}
	if len(f.gone) > before { // once for all that went now
		f.o.Pods = slices.DeleteFunc(f.o.Pods, func(p *Pod) bool { return f.gone[p] })
	}
}

// carryOut makes the forecast's cluster answer a plan.
func (f *future) carryOut(plan *Plan) {
	if plan.Write != nil {
		if plan.Write.Unschedulable && !f.o.Node.Unschedulable || plan.Begins || plan.Why.Reason == reasonForceBegins {
			f.say(Step{Action: Cordon, Why: plan.Why})
		}
		f.o.Node = plan.Write
		if plan.Begins {
			f.o.Memory.Begun()
		}
		return
	}
	for _, o := range plan.Delete {
		kind, action := Deleted, Delete
		if o.Now {
			kind, action = Killed, Kill
		}
		f.say(Step{Action: action, Pod: o.Pod, Why: o.Why})
		f.o.Memory.Begin(o)
		f.o.Memory.Note(o.UID, Answer{Kind: kind, Result: Accepted, At: f.now})
		f.tell(o.UID, o.Now)
	}
	for _, o := range plan.Evict {
		answer := f.evict(o.UID)
		answer.Kind, answer.At = Evicted, f.now
		f.o.Memory.Begin(o)
		f.o.Memory.Note(o.UID, answer)
		if answer.Result == Accepted {
			f.say(Step{Action: Evict, Pod: o.Pod, Why: o.Why})
			f.tell(o.UID, false)
		}
	}
}

// follow has happen what follows from the calls of this moment, and reports whether anything did.
func (f *future) follow() bool {
	then := f.then
	f.then = nil
	for _, do := range then {
		do()
	}
	return len(then) > 0
}

// add has a pod run on the node.
func (f *future) add(p *Pod) {
	f.o.Pods = append(f.o.Pods, p)
	if p.UID != "" {
		f.pods[p.UID] = p
	}
	f.use(p, 1)
}

// use counts the users of a pod's claims.
func (f *future) use(p *Pod, more int) {
	for _, claim := range p.Claims {
		if !p.Finished {
			f.users[object.Key{Namespace: p.Namespace, Name: claim}] += more
		}
	}
}

// pod returns a pod that is there, or nil.
func (f *future) pod(uid string) *Pod {
	if p := f.pods[uid]; p != nil && !f.gone[p] {
		return p
	}
	return nil
}

// evict answers as an API server does.
func (f *future) evict(uid string) Answer {
	p := f.pod(uid)
	if p == nil {
		return Answer{Result: NotFound}
	}
	if p.Pending || p.Finished || !p.GraceEnds.IsZero() {
		return Answer{Result: Accepted} // no budget is asked
	}
	budgets := p.Budgets
	switch len(budgets) {
	case 0:
		return Answer{Result: Accepted}
	case 1:
	default:
		return Answer{Result: Failed, Message: "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."}
	}
	answer, counts := budgets[0].admits(p)
	if counts {
		budgets[0].DisruptionsAllowed--
		budgets[0].Disrupted++
	}
	return answer
}

// tell makes a pod go when its grace ends. The controller of budgets no longer counts it.
func (f *future) tell(uid string, now bool) {
	p := f.pod(uid)
	if p == nil {
		return
	}
	if p.GraceEnds.IsZero() && !p.Finished {
		if p.Owner != nil && p.Owner.Kind != statefulSet {
			f.comeBack(p)
		}
		f.recount(p)
	}
	ends := f.now.Add(p.grace())
	if now || p.Finished {
		ends = f.now
	}
	p.GraceEnds = ends
	f.at(ends, func() { f.remove(p) })
}

// recount has the controller of budgets count those of a pod that goes, once all calls of this moment
// were answered.
func (f *future) recount(p *Pod) {
	budgets, healthy := p.Budgets, p.healthy()
	f.then = append(f.then, func() {
		for _, b := range budgets {
			if healthy {
				b.CurrentHealthy--
			}
			b.count()
		}
	})
}

// remove ends a pod: its volumes move on, its replacement comes up.
func (f *future) remove(p *Pod) {
	if f.gone[p] {
		return
	}
	f.gone[p] = true
	f.use(p, -1)
	if p.Owner != nil && !p.Finished {
		f.at(f.now.Add(f.a.Heal), func() { f.heal(p) })
		if p.Owner.Kind == statefulSet {
			f.comeBack(p)
		}
	}
	for _, claim := range p.Claims {
		for _, v := range f.bound[object.Key{Namespace: p.Namespace, Name: claim}] {
			if !f.used(v) {
				f.at(f.now.Add(f.a.Detach), func() { f.detach(v) })
			}
		}
	}
}

// heal has the replacement of a pod run. One that came to this node may have been told to terminate before.
func (f *future) heal(p *Pod) {
	if again := f.pod(p.UID + "'"); f.came[p.UID+"'"] {
		if again == nil || !again.GraceEnds.IsZero() {
			return
		}
		again.Pending, again.NotReady = false, false
	}
	for _, b := range p.Budgets {
		b.CurrentHealthy++
		b.count()
	}
}

// comeBack binds another pod of the same controller to the node, if it tolerates the cordon.
func (f *future) comeBack(p *Pod) {
	if !p.ToleratesCordon {
		return
	}
	f.at(f.now.Add(time.Second), func() {
		again := *p
		again.UID, again.GraceEnds, again.CreatedAt = p.UID+"'", time.Time{}, f.now.Truncate(time.Second)
		again.Pending, again.NotReady = true, true
		f.came[again.UID] = true
		f.add(&again)
	})
}

// used reports whether a pod here uses a volume.
func (f *future) used(v *Volume) bool { return f.users[v.Claim] > 0 }

// detachUnused takes off the node what is attached to it now and no pod here uses.
func (f *future) detachUnused() {
	d := decider{o: &f.o}
	gone := map[string]bool{}
	for _, id := range d.attached() {
		gone[id] = !slices.ContainsFunc(f.o.Volumes, func(v *Volume) bool {
			return v != nil && d.sameVolume(id, d.volumeID(v)) && slices.ContainsFunc(f.o.Pods, func(p *Pod) bool { return claims(p, v) })
		})
		if gone[id] {
			f.at(f.now.Add(f.a.Detach), func() {
				f.o.Attached = slices.DeleteFunc(f.o.Attached, func(have string) bool { return gone[have] })
				f.o.Attachments = slices.DeleteFunc(f.o.Attachments, func(a *Attachment) bool {
					return a != nil && a.Node == f.out.Node && gone[cmp.Or(a.Volume, a.Name)]
				})
			})
		}
	}
}

// detach takes a volume off the node that no pod here uses, and attaches it to a node without a name.
func (f *future) detach(v *Volume) {
	if f.used(v) {
		return
	}
	tail := tailOf(v.Handle)
	f.o.Attached = slices.DeleteFunc(f.o.Attached, func(id string) bool { return sameHandle(id, tail) })
	here := func(a *Attachment) bool { return a != nil && a.Volume == v.Name && a.Node == f.out.Node }
	if !slices.ContainsFunc(f.o.Attachments, here) {
		return
	}
	f.o.Attachments = slices.DeleteFunc(f.o.Attachments, here)
	f.at(f.now.Add(f.a.Reattach), func() {
		f.o.Attachments = append(f.o.Attachments, &Attachment{Volume: v.Name, Attached: true})
	})
}

// refusers returns the budgets of a step, for people.
func refusers(keys []object.Key) string {
	if len(keys) < 2 {
		return ""
	}
	text := "; all budgets:"
	for i, k := range keys {
		if i > 0 {
			text += ","
		}
		text += " " + k.String()
	}
	return text
}

// elapsed formats the time from now for a table.
func elapsed(d time.Duration) string { return "+" + span(d) }

func span(d time.Duration) string { return d.Round(time.Second).String() }
