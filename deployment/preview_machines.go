package deployment

import (
	"container/heap"
	"maps"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
)

// lane is one set in a preview, with its machines.
type lane struct {
	set      *machineset.Set
	machines []*machine.Machine
	members  []*member // of the same machines, in the same order
	known    map[machineKey]*member
	first    *machine.Machine // that others share with, see share

	terminating int32
	changed     bool // since the set last had nothing to do
	wake        time.Time
	why         decision.Why // why the set has nothing to do
}

// member is one machine in a preview. Its machine is replaced, never changed.
type member struct {
	machine *machine.Machine
	lane    *lane
	at      int   // in lane.members
	next    int64 // number of its one scheduled event; others are off
	made    bool  // created in the preview
}

// fate is what happens to a machine by itself.
type fate uint8

const (
	fateReady fate = iota
	fateFailed
	fateGone
	fateUpdated
	fateNotUpdated
)

// event is something that happens to a machine by itself.
type event struct {
	at     time.Time
	number int64 // orders events of one moment
	member *member
	fate   fate
}

// calendar holds future events, as a heap.
type calendar []event

// Len implements heap.Interface.
func (c calendar) Len() int { return len(c) }

// Less implements heap.Interface.
func (c calendar) Less(i, j int) bool {
	if !c[i].at.Equal(c[j].at) {
		return c[i].at.Before(c[j].at)
	}
	return c[i].number < c[j].number
}

// Swap implements heap.Interface.
func (c calendar) Swap(i, j int) { c[i], c[j] = c[j], c[i] }

// Push implements heap.Interface.
func (c *calendar) Push(x any) {
	if e, ok := x.(event); ok {
		*c = append(*c, e)
	}
}

// Pop implements heap.Interface.
func (c *calendar) Pop() any {
	last := len(*c) - 1
	e := (*c)[last]
	(*c)[last] = event{}
	*c = (*c)[:last]
	return e
}

// skip takes the first event out.
func (c *calendar) skip() { heap.Pop(c) }

// expect schedules this as the only event of a machine. An overdue event happens at once.
func (p *preview) expect(m *member, what fate, at time.Time) {
	p.numbers++
	m.next = p.numbers
	if at.Before(p.now) {
		at = p.now
	}
	heap.Push(&p.calendar, event{at, p.numbers, m, what})
}

// happen makes all due events happen. Nothing is decided meanwhile.
func (p *preview) happen() {
	for len(p.calendar) > 0 && !p.calendar[0].at.After(p.now) {
		e, ok := heap.Pop(&p.calendar).(event)
		if !ok || e.member.next != e.number {
			continue
		}
		m := e.member
		m.lane.changed, p.changed = true, true
		switch e.fate {
		case fateReady:
			p.enter(m, machine.PhaseRunning, machine.StateSuccessful, "")
		case fateFailed:
			p.fail(m)
		case fateGone:
			m.lane.drop(m)
			m.lane.terminating--
		case fateUpdated:
			p.enterUpdate(m, machine.PhaseInPlaceUpdateSuccessful, machine.StateSuccessful)
		case fateNotUpdated:
			p.failUpdate(m)
		}
	}
}

func (p *preview) fail(m *member) {
	const message = "it did not become ready in time"
	p.enter(m, machine.PhaseFailed, machine.StateFailed, message)
	if m.made {
		p.out.Failed++
		p.inVain++
	}
}

// enter gives a machine another phase.
func (p *preview) enter(m *member, phase machine.Phase, state machine.OperationState, message string) {
	c := *m.machine
	c.Status.Phase, c.Status.Since = phase, p.stamp()
	c.Status.LastOperation = machine.Operation{
		Kind: machine.OperationCreate, State: state, Message: message, Time: p.stamp(),
	}
	if phase == machine.PhaseRunning && c.Status.JoinedAfter == 0 {
		c.Status.JoinedAfter = max(time.Second, p.now.Sub(c.CreatedAt)).Truncate(time.Second)
	}
	if state == machine.StateFailed {
		c.Status.LastOperation.Code = codes.DeadlineExceeded
	}
	m.put(&c)
}

// put gives a member another machine.
func (m *member) put(c *machine.Machine) {
	m.machine = c
	m.lane.machines[m.at] = c
}

