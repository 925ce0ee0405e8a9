package drain

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// state is the group that a pod belongs to.
type state uint8

const (
	alone    state = iota // left alone: not evicted by any drain
	over                  // terminating or gone; no longer waited for
	overdue               // should be gone already; no longer waited for
	leaving               // terminating, and waited for
	finished              // to be deleted without waiting
	holding               // protected: not evicted yet
	staying               // to be evicted
)

// standing is a pod's state, and the reason.
type standing struct {
	state  state
	reason decision.Reason
	name   string    // an annotation, an owner
	order  int32     // among those that are drained in order
	detail string    // the value of that annotation, if it is unclear
	until  time.Time // when the wait for a leaving one, or the protection of a holding one, ends or has ended
	// followed: the pod has a volume that the drain waits for.
	followed bool
	// ended: the pod was told to terminate and has finished, or has used up its time. The drain waits for
	// its volumes, and not for the pod itself.
	ended bool
	doing decision.Reason // of the order that is due
	from  time.Time       // when it is; zero: at once
}

// stand computes the state of a pod.
func (d *decider) stand(p *Pod) standing {
	s := d.group(p)
	if (s.state == staying || s.state == finished) && d.keepsComing(p) {
		return standing{state: alone, reason: reasonCameBack}
	}
	return s
}

// group computes the state of a pod, regardless of earlier pods of its controller.
func (d *decider) group(p *Pod) standing {
	if s, left := d.leftAlone(p); left {
		return s
	}
	rule := d.p.rule(p)
	s := standing{state: staying}
	if rule != nil {
		if rule.Behaviour == Skip {
			return standing{state: alone, reason: reasonSkipped}
		}
		s.order = rule.Order
	}
	if p.UID == "" {
		return d.held(s, reasonNoUID, "")
	}
	if told, ok := d.told(p); ok {
		told.order = s.order
		return told
	}
	if p.Finished {
		s.state, s.reason = finished, reasonFinished
		return s
	}
	if rule != nil && rule.Behaviour == WaitCompleted {
		return d.held(s, reasonCompleting, "")
	}
	if by := d.protection(p); by.key != "" {
		return d.protect(s, &by)
	}
	return s
}

// leftAlone finds the pods that no drain touches, not even by force.
func (d *decider) leftAlone(p *Pod) (standing, bool) {
	switch {
	case p.Mirror:
		return standing{state: alone, reason: reasonMirror}, true
	case p.Owner != nil && p.Owner.Kind == DaemonSet:
		return standing{state: alone, reason: reasonDaemonSet, name: p.Owner.Name}, true
	}
	return standing{}, false
}

// told decides about pods that this drain or another program told to terminate. The end of the drain ends
// every wait for them, but not their grace.
func (d *decider) told(p *Pod) (standing, bool) {
	a := d.o.Memory.answer(p.UID)
	var until time.Time
	switch {
	case p.Finished && (!p.GraceEnds.IsZero() || a.Result == Accepted):
		return standing{state: over, ended: true}, true // nothing of it runs any more
	case !p.GraceEnds.IsZero():
		until = d.graceEnds(p).Add(d.p.terminationBuffer())
	case a.Result == NotFound:
		return standing{state: over}, true
	case a.Result != Accepted:
		return standing{}, false
	default:
		until = a.At.Add(p.grace()).Add(d.p.terminationBuffer())
		if !d.now.Before(until) {
			return standing{}, false // accepted, without effect
		}
	}
	switch {
	case !d.now.Before(until):
		return standing{state: overdue, ended: true, reason: reasonOverdue, until: until}, true
	case d.past:
		return standing{state: over, reason: reasonGoing, until: until}, true
	}
	return standing{state: leaving, reason: reasonLeaving, until: until}, true
}

// graceEnds returns when the grace of a pod that is being deleted ends: when the cluster says, or
// after its grace from when it was told to terminate by the clock of this process, if that is later. The
// cluster's clock may be behind this one, and no pod loses its grace for it.
func (d *decider) graceEnds(p *Pod) time.Time {
	told := d.o.Memory.told(p.UID)
	if own := told.Add(p.grace()); !told.IsZero() && own.After(p.GraceEnds) {
		return own
	}
	return p.GraceEnds
}

