package drain

import (
	"strconv"
	"strings"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
)

// podState says what the drain does with a pod.
type podState uint8

const (
	ignored     podState = iota // left alone: this drain does not evict it
	notAwaited                  // terminating or gone; the drain does not wait for it
	overdue                     // still terminating after its time; the drain no longer waits for it
	terminating                 // terminating; the drain waits for it
	finished                    // all its containers have ended; to be deleted at once
	postponed                   // not to be evicted yet: protected, or to complete by itself
	evictable                   // to be evicted
)

// podStatus is a pod's state, and the reason.
type podStatus struct {
	state  podState
	reason decision.Reason
	name   string    // an annotation, an owner
	order  int32     // Rule.Order
	detail string    // the value of that annotation, if it is unclear
	until  time.Time // when the wait for a terminating pod, or the protection of a postponed one, ends or has ended
	// followed: the pod has a volume that the drain waits for.
	followed bool
	// ended: the pod was told to terminate and has finished, or has used up its time. The drain waits for
	// its volumes, and not for the pod itself.
	ended     bool
	dueReason decision.Reason // the reason of the pod's next order
	from      time.Time       // when that order is due; zero: at once
}

// podStatusOf returns the status of a pod.
func (d *decider) podStatusOf(p *Pod) podStatus {
	s := d.ownStatus(p)
	if (s.state == evictable || s.state == finished) && d.keepsReturning(p) {
		return podStatus{state: ignored, reason: reasonCameBack}
	}
	return s
}

// ownStatus returns the status of a pod, regardless of earlier pods of its controller.
func (d *decider) ownStatus(p *Pod) podStatus {
	if s, left := d.leftAlone(p); left {
		return s
	}
	rule := d.p.rule(p)
	s := podStatus{state: evictable}
	if rule != nil {
		if rule.Behaviour == Skip {
			return podStatus{state: ignored, reason: reasonSkipped}
		}
		s.order = rule.Order
	}
	if p.UID == "" {
		return d.postpone(s, reasonNoUID, "")
	}
	if status, found := d.terminationStatus(p); found {
		status.order = s.order
		return status
	}
	if p.Finished {
		s.state, s.reason = finished, reasonFinished
		return s
	}
	if rule != nil && rule.Behaviour == WaitCompleted {
		return d.postpone(s, reasonCompleting, "")
	}
	if by := d.protection(p); by.key != "" {
		return d.protect(s, &by)
	}
	return s
}

// leftAlone returns the status of a pod that no drain touches, not even by force.
func (d *decider) leftAlone(p *Pod) (podStatus, bool) {
	switch {
	case p.Mirror:
		return podStatus{state: ignored, reason: reasonMirror}, true
	case p.Owner != nil && p.Owner.Kind == DaemonSet:
		return podStatus{state: ignored, reason: reasonDaemonSet, name: p.Owner.Name}, true
	}
	return podStatus{}, false
}

// terminationStatus returns the status of a pod that this drain or another program told to terminate. After the
// drain's deadline the drain no longer waits for it, but the pod keeps its grace.
func (d *decider) terminationStatus(p *Pod) (podStatus, bool) {
	a := d.o.Memory.answer(p.UID)
	var until time.Time
	switch {
	case p.Finished && (!p.GraceEnds.IsZero() || a.Result == Accepted):
		return podStatus{state: notAwaited, ended: true}, true // none of its containers runs any more
	case !p.GraceEnds.IsZero():
		until = d.graceEnds(p).Add(d.p.terminationBuffer())
	case a.Result == NotFound:
		return podStatus{state: notAwaited}, true
	case a.Result != Accepted:
		return podStatus{}, false
	default:
		until = a.At.Add(p.grace()).Add(d.p.terminationBuffer())
		if !d.now.Before(until) {
			return podStatus{}, false // accepted, without effect
		}
	}
	switch {
	case !d.now.Before(until):
		return podStatus{state: overdue, ended: true, reason: reasonOverdue, until: until}, true
	case d.pastDeadline:
		return podStatus{state: notAwaited, reason: reasonStillTerminating, until: until}, true
	}
	return podStatus{state: terminating, reason: reasonTerminating, until: until}, true
}

