package sim

import (
	"fmt"
	"slices"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/sim/history"
)

func (r *Recorder) note(kind history.Kind, what string) {
	r.h.Note(history.Mark{After: r.after(), Kind: kind, What: what})
}

func (r *Recorder) begin(kind history.Kind, what string) *span {
	s := &span{history.Mark{After: r.after(), Kind: kind, What: what}}
	r.open = append(r.open, s)
	return s
}

// span implements marker.
func (r *Recorder) span(kind history.Kind, what string) (end func()) {
	s := r.begin(kind, what)
	return func() { r.finish(s) }
}

func (r *Recorder) finish(s *span) {
	i := slices.Index(r.open, s)
	if i < 0 {
		return
	}
	r.open = slices.Delete(r.open, i, i+1)
	s.mark.Until = r.after()
	r.h.Note(s.mark)
}

// thaw notes when the fleet freezes, and when it is no longer frozen.
func (r *Recorder) thaw() {
	frozen := r.isFrozen()
	switch {
	case frozen && r.frozen == nil:
		r.frozen = r.begin(history.Freeze, "frozen: too many machines")
	case !frozen && r.frozen != nil:
		r.finish(r.frozen)
		r.frozen = nil
	}
}

func (r *Recorder) isFrozen() bool {
	p := r.w.o.Manager.SafetyPolicy
	if p == nil || r.deployment == nil {
		return false
	}
	if p.Frozen(&r.deployment.Meta) {
		return true
	}
	for uid, s := range r.sets {
		if r.own(uid) && p.Frozen(&s.Meta) {
			return true
		}
	}
	return false
}

// edited notes what the owner of the deployment has changed.
func (r *Recorder) edited(now *deployment.Deployment) {
	before := r.deployment
	switch {
	case r.w.past.acting:
	case now == nil || now.Deleted():
		if before != nil && !before.Deleted() {
			r.note(history.Edit, "deleted")
		}
	case before == nil:
		r.note(history.Edit, "created with "+machines(now.Spec.Replicas)+" of class "+now.Spec.Template.Spec.Class.Name)
	case before.Generation != now.Generation:
		for _, what := range changes(&before.Spec, &now.Spec) {
			r.note(history.Edit, what)
		}
	}
}

// changes returns the differences between two specs, in words.
func changes(before, now *deployment.Spec) (out []string) {
	if before.Replicas != now.Replicas {
		out = append(out, machines(now.Replicas)+" wanted")
	}
	old, new := before.Template, now.Template
	switch {
	case old.Spec.Class != new.Spec.Class:
		out = append(out, "class "+new.Spec.Class.Name+" wanted")
	case !old.Equal(&new):
		out = append(out, "another template wanted")
	}
	if before.Strategy != now.Strategy {
		out = append(out, "strategy changed")
	}
	if before.Paused != now.Paused {
		out = append(out, map[bool]string{true: "paused", false: "resumed"}[now.Paused])
	}
	if before.RollbackTo == nil && now.RollbackTo != nil {
		out = append(out, "rollback asked for")
	}
	if len(out) == 0 {
		out = append(out, "edited")
	}
	return out
}

func machines(n int32) string {
	if n == 1 {
		return "1 machine"
	}
	return fmt.Sprint(n, " machines")
}