// held decides about a pod that is not to be evicted before the drain's end, and what happens to it
// then.
func (d *decider) held(s standing, reason decision.Reason, name string) standing {
	s.state, s.reason, s.name = holding, reason, name
	if !d.past {
		return s
	}
	switch d.p.AtTimeout {
	case LeavePods:
		s.state, s.reason = alone, reasonLeftAlone
	case DeletePods:
		s.state = staying
		if reason == reasonNoUID {
			s.state, s.reason = alone, reasonLeftAlone
		}
	case KeepWaiting:
	}
	return s
}

// survey computes the state of each pod, and the lowest order that still has pods.
func (d *decider) survey() {
	d.standings = make([]standing, len(d.o.Pods))
	first := true
	for i, p := range d.o.Pods {
		if p == nil {
			continue
		}
		s := d.stand(p)
		d.standings[i] = s
		switch s.state {
		case alone:
			if s.reason == reasonCameBack {
				d.left++
			}
			continue
		case over, overdue:
			if s.reason != (decision.Reason{}) {
				d.left++
			}
			continue
		case leaving:
			d.lookAgain(s.until)
		case finished:
			d.live++
			continue // it goes at once, in any order
		case holding:
			d.lookAgain(s.until)
		case staying:
		}
		d.live++
		if s.reason != reasonCompleting && (first || s.order < d.order) {
			d.order, first = s.order, false
		}
	}
}

// protection is an annotation of a pod that forbids its eviction.
type protection struct {
	key     string
	until   time.Time // when it ends by itself; zero: it does not
	unclear string    // a value that says neither; the pod is protected
}

// outlasts reports whether p protects for longer than other, or is the only one.
func (p *protection) outlasts(other *protection) bool {
	return other.key == "" || !other.until.IsZero() && (p.until.IsZero() || p.until.After(other.until))
}

// protection returns what protects a pod for longest. The zero protection: nothing does.
func (d *decider) protection(p *Pod) (longest protection) {
	if len(p.Annotations) == 0 {
		return longest
	}
	consider := func(keys []string, protects func(string) (protection, bool)) {
		for _, key := range keys {
			value, there := p.Annotations[key]
			if !there {
				continue
			}
			if found, yes := protects(strings.TrimSpace(value)); yes && found.outlasts(&longest) {
				longest, longest.key = found, key
			}
		}
	}
	consider(d.p.Keys.DoNotDisrupt, func(value string) (protection, bool) { return d.notDisrupted(value, p.CreatedAt) })
	consider(d.p.Keys.SafeToEvict, notSafe)
	return longest
}

// notDisrupted reads "true", "false", or for how long after its creation a pod is protected.
func (d *decider) notDisrupted(value string, created time.Time) (protection, bool) {
	if yes, err := strconv.ParseBool(value); err == nil {
		return protection{}, yes
	}
	after, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return protection{unclear: quoted(value)}, true
	case created.IsZero() && after > 0: // it ends at a time that is not known
		return protection{}, true
	}
	until := created.Add(after)
	return protection{until: until}, d.now.Before(until)
}

// notSafe reads "true" or "false", which protects.
func notSafe(value string) (protection, bool) {
	yes, err := strconv.ParseBool(value)
	if err != nil {
		return protection{unclear: quoted(value)}, true
	}
	return protection{}, !yes
}

// quoted returns the beginning of a value, for people.
func quoted(value string) string {
	const most = 40
	if len(value) > most {
		value = strings.ToValidUTF8(value[:most], "") + "…"
	}
	return strconv.Quote(codes.Printable(value))
}

// protect holds a protected pod back.
func (d *decider) protect(s standing, by *protection) standing {
	s = d.held(s, reasonProtected, by.key)
	if by.unclear != "" && s.reason == reasonProtected {
		s.reason, s.detail = reasonProtectedUnclear, by.unclear
	}
	if s.state == holding {
		s.until = by.until
	}
	return s
}

// heldFor returns for how long a pod is held back at most. Zero: without end, or no longer.
func (d *decider) heldFor(s *standing) time.Duration {
	left := d.timeLeft()
	if !s.until.IsZero() && (left == 0 || s.until.Sub(d.now) < left) {
		left = s.until.Sub(d.now)
	}
	return max(left, 0)
}
