package machineset_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

const namespace = "fleet"

// world is a store of one set and its machines, with all of its past so that
// reads can be stale, and with creates that are still under way.
type world struct {
	now      time.Time
	set      *machineset.Set // nil: gone
	machines map[string]*machine.Machine
	history  []snapshot
	late     []lateCreate
	version  int
	uids     int

	created func(m *machine.Machine) // told of each machine that is created
	lost    func(m *machine.Machine) // told of each that stops counting: deleted, failed, relabelled or gone
}

// snapshot is what a reader may have in its cache. Objects are never changed
// once stored, so it is cheap.
type snapshot struct {
	set      *machineset.Set
	machines []*machine.Machine
}

type lateCreate struct {
	at      time.Time
	machine *machine.Machine
}

func newWorld(set *machineset.Set) *world {
	w := &world{now: morning, machines: map[string]*machine.Machine{}}
	w.created, w.lost = func(*machine.Machine) {}, func(*machine.Machine) {}
	stored := set.Clone()
	stored.Generation, stored.CreatedAt = 1, morning
	w.putSet(stored)
	return w
}

func newSet(replicas int32) *machineset.Set {
	set := &machineset.Set{}
	set.Key = object.Key{Namespace: namespace, Name: "web"}
	set.UID = "set-1"
	set.Spec.Replicas = replicas
	set.Spec.Selector = object.Selector{Labels: map[string]string{"pool": "web"}}
	set.Spec.Template = machineset.Template{
		Labels:      map[string]string{"pool": "web", "tier": "front"},
		Annotations: map[string]string{"made-by": "set"},
		Spec: machine.Spec{
			Class:        machine.ClassRef{Kind: "MachineClass", Name: "small"},
			NodeTemplate: machine.NodeTemplate{Labels: map[string]string{"zone": "a"}},
		},
	}
	return set
}

func (w *world) nextVersion() string {
	w.version++
	return strconv.Itoa(w.version)
}

func (w *world) putSet(s *machineset.Set) {
	if s != nil {
		s.Version = w.nextVersion()
	}
	w.set = s
	w.remember()
}

func (w *world) put(m *machine.Machine) {
	m.Version = w.nextVersion()
	w.machines[m.Name] = m
	w.remember()
}

func (w *world) drop(name string) {
	delete(w.machines, name)
	w.remember()
}

func (w *world) remember() { w.history = append(w.history, snapshot{w.set, w.all()}) }

// all returns the machines by name.
func (w *world) all() []*machine.Machine {
	names := slices.Sorted(maps.Keys(w.machines))
	out := make([]*machine.Machine, len(names))
	for i, name := range names {
		out[i] = w.machines[name]
	}
	return out
}

// active are the set's machines that count: neither going nor failed.
func (w *world) active() []*machine.Machine {
	return slices.DeleteFunc(w.all(), func(m *machine.Machine) bool {
		return m.Deleted() || m.Status.Phase == machine.PhaseFailed || !m.OwnedBy("set-1") || m.Labels["pool"] != "web"
	})
}

// The calls of the store. Each answers as codes do: NotFound, AlreadyExists,
// Aborted for a conflict.

func (w *world) updateSet(s *machineset.Set, status bool) (*machineset.Set, codes.Code) {
	switch {
	case w.set == nil:
		return nil, codes.NotFound
	case w.set.Version != s.Version:
		return nil, codes.Aborted
	}
	next := s.Clone()
	if status {
		next = w.set.Clone()
		next.CopyStatus(s)
	} else {
		next.CopyStatus(w.set)
		next.Generation, next.DeletedAt = w.set.Generation, w.set.DeletedAt
		if !next.SpecEqual(w.set) {
			next.Generation++
		}
	}
	if next.Deleted() && len(next.Finalizers) == 0 {
		w.putSet(nil)
		return next, codes.OK
	}
	w.putSet(next)
	return next, codes.OK
}

