package safety

import (
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// ReachStage says how far a fleet may be acted upon, as far as its API servers
// can be reached. The zero value is a fresh process's: frozen.
type ReachStage int

// The stages, in the order in which a fleet goes through them.
const (
	// ReachUnproven: not both have answered yet. Frozen.
	ReachUnproven ReachStage = iota
	// ReachOpen: nothing is held back.
	ReachOpen
	// ReachLost: one has been down for too long. Frozen.
	ReachLost
	// ReachRestarting: both answer again, and clocks are being restarted.
	// Frozen.
	ReachRestarting
	// ReachSettling: all clocks were restarted, and nodes get the time to say
	// how they are. Frozen.
	ReachSettling
)

// Frozen tells whether machines and sets are to be decided about as frozen.
func (s ReachStage) Frozen() bool { return s != ReachOpen }

// Reach is what a process knows of its API servers. It lives in its memory: a
// server that is down could not store it. The zero value is right for a fresh
// process.
type Reach struct {
	Stage ReachStage
	// Checked is when both were asked last; zero: never.
	Checked time.Time
	// Control has the objects, Target the nodes.
	Control, Target Side
	// From is what clocks are restarted from, whole seconds. Zero, in
	// ReachRestarting: from where an earlier process began and did not end.
	From time.Time
	// Until is when ReachSettling ends.
	Until time.Time
}

// Side is what is known of one API server.
type Side struct {
	// Up: the last answer came.
	Up bool
	// DownSince is when the first of the checks failed that have failed since;
	// zero: the last one did not.
	DownSince time.Time
	// Last is the answer to the last check.
	Last machine.Outcome
}

// ReachObservation is what a decision about reachability is made from.
type ReachObservation struct {
	// Reach is ReachPlan.Reach of the last plan.
	Reach Reach
	// NoTarget says that there is no target cluster.
	NoTarget bool
	// Control and Target are the answers of this pass. Nil: not asked. An
	// error that is not the server's "not found" is one with a code.
	Control, Target *machine.Outcome
	// Machines are all machines, read live in this pass after both have
	// answered. Nil: not read; empty, not nil: there is none.
	Machines []*machine.Machine
}

// ReachPlan is what to do next: Check, or ReadMachines, or Restart; with none
// of them, look again at At.
type ReachPlan struct {
	// Reach takes the place of the memory with every plan, before anything
	// else of it is carried out. Reach.Stage.Frozen() goes to all other
	// decisions from then on.
	Reach Reach
	// Check asks for a cheap read of a name that need not exist on both API
	// servers, without caches and with a timeout of its own.
	Check bool
	// ReadMachines asks for a live read of all machines.
	ReadMachines bool
	// Restart are writes of machines, each under the version observed; what
	// the store answers takes the place of the machine. One that is gone
	// leaves Machines, one that somebody else wrote is read again. Any other
	// error ends the pass.
	Restart []RestartClock
	At      time.Time
	Why     decision.Why
	// Warn is something that somebody should know; zero: nothing.
	Warn decision.Why
}

// RestartClock is a write of a machine's status whose waits count from anew.
type RestartClock struct {
	Machine *machine.Machine // as observed
	Status  machine.Status
	// Move is what the write means for the phase; zero: nothing.
	Move machine.Move
	Why  decision.Why
}

// DecideReachability says whether a fleet is frozen because an API server does
// not answer, and which clocks to restart once both do. It changes none of its
// arguments, and gives the same plan for the same ones. The error is for a
// caller's mistake only.
//
// A fleet that thaws has no clock that ran while nothing could be judged: they
// are restarted first, all from the same moment. A process that dies while at
// it leaves that moment behind on those it got to, and the next one, frozen
// until it has looked, brings the others to it.
func DecideReachability(o *ReachObservation, p *Policy, now time.Time) (ReachPlan, error) {
	if err := p.usable(o != nil); err != nil {
		return ReachPlan{}, err
	}
	d := reaching{o: o, p: p, now: now, r: o.Reach}
	if o.Control == nil || o.Target == nil && !o.NoTarget {
		if at := d.checkAt(); !now.Before(at) {
			return ReachPlan{Reach: d.r, Check: true, Why: decision.Why{Reason: reasonCheck}}, nil
		}
	} else {
		d.note()
	}
	return d.advance(), nil
}

// reaching is one call of DecideReachability.
type reaching struct {
	o   *ReachObservation
	p   *Policy
	now time.Time
	r   Reach
}

// checkAt is when both are asked next; zero: at once.
func (d *reaching) checkAt() time.Time {
	if d.r.Checked.IsZero() || d.r.Checked.After(d.now) {
		return time.Time{}
	}
	if d.bothUp() {
		return d.r.Checked.Add(d.p.CheckPeriod)
	}
	return d.r.Checked.Add(d.p.CheckDown)
}

// note takes in the answers of this pass.
func (d *reaching) note() {
	d.r.Checked = d.now
	d.r.Control.note(d.o.Control, d.now)
	if !d.o.NoTarget {
		d.r.Target.note(d.o.Target, d.now)
	}
}

// note takes in one answer. That a thing is not there is an answer.
func (s *Side) note(answer *machine.Outcome, now time.Time) {
	s.Last = *answer
	s.Up = answer.Code == codes.OK || answer.Code == codes.NotFound
	switch {
	case s.Up:
		s.DownSince = time.Time{}
	case s.DownSince.IsZero() || s.DownSince.After(now):
		s.DownSince = now
	}
}

func (d *reaching) bothUp() bool { return d.r.Control.Up && (d.o.NoTarget || d.r.Target.Up) }

// down is the side that has been down for longer; nil: both answer.
func (d *reaching) down() (name string, longest *Side) {
	name, longest = "the control plane's", nil
	if !d.r.Control.DownSince.IsZero() {
		longest = &d.r.Control
	}
	t := &d.r.Target
	if !d.o.NoTarget && !t.DownSince.IsZero() && (longest == nil || t.DownSince.Before(longest.DownSince)) {
		name, longest = "the target cluster's", t
	}
	return name, longest
}

// advance moves from stage to stage.
func (d *reaching) advance() ReachPlan {
	name, side := d.down()
	if side != nil {
		return d.lose(name, side)
	}
	switch d.r.Stage {
	case ReachUnproven:
		if !d.bothUp() {
			return d.wait(decision.Why{Reason: reasonUnproven})
		}
		return d.restart()
	case ReachLost:
		d.r.From = stamp(d.now)
		return d.restart()
	case ReachRestarting:
		return d.restart()
	case ReachSettling:
		if d.now.Before(d.r.Until) {
			plan := d.wait(decision.Why{Reason: reasonSettling, For: d.r.Until.Sub(d.now)})
			plan.At = earlier(plan.At, d.r.Until)
			return plan
		}
	case ReachOpen:
	}
	d.r.Stage = ReachOpen
	return d.wait(decision.Why{Reason: ReasonReachable})
}

// lose freezes what is open once a side has been down for too long. What is
// frozen already begins anew when it comes back.
func (d *reaching) lose(name string, side *Side) ReachPlan {
	since := d.now.Sub(side.DownSince)
	why := decision.Why{Reason: ReasonUnreachable, Name: name + " API server", Code: side.Last.Code, Detail: side.Last.Message, For: since}
	if d.r.Stage == ReachOpen && since <= d.p.DownTimeout {
		why.Reason, why.For = reasonDown, d.p.DownTimeout-since
		return d.wait(why)
	}
	d.r.Stage = ReachLost
	plan := d.wait(why)
	plan.Warn = decision.Why{Reason: ReasonUnreachable, Name: why.Name, Code: why.Code, Detail: why.Detail, For: d.p.DownTimeout}
	return plan
}

func (d *reaching) wait(why decision.Why) ReachPlan {
	return ReachPlan{Reach: d.r, At: d.checkAt(), Why: why}
}

// restart has the clocks restarted that ran while nothing could be judged.
func (d *reaching) restart() ReachPlan {
	d.r.Stage = ReachRestarting
	if d.o.Machines == nil {
		return ReachPlan{Reach: d.r, ReadMachines: true, Why: decision.Why{Reason: reasonBack}}
	}
	from := d.r.From
	if from.IsZero() {
		from = d.unfinished()
	}
	var orders []RestartClock
	for _, m := range d.o.Machines {
		if m != nil && len(orders) < d.p.Burst && runsSince(m, from) && !isPaused(m, d.p.Keys.Paused) {
			orders = append(orders, d.restartClock(m, from))
		}
	}
	if len(orders) > 0 {
		return ReachPlan{Reach: d.r, Restart: orders, Why: orders[0].Why}
	}
	if d.r.From.IsZero() {
		d.r.Stage = ReachOpen
		return d.wait(decision.Why{Reason: ReasonReachable})
	}
	d.r.Stage, d.r.Until = ReachSettling, d.now.Add(d.p.SettleTime)
	return d.advance()
}

// unfinished is the moment from which clocks were restarted last. All that ran
// then were, or the process that did so died over it.
func (d *reaching) unfinished() time.Time {
	var last time.Time
	for _, m := range d.o.Machines {
		if m != nil && !m.Status.ClockFrom.After(d.now) {
			last = later(last, m.Status.ClockFrom)
		}
	}
	return last
}

// runsSince tells whether a machine has a clock that has run since before from.
func runsSince(m *machine.Machine, from time.Time) bool {
	if from.IsZero() || !m.Status.ClockFrom.Before(from) {
		return false
	}
	if m.Deleted() {
		return m.DeletedAt.Before(from) // the drain timeout
	}
	switch m.Status.Phase {
	case machine.PhaseNew, machine.PhasePending, machine.PhaseCrashLoopBackOff:
		return m.CreatedAt.Before(from) // the creation timeout
	case machine.PhaseUnknown, machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateFailed:
		return m.Status.Since.Before(from) // the health timeout, that of the update
	case machine.PhaseRunning, machine.PhaseAvailable, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdateSuccessful:
	}
	return false
}

// restartClock restarts one machine's clock. One that is Unknown runs again
// until its node says otherwise.
func (d *reaching) restartClock(m *machine.Machine, from time.Time) RestartClock {
	order := RestartClock{Machine: m, Status: m.Status.Clone(), Why: decision.Why{Reason: ReasonRestart, Name: m.Name}}
	s := &order.Status
	s.ClockFrom = from
	if m.Status.Phase != machine.PhaseUnknown || m.Deleted() {
		return order
	}
	to, _ := machine.PhaseTable().Next(string(machine.PhaseUnknown), machine.EventRecovered)
	s.Phase, s.Since = machine.Phase(to), stamp(d.now)
	s.LastOperation = machine.Operation{
		Kind: machine.OperationHealthCheck, State: machine.StateSuccessful, Time: stamp(d.now), Message: order.Why.String(),
	}
	order.Move = machine.Move{
		Table: machine.PhaseTable().Name, From: string(machine.PhaseUnknown), On: machine.EventRecovered, To: to,
	}
	return order
}