func (l *lane) add(m *member) {
	m.lane, m.at = l, len(l.members)
	l.members = append(l.members, m)
	l.machines = append(l.machines, m.machine)
	l.known[keyOf(m.machine)] = m
}

// drop removes a machine. The last one takes its place.
func (l *lane) drop(m *member) {
	last := len(l.members) - 1
	moved := l.members[last]
	l.members[m.at], l.machines[m.at] = moved, l.machines[last]
	moved.at = m.at
	l.members[last], l.machines[last] = nil, nil
	l.members, l.machines = l.members[:last], l.machines[:last]
	delete(l.known, keyOf(m.machine))
	m.next = 0
}

// share lets the many machines of a set share one owner and one map of labels as long as these are
// the same. That keeps decisions quick, because they read both in every machine.
func (l *lane) share(m *machine.Machine) {
	switch {
	case l.first == nil:
		l.first = m
		return
	case m.Owner != nil && *m.Owner == *l.first.Owner:
		m.Owner = l.first.Owner
	}
	if maps.Equal(m.Labels, l.first.Labels) {
		m.Labels = l.first.Labels
	}
}

// machineKey distinguishes the machines of a set.
type machineKey struct {
	object.Key
	uid string
}

func keyOf(m *machine.Machine) machineKey { return machineKey{m.Key, m.UID} }

// enlist adds a machine as it was found, which the set owns, and schedules its event. The copy lets
// the preview replace what it shares.
func (p *preview) enlist(l *lane, found machine.Machine) {
	m := &found
	l.share(m)
	member := &member{machine: m}
	l.add(member)
	if m.Deleted() {
		l.terminating++
		p.expect(member, fateGone, p.remaining(m.DeletedAt, p.model.Delete))
		return
	}
	config := &m.Spec.Config
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending:
		p.expect(member, fateReady, p.remaining(m.CreatedAt, p.model.Create))
	case machine.PhaseCrashLoopBackOff:
		p.expect(member, fateFailed, m.CreatedAt.Add(p.model.failAfter(config)))
	case machine.PhaseUnknown, machine.PhaseInPlaceUpdateFailed:
		if wait := healthAfter(config); wait > 0 {
			p.expect(member, fateFailed, m.Status.Since.Add(wait))
		}
	case machine.PhaseInPlaceUpdating:
		p.expectUpdate(member, m.Status.Since)
	case machine.PhaseInPlaceUpdateSuccessful:
		if m.Spec.InPlace == machine.InPlaceNone {
			p.expect(member, fateReady, p.now)
		}
	case machine.PhaseRunning:
		if m.Spec.InPlace == machine.InPlaceSelected {
			p.beginUpdate(member)
		}
	case machine.PhaseAvailable, machine.PhaseFailed, machine.PhaseTerminating:
		// It stays as it is until it is deleted.
	}
}

// remaining returns when something ends that began before the preview. If it should have ended
// already, or begins later, it counts as beginning now, because its delay is not known.
func (p *preview) remaining(began time.Time, span time.Duration) time.Time {
	if at := began.Add(span); at.After(p.now) && !began.After(p.now) {
		return at
	}
	return p.now.Add(span)
}

// create carries out the creation of a machine.
func (p *preview) create(l *lane, m *machine.Machine) {
	m.UID, m.Generation, m.CreatedAt = p.unique(), 1, p.stamp()
	m.Status = machine.Status{
		Phase: machine.PhasePending, Since: p.stamp(),
		LastOperation: machine.Operation{Kind: machine.OperationCreate, State: machine.StateProcessing, Time: p.stamp()},
	}
	l.share(m)
	member := &member{machine: m, made: true}
	l.add(member)
	p.out.Created++
	if p.model.fails(p.out.Created) {
		p.expect(member, fateFailed, p.now.Add(p.model.failAfter(&m.Spec.Config)))
		return
	}
	p.expect(member, fateReady, p.now.Add(p.model.Create))
}

// remove carries out the deletion of a machine.
func (p *preview) remove(m *member) {
	if m == nil || m.machine.Deleted() {
		return
	}
	c := *m.machine
	c.DeletedAt = p.stamp()
	m.put(&c)
	m.lane.terminating++
	p.out.Deleted++
	p.expect(m, fateGone, p.now.Add(p.model.Delete))
}
