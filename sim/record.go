package sim

import (
	"errors"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/sim/history"
	"github.com/millwright-go/millwright/store"
)

// Recorder records what happens to one deployment. It updates its counts with each change, and never
// lists the whole fleet. Its memory is bounded, see package history.
type Recorder struct {
	recording
	w   *World
	key object.Key

	deployment *deployment.Deployment // nil if it does not exist
	sets       map[string]*machineset.Set
	machines   map[object.Key]machineCount
	counts     map[machineCount]int
	frozen     *openSpan
}

// machineCount says where a machine counts: in which set, and in which number of a sample.
type machineCount struct {
	set  string // UID of the machine's owner
	part countedAs
}

// countedAs is one of the numbers of a sample.
type countedAs uint8

const (
	partServing countedAs = iota
	partPending
	partUpdating
	partUnknown
	partCrashLoop
	partFailed
	partTerminating
)

// countedAsOf returns the number of a sample in which a machine counts.
func countedAsOf(m *machine.Machine) countedAs {
	if m.Deleted() {
		return partTerminating
	}
	switch m.Status.Phase {
	case machine.PhaseRunning, machine.PhaseAvailable:
		return partServing
	case machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful, machine.PhaseInPlaceUpdateFailed:
		return partUpdating
	case machine.PhaseUnknown:
		return partUnknown
	case machine.PhaseCrashLoopBackOff:
		return partCrashLoop
	case machine.PhaseFailed:
		return partFailed
	case machine.PhaseTerminating:
		return partTerminating
	case machine.PhaseNew, machine.PhasePending:
	}
	return partPending
}

// Record begins to record what happens to the deployment of that name in Namespace, which need not
// exist yet. The run is the same with and without it.
func (w *World) Record(name string) *Recorder {
	r := &Recorder{
		recording: recording{now: w.Now}, w: w, key: object.Key{Namespace: Namespace, Name: name},
		sets: map[string]*machineset.Set{}, machines: map[object.Key]machineCount{}, counts: map[machineCount]int{},
	}
	r.h.Name, r.h.Seed, r.h.Start = name, w.o.Seed, w.Now()
	for _, s := range w.sets.all() {
		r.countSet(s.Key, s)
	}
	for _, m := range w.machines.all() {
		r.countMachine(m.Key, m)
	}
	if d := w.deployment(name); d != nil {
		r.deployment = d
		r.noteFreeze()
	}
	r.sample()
	w.markers = append(w.markers, r)
	w.subscribe(r.see)
	return r
}

// History returns a copy of what was recorded until now.
func (r *Recorder) History() *history.History {
	h := r.h.Clone()
	h.Length = max(h.Length, r.after())
	for _, s := range r.open {
		m := s.mark
		m.Until = r.after()
		h.Note(m)
	}
	return h
}

func (r *Recorder) see(e event) {
	switch e := e.(type) {
	case stored[*machine.Machine]:
		r.countMachine(e.key, e.now)
	case stored[*machineset.Set]:
		r.countSet(e.key, e.now)
		r.noteFreeze()
	case stored[*deployment.Deployment]:
		if e.key == r.key {
			r.noteEdit(e.now)
			r.deployment = e.now
			r.noteFreeze()
		}
	case effect:
		r.sample()
	}
}

func (r *Recorder) countMachine(k object.Key, m *machine.Machine) {
	before, known := r.machines[k]
	if known {
		if r.counts[before]--; r.counts[before] == 0 {
			delete(r.counts, before)
		}
		delete(r.machines, k)
	}
	if m == nil || m.Owner == nil {
		return
	}
	now := machineCount{m.Owner.UID, countedAsOf(m)}
	r.machines[k] = now
	r.counts[now]++
	if !r.w.acting && now.part == partTerminating && known && before.part != partTerminating && r.ownsSet(now.set) {
		r.note(history.Edit, "a machine deleted by hand")
	}
}

func (r *Recorder) countSet(k object.Key, s *machineset.Set) {
	for uid, known := range r.sets {
		if known.Key == k {
			delete(r.sets, uid)
		}
	}
	if s != nil {
		r.sets[s.UID] = s
	}
}

