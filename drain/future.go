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
		answer := Answer{Kind: Evicted, Result: f.evict(o.UID), At: f.now}
		f.o.Memory.Begin(o)
		f.o.Memory.Note(o.UID, answer)
		if answer.Result == Accepted {
			f.say(Step{Action: Evict, Pod: o.Pod, Why: o.Why})
			f.tell(o.UID, false)
		}
	}
}

func (f *future) pod(uid string) *Pod {
	i := slices.IndexFunc(f.o.Pods, func(p *Pod) bool { return p.UID == uid })
	if i < 0 {
		return nil
	}
	return f.o.Pods[i]
}

func (f *future) budgetsOf(p *Pod) []*Budget {
	d := decider{o: &f.o, p: f.p}
	return d.budgetsOf(p)
}

// evict answers as an API server does.
func (f *future) evict(uid string) Result {
	p := f.pod(uid)
	if p == nil {
		return NotFound
	}
	budgets := f.budgetsOf(p)
	switch {
	case len(budgets) == 0 || p.Finished || !p.GraceEnds.IsZero():
		return Accepted
	case len(budgets) > 1:
		return Failed
	case budgets[0].Stale() || budgets[0].DisruptionsAllowed <= 0:
		return Refused
	}
	return Accepted
}

// tell makes a pod go when its grace ends. The budgets no longer count it.
func (f *future) tell(uid string, now bool) {
	p := f.pod(uid)
	if p == nil {
		return
	}
	if p.GraceEnds.IsZero() && !p.Finished {
		if p.Owner != nil && p.Owner.Kind != statefulSet {
			f.comeBack(p)
		}
		for _, b := range f.budgetsOf(p) {
			b.DisruptionsAllowed, b.CurrentHealthy, b.Disrupted = b.DisruptionsAllowed-1, b.CurrentHealthy-1, b.Disrupted+1
		}
	}
	ends := f.now.Add(p.grace())
	if now || p.Finished {
		ends = f.now
	}
	p.GraceEnds = ends
	f.at(ends, func() { f.remove(p) })
}

// remove ends a pod: its volumes move on, its replacement comes up.
func (f *future) remove(p *Pod) {
	i := slices.Index(f.o.Pods, p)
	if i < 0 {
		return
	}
	f.o.Pods = slices.Delete(slices.Clone(f.o.Pods), i, i+1)
	if p.Owner != nil && !p.Finished {
		budgets := f.budgetsOf(p)
		f.at(f.now.Add(f.a.Heal), func() {
			for _, b := range budgets {
				b.DisruptionsAllowed, b.CurrentHealthy, b.Disrupted = b.DisruptionsAllowed+1, b.CurrentHealthy+1, max(b.Disrupted-1, 0)
			}
		})
	}
	if p.Owner != nil && p.Owner.Kind == statefulSet && !p.Finished {
		f.comeBack(p)
	}
	for _, v := range f.o.Volumes {
		if v != nil && claims(p, v) && !f.used(v) {
			f.at(f.now.Add(f.a.Detach), func() { f.detach(v) })
		}
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
		f.o.Pods = append(f.o.Pods, &again)
	})
}

// used reports whether a pod here uses a volume.
func (f *future) used(v *Volume) bool {
	return slices.ContainsFunc(f.o.Pods, func(p *Pod) bool { return !p.Finished && claims(p, v) })
}

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
