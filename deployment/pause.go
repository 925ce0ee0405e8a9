package deployment

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/deployment/rollout"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// A paused set keeps its size and is not deleted: not by a rollout, not with the deployment, and
// not as history. Machines neither come to it nor leave it, except for moves that had begun. Notes
// for later, such as rollout marks, are still written on it. A paused machine is not selected for
// an update and not replaced. The reason for a wait says if a paused object causes it.

// leaves reports whether an object is paused.
func (d *decider) leaves(m *object.Meta) bool {
	paused, _ := machine.Paused(m, d.p.Keys.Paused)
	return paused
}

// copiedPause reports whether a set is paused by a copy of its deployment's annotation. On a
// deployment the annotation means nothing. Other managers copy a deployment's annotations to its
// sets, where this one would pause them. So the deployment removes it from a set if both have the
// same.
func (d *decider) copiedPause(s *machineset.Set) bool {
	key := d.p.Keys.Paused
	text, ok := s.Annotations[key]
	return ok && key != "" && has(d.deployment.Annotations, key) && d.deployment.Annotations[key] == text
}

func has(m map[string]string, key string) bool {
	_, ok := m[key]
	return ok
}

// spare counts a machine of a set if it is paused, and reports whether it is.
func (d *decider) spare(f *family, m *machine.Machine) bool {
	if !d.leaves(&m.Meta) {
		return false
	}
	if f.spared++; f.spared == 1 || m.Name < f.firstKept {
		f.firstKept = m.Name
	}
	return true
}

// countRequests counts a machine that is to be replaced, on request or for its age, as its set
// does.
func (d *decider) countRequests(f *family, m *machine.Machine, available bool) {
	maxAge := d.deployment.Spec.MaxAge
	requested := machineset.Requested(m, d.p.Keys.Replace)
	f.takeable = f.takeable || available && !inUpdate(m) && (requested || tooOld(m, f.set.Spec.MaxAge, d.now))
	switch {
	case d.leaves(&m.Meta):
	case requested:
		f.requested++
	case maxAge > 0 && available && machineset.MayExpire(m):
		at := machineset.ExpiresAt(m, maxAge)
		if at.IsZero() {
			return
		}
		if d.now.Before(at) {
			d.lookAt(at)
			return
		}
		f.requested++
		f.expired++
	}
}

// tooOld reports whether a set with that maximum age may replace a machine for its age.
func tooOld(m *machine.Machine, maxAge time.Duration, now time.Time) bool {
	at := machineset.ExpiresAt(m, maxAge)
	return !at.IsZero() && !now.Before(at) && machineset.MayExpire(m)
}

// remark returns what else to say of a deployment that waits: that the object it waits for is
// paused, and that machines are too old.
func (d *decider) remark() string {
	text := d.keptRemark()
	if n := d.expired(); n > 0 {
		what := "are being replaced"
		if d.current == nil || d.rolling() || d.deployment.Spec.Paused || d.current.paused {
			what = "have to wait"
		}
		text += fmt.Sprintf("; %d too old: they %s", n, what)
	}
	return text
}

// keptRemark returns a remark if the set that the deployment waits for has paused machines.
func (d *decider) keptRemark() string {
	f := d.family(d.step.Set)
	switch {
	case f == nil || f.spared == 0 || d.step.Reason == rollout.ReasonPaused:
		return ""
	case f.spared == 1:
		return fmt.Sprintf("; machine %s of it is paused", f.firstKept)
	}
	return fmt.Sprintf("; %d machines of it are paused, such as %s", f.spared, f.firstKept)
}

// expired returns how many machines are too old.
func (d *decider) expired() (n int32) {
	for i := range d.sets {
		n += d.sets[i].expired
	}
	return n
}

// pausedSets names the oldest set that is paused, and so is not deleted.
func (d *decider) pausedSets() string {
	for i := range d.sets {
		if f := &d.sets[i]; f.paused {
			return "; set " + f.set.Name + " is paused"
		}
	}
	return ""
}
