package machineset_test

import (
	"slices"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
)

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

// process is a shell for one set: it carries plans out as the comments on Plan
// ask for. It moves in steps of one call to the store, so that anything can
// come between two calls.
type process struct {
	w      *world
	policy *machineset.Policy
	frozen bool
	hold   *machine.Hold
	inputs machine.Inputs

	fault   func(verb string) fault                        // nil: none
	delay   func() time.Duration                           // of late creates
	cached  func(oldest, newest int) int                   // which snapshot a cache shows; nil: the newest
	trace   func(verb, name, why string)                   // nil: not asked for
	decided func(*machineset.Observation, machineset.Plan) // nil: not asked for
	issued  func(*machineset.Observation)                  // just before a deletion; nil: not asked for

	floor         int // caches do not go back
	failures      int
	statusWritten time.Time
	created       int64                  // names up to this became machines,
	createdOf     machineset.Reservation // of this reservation

	o       *machineset.Observation // nil: between passes
	plan    machineset.Plan
	todo    []func() // calls that the plan still needs
	wait    machineset.Plan
	refused bool      // an order of this pass was
	ordered bool      // orders of this pass were carried out
	began   time.Time // the live read that is going on
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

// remembered is up to which name of the set's reservation machines are known.
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

// step makes one move. True: the pass is over, and p.wait says why.
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

// run makes a whole pass, and false if it does not end.
func (p *process) run() bool {
	for range 2000 {
		if p.step() {
			return true
		}
	}
	return false
}

// until makes steps until something has come to pass.
func (p *process) until(t require.TestingT, met func() bool) {
	for steps := 0; !met(); steps++ {
		require.Less(t, steps, 2000, "it does not come to pass")
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
		Set: set, Frozen: p.frozen, Hold: p.hold, Inputs: p.inputs, Failures: p.failures, StatusWritten: p.statusWritten,
		Created: p.remembered(set),
	}
	p.look(p.w.history[j].machines)
}

func (p *process) look(machines []*machine.Machine) {
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

// call makes one call, or something goes wrong with it. Not alive: the process
// died.
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
		p.end(machineset.Plan{}) // of any kind: the next pass reads again
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
	p.look(p.w.all())
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

// arrangeOrders carries out all orders of a kind but creates.
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

// deleteInTime deletes a machine. What it rests on must be known well enough still: see the
// siege's issued.
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
