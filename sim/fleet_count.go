package sim

import (
	"cmp"
	"context"
	"maps"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/preview"
)

// fleetCount counts the machines of one deployment as decisions count them. It updates the counts with
// each change, and never lists the whole fleet.
type fleetCount struct {
	w          *World
	deployment *deployment.Deployment     // nil once it is gone
	sets       map[string]*machineset.Set // the deployment's sets, by UID
	current    *machineset.Set            // the set that has the wanted template, or nil
	machines   map[object.Key]counted
	counts     map[contribution]int32
	maturing   map[object.Key]bool // ready machines that become available when time has passed
	dirty      bool                // whether the counts may have changed
	updatable  []string            // fields of a provider spec that can be changed on existing VMs
	class      machine.ClassRef    // the deployment's class
	spec       machine.VMSpec      // the spec that the VMs should have; zero: VMs are not changed

	seen, best  preview.Counts // the present counts, and the best so far (see noteProgress)
	progressed  time.Time      // when the rollout last made progress
	failedSince int64          // creations that failed since then

	createdMeanwhile         map[object.Key]bool // machines that were created since counting began
	created, deleted, failed int64               // machines, since then
	selected, moved          int64               // machines that were selected to be updated in place, or moved to another set
	updated                  int64               // VMs that were changed without a drain
}

// counted is the last seen state of a machine, and what it contributes to the counts.
type counted struct {
	machine *machine.Machine
	as      contribution
}

// contribution is what a machine contributes to the counts.
type contribution struct {
	set                           string // UID of its owner
	terminating, ready, available bool
	outdated                      bool // its VM is to be changed
	kept                          bool // it is kept for inspection
}

func newFleetCount(w *World, d *deployment.Deployment, updatable []string) *fleetCount {
	t := &fleetCount{
		w: w, deployment: d, updatable: updatable, sets: map[string]*machineset.Set{}, machines: map[object.Key]counted{}, counts: map[contribution]int32{},
		maturing: map[object.Key]bool{}, createdMeanwhile: map[object.Key]bool{}, progressed: w.Now(),
	}
	t.classChanged()
	for _, s := range w.sets.all() {
		t.setChanged(s.Key, s)
	}
	for _, m := range w.machines.all() {
		t.count(m.Key, m)
	}
	t.recountAll()
	t.best = t.seen
	w.subscribe(t.see)
	return t
}

// see updates the counts with each change of an object.
func (t *fleetCount) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		t.machineChanged(t.machines[e.key].machine, e.now)
		t.count(e.key, e.now)
	case stored[*machineset.Set]:
		t.setChanged(e.key, e.now)
	case stored[*deployment.Deployment]:
		if t.deployment != nil && e.key == t.deployment.Key {
			t.deployment = e.now
			t.classChanged()
			t.chooseCurrent()
		}
	}
}

// classChanged computes the spec that the VMs should have, if the deployment names another class now.
func (t *fleetCount) classChanged() {
	if t.deployment == nil || len(t.updatable) == 0 || t.class == t.deployment.Spec.Template.Spec.Class {
		return
	}
	t.class, t.spec = t.deployment.Spec.Template.Spec.Class, machine.VMSpec{}
	class, err := t.w.classes.Get(context.Background(), object.Key{Namespace: t.deployment.Namespace, Name: t.class.Name})
	if err == nil {
		t.spec = machine.SplitSpec(class, t.updatable)
	}
	for k, m := range t.machines {
		t.count(k, m.machine)
	}
}

// outdated reports whether a VM is to be changed to what its class says.
func (t *fleetCount) outdated(m *machine.Machine) bool {
	have, want := &m.Status.VMSpec, &t.spec
	return *want != machine.VMSpec{} && *have != *want && have.Declared == want.Declared && have.Fixed == want.Fixed
}

func (t *fleetCount) setChanged(k object.Key, now *machineset.Set) {
	for uid, s := range t.sets {
		if s.Key == k {
			delete(t.sets, uid)
		}
	}
	if now != nil && t.deployment != nil && now.OwnedBy(t.deployment.UID) {
		t.sets[now.UID] = now
	}
	t.chooseCurrent()
}

// chooseCurrent chooses the set that has the wanted template as a deployment does: the newest revision,
// and among several the oldest set.
func (t *fleetCount) chooseCurrent() {
	t.current, t.dirty = nil, true
	for _, s := range t.sets {
		if t.deployment == nil || s.Deleted() || !t.w.deploymentPolicy().Wants(t.deployment, s) {
			continue
		}
		if t.current == nil || t.before(s, t.current) {
			t.current = s
		}
	}
}

// before reports whether chooseCurrent prefers a to b.
func (*fleetCount) before(a, b *machineset.Set) bool {
	return cmp.Or(cmp.Compare(b.Revision, a.Revision), a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Name, b.Name)) < 0
}

// machineChanged counts creations, deletions and other changes of machines.
func (t *fleetCount) machineChanged(before, now *machine.Machine) {
	switch {
	case now == nil:
		if before != nil && !before.Deleted() {
			t.deleted++
		}
	case before == nil:
		t.created++
		t.createdMeanwhile[now.Key] = true
	default:
		t.changed(before, now)
	}
}

