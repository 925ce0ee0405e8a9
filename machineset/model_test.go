package machineset_test

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

var morning = time.Date(2026, 3, 2, 8, 0, 0, 0, time.UTC)

const namespace = "fleet"

// world is a store of one set and its machines. It has all its past states, so that reads can be stale, and
// the creates that are still in flight.
type world struct {
	now      time.Time
	set      *machineset.Set // nil: gone
	machines map[string]*machine.Machine
	history  []snapshot
	late     []lateCreate
	version  int
	uids     int

	created func(m *machine.Machine) // called for each machine that is created
	lost    func(m *machine.Machine) // called for each that is no longer active: deleted, failed, relabelled or gone
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

// active returns the set's machines that count: neither being deleted nor failed, and with its label.
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

// replace stores another state of a machine. It calls lost if the machine is no longer active.
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

// removeDeleted removes the machines that are being deleted.
func (w *world) removeDeleted() {
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

// advance lets time pass. Creates in flight take effect when they are due.
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

// fault is what happens to one call of a process to the store.
type fault int

const (
	fine       fault = iota
	refuse           // no effect; an error
	lose             // takes effect; an error
	crash            // no effect; the process dies
	crashAfter       // takes effect; the process dies
	late             // a create: takes effect some time later; an error
	lateCrash        // a create: takes effect some time later; the process dies
)

// process reconciles one set: it carries plans out as the comments of Plan say. Each step is one call to the
// store, so that anything can happen between two calls.
type process struct {
	w            *world
	policy       *machineset.Policy
	frozen       bool
	classBackoff *machine.ClassBackoff
	inputs       machine.Inputs

	fault   func(verb string) fault                        // nil: none
	delay   func() time.Duration                           // of late creates
	cached  func(oldest, newest int) int                   // which snapshot a cache shows; nil: the newest
	trace   func(verb, name, why string)                   // called before each call and wait; may be nil
	decided func(*machineset.Observation, machineset.Plan) // called after each decision; may be nil
	issued  func(*machineset.Observation)                  // called just before each deletion; may be nil

	floor         int // the oldest snapshot that a cache may still show
	failures      int
	statusWritten time.Time
	created       int64                  // names up to this became machines,
	createdOf     machineset.Reservation // of this reservation

	o       *machineset.Observation // nil: between passes
	plan    machineset.Plan
	todo    []func()        // calls that the plan still needs
	wait    machineset.Plan // the last plan of the pass, which says how long to wait
	refused bool            // an order of this pass was refused
	ordered bool            // orders of this pass were carried out
	began   time.Time       // when the live read in progress began
	err     error
}

func newProcess(w *world, p *machineset.Policy) *process {
	return &process{w: w, policy: p, floor: len(w.history) - 1}
}

// die forgets everything; the next step is that of a new process.
func (p *process) die() {
	p.o, p.todo, p.refused, p.ordered = nil, nil, false, false
	p.failures, p.statusWritten, p.created = 0, time.Time{}, 0
}

// remembered returns the highest number in the set's reservation up to which all names became machines, as far
// as this process knows.
func (p *process) remembered(s *machineset.Set) int64 {
	if p.createdOf.Reserved == s.Instructions.Reservation.Reserved && p.createdOf.At.Equal(s.Instructions.Reservation.At) {
		return p.created
	}
	return 0
}

func (p *process) note(verb, name, why string) {
	if p.trace != nil {
		p.trace(verb, name, why)
	}
}

// step makes one call to the store, or decides. It returns true if the pass is over; p.wait says why.
func (p *process) step() bool {
	if p.o == nil {
		p.begin()
		return p.o == nil
	}
	if len(p.todo) > 0 {
		next := p.todo[0]
		p.todo = p.todo[1:]
		next()
		return p.o == nil
	}
	plan, err := machineset.Decide(p.o, p.policy, p.w.now)
	if err != nil {
		p.err = err
		p.die()
		return true
	}
	if p.decided != nil {
		p.decided(p.o, plan)
	}
	p.plan = plan
	p.arrange()
	if len(p.todo) == 0 {
		p.note("wait", "", plan.Why.String())
		p.end(plan)
		return true
	}
	return false
}

// run makes a whole pass. It returns false if the pass does not end.
func (p *process) run() bool {
	for range 2000 {
		if p.step() {
			return true
		}
	}
	return false
}

// until makes steps until met returns true.
func (p *process) until(t require.TestingT, met func() bool) {
	for steps := 0; !met(); steps++ {
		require.Less(t, steps, 2000, "the condition is not met after 2000 steps")
		p.step()
	}
}

func (p *process) begin() {
	newest := len(p.w.history) - 1
	i, j := newest, newest
	if p.cached != nil {
		i, j = p.cached(p.floor, newest), p.cached(p.floor, newest)
		p.floor = min(i, j)
	}
	set := p.w.history[i].set
	if set == nil {
		p.wait = machineset.Plan{}
		return
	}
	p.o = &machineset.Observation{
		Set: set, Frozen: p.frozen, ClassBackoff: p.classBackoff, Inputs: p.inputs, Failures: p.failures, StatusWritten: p.statusWritten,
		Created: p.remembered(set),
	}
	p.setMachines(p.w.history[j].machines)
}

// setMachines puts machines into the observation, as machines of the set or as orphans.
func (p *process) setMachines(machines []*machine.Machine) {
	p.o.Machines, p.o.Orphans = nil, nil
	for _, m := range machines {
		switch {
		case m.OwnedBy(p.o.Set.UID):
			p.o.Machines = append(p.o.Machines, m)
		case m.Owner == nil:
			p.o.Orphans = append(p.o.Orphans, m)
		}
	}
}

// end closes a pass.
func (p *process) end(wait machineset.Plan) {
	switch {
	case p.refused:
		p.failures++
	case p.ordered:
		p.failures = 0
	}
	p.o, p.todo, p.refused, p.ordered, p.wait = nil, nil, false, false, wait
}

// arrange turns a plan into calls.
func (p *process) arrange() {
	plan := &p.plan
	switch write := plan.Write.(type) {
	case *machineset.Update:
		p.todo = append(p.todo, func() { p.write("update", write.Set, false) })
	case *machineset.UpdateStatus:
		changed := p.o.Set.Clone()
		changed.Status = write.Status
		p.todo = append(p.todo, func() { p.write("status", changed, true) })
	case nil:
	}
	if plan.ReadLive {
		p.todo = append(p.todo, p.readSet, p.readMachines)
	}
	calls := len(p.todo)
	p.arrangeCreates(plan.Create)
	p.arrangeOrders("delete", plan.Delete, p.deleteInTime)
	p.arrangeOrders("adopt", plan.Adopt, p.w.updateMachine)
	p.arrangeOrders("release", plan.Release, p.w.updateMachine)
	p.arrangeOrders("push", plan.Push, p.w.updateMachine)
	p.ordered = p.ordered || len(p.todo) > calls
}

// call makes one call, which may meet a fault. Not alive: the process died.
func (p *process) call(verb string, do func() codes.Code) (code codes.Code, alive bool) {
	f := fine
	if p.fault != nil {
		f = p.fault(verb)
	}
	code = codes.Unavailable
	switch f {
	case fine:
		code = do()
	case lose:
		do()
	case crashAfter:
		do()
		p.die()
		return code, false
	case crash, lateCrash:
		p.die()
		return code, false
	case refuse, late:
	}
	return code, true
}

func (p *process) write(verb string, set *machineset.Set, status bool) {
	p.note(verb, "", p.plan.Why.String())
	var stored *machineset.Set
	code, alive := p.call(verb, func() (c codes.Code) {
		stored, c = p.w.updateSet(set, status)
		return c
	})
	switch {
	case !alive:
	case code != codes.OK:
		p.end(machineset.Plan{}) // after any error the next pass reads again
	default:
		p.o.Set = stored
		if status {
			p.statusWritten, p.o.StatusWritten = p.w.now, p.w.now
		}
	}
}

func (p *process) readSet() {
	p.note("live", "", p.plan.Why.String())
	if p.w.set == nil || p.w.set.UID != p.o.Set.UID {
		p.end(machineset.Plan{})
		return
	}
	p.o.Set, p.began, p.o.Created = p.w.set, p.w.now, p.remembered(p.w.set)
}

func (p *process) readMachines() {
	p.setMachines(p.w.all())
	p.o.Read = decision.Freshness{Began: p.began, Ended: p.w.now}
}

func (p *process) arrangeCreates(orders []machineset.Order) {
	unbroken, until := true, p.plan.Until
	batch, left := 1, 1
	for _, order := range orders {
		ends := left == 1
		if left--; left == 0 {
			batch *= 2
			left = batch
		}
		p.todo = append(p.todo, func() {
			if !p.w.now.Before(until) {
				p.todo = nil
				return
			}
			unbroken = p.create(order) && unbroken
			if unbroken && p.o != nil {
				p.o.Created, p.created, p.createdOf = order.Ordinal, order.Ordinal, p.o.Set.Instructions.Reservation
			}
			if ends && p.o != nil && p.o.Refused.Create != nil {
				p.todo = nil
			}
		})
	}
}

func (p *process) create(order machineset.Order) bool {
	p.note("create", order.Machine.Name, order.Why.String())
	var made *machine.Machine
	issue := func() (c codes.Code) {
		made, c = p.w.createMachine(order.Machine)
		return c
	}
	f := fine
	code, alive := p.callLate(&f, order.Machine, issue)
	if !alive {
		return false
	}
	switch code {
	case codes.OK:
		p.o.Machines = append(p.o.Machines, made)
	case codes.AlreadyExists:
		p.o.Read = decision.Freshness{}
	default:
		p.refused = true
		if p.o.Refused.Create == nil {
			p.o.Refused.Create = &machine.Outcome{Code: code, Message: "the store said no"}
		}
		return false
	}
	return true
}

// callLate is call for a create, which may take effect later.
func (p *process) callLate(f *fault, m *machine.Machine, do func() codes.Code) (codes.Code, bool) {
	draw := p.fault
	if draw == nil {
		return p.call("create", do)
	}
	*f = draw("create")
	p.fault = func(string) fault { return *f }
	defer func() { p.fault = draw }()
	if *f == late || *f == lateCrash {
		p.w.late = append(p.w.late, lateCreate{p.w.now.Add(p.delay()), m.Clone()})
	}
	return p.call("create", do)
}

// arrangeOrders adds the calls for all orders of one kind, except creates.
func (p *process) arrangeOrders(verb string, orders []machineset.Order, do func(*machine.Machine) (*machine.Machine, codes.Code)) {
	for _, order := range orders {
		p.todo = append(p.todo, func() {
			if until := p.plan.Until; !until.IsZero() && !p.w.now.Before(until) {
				p.todo = nil
				return
			}
			p.note(verb, order.Machine.Name, order.Why.String())
			var stored *machine.Machine
			code, alive := p.call(verb, func() (c codes.Code) {
				stored, c = do(order.Machine)
				return c
			})
			if alive {
				p.answer(verb, order.Machine, stored, code)
			}
		})
	}
}

// deleteInTime deletes a machine, after issued has checked that the live read is recent enough.
func (p *process) deleteInTime(m *machine.Machine) (*machine.Machine, codes.Code) {
	if p.issued != nil {
		p.issued(p.o)
	}
	return p.w.deleteMachine(m.Name, m.UID)
}

func (p *process) answer(verb string, m, stored *machine.Machine, code codes.Code) {
	same := func(n *machine.Machine) bool { return n.UID == m.UID }
	switch code {
	case codes.Aborted:
		p.end(machineset.Plan{})
		return
	case codes.OK, codes.NotFound:
		p.o.Orphans = slices.DeleteFunc(slices.Clone(p.o.Orphans), same)
		p.o.Machines = slices.DeleteFunc(slices.Clone(p.o.Machines), same)
		if code == codes.OK && verb != "release" {
			p.o.Machines = append(p.o.Machines, stored)
		}
		return
	}
	p.refused = true
	refused := &p.o.Refused.Change
	if verb == "delete" {
		refused = &p.o.Refused.Delete
	}
	if *refused == nil {
		*refused = &machine.Outcome{Code: code, Message: "the store said no"}
	}
}
