// Package toykind shows that a module of somebody else can have a kind of its own: doors that shut some
// time after they were opened. It uses only public packages: store for the objects, and manager/engine
// for passes, queue and hooks.
package toykind

import (
	"context"
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Door is an object of the kind.
type Door struct {
	object.Meta
	For    time.Duration // spec: how long the door may be open
	Opened time.Time     // status: since when the door is open; zero: it is shut
}

// ObjectMeta implements object.Object.
func (d *Door) ObjectMeta() *object.Meta { return &d.Meta }

// Clone implements object.Object.
func (d *Door) Clone() *Door {
	c := *d
	c.Meta = d.CloneMeta()
	return &c
}

// CopyStatus implements object.Object.
func (d *Door) CopyStatus(from *Door) { d.Opened = from.Opened }

// SpecEqual implements object.Object.
func (d *Door) SpecEqual(o *Door) bool { return d.For == o.For }

var (
	reasonShut = decision.NewReason("Shut", "it is shut")
	reasonOpen = decision.NewReason("Open", "it may stand open for a while")
	reasonDue  = decision.NewReason("Due", "it has stood open for long enough")
)

// Run queues all stored doors, and shuts each when it has been open for long enough. It returns when the
// queue is closed.
func Run(ctx context.Context, e *engine.Engine, doors store.Collection[*Door], q *engine.Queue) error {
	known, err := doors.List(ctx, store.Query{})
	if err != nil {
		return fmt.Errorf("listing doors: %w", err)
	}
	for _, d := range known {
		q.Add(d.Key)
	}
	e.Work(ctx, q, e.Reconciler(engine.Kind{
		Name:  "door",
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, doors: doors} },
	}), nil)
	return nil
}

// pass is a reconcile of a door.
type pass struct {
	*engine.Pass
	doors store.Collection[*Door]
	door  *Door
}

// Read implements engine.Steps.
func (p *pass) Read(ctx context.Context, live bool) (err error) {
	reader := store.Reader[*Door](p.doors)
	if live {
		reader = p.doors.Live()
	}
	p.door, err = reader.Get(ctx, p.Key)
	return engine.OwnNotFound(err)
}

// Decide implements engine.Steps.
func (p *pass) Decide(context.Context) (engine.Step, error) {
	until := p.door.Opened.Add(p.door.For)
	switch {
	case p.door.Opened.IsZero():
		return engine.Step{Verb: engine.Wait, Why: decision.Why{Reason: reasonShut}}, nil
	case p.Now().Before(until):
		return engine.Step{Verb: engine.Wait, Why: decision.Why{Reason: reasonOpen}, At: until}, nil
	}
	return engine.Step{Verb: engine.Mutate, Why: decision.Why{Reason: reasonDue}, Name: "Shut"}, nil
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	changed := p.door.Clone()
	changed.Opened = time.Time{}
	after, err := p.doors.UpdateStatus(ctx, changed)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.door = after
	p.Emit(ctx, engine.Normal, decision.Why{Reason: reasonShut})
	return engine.CheckGone(&after.Meta)
}

// Changes implements engine.Steps.
func (p *pass) Changes() []engine.Change {
	return []engine.Change{{What: "update status of door " + p.Key.String()}}
}
