package reachability

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/safety/internal/times"
)

// Decide decides whether a fleet is frozen because an API server does not answer: that of the machine objects
// (control plane) or, unless o.NoTarget, that of the nodes (target). It also decides which clocks to restart
// once both answer. It changes none of its arguments, and returns the same plan for the same
// arguments. Only a caller's mistake is an error.
//
// The clocks of machines (creation, health, update and drain timeouts) run during an outage, although nothing can
// be observed. So before a fleet thaws, all are restarted from one time, Status.ClockFrom. If the process dies before
// all are restarted, the next one, which starts frozen, finds that time in the machines that have it, and restarts
// the other clocks from it.
func Decide(o *Observation, p *safety.Policy, now time.Time) (Plan, error) {
	if o == nil {
		return Plan{}, fmt.Errorf("reachability.Decide: %w", decision.ErrNoObservation)
	}
	if err := p.Validate(); err != nil {
		return Plan{}, err
	}
	p = p.WithDefaults()
	d := decider{o: o, p: p, now: now, state: o.State}
	if o.Control == nil || o.Target == nil && !o.NoTarget {
		if at := d.checkAt(); !now.Before(at) {
			return Plan{State: d.state, Check: true, Why: decision.Why{Reason: reasonCheck}}, nil
		}
	} else {
		d.note()
	}
	return d.advance(), nil
}

// decider is one call of Decide.
type decider struct {
	o     *Observation
	p     *safety.Policy
	now   time.Time
	state State
}

// checkAt returns when both API servers are to be checked next. Zero means now.
func (d *decider) checkAt() time.Time {
	if d.state.Checked.IsZero() || d.state.Checked.After(d.now) {
		return time.Time{}
	}
	if d.bothUp() {
		return d.state.Checked.Add(d.p.CheckPeriod)
	}
	return d.state.Checked.Add(d.p.CheckDown)
}

// note records the answers of this pass.
func (d *decider) note() {
	d.state.Checked = d.now
	d.state.Control.note(d.o.Control, d.now)
	if !d.o.NoTarget {
		d.state.Target.note(d.o.Target, d.now)
	}
}

// note records one answer. "Not found" shows that the server is up.
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

func (d *decider) bothUp() bool { return d.state.Control.Up && (d.o.NoTarget || d.state.Target.Up) }

// down returns the API server that does not answer; if neither does, the one that has been down for longer. Nil:
// none is known to be down.
func (d *decider) down() (name string, longest *Side) {
	name, longest = "the control plane's", nil
	if !d.state.Control.DownSince.IsZero() {
		longest = &d.state.Control
	}
	t := &d.state.Target
	if !d.o.NoTarget && !t.DownSince.IsZero() && (longest == nil || t.DownSince.Before(longest.DownSince)) {
		name, longest = "the target cluster's", t
	}
	return name, longest
}

// advance moves to the next stage that is due.
func (d *decider) advance() Plan {
	name, side := d.down()
	if side != nil {
		return d.serverDown(name, side)
	}
	switch d.state.Stage {
	case Unproven:
		if !d.bothUp() {
			return d.wait(decision.Why{Reason: reasonUnproven})
		}
		return d.restart()
	case Lost:
		d.state.From = times.Stamp(d.now)
		return d.restart()
	case Restarting:
		return d.restart()
	case Settling:
		if d.now.Before(d.state.Until) {
			plan := d.wait(decision.Why{Reason: reasonSettling, For: d.state.Until.Sub(d.now)})
			plan.At = times.Earlier(plan.At, d.state.Until)
			return plan
		}
	case Open:
	}
	d.state.Stage = Open
	return d.wait(decision.Why{Reason: ReasonReachable})
}

// serverDown freezes an open fleet once an API server has been down for too long. A fleet that is frozen already
// goes back to Lost.
func (d *decider) serverDown(name string, side *Side) Plan {
	since := d.now.Sub(side.DownSince)
	why := decision.Why{Reason: ReasonUnreachable, Name: name + " API server", Code: side.Last.Code, Detail: side.Last.Message, For: since}
	if d.state.Stage == Open && since <= d.p.DownTimeout {
		why.Reason, why.For = reasonDown, d.p.DownTimeout-since
		return d.wait(why)
	}
	d.state.Stage = Lost
	plan := d.wait(why)
	// The same text each time, so that it is emitted once.
	plan.Warn = decision.Why{Reason: ReasonUnreachable, Name: why.Name, Code: why.Code, Detail: why.Detail, For: d.p.DownTimeout}
	return plan
}

