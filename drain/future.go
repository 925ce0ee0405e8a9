package drain

import (
	"cmp"
	"slices"
	"time"

	"github.com/millwright-go/millwright/object"
)

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

// heal has the replacement of a pod run. One that came to this node may have been told to go before.
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
