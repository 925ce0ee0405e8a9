package deployment

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

// A scaler that lowers replicas may choose the machines to be deleted. It names them, with the time, in
// an annotation of the deployment (Keys.DeletionCandidates, "name~time,name~time"). In the same
// update it writes that time into another annotation (Keys.ScaledAt). Both times are by the scaler's
// clock, so they are compared with each other. Without the second annotation, they are compared with
// this process's clock. A name without a time belongs to the reduction of replicas with which it is first seen.
//
// The deployment gives each name to the set that has the machine, in the write that lowers the
// set. So no set ever sees the smaller size without the names, or uses them for another reduction.
//
// Sets get names only with a new reduction: Spec.Replicas is below Status.Wanted. Names that the reduction
// does not use are out of date, and so are all names from before replicas were raised.

// choice is one name in the annotation, of a machine that exists and is not being deleted.
type choice struct {
	machineset.DeletionCandidate
	set         *setState
	available   bool
	givenToSet  bool // the set has the name among its deletion candidates
	untimed     bool // the annotation has no time for it
	scalerClock bool // At is by the scaler's clock
	preserved   bool // a user keeps it for inspection: its set would delete another
}

// parseDeletionCandidates reads the annotation. If a name comes twice, the later time counts. At is
// zero for a name without a time. valid is false if any entry was ignored.
func parseDeletionCandidates(text string) (candidates []machineset.DeletionCandidate, valid bool) {
	valid = true
	if text == "" {
		return nil, true
	}
	at := map[string]time.Time{}
	for entry := range strings.SplitSeq(text, ",") {
		name, stamp, timed := strings.Cut(strings.TrimSpace(entry), "~")
		t, isTime := parseScalerTime(stamp)
		before, twice := at[name]
		if name == "" || timed && !isTime {
			valid = false
			continue
		}
		if valid = valid && !twice; !twice || t.After(before) {
			at[name] = t
		}
	}
	for name, t := range at {
		candidates = append(candidates, machineset.DeletionCandidate{Name: name, At: t})
	}
	slices.SortFunc(candidates, func(a, b machineset.DeletionCandidate) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.Name, b.Name))
	})
	return candidates, valid
}

// parseScalerTime reads a time that a scaler wrote, in whole seconds. It returns false if there is
// none.
func parseScalerTime(text string) (t time.Time, valid bool) {
	t, err := time.Parse(time.RFC3339, text)
	if err != nil || t.Year() < 1970 || t.Year() > 9999 {
		return time.Time{}, false
	}
	return t.Truncate(time.Second), true
}

// scaledAt returns when a scaler last changed the size, by the scaler's clock. Zero: it is not known.
func (d *Deployment) scaledAt(p *Policy) time.Time {
	if p.Keys.ScaledAt == "" {
		return time.Time{}
	}
	t, _ := parseScalerTime(d.Annotations[p.Keys.ScaledAt])
	return t
}

// choicePeriod returns the period, ends included, whose choices belong to the present reduction. Earlier
// choices belong to an earlier reduction, and later ones to a later one. If the scaler says when it
// changed the size, the period is by the scaler's clock: it begins with the scaler's previous change, if the
// status has recorded it.
func (d *state) choicePeriod() (since, until time.Time) {
	s, at := &d.deployment.Status, d.deployment.scaledAt(d.p)
	if at.IsZero() {
		return s.WantedSince, d.now
	}
	if since = s.ScaledAt; since.After(at) { // the scaler's clock was set back, or it is another scaler
		since = at
	}
	if until = at; until.Before(d.now) {
		until = d.now
	}
	return since, until
}

// formatDeletionCandidates writes what parseDeletionCandidates reads.
func formatDeletionCandidates(candidates []machineset.DeletionCandidate) string {
	entries := make([]string, len(candidates))
	for i, v := range candidates {
		if entries[i] = v.Name; !v.At.IsZero() {
			entries[i] += "~" + v.At.UTC().Format(time.RFC3339)
		}
	}
	return strings.Join(entries, ",")
}

// readChoices returns the machines that the annotation names and that are not being deleted, in the
// order in which they were chosen.
func (d *state) readChoices() []choice {
	text := d.deployment.Annotations[d.p.Keys.DeletionCandidates]
	if d.p.Keys.DeletionCandidates == "" || text == "" {
		return nil
	}
	candidates, _ := parseDeletionCandidates(text)
	place := make(map[string]int, len(candidates))
	for i, v := range candidates {
		place[v.Name] = i + 1
	}
	found := make([]choice, len(candidates))
	for i := range d.sets {
		f := &d.sets[i]
		for _, m := range f.machines {
			if m == nil || m.Deleted() || !m.OwnedBy(f.set.UID) || place[m.Name] == 0 {
				continue
			}
			found[place[m.Name]-1] = d.newChoice(candidates[place[m.Name]-1], f, m)
		}
	}
	return slices.DeleteFunc(found, func(c choice) bool { return c.set == nil })
}

func (d *state) newChoice(v machineset.DeletionCandidate, f *setState, m *machine.Machine) choice {
	c := choice{
		DeletionCandidate: v, set: f, preserved: m.Preserved(d.now) && !m.Status.Preservation.Automatic(), available: d.available(m),
		untimed: v.At.IsZero(), scalerClock: !d.deployment.scaledAt(d.p).IsZero(),
	}
	c.givenToSet = slices.ContainsFunc(f.set.Instructions.DeletionCandidates, func(have machineset.DeletionCandidate) bool {
		return have.Equal(v) || (c.untimed || c.scalerClock) && have.Name == v.Name
	})
	return c
}

