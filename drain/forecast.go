package drain

import (
	"cmp"
	"container/heap"
	"slices"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/object"
)

// Assumptions are what a forecast assumes about a cluster. A field that is zero means its default.
type Assumptions struct {
	// Heal is the time from a pod's end until its replacement counts as healthy for the budgets.
	// Zero: 1 min. A pod without an owner is not replaced.
	Heal time.Duration
	// Detach is the time from a pod's end until its volumes are detached. Zero: 10 s.
	Detach time.Duration
	// Reattach is the time from the detachment of volumes until they are attached elsewhere. Zero: 10 s.
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
	Pod    object.Key // zero for cordon, end, and a wait for a volume of no pod
	Why    decision.Why
	// Budgets are those that apply to a pod whose eviction would be refused.
	Budgets []object.Key
}

// Forecast is what a drain would do.
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

// Predict returns what a drain would do. It runs the real decisions. It assumes that pods are gone when their
// grace ends, that those which tolerate the cordon come back to the node, that budgets recover when the
// replacement is healthy, and that nothing else changes. It does not change o. It ignores Complete, Cached and
// PodsCached: the observation counts as complete and read live.
//
// A forecast ends without Done at the limit. It ends with the reason NoProgress if decisions repeat themselves
// and change nothing; that is a bug of this package.
//
// Only a caller's mistake is an error, as for Decide.
func Predict(o *Observation, p *Policy, a Assumptions, now time.Time) (*Forecast, error) {
	d, err := newDecision(o, p, now)
	if err != nil {
		return nil, err
	}
	return newSimulation(d, a).run(Decide)
}