func (d *decider) wait(why decision.Why) Plan {
	return Plan{State: d.state, At: d.checkAt(), Why: why}
}

// restart restarts the clocks that ran during the outage.
func (d *decider) restart() Plan {
	d.state.Stage = Restarting
	if d.o.Machines == nil {
		return Plan{State: d.state, ReadMachines: true, Why: decision.Why{Reason: reasonBack}}
	}
	from := d.state.From
	if from.IsZero() {
		from = d.unfinished()
	}
	var orders []RestartClock
	for _, m := range d.o.Machines {
		if m != nil && len(orders) < d.p.Burst && runsSince(m, from) && !d.p.Paused(m) {
			orders = append(orders, d.restartClock(m, from))
		}
	}
	if len(orders) > 0 {
		return Plan{State: d.state, Restart: orders, Why: orders[0].Why}
	}
	if d.state.From.IsZero() {
		d.state.Stage = Open
		return d.wait(decision.Why{Reason: ReasonReachable})
	}
	d.state.Stage, d.state.Until = Settling, d.now.Add(max(d.p.SettleTime, 0))
	return d.advance()
}

// unfinished returns the time from which clocks were restarted last. The process that did so may have died before
// it had restarted all of them.
func (d *decider) unfinished() time.Time {
	var last time.Time
	for _, m := range d.o.Machines {
		if m != nil && !m.Status.ClockFrom.After(d.now) {
			last = times.Later(last, m.Status.ClockFrom)
		}
	}
	return last
}

// runsSince reports whether a machine has a clock that began before from and was not restarted from that time.
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
		return m.Status.Since.Before(from) // the health timeout, or the update's
	case machine.PhaseRunning, machine.PhaseAvailable, machine.PhaseFailed, machine.PhaseTerminating,
		machine.PhaseInPlaceUpdateSuccessful:
	}
	return false
}

// restartClock restarts one machine's clock. A machine that is Unknown becomes Running. If its node is still
// unhealthy, it becomes Unknown again.
func (d *decider) restartClock(m *machine.Machine, from time.Time) RestartClock {
	order := RestartClock{Machine: m, Status: m.Status.Clone(), Why: decision.Why{Reason: ReasonRestart, Name: m.Name}}
	s := &order.Status
	s.ClockFrom = from
	if m.Status.Phase != machine.PhaseUnknown || m.Deleted() {
		return order
	}
	to, _ := machine.PhaseTable().Next(string(machine.PhaseUnknown), machine.EventRecovered)
	s.Phase, s.Since = machine.Phase(to), times.Stamp(d.now)
	s.LastOperation = machine.Operation{
		Kind: machine.OperationHealthCheck, State: machine.StateSuccessful, Time: times.Stamp(d.now), Message: order.Why.String(),
	}
	order.Move = machine.Move{
		Table: machine.PhaseTable().Name, From: string(machine.PhaseUnknown), On: machine.EventRecovered, To: to,
	}
	return order
}

// The reasons of decisions about reachability.
var (
	reasonCheck       = decision.NewReason("Check", "checking that the API servers answer")
	reasonUnproven    = decision.NewReason("NotAnsweredYet", "frozen until both API servers have answered")
	ReasonReachable   = decision.NewReason("Reachable", "both API servers answer")
	reasonDown        = decision.NewReason("Down", "{name} does not answer, {code}: {detail}; the fleet freezes in {for}")
	ReasonUnreachable = decision.NewReason("Unreachable", "frozen: {name} has not answered for {for}: {code}: {detail}")
	reasonBack        = decision.NewReason("Back", "both API servers answer again: looking for clocks to restart")
	ReasonRestart     = decision.NewReason("ClockRestarted", "clocks restarted: nothing could be judged until now")
	reasonSettling    = decision.NewReason("Settling", "both API servers answer again; frozen for another {for}, so that nodes can say how they are")
)