// candidateForSet returns the choice as a set gets it: always with a time by this process's clock,
// because the set compares it with the times of its machines.
func (d *state) candidateForSet(c *choice) machineset.DeletionCandidate {
	v := c.DeletionCandidate
	if c.untimed || c.scalerClock {
		v.At = d.stamp()
	}
	return v
}

// reduction returns by how much Replicas is below Status.Wanted, less the names that sets have already got for
// this reduction.
func (d *state) reduction() int64 {
	s := &d.deployment.Status
	if s.WantedSince.IsZero() {
		return 0
	}
	n := int64(s.Wanted) - int64(d.deployment.Spec.Replicas)
	for i := range d.sets {
		for _, v := range d.sets[i].set.Instructions.DeletionCandidates {
			if v.At.After(s.WantedSince) {
				n--
			}
		}
	}
	return max(0, n)
}

// countChoices reads the choices, and finds for each set which of its machines were chosen for deletion with
// the present reduction. A set deletes unavailable machines first, unless a choice says otherwise. So the
// choice of an available machine only counts if enough others stay available. A set that has fewer machines
// than its size loses missing ones first, so its choices do not count.
func (d *state) countChoices() {
	d.choices = d.readChoices()
	n := d.reduction()
	since, until := d.choicePeriod()
	spare := -max(0, int64(d.deployment.Spec.Replicas)-int64(d.bounds.Unavailable))
	for i := range d.sets {
		spare += int64(min(d.sets[i].available-d.sets[i].choicesAvailable, d.sets[i].size()))
	}
	for i := range d.choices {
		c := &d.choices[i]
		switch {
		case n == 0:
			return
		case c.givenToSet || c.preserved || c.set.set.Deleted() || !c.untimed && (c.At.After(until) || c.At.Before(since)):
			continue
		case c.set.actual < c.set.size() || c.available && spare <= 0:
			continue
		case c.available:
			spare--
			c.set.choicesAvailable++
		}
		c.set.choicesNew = append(c.set.choicesNew, d.candidateForSet(c))
		n--
	}
}

// choicesFor returns the deletion candidates that the set gets with its new size: none if the size is not
// smaller.
func (f *setState) choicesFor(size int32) []machineset.DeletionCandidate {
	return f.choicesNew[:min(len(f.choicesNew), int(max(f.size()-size, 0)))]
}

// pruneChoices removes names from the annotation that no longer apply: of machines that are gone or being
// deleted, of an earlier reduction, and entries that can't be read. It does so after the status has recorded
// the wanted size.
func (d *state) pruneChoices() (Plan, bool) {
	text, key := d.deployment.Annotations[d.p.Keys.DeletionCandidates], d.p.Keys.DeletionCandidates
	if text == "" || key == "" || d.held() {
		return Plan{}, false
	}
	var stay []machineset.DeletionCandidate
	since, _ := d.choicePeriod()
	waiting := d.choicesWait()
	for i := range d.choices {
		if c := &d.choices[i]; c.useful(since, waiting) {
			stay = append(stay, c.DeletionCandidate)
		}
	}
	all, valid := parseDeletionCandidates(text)
	if valid && len(stay) == len(all) {
		return Plan{}, false
	}
	changed := d.deployment.Clone()
	if changed.Annotations[key] = formatDeletionCandidates(stay); len(stay) == 0 {
		delete(changed.Annotations, key)
	}
	why := decision.Why{Reason: reasonCandidatesPruned, Name: key, Count: int64(len(all) - len(stay)), All: int64(len(all))}
	return Plan{Write: &Update{Deployment: changed}, Why: why}, true
}

// useful reports whether a choice stays in the annotation: its set has yet to delete the machine, or the choice
// belongs to a later reduction. since is when the period of the present reduction begins. waiting: a
// paused set could not get some of its choices yet.
func (c *choice) useful(since time.Time, waiting bool) bool {
	if c.givenToSet {
		return c.set.actual > c.set.size()
	}
	return c.At.After(since) || waiting && (c.untimed || !c.At.Before(since))
}

// recordWanted records in the status the wanted size, once all orders for it were given. batched: some
// orders wait.
func (d *state) recordWanted(s *Status, batched bool) {
	if d.held() || batched || d.choicesWait() {
		return
	}
	if at := d.deployment.scaledAt(d.p); !at.IsZero() {
		s.ScaledAt = at
	}
	if s.WantedSince.IsZero() || s.Wanted != d.deployment.Spec.Replicas {
		s.Wanted, s.WantedSince = d.deployment.Spec.Replicas, d.stamp()
	}
}

// choicesWait reports whether a paused set has yet to get the names that belong to a new reduction.
// Until then, the size is not recorded as the size wanted so far.
func (d *state) choicesWait() bool {
	return d.reduction() > 0 && slices.ContainsFunc(d.choices, func(c choice) bool { return c.set.paused && !c.givenToSet })
}

// withDeletionCandidates returns a copy of annotations in which key names the candidates.
func withDeletionCandidates(annotations map[string]string, key string, candidates []machineset.DeletionCandidate) map[string]string {
	c := maps.Clone(annotations)
	if c == nil {
		c = make(map[string]string, 1)
	}
	c[key] = formatDeletionCandidates(candidates)
	return c
}