// run adds steps until the drain ends, the limit is reached, or decisions no longer change
// anything.
func (f *simulation) run(decide func(*Observation, *Policy, time.Time) (Plan, error)) (*Forecast, error) {
	f.addStaying()
	for {
		plan, err := decide(&f.o, f.p, f.now)
		if err != nil {
			return nil, err
		}
		switch {
		case plan.busy() && f.makesNoProgress():
			return f.end(&plan, decision.Why{Reason: reasonNoProgress, Name: f.out.Node, Detail: plan.Why.String()}), nil
		case plan.busy():
			f.carryOut(&plan)
			continue
		case f.runFollowUps():
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

// makesNoProgress reports whether more plans were carried out at the present time than a drain can need: some
// for the node, and a few for each pod that was there at first.
func (f *simulation) makesNoProgress() bool {
	f.busy++
	return f.busy > 16+8*f.out.Pods
}

// end closes the forecast. If why is not zero, it adds a last step.
func (f *simulation) end(plan *Plan, why decision.Why) *Forecast {
	f.explain(plan)
	if plan.Done && plan.Warn != (decision.Why{}) {
		f.addStep(Step{Action: Stay, Pod: plan.Warn.Object, Why: plan.Warn})
	}
	if why != (decision.Why{}) {
		f.addStep(Step{Action: End, Why: why})
	}
	f.out.Left = slices.DeleteFunc(slices.Clone(plan.Blocked), func(b Blocked) bool { return b.Why.Reason == reasonCameBack })
	f.out.Took = f.now.Sub(f.began)
	return f.out
}

// simulation is a cluster that behaves as a forecast assumes.
type simulation struct {
	o         Observation
	a         Assumptions
	p         *Policy
	began     time.Time
	now       time.Time
	busy      int // plans that were carried out at now
	events    eventQueue
	serial    int
	pods      map[string]*Pod // by UID
	gone      map[*Pod]bool
	users     map[object.Key]int         // of a claim: pods that are there and have not finished
	bound     map[object.Key][]*Volume   // to a claim
	followUps []func()                   // what follows from the calls that were made now
	explained map[string]decision.Reason // of each pod, why it waits
	budgets   map[*Budget]*Budget
	cameBack  map[string]bool // UIDs of pods that came in spite of the cordon
	out       *Forecast
}

type event struct {
	at     time.Time
	serial int // decides between events of the same time
	do     func()
}

// eventQueue is a heap: the next event is first.
type eventQueue []event

func (h eventQueue) Len() int { return len(h) }
func (h eventQueue) Less(i, j int) bool {
	return h[i].at.Before(h[j].at) || h[i].at.Equal(h[j].at) && h[i].serial < h[j].serial
}
func (h eventQueue) Swap(i, j int) { h[i], h[j] = h[j], h[i] }
func (h *eventQueue) Push(x any)   { *h = append(*h, x.(event)) }
func (h *eventQueue) Pop() any {
	last := (*h)[len(*h)-1]
	*h = (*h)[:len(*h)-1]
	return last
}

func newSimulation(d *decider, a Assumptions) *simulation {
	f := &simulation{
		o: *d.o, p: d.p, began: d.now, now: d.now, explained: map[string]decision.Reason{}, budgets: map[*Budget]*Budget{}, cameBack: map[string]bool{},
		a:    Assumptions{defaultTo(a.Heal, time.Minute), defaultTo(a.Detach, 10*time.Second), defaultTo(a.Reattach, 10*time.Second), defaultTo(a.Limit, 24*time.Hour)},
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
	f.o.Memory, f.o.Complete, f.o.Cached, f.o.PodsCached = &memory, true, false, false
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

func defaultTo(d, other time.Duration) time.Duration {
	if d > 0 {
		return d
	}
	return other
}

// copied returns the simulation's own copies of budgets.
func (f *simulation) copied(budgets []*Budget) []*Budget {
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
func (f *simulation) selecting(p *Pod) []*Budget {
	list := []*Budget{}
	for _, b := range f.o.Budgets {
		if b.Selects(p) {
			list = append(list, b)
		}
	}
	return list
}

func (f *simulation) addStep(s Step) {
	s.At = f.now.Sub(f.began)
	f.out.Steps = append(f.out.Steps, s)
}

// addStaying adds steps for the pods that are left alone, and for those that are terminating already.
func (f *simulation) addStaying() {
	d := decider{o: &f.o, p: f.p, now: f.now}
	for _, p := range f.o.Pods {
		s, alone := d.leftAlone(p)
		if rule := f.p.rule(p); !alone && rule != nil && rule.Behaviour == Skip {
			s, alone = podStatus{reason: reasonSkipped}, true
		}
		switch {
		case alone:
			f.addStep(Step{Action: Stay, Pod: p.Key, Why: decision.Why{Reason: s.reason, Object: p.Key, Detail: s.name}})
		case !p.GraceEnds.IsZero() && !p.Finished:
			left := plausible(p.GraceEnds.Add(f.p.terminationBuffer()).Sub(f.now))
			if end := f.ends(); end > 0 && (left == 0 || end < left) && f.now.Before(p.GraceEnds) {
				left = end
			}
			f.addStep(Step{Action: Wait, Pod: p.Key, Why: decision.Why{Reason: reasonTerminating, Object: p.Key, For: left}})
		}
	}
}

// ends returns how long a drain that begins now may take. Zero: it has no deadline, or it has passed.
func (f *simulation) ends() time.Duration {
	if f.o.Deadline.IsZero() {
		return max(f.p.Timeout, 0)
	}
	return max(f.o.Deadline.Sub(f.now), 0)
}

// plausible returns a wait for a reason. Zero: there is no wait, or it is so long that a stored time must be
// wrong.
func plausible(wait time.Duration) time.Duration {
	if wait > 10*365*24*time.Hour {
		return 0
	}
	return max(wait, 0)
}

// explain adds steps that say why pods wait or stay, and for which volumes the drain waits. It adds none if the
// reason is the same as before.
func (f *simulation) explain(plan *Plan) {
	if volume := "volume " + plan.Why.Name; plan.Why.Reason == reasonAttached && f.explained[volume] != reasonAttached {
		f.explained[volume] = reasonAttached
		f.addStep(Step{Action: Wait, Why: plan.Why})
	}
	for i := range plan.Blocked {
		b := &plan.Blocked[i]
		if f.explained[b.UID] == b.Why.Reason || plan.Done && b.Why.Reason != reasonCameBack {
			continue
		}
		f.explained[b.UID] = b.Why.Reason
		step := Step{Action: Wait, Pod: b.Pod, Why: b.Why}
		if b.Why.Reason == reasonCameBack {
			step.Action = Stay
		}
		for _, budget := range b.Budgets {
			step.Budgets = append(step.Budgets, budget.Key)
		}
		f.addStep(step)
	}
}

// next returns when something happens or, if that is sooner, when the drain decides again. Zero: never.
func (f *simulation) next(decides time.Time) time.Time {
	if len(f.events) > 0 && (decides.IsZero() || f.events[0].at.Before(decides)) {
		return f.events[0].at
	}
	return decides
}

// at calls do at the time t, or now if that is in the past.
func (f *simulation) at(t time.Time, do func()) {
	if t.Before(f.now) {
		t = f.now
	}
	f.serial++
	heap.Push(&f.events, event{t, f.serial, do})
}

// advance makes t the present time, and carries out the events until then.
func (f *simulation) advance(t time.Time) {
	if t.After(f.now) {
		f.busy = 0
	}
	f.now = t
	before := len(f.gone)
	for len(f.events) > 0 && !f.events[0].at.After(f.now) {
		heap.Pop(&f.events).(event).do()
	}
	if len(f.gone) > before { // once for all that went now
		f.o.Pods = slices.DeleteFunc(f.o.Pods, func(p *Pod) bool { return f.gone[p] })
	}
}

// carryOut makes the forecast's cluster answer a plan.
func (f *simulation) carryOut(plan *Plan) {
	if plan.Write != nil {
		if plan.Write.Unschedulable && !f.o.Node.Unschedulable || plan.Begins || plan.Why.Reason == reasonForceBegins {
			f.addStep(Step{Action: Cordon, Why: plan.Why})
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
		f.addStep(Step{Action: action, Pod: o.Pod, Why: o.Why})
		f.o.Memory.Begin(o)
		f.o.Memory.Note(o.UID, Answer{Kind: kind, Result: Accepted, At: f.now})
		f.terminate(o.UID, o.Now)
	}
	for _, o := range plan.Evict {
		answer := f.evict(o.UID)
		answer.Kind, answer.At = Evicted, f.now
		f.o.Memory.Begin(o)
		f.o.Memory.Note(o.UID, answer)
		if answer.Result == Accepted {
			f.addStep(Step{Action: Evict, Pod: o.Pod, Why: o.Why})
			f.terminate(o.UID, false)
		}
	}
}

// runFollowUps runs what follows from the calls that were made now. It reports whether there was anything.
func (f *simulation) runFollowUps() bool {
	followUps := f.followUps
	f.followUps = nil
	for _, do := range followUps {
		do()
	}
	return len(followUps) > 0
}

// add adds a pod to the node.
func (f *simulation) add(p *Pod) {
	f.o.Pods = append(f.o.Pods, p)
	if p.UID != "" {
		f.pods[p.UID] = p
	}
	f.use(p, 1)
}

// use adds n to the number of users of each of a pod's claims.
func (f *simulation) use(p *Pod, n int) {
	for _, claim := range p.Claims {
		if !p.Finished {
			f.users[object.Key{Namespace: p.Namespace, Name: claim}] += n
		}
	}
}

// pod returns the pod with this UID, or nil if it is not on the node.
func (f *simulation) pod(uid string) *Pod {
	if p := f.pods[uid]; p != nil && !f.gone[p] {
		return p
	}
	return nil
}

// evict answers an eviction as an API server does.
func (f *simulation) evict(uid string) Answer {
	p := f.pod(uid)
	if p == nil {
		return Answer{Result: NotFound}
	}
	if p.Pending || p.Finished || !p.GraceEnds.IsZero() {
		return Answer{Result: Accepted} // budgets don't matter
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

// terminate makes a pod terminate: it is gone when its grace ends (kill: at once), and budgets no longer
// count it.
func (f *simulation) terminate(uid string, kill bool) {
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
	if kill || p.Finished {
		ends = f.now
	}
	p.GraceEnds = ends
	f.at(ends, func() { f.remove(p) })
}

// recount updates the budgets of a pod that terminates, as the controller of budgets does. It does so after all
// calls of the present time were answered.
func (f *simulation) recount(p *Pod) {
	budgets, healthy := p.Budgets, p.healthy()
	f.followUps = append(f.followUps, func() {
		for _, b := range budgets {
			if healthy {
				b.CurrentHealthy--
			}
			b.count()
		}
	})
}

// remove removes a pod. Its volumes are detached later, and its replacement becomes healthy later.
func (f *simulation) remove(p *Pod) {
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

// heal makes the replacement of a pod healthy, unless it came to this node and is gone or terminating already.
func (f *simulation) heal(p *Pod) {
	if again := f.pod(p.UID + "'"); f.cameBack[p.UID+"'"] {
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
func (f *simulation) comeBack(p *Pod) {
	if !p.ToleratesCordon {
		return
	}
	f.at(f.now.Add(time.Second), func() {
		again := *p
		again.UID, again.GraceEnds, again.CreatedAt = p.UID+"'", time.Time{}, f.now.Truncate(time.Second)
		again.Pending, again.NotReady = true, true
		f.cameBack[again.UID] = true
		f.add(&again)
	})
}

// used reports whether a pod of the node uses a volume.
func (f *simulation) used(v *Volume) bool { return f.users[v.Claim] > 0 }

// detachUnused detaches the volumes that are attached to the node now and that no pod of the node uses.
func (f *simulation) detachUnused() {
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

// detach detaches a volume from the node unless a pod of the node uses it. Later it is attached elsewhere: to a
// node without a name.
func (f *simulation) detach(v *Volume) {
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

// refusers returns the names of a step's budgets for its text. Empty: there are fewer than two.
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