func (w *world) createMachine(m *machine.Machine) (*machine.Machine, codes.Code) {
	if w.machines[m.Name] != nil {
		return nil, codes.AlreadyExists
	}
	w.uids++
	next := m.Clone()
	next.Status = machine.Status{}
	next.UID, next.Generation = fmt.Sprintf("machine-%d", w.uids), 1
	next.CreatedAt, next.DeletedAt = w.now.Truncate(time.Second), time.Time{}
	w.put(next)
	w.created(next)
	return next, codes.OK
}

func (w *world) updateMachine(m *machine.Machine) (*machine.Machine, codes.Code) {
	stored := w.machines[m.Name]
	switch {
	case stored == nil:
		return nil, codes.NotFound
	case stored.Version != m.Version || stored.UID != m.UID:
		return nil, codes.Aborted
	}
	next := m.Clone()
	next.CopyStatus(stored)
	next.DeletedAt = stored.DeletedAt
	w.replace(next)
	return next, codes.OK
}

func (w *world) deleteMachine(name, uid string) (*machine.Machine, codes.Code) {
	stored := w.machines[name]
	switch {
	case stored == nil || stored.UID != uid:
		return nil, codes.NotFound
	case stored.Deleted():
		return stored, codes.OK
	}
	next := stored.Clone()
	next.DeletedAt = w.now.Truncate(time.Second)
	w.replace(next)
	return next, codes.OK
}

// replace stores another state of a machine, and tells if it does not count
// any more.
func (w *world) replace(next *machine.Machine) {
	counts := func() bool {
		return slices.ContainsFunc(w.active(), func(m *machine.Machine) bool { return m.Name == next.Name })
	}
	before := counts()
	w.put(next)
	if before && !counts() {
		w.lost(next)
	}
}

// What others do to machines.

func (w *world) change(name string, change func(*machine.Machine)) {
	if stored := w.machines[name]; stored != nil {
		next := stored.Clone()
		change(next)
		w.replace(next)
	}
}

func (w *world) phase(name string, p machine.Phase) {
	w.change(name, func(m *machine.Machine) {
		m.Status.Phase, m.Status.Since = p, w.now.Truncate(time.Second)
		if p == machine.PhaseRunning && m.Status.JoinedAfter == 0 {
			m.Status.JoinedAfter = max(time.Second, w.now.Sub(m.CreatedAt)).Truncate(time.Second)
		}
		m.Status.LastOperation = machine.Operation{Kind: machine.OperationCreate, State: machine.StateSuccessful, Time: w.now.Truncate(time.Second)}
		if p == machine.PhaseFailed || p == machine.PhaseCrashLoopBackOff {
			m.Status.LastOperation.State = machine.StateFailed
			m.Status.LastOperation.Code = codes.ResourceExhausted
			m.Status.LastOperation.Message = "no capacity left"
		}
	})
}

// vanish removes a machine without a trace.
func (w *world) vanish(name string) {
	if m := w.machines[name]; m != nil {
		counted := slices.Contains(w.active(), m)
		w.drop(name)
		if counted {
			w.lost(m)
		}
	}
}

// finish lets the machines that are being deleted go.
func (w *world) finish() {
	for _, m := range w.all() {
		if m.Deleted() {
			w.drop(m.Name)
		}
	}
}

// edit changes the set as its owner does.
func (w *world) edit(change func(*machineset.Set)) {
	if w.set == nil {
		return
	}
	next := w.set.Clone()
	change(next)
	if next.Deleted() != w.set.Deleted() || !next.SpecEqual(w.set) {
		next.Generation = w.set.Generation + 1
	}
	w.putSet(next)
}

// pass lets time go by; creates that are under way come in.
func (w *world) advance(d time.Duration) {
	end := w.now.Add(d)
	for {
		due := slices.IndexFunc(w.late, func(l lateCreate) bool { return !l.at.After(end) })
		if due < 0 {
			break
		}
		next := w.late[due]
		w.late = slices.Delete(w.late, due, due+1)
		if next.at.After(w.now) {
			w.now = next.at
		}
		w.createMachine(next.machine)
	}
	w.now = end
}