// changed counts what happened to an existing machine.
func (t *fleetCount) changed(before, now *machine.Machine) {
	if now.Deleted() && !before.Deleted() {
		t.deleted++
	}
	if now.Status.Phase == machine.PhaseFailed && before.Status.Phase != machine.PhaseFailed && t.createdMeanwhile[now.Key] {
		t.failed++
		t.failedSince++
	}
	if now.Spec.InPlace == machine.InPlaceSelected && before.Spec.InPlace != machine.InPlaceSelected {
		t.selected++
	}
	if now.Status.VMSpec.Begun == "" && before.Status.VMSpec.Begun != "" {
		t.updated++
	}
	if ownerUID(now) != ownerUID(before) && ownerUID(now) != "" {
		t.moved++
	}
}

// count replaces the contribution of a machine. now is nil if it is gone.
func (t *fleetCount) count(k object.Key, now *machine.Machine) {
	t.dirty = true
	if before, known := t.machines[k]; known {
		if t.counts[before.as]--; t.counts[before.as] == 0 {
			delete(t.counts, before.as)
		}
		delete(t.machines, k)
		delete(t.maturing, k)
	}
	if now == nil {
		return
	}
	as := contribution{set: ownerUID(now), terminating: now.Deleted(), ready: now.Ready(), outdated: t.outdated(now)}
	as.kept = now.Preserved(t.w.Now())
	if as.ready && t.deployment != nil {
		as.available = !as.kept && !now.AvailableAt(t.deployment.Spec.MinReady).After(t.w.Now())
		if !as.available {
			t.maturing[k] = true
		}
	}
	t.machines[k] = counted{now, as}
	t.counts[as]++
}

// recountAll brings the counts up to date, and reports whether they have changed.
func (t *fleetCount) recountAll() bool {
	for k := range t.maturing {
		t.count(k, t.machines[k].machine)
	}
	if !t.dirty {
		return false
	}
	t.dirty = false
	var c preview.Counts
	for as, n := range t.counts {
		s := t.sets[as.set]
		switch {
		case s == nil:
		case as.terminating:
			c.Terminating += n
		default:
			total, available := &c.Old, &c.OldAvailable
			if s == t.current {
				total, available = &c.New, &c.NewAvailable
				if as.outdated {
					c.Outdated += n
				}
			}
			*total += n
			if as.ready {
				c.Ready += n
			}
			if as.available {
				*available += n
			}
		}
	}
	before := t.seen
	t.seen = c
	t.noteProgress(&before)
	return c != before
}

// excessHistory reports whether there are more old sets than the limit, and one of them is empty.
func (t *fleetCount) excessHistory(limit int) bool {
	empty := map[string]bool{}
	for uid, s := range t.sets {
		if s != t.current {
			empty[uid] = s.Spec.Replicas == 0
			limit--
		}
	}
	for as := range t.counts {
		delete(empty, as.set)
	}
	for _, isEmpty := range empty {
		if isEmpty {
			return limit < 0
		}
	}
	return false
}

// fullySupplied reports whether each set has the machines that it wants, and all are available or kept
// for inspection. A machine that is being deleted is neither.
func (t *fleetCount) fullySupplied() bool {
	have := map[string]int32{}
	for as, n := range t.counts {
		if t.sets[as.set] == nil {
			continue
		}
		if !as.available && !as.kept {
			return false
		}
		have[as.set] += n
	}
	for uid, s := range t.sets {
		if s.Deleted() || have[uid] != s.Spec.Replicas {
			return false
		}
	}
	return true
}

// noteProgress notes progress: more new machines are available than ever, there are fewer old machines or
// fewer machines in all than ever, or fewer VMs than before are to be changed.
func (t *fleetCount) noteProgress(before *preview.Counts) {
	all := func(c *preview.Counts) int32 { return c.Total() + c.Terminating }
	if t.seen.NewAvailable <= t.best.NewAvailable && t.seen.Old >= t.best.Old && all(&t.seen) >= all(&t.best) &&
		t.seen.Outdated >= before.Outdated {
		return
	}
	smallest := min(all(&t.seen), all(&t.best))
	t.best.NewAvailable, t.best.Old = max(t.seen.NewAvailable, t.best.NewAvailable), min(t.seen.Old, t.best.Old)
	t.best.New, t.best.Terminating = 0, smallest-t.best.Old // only the sum matters
	t.progressed, t.failedSince = t.w.Now(), 0
}

// Left counts the objects, VMs and groups in the world. Orphan VMs count as VMs.
func (w *World) Left() Left {
	return Left{
		len(w.deployments.all()), len(w.sets.all()), len(w.machines.all()), len(w.nodes.all()), w.provider.Count(),
		len(w.pools.all()), w.groups.Count(),
	}
}

// Stats returns counts of what has happened so far.
func (w *World) Stats() Stats {
	s := Stats{Steps: w.steps, Passes: w.passes, Calls: maps.Clone(w.driverCalls), Refusals: maps.Clone(w.refusals), Actions: maps.Clone(w.actions), Collected: w.collected}
	s.PoolCalls, s.PoolRefusals = maps.Clone(w.poolCalls.calls), maps.Clone(w.poolRefusals)
	s.Faults = make(map[Fault]int, faultCount)
	for f := range AllFaults() {
		s.Faults[f] = w.faults[f]
	}
	return s
}