// graceEnds returns when the grace of a pod that is being deleted ends, by the clock of the cluster or, if that
// is later, by the clock of this process. The cluster's clock may be behind, and the pod must not lose its grace
// because of that.
func (d *decider) graceEnds(p *Pod) time.Time {
	since := d.o.Memory.terminatingSince(p.UID)
	if own := since.Add(p.grace()); !since.IsZero() && own.After(p.GraceEnds) {
		return own
	}
	return p.GraceEnds
}

// postpone returns the status of a pod that is not to be evicted before the drain's deadline. After it,
// Policy.AtTimeout decides.
func (d *decider) postpone(s podStatus, reason decision.Reason, name string) podStatus {
	s.state, s.reason, s.name = postponed, reason, name
	if !d.pastDeadline {
		return s
	}
	switch d.p.AtTimeout {
	case LeavePods:
		s.state, s.reason = ignored, reasonLeftAlone
	case DeletePods:
		s.state = evictable
		if reason == reasonNoUID {
			s.state, s.reason = ignored, reasonLeftAlone
		}
	case KeepWaiting:
	}
	return s
}

// surveyPods computes the status of each pod, and the lowest order that still has pods.
func (d *decider) surveyPods() {
	d.statuses = make([]podStatus, len(d.o.Pods))
	first := true
	for i, p := range d.o.Pods {
		if p == nil {
			continue
		}
		s := d.podStatusOf(p)
		d.statuses[i] = s
		switch s.state {
		case ignored:
			if s.reason == reasonCameBack {
				d.left++
			}
			continue
		case notAwaited, overdue:
			if s.reason != (decision.Reason{}) {
				d.left++
			}
			continue
		case terminating:
			d.lookAgain(s.until)
		case finished:
			d.awaited++
			continue // it is deleted at once, whatever its order
		case postponed:
			d.lookAgain(s.until)
		case evictable:
		}
		d.awaited++
		if s.reason != reasonCompleting && (first || s.order < d.order) {
			d.order, first = s.order, false
		}
	}
}

// protection is an annotation of a pod that forbids its eviction.
type protection struct {
	key     string
	until   time.Time // when it ends by itself; zero: it does not
	unclear string    // a value that can't be read, which counts as protection
}

// outlasts reports whether p protects for longer than other, or other protects not at all.
func (p *protection) outlasts(other *protection) bool {
	return other.key == "" || !other.until.IsZero() && (p.until.IsZero() || p.until.After(other.until))
}

// protection returns the annotation that protects a pod for the longest time. The zero protection: none does.
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

// notDisrupted reads the value of an annotation DoNotDisrupt: "true", "false", or for how long after its
// creation the pod is protected.
func (d *decider) notDisrupted(value string, created time.Time) (protection, bool) {
	if yes, err := strconv.ParseBool(value); err == nil {
		return protection{}, yes
	}
	after, err := time.ParseDuration(value)
	switch {
	case err != nil:
		return protection{unclear: quoted(value)}, true
	case created.IsZero() && after > 0: // it is not known when the protection ends
		return protection{}, true
	}
	until := created.Add(after)
	return protection{until: until}, d.now.Before(until)
}

// notSafe reads the value of an annotation SafeToEvict: "false" protects the pod, "true" does not.
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

// protect returns the status of a protected pod.
func (d *decider) protect(s podStatus, by *protection) podStatus {
	s = d.postpone(s, reasonProtected, by.key)
	if by.unclear != "" && s.reason == reasonProtected {
		s.reason, s.detail = reasonProtectedUnclear, by.unclear
	}
	if s.state == postponed {
		s.until = by.until
	}
	return s
}

// postponedFor returns for how long a pod is postponed at most. Zero: without end, or no longer.
func (d *decider) postponedFor(s *podStatus) time.Duration {
	left := d.timeLeft()
	if !s.until.IsZero() && (left == 0 || s.until.Sub(d.now) < left) {
		left = s.until.Sub(d.now)
	}
	return max(left, 0)
}
