// Package classes reconciles classes and the secrets that they refer to: the kinds "class" and "secret" of
// package manager. Classes are reconciled by name, because there may be references to a class that is not
// there yet.
//
// A pass counts who uses the class, asks machineclass.Decide (for a secret machineclass.DecideSecret), and
// carries out the plan: a write of the class, or a step of a migration (migration.go).
//
// EXPERIMENTAL: the names in this package may change with any release.
package classes

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// New returns a reconciler of classes.
func New(e *engine.Engine, c Config) *engine.Reconciler {
	r := &reconciler{Config: c, policy: c.policy()}
	return e.Reconciler(engine.Kind{
		Name: "class", Forget: r.failed.Forget,
		Begin: func(p *engine.Pass) engine.Steps { return &pass{Pass: p, reconciler: r} },
	})
}

// Decide implements engine.Steps.
func (p *pass) Decide(context.Context) (engine.Step, error) {
	var err error
	if p.plan, err = machineclass.Decide(&p.o, &p.policy, p.Now()); err != nil {
		return engine.Step{}, err
	}
	step := engine.Step{Verb: engine.Mutate, Why: p.plan.Why, Warn: p.plan.Warn, At: p.plan.At}
	switch {
	case p.plan.ReadLive:
		step.Verb = engine.Reread
	case p.plan.Write != nil:
	case p.plan.Effect != nil:
		step.Verb, step.Name = verb(p.plan.Effect), strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", p.plan.Effect), "*"), "machineclass.")
	default:
		step.Verb = engine.Wait
		if p.o.Class == nil && len(p.o.References) == 0 {
			err = engine.ErrGone // there is no class, and nothing refers to one
		}
	}
	return step, err
}

// verb returns whether an effect reads or changes something. Fill only reads: the driver
// fills a copy.
func verb(e machineclass.Effect) engine.Verb {
	switch e.(type) {
	case machineclass.ReadOld, machineclass.Fill:
		return engine.Read
	case machineclass.MarkOld, *machineclass.Move:
	}
	return engine.Mutate
}

// Execute implements engine.Steps.
func (p *pass) Execute(ctx context.Context) error {
	if p.plan.Write != nil {
		return p.write(ctx)
	}
	return p.do(ctx, p.plan.Effect)
}

// Changes implements engine.Steps. References are moved one kind of holder after the other; the changes
// are those of the first kind.
func (p *pass) Changes() []engine.Change {
	switch p.plan.Write.(type) {
	case *machineclass.Create:
		return []engine.Change{{What: "create class " + p.Key.String()}}
	case *machineclass.Update:
		return []engine.Change{{What: "update class " + p.Key.String()}}
	}
	var changes []engine.Change
	switch e := p.plan.Effect.(type) {
	case machineclass.MarkOld:
		changes = append(changes, engine.Change{What: "mark class " + p.Key.String() + " of kind " + e.Class.GroupKind() + " as migrated"})
	case *machineclass.Move:
		for _, r := range e.References[:sameHolder(e.References)] {
			changes = append(changes, engine.Change{What: "update " + string(r.Holder) + " " + r.Key.String()})
		}
	case machineclass.ReadOld, machineclass.Fill:
	}
	return changes
}

// Read implements engine.Steps. It reads the class, then who refers to it.
func (p *pass) Read(ctx context.Context, live bool) error {
	reader, began := store.Reader[*machine.Class](p.Classes), p.Now()
	if live {
		reader = p.Classes.Live()
	}
	class, err := reader.Get(ctx, p.Key)
	if errors.Is(err, store.ErrNotFound) {
		class, err = nil, nil
	}
	if err != nil {
		return err
	}
	// What this pass has learned about a migration stays true: it is about the older class, or guarded by
	// a version.
	p.o.Key, p.o.Class = p.Key, class
	if p.o.Users, err = p.users(ctx, class, live); err != nil {
		return err
	}
	p.o.Read = p.Freshness(began, live)
	if failed := p.failed.Of(p.Key); failed != nil {
		p.o.Failed = failed
	}
	if p.policy.Migrate {
		p.o.References, err = p.references(ctx, live && p.DryRun)
	}
	return err
}