// ownsSet reports whether the set with that UID belongs to the deployment.
func (r *Recorder) ownsSet(set string) bool {
	s := r.sets[set]
	return s != nil && r.deployment != nil && s.OwnedBy(r.deployment.UID)
}

// sample records the present counts of the fleet.
func (r *Recorder) sample() {
	s := history.Sample{After: r.after()}
	if d := r.deployment; d != nil && !d.Deleted() {
		s.Wanted = int(max(d.Spec.Replicas, 0))
		b := boundsOf(d)
		if widened := r.w.bounds[d.UID]; widened != nil {
			b = *widened
		}
		s.Floor, s.Ceiling = b.floor, b.ceiling
	}
	for at, n := range r.counts {
		if r.ownsSet(at.set) {
			r.count(&s, at, n)
		}
	}
	r.h.Add(s)
}

func (r *Recorder) count(s *history.Sample, at machineCount, n int) {
	switch at.part {
	case partServing:
		if r.w.deploymentPolicy().Wants(r.deployment, r.sets[at.set]) {
			s.NewAvailable += n
		} else {
			s.OldAvailable += n
		}
	case partPending:
		s.Pending += n
	case partUpdating:
		s.Updating += n
	case partUnknown:
		s.Unknown += n
	case partCrashLoop:
		s.CrashLoop += n
	case partFailed:
		s.Failed += n
	case partTerminating:
		s.Terminating += n
	}
}

// noteFreeze notes when a freeze of the fleet begins or ends.
func (r *Recorder) noteFreeze() {
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
	p := r.w.o.Manager.Policies.Safety
	if p == nil || r.deployment == nil {
		return false
	}
	if p.Frozen(&r.deployment.Meta) {
		return true
	}
	for uid, s := range r.sets {
		if r.ownsSet(uid) && p.Frozen(&s.Meta) {
			return true
		}
	}
	return false
}

// noteEdit notes what a user has changed about the deployment.
func (r *Recorder) noteEdit(now *deployment.Deployment) {
	before := r.deployment
	switch {
	case r.w.acting:
	case now == nil || now.Deleted():
		if before != nil && !before.Deleted() {
			r.note(history.Edit, "deleted")
		}
	case before == nil:
		r.note(history.Edit, "created with "+machinesInWords(now.Spec.Replicas)+" of class "+now.Spec.Template.Spec.Class.Name)
	case before.Generation != now.Generation:
		for _, what := range specChanges(&before.Spec, &now.Spec) {
			r.note(history.Edit, what)
		}
	}
}

// hooks returns the given hooks. If Options.Tell is set, they also report events and effects to it.
func (p *process) hooks(hooks manager.Hooks) manager.Hooks {
	if p.trace == nil {
		return hooks
	}
	event, effect := hooks.Event, hooks.Effect
	hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		if !p.dead {
			p.tell("%s %s: %s: %s", kind, key.Name, reason, why)
		}
		if event != nil {
			event(kind, key, typ, reason, why)
		}
	}
	hooks.Effect = func(kind manager.Kind, key object.Key, name string, took time.Duration, err error) {
		switch {
		case p.dead || kind == manager.KindReachability && errors.Is(err, store.ErrNotFound): // not found is an answer
		case err != nil:
			p.tell("%s %s: %s failed: %v", kind, key.Name, name, err)
		default:
			p.tell("%s %s: %s", kind, key.Name, name)
		}
		if effect != nil {
			effect(kind, key, name, took, err)
		}
	}
	return hooks
}

// deletedWithNode: the manager has deleted a machine because its node was deleted.
type deletedWithNode struct{ key object.Key }

// reportNodeDeletions returns hooks that also emit deletedWithNode.
func (p *process) reportNodeDeletions(hooks manager.Hooks) manager.Hooks {
	tell := hooks.Event
	hooks.Event = func(kind manager.Kind, key object.Key, typ manager.EventType, reason, why string) {
		if tell != nil {
			tell(kind, key, typ, reason, why)
		}
		if kind == manager.KindMachine && reason == machine.ReasonNodeDeletion.String() {
			p.emit(deletedWithNode{key})
		}
	}
	return hooks
}
