package manager

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/fleet"
	"github.com/millwright-go/millwright/object"
)

// shell is what all reconcilers share.
type shell struct {
	*Options
	engine  *engine.Engine
	moves   *fsm.Checker
	reach   *fleet.Reach
	hints   *hints
	pace    *pace
	permits *permits
	specs   *specs
	// watched is shared with Manager.Run.
	watched *watched
	missing *missing // likewise
}

// The reasons of the shell's own.
var (
	reasonSecretMissing = decision.NewReason("SecretMissing", "class {name} refers to secret {object}, which does not exist")
	reasonTemplate      = decision.NewReason("NodeTemplateIncomplete", "class {name}: the node template has no {detail}; machines are made from it, but an autoscaler can't scale it up from none")
)

// pass is one look at one object of a kind that decides and acts in one step.
type pass interface {
	// observe reads the object and its surroundings; fresh: not from caches.
	observe(ctx context.Context, fresh bool) error
	// step decides once and carries out what was decided. done: there was nothing, or the object is
	// gone, and the pass ends with the result.
	step(ctx context.Context) (result Result, done bool, err error)
}

// reconcile makes a pass of the engine's. Kinds for which anything may be frozen wait until that is known.
func (s *shell) reconcile(ctx context.Context, kind Kind, key object.Key, m *memo, begin func(*engine.Pass) pass) (Result, error) {
	k := engine.Kind{
		Name: string(kind), Memory: &m.Memory,
		Begin:    func(p *engine.Pass) engine.Steps { return s.steps(begin(p)) },
		Forget:   m.forget,
		Panicked: s.abandoned(kind),
	}
	switch kind {
	case KindClass, KindSecret, KindReachability:
	default:
		k.Hold = s.reach.Hold
	}
	return s.engine.Reconciler(k).Reconcile(ctx, key)
}

// steps makes the engine's steps of a pass whose decisions act themselves.
func (s *shell) steps(p pass) engine.Steps {
	if s.Observe {
		return &steps{p, &intents{}}
	}
	return &steps{p, nil}
}

type steps struct {
	pass
	in *intents // in a dry run: what the pass was kept from
}

// Read implements engine.Steps.
func (s *steps) Read(ctx context.Context, live bool) error { return s.observe(ctx, live) }

// Decide implements engine.Steps. What the step was kept from becomes a plan that acts.
func (s *steps) Decide(ctx context.Context) (engine.Head, error) {
	if s.in != nil {
		ctx = context.WithValue(ctx, intentsKey{}, s.in)
	}
	result, done, err := s.step(ctx)
	switch {
	case s.in != nil && len(s.in.list()) > 0:
		return engine.Head{Verb: engine.Act, Live: true}, nil
	case done && err == nil:
		return engine.Head{Verb: engine.Wait, At: result.At, Why: result.Why, Exact: true}, nil
	}
	return engine.Head{Verb: engine.Look}, err
}

// Execute implements engine.Steps. The step has done it.
func (s *steps) Execute(context.Context) error { return nil }

// Changes implements engine.Steps.
func (s *steps) Changes() []engine.Change {
	all := s.in.list()
	changes := make([]engine.Change, len(all))
	for i, in := range all {
		changes[i] = engine.Change{What: in.what, Why: in.why}
	}
	return changes
}

// Held implements engine.Holder.
func (s *steps) Held() time.Time {
	if p, ok := s.pass.(putter); ok {
		return p.put()
	}
	return time.Time{}
}

// lookFor is look for a pass that may have been frozen.
func (s *shell) lookFor(frozen bool, at time.Time, why decision.Why) Result {
	if frozen {
		at = s.reach.Thaw(at)
	}
	return s.look(at, why)
}

// look is the result of a pass that waits.
func (s *shell) look(at time.Time, why decision.Why) Result { return s.engine.Wait(at, why) }

// since returns the freshness of live reads that began then and have just ended.
func (s *shell) since(began time.Time) decision.Freshness { return s.freshness(began, true) }

// freshness returns how reads were made that began then and have just ended: from caches unless live.
func (s *shell) freshness(began time.Time, live bool) decision.Freshness {
	return s.engine.Freshness(began, live)
}

// check fires the moves of a write, so that an illegal one stops the pass
// before anything is stored.
func (s *shell) check(ctx context.Context, moves []machine.Move) error {
	for _, move := range moves {
		if err := s.moves.Fire(ctx, move); err != nil {
			return err
		}
	}
	return nil
}

// tell tells of an event; with a memo, once for as long as that remembers it.
func (s *shell) tell(ctx context.Context, m *memo, kind Kind, key object.Key, typ EventType, why decision.Why) {
	var memory *engine.Memory
	if m != nil {
		memory = &m.Memory
	}
	s.engine.Tell(ctx, memory, string(kind), key, typ, why)
}

// timed carries out a call and tells the hook how long it took.
func (s *shell) timed(kind Kind, key object.Key, name string, do func() error) error {
	return s.engine.Timed(string(kind), key, name, do)
}
