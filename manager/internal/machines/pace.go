package machines

import (
	"sync"
	"time"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety/backoff"
)

// forget forgets a machine that is gone.
func (r *reconciler) forget(m object.Key) {
	r.recorded.Forget(m)
	r.answers.Forget(m)
	r.written.Forget(m)
	r.paces.mu.Lock()
	defer r.paces.mu.Unlock()
	delete(r.paces.waiting, m)
}

// paced returns a wait instead of a plan that calls the provider, until it is the machine's turn.
func (p *pass) paced() (engine.Step, bool) {
	n := p.calls()
	if p.Safety == nil || p.o.Class == nil || n == 0 || p.turn {
		return engine.Step{}, false
	}
	now := p.Now()
	at := p.Paces.Ask(pace.Of("machine", p.Key), p.o.Class, n, now)
	if p.turn = at.IsZero(); p.turn {
		return engine.Step{}, false
	}
	p.paces.wait(p.Key, true)
	p.keepVM()
	why := decision.Why{Reason: pace.ReasonPaced, Name: p.o.Class.Name, For: at.Sub(now)}
	return engine.Step{Verb: engine.Wait, Why: why, At: at}, true
}

// noteCall notes how a call ended. A provider that asks to wait has done nothing: the turn is over, and
// the call is made again in the next turn.
func (p *pass) noteCall(err error, began time.Time) {
	if p.Safety == nil || p.o.Class == nil {
		return
	}
	held := p.Paces.Note(p.o.Class, err, began, p.Now()) > 0
	p.paces.wait(p.Key, held)
	if held {
		p.turn, p.slowed = false, true
	}
}

// paces holds the machines that wait because of a provider's limits.
type paces struct {
	mu      sync.Mutex
	waiting map[object.Key]bool
}

func (s *paces) waits(m object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[m]
}

// wait notes whether a machine waits.
func (s *paces) wait(m object.Key, waits bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !waits {
		delete(s.waiting, m)
		return
	}
	if s.waiting == nil {
		s.waiting = make(map[object.Key]bool)
	}
	s.waiting[m] = true
}

// Backoff holds what this process remembers about the creates of each class, for all passes. It holds
// only classes that a create was refused for.
type Backoff struct {
	mu      sync.Mutex
	classes map[object.Key]backoff.State
	turns   map[object.Key]object.Key // the class of each machine that has a turn
	now     func() time.Time
	slowed  func(class object.Key, wait time.Duration) // may be nil
}

// NewBackoff returns an empty Backoff. slowed is called with how long the next create of a class has to wait;
// it may be nil.
func NewBackoff(now func() time.Time, slowed func(class object.Key, wait time.Duration)) *Backoff {
	return &Backoff{now: now, slowed: slowed, classes: make(map[object.Key]backoff.State), turns: make(map[object.Key]object.Key)}
}

// Of returns what is known of a class.
func (r *Backoff) Of(class object.Key) backoff.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.classes[class]
}

// Knows reports whether anything is known of a class.
func (r *Backoff) Knows(class object.Key) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, known := r.classes[class]
	return known
}

// ask asks for the turn of a machine to be created.
func (r *Backoff) ask(m, class object.Key, ask func(backoff.State) (backoff.State, machine.CreatePermit)) *machine.CreatePermit {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found {
		return &machine.CreatePermit{Given: true}
	}
	after, turn := ask(known)
	if r.classes[class] = after; turn.Given {
		r.turns[m] = class
	}
	return &turn
}

// endTurn ends the turn of a machine, if it has one.
func (r *Backoff) endTurn(m object.Key) {
	r.mu.Lock()
	defer r.mu.Unlock()
	class, has := r.turns[m]
	if !has {
		return
	}
	delete(r.turns, m)
	if known, found := r.classes[class]; found {
		r.classes[class] = known.Leave(m)
	}
}

// note notes the answer to a create.
func (r *Backoff) note(class object.Key, code codes.Code, note func(backoff.State) backoff.State) {
	r.mu.Lock()
	defer r.mu.Unlock()
	known, found := r.classes[class]
	if !found && !backoff.Slows(code) {
		return
	}
	after := note(known)
	if after.Idle() {
		delete(r.classes, class)
	} else {
		r.classes[class] = after
	}
	if r.slowed != nil {
		r.slowed(class, after.Wait(r.now()))
	}
}

// calls returns how many calls to the provider the pass is about to make, beginning with its plan. Zero: the
// plan makes none.
func (p *pass) calls() int {
	creating := p.o.Machine.Spec.ProviderID == "" && !p.o.Machine.Deleted()
	if p.plan.Write != nil && p.o.VM != nil && creating && !p.o.Fresh { // a create is announced when it may be made
		return p.callsOfCreate()
	}
	switch p.plan.Effect.(type) {
	case machine.GetVM:
		return 1 + p.callsAfterStatus(creating)
	case machine.CreateVM:
		return p.callsOfCreate()
	case machine.InitializeVM, machine.DeleteVM, machine.UpdateVM:
		return 1
	case machine.FindNode, *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes,
		machine.AskCreate, machine.AskGrant, machine.AskUpdate, machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
	}
	return 0
}

// callsAfterStatus returns how many calls may follow GetMachineStatus in the same pass.
func (p *pass) callsAfterStatus(creating bool) int {
	m := p.o.Machine
	switch {
	case creating:
		return p.callsOfCreate()
	case m.Deleted() && m.Status.DeletionStage() == machine.StageInitiateVMDeletion:
		return 1
	case !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return p.callsOfCreate() - 1
	}
	return 0
}

// callsOfCreate returns how many calls a create takes, with those that follow it in the same pass.
func (p *pass) callsOfCreate() int {
	if p.o.NoInitialize {
		return 1
	}
	return 2
}

// waitOn keeps the answers that the pass waits with, if it would repeat their calls without them. It
// returns when to look again: at the time at, or earlier, when a call that it has left out is due.
func (p *pass) waitOn(at time.Time) time.Time {
	if p.o.VM == nil && p.o.Initialized == nil {
		return at
	}
	bare := *p
	bare.forgetAnswers()
	if bare.plan, _ = machine.Decide(&bare.o, p.Policy, p.Now()); bare.calls() == 0 {
		return at
	}
	p.keep(answers{p.o, p.Now(), true})
	if due := p.taken.at.Add(repeatAfter); p.taken.waits && (at.IsZero() || due.Before(at)) {
		at = due
	}
	return at
}

// needsNewAnswers reports whether the plan does more than wait, although it rests on answers that serve only
// to wait.
func (p *pass) needsNewAnswers() bool {
	return p.taken.waits && (p.calls() > 0 || len(p.plan.Moves) > 0)
}