// users counts the objects that refer to the class. Unless the class is being deleted, it stops at the first
// kind that has any.
func (p *pass) users(ctx context.Context, class *machine.Class, live bool) (u machineclass.Users, err error) {
	if class == nil || !p.policy.Keep {
		return u, nil
	}
	query, all := index.OfClass(p.Key), class.Deleted()
	if u.Deployments, err = count(ctx, p.Deployments, live, query, func(d *deployment.Deployment) bool { return UseOfDeployment(d).Counts }); err != nil || u.Deployments > 0 && !all {
		return u, err
	}
	if u.Sets, err = count(ctx, p.Sets, live, query, func(s *machineset.Set) bool { return UseOfSet(s).Counts }); err != nil || u.Sets > 0 && !all {
		return u, err
	}
	u.Machines, err = count(ctx, p.Machines, live, query, func(*machine.Machine) bool { return true })
	if err != nil || p.OtherUsers == nil {
		return u, err
	}
	others, err := p.OtherUsers(ctx, p.Key, live)
	u.Machines += others // such a user needs its class until it is deleted, as a machine does
	return u, err
}

func (p *pass) write(ctx context.Context) error {
	var after *machine.Class
	var err error
	switch w := p.plan.Write.(type) {
	case *machineclass.Create:
		if after, err = p.Classes.Create(ctx, w.Class); errors.Is(err, store.ErrAlreadyExists) {
			return fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
	case *machineclass.Update:
		if after, err = p.Classes.Write(ctx, &engine.Write[*machine.Class]{Before: p.o.Class, After: w.Class}); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: %w", store.ErrConflict, err) // without a class, there may still be references
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return err
	}
	p.o.Class, p.o.Stored = after, p.o.Filled != nil
	p.Emit(ctx, engine.Normal, p.plan.Why)
	return engine.CheckGone(&after.Meta)
}

// Config is what classes need of the rest of a fleet.
type Config struct {
	Classes     *engine.Objects[*machine.Class]
	Machines    *engine.Objects[*machine.Machine]
	Sets        *engine.Objects[*machineset.Set]        // nil: there are none
	Deployments *engine.Objects[*deployment.Deployment] // nil: there are none
	Driver      driver.Driver
	// Keep says that classes stay while they are used, and so do their secrets.
	Keep bool
	// Foreign holds the classes to migrate. Nil: there are none.
	Foreign port.ForeignClasses
	// OtherUsers counts the other objects that need a class until they are gone. Nil: there are none.
	OtherUsers func(ctx context.Context, class object.Key, live bool) (int, error)
}

func (c *Config) policy() machineclass.Policy {
	return machineclass.Policy{Keep: c.Keep, Migrate: c.Foreign != nil}
}

type reconciler struct {
	Config
	policy machineclass.Policy
	// failed holds the last failure to fill each class. Losing it shortens a wait.
	failed engine.Notes[*machineclass.Failure]
}

// pass is one pass over one class.
type pass struct {
	*engine.Pass
	*reconciler
	o    machineclass.Observation
	plan machineclass.Plan
	old  any // the older class, for the driver
}

// Use says how an object uses a class. The zero value means that it uses none.
type Use struct {
	Class object.Key
	Ref   machine.ClassRef
	// Counts says that the class must stay.
	Counts bool
}

// UseOfMachine returns how a machine uses its class: it needs the class until the machine is gone.
func UseOfMachine(m *machine.Machine) Use { return Use{index.ClassKey(m), m.Spec.Class, true} }

// UseOfSet returns how a set uses its class. A deployment's set that was scaled to zero is kept as history,
// and does not count: it would hold the class for as long as the deployment exists.
func UseOfSet(s *machineset.Set) Use {
	ref := s.Spec.Template.Spec.Class
	counts := !s.Deleted() && (s.Owner == nil || s.Spec.Replicas > 0)
	return Use{object.Key{Namespace: s.Namespace, Name: ref.Name}, ref, counts}
}

// UseOfDeployment returns how a deployment uses its class. A deployment that is being deleted does not
// count, because it creates nothing any more.
func UseOfDeployment(d *deployment.Deployment) Use {
	ref := d.Spec.Template.Spec.Class
	return Use{object.Key{Namespace: d.Namespace, Name: ref.Name}, ref, !d.Deleted()}
}

// count counts the objects that match a query and that matter. A nil collection has none.
func count[T object.Object[T]](ctx context.Context, c *engine.Objects[T], live bool, q store.Query, matters func(T) bool) (int, error) {
	if c == nil {
		return 0, nil
	}
	reader := store.Reader[T](c)
	if live {
		reader = c.Live()
	}
	list, err := reader.List(ctx, q)
	n := 0
	for _, o := range list {
		if matters(o) {
			n++
		}
	}
	return n, err
}
