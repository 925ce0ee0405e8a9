package engine_test

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// lamp is an object of a kind that nothing else in this repository knows.
type lamp struct {
	object.Meta
	On  bool // spec
	Lit bool // status
}

func (l *lamp) ObjectMeta() *object.Meta { return &l.Meta }

func (l *lamp) Clone() *lamp {
	c := *l
	c.Meta = l.CloneMeta()
	return &c
}

func (l *lamp) CopyStatus(from *lamp) { l.Lit = from.Lit }

func (l *lamp) SpecEqual(o *lamp) bool { return l.On == o.On }

var (
	reasonSwitch = decision.NewReason("Switch", "it is {detail}")
	reasonFine   = decision.NewReason("Fine", "it is as it should be")
)

// lamps is a kind: a lamp is lit when it is on.
type lamps struct {
	lamps store.Collection[*lamp]
	// edit changes the step of each plan; nil: nothing does.
	edit func(*engine.Step)
	// instead is executed instead of the write; nil: the write is.
	instead func(context.Context, *engine.Pass) error
	// unnamed says that Changes returns nothing.
	unnamed bool

	reads     []bool // which of them were live
	left      []object.Key
	forgotten []object.Key
	panicked  []object.Key
}

func (k *lamps) kind() engine.Kind {
	return engine.Kind{
		Name:    "lamp",
		Begin:   func(p *engine.Pass) engine.Steps { return &lampPass{Pass: p, lamps: k} },
		Release: func(key object.Key) { k.left = append(k.left, key) },
		Forget:  func(key object.Key) { k.forgotten = append(k.forgotten, key) },
		Panic:   func(_ context.Context, key object.Key) { k.panicked = append(k.panicked, key) },
	}
}

type lampPass struct {
	*engine.Pass
	*lamps
	o *lamp
}

func (p *lampPass) Read(ctx context.Context, live bool) (err error) {
	p.reads = append(p.reads, live)
	reader := store.Reader[*lamp](p.lamps.lamps)
	if live {
		reader = p.lamps.lamps.Live()
	}
	p.o, err = reader.Get(ctx, p.Key)
	return engine.OwnNotFound(err)
}

func (p *lampPass) Decide(context.Context) (engine.Step, error) {
	step := engine.Step{Verb: engine.Mutate, Why: decision.Why{Reason: reasonSwitch, Detail: "on"}}
	if p.o.On == p.o.Lit {
		step = engine.Step{Why: decision.Why{Reason: reasonFine}}
	}
	if p.edit != nil {
		p.edit(&step)
	}
	return step, nil
}

func (p *lampPass) Execute(ctx context.Context) error {
	if p.instead != nil {
		return p.instead(ctx, p.Pass)
	}
	changed := p.o.Clone()
	changed.Lit = changed.On
	after, err := p.lamps.lamps.UpdateStatus(ctx, changed)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o = after
	p.Emit(ctx, engine.Normal, decision.Why{Reason: reasonSwitch, Detail: "lit"})
	return engine.CheckGone(&after.Meta)
}

func (p *lampPass) Changes() []engine.Change {
	if p.unnamed {
		return nil
	}
	return []engine.Change{{What: "update status of lamp " + p.Key.String()}}
}

// stale is a collection whose cache shows a given object; if that is nil, what is stored.
type stale struct {
	*store.Memory[*lamp]
	cached *lamp
	writes int
}

func (s *stale) Get(ctx context.Context, key object.Key) (*lamp, error) {
	if s.cached != nil {
		return s.cached, nil
	}
	return s.Memory.Get(ctx, key)
}

func (s *stale) UpdateStatus(ctx context.Context, l *lamp) (*lamp, error) {
	s.writes++
	return s.Memory.UpdateStatus(ctx, l)
}

var start = time.Date(2027, 1, 15, 8, 0, 0, 0, time.UTC)

// clock returns a clock that stands still, and a function that moves it forward.
func clock() (now func() time.Time, forward func(time.Duration)) {
	at := start
	return func() time.Time { return at }, func(d time.Duration) { at = at.Add(d) }
}
