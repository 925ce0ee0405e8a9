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

// paced holds a plan back that calls the provider, until it is the machine's turn.
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

// heard notes how a call ended. A provider that asks to wait has done nothing: the turn is over, and
// the call is made again in the next one.
func (p *pass) heard(err error, began time.Time) {
	if p.Safety == nil || p.o.Class == nil {
		return
	}
	held := p.Paces.Note(p.o.Class, err, began, p.Now()) > 0
	p.paces.wait(p.Key, held)
	if held {
		p.turn, p.slowed = false, true
	}
}

// paces are what this process knows of machines that the limits of providers hold back.
type paces struct {
	mu      sync.Mutex
	waiting map[object.Key]bool // since their last call
}

func (s *paces) waits(m object.Key) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.waiting[m]
}

// wait notes whether a machine is held back.
func (s *paces) wait(m object.Key, held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !held {
		delete(s.waiting, m)
		return
	}
	if s.waiting == nil {
		s.waiting = make(map[object.Key]bool)
	}
	s.waiting[m] = true
}

// Backoff is what this process remembers of the creates of each class, for all of its passes. A
// class that nothing was refused of is not in it.
type Backoff struct {
	mu      sync.Mutex
	classes map[object.Key]backoff.State
	turns   map[object.Key]object.Key // the class of each machine that has a turn
	now     func() time.Time
	slowed  func(class object.Key, wait time.Duration) // may be nil
}

// NewBackoff returns what is known before the first create: nothing. slowed is told after how long the next
// machine of a class is tried; it may be nil.
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

// ask asks for a machine's turn.
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

// leave ends the turn of a machine that has one.
func (r *Backoff) leave(m object.Key) {
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

// note notes an answer.
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
	if tell := r.slowed; tell != nil {
		tell(class, after.Wait(r.now()))
	}
}

// calls returns how many calls to the provider the pass is about to make, from its plan on. Zero:
// none now.
func (p *pass) calls() int {
	creating := p.o.Machine.Spec.ProviderID == "" && !p.o.Machine.Deleted()
	if p.plan.Write != nil && p.o.VM != nil && creating && !p.o.Fresh { // a create is announced when it may be made
		return p.creates()
	}
	switch p.plan.Effect.(type) {
	case machine.GetVM:
		return 1 + p.follows(creating)
	case machine.CreateVM:
		return p.creates()
	case machine.InitializeVM, machine.DeleteVM, machine.UpdateVM:
		return 1
	case machine.FindNode, *machine.SyncNode, *machine.MarkNode, machine.DeleteNode, *machine.DrainNode, *machine.DetachVolumes,
		machine.AskCreate, machine.AskGrant, machine.AskUpdate, machine.EnsureToken, machine.RenewToken, machine.RemoveToken:
	}
	return 0
}

// follows returns how many calls may follow in the same pass from what the driver says of the VM.
func (p *pass) follows(creating bool) int {
	m := p.o.Machine
	switch {
	case creating:
		return p.creates()
	case m.Deleted() && m.Status.DeletionStage() == machine.StageInitiateVMDeletion:
		return 1
	case !m.Deleted() && m.Status.Phase == machine.PhaseCrashLoopBackOff:
		return p.creates() - 1
	}
	return 0
}

// creates returns how many calls a create and what follows it in the same pass are.
func (p *pass) creates() int {
	if p.o.NoInitialize {
		return 1
	}
	return 2
}

// waitOn keeps the answers that the pass waits with, if without them it would make their calls again. It
// returns when the pass is to be repeated: at at, or when a call that it has left out is due.
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

// moves reports whether the plan does more than wait with answers that were taken for that.
func (p *pass) moves() bool {
	return p.taken.waits && (p.calls() > 0 || len(p.plan.Moves) > 0)
}
