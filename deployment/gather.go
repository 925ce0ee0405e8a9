package deployment

// gather holds orders of a rolling update back while others are about to join them, for
// Policy.Gather at most. A wave of machines, which become available one by one, then needs one
// write of a set. Orders that follow a change of the spec are given at once, and so are those that
// no other will join.
func (d *resizing) gather() (held bool) {
	spec := &d.deployment.Spec
	rolling := spec.Strategy.Kind != Recreate && spec.Strategy.Kind != InPlaceUpdate && !spec.Paused
	if d.p.Gather == 0 || d.news() || !rolling || !d.moreToCome() {
		return false
	}
	since := d.o.Gathering
	if since.IsZero() {
		since = d.now
	}
	wait := d.p.Gather
	if deadline := spec.ProgressDeadline; deadline > 0 {
		wait = min(wait, deadline/2) // waiting is no lack of progress
	}
	until := since.Add(wait)
	if since.After(d.now) || !d.now.Before(until) { // the former: the clock was set back
		return false
	}
	d.gathering, d.gathered = since, until.Sub(d.now)
	d.lookAt(until)
	return true
}

// news reports whether the spec has changed since the last status, as far as is known. If that
// status was written a moment ago, the next one may be delayed. Then only the size tells.
func (d *resizing) news() bool {
	s := &d.deployment.Status
	resized := !s.WantedSince.IsZero() && s.Wanted != d.deployment.Spec.Replicas
	return resized || s.ObservedGeneration != d.deployment.Generation && !d.now.Before(d.statusAt(max(d.p.StatusInterval, 0)))
}

// moreToCome reports whether the rollout will probably continue by itself: new machines are not
// available yet, or old ones that are about to go are not gone.
func (d *resizing) moreToCome() bool {
	for i := range d.sets {
		f, numbers := &d.sets[i], &d.fleet.Sets[i]
		if f == d.current && numbers.Available < numbers.Spec || numbers.Actual > numbers.Spec ||
			d.p.StrictQuota && numbers.Terminating > 0 {
			return true
		}
	}
	return false
}
