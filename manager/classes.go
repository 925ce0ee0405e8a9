package manager

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// classes reconciles classes, by name: there may be references to a class that
// is not there yet.
type classes struct {
	*shell
	memo   memo
	policy machineclass.Policy
	// failed holds the last failure to fill a class, by its key. To lose it
	// shortens a wait.
	failed sync.Map
}

func newClassReconciler(s *shell) *classes {
	return &classes{shell: s, policy: s.classPolicy()}
}

func (o *Options) classPolicy() machineclass.Policy {
	return machineclass.Policy{Keep: o.KeepClasses, Migrate: o.ForeignClasses != nil}
}

// managesClasses tells whether classes are reconciled at all.
func (o *Options) managesClasses() bool { return o.KeepClasses || o.ForeignClasses != nil }

// Kind implements Reconciler.
func (r *classes) Kind() Kind { return KindClass }

// Reconcile implements Reconciler.
func (r *classes) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindClass, key, &r.memo, func(*engine.Pass) pass { return &classPass{classes: r, key: key} })
}

// classPass is one pass over one class.
type classPass struct {
	*classes
	key object.Key
	o   machineclass.Observation
	old any // the older class, for the driver
}

func (p *classPass) step(ctx context.Context) (Result, bool, error) {
	plan, err := machineclass.Decide(&p.o, &p.policy, p.Now())
	if err != nil {
		return Result{}, false, err
	}
	if plan.Warn != (decision.Why{}) {
		p.tell(ctx, &p.memo, KindClass, p.key, Warning, plan.Warn)
	}
	because(ctx, p.shell, plan.Why)
	switch {
	case plan.ReadLive:
		return Result{}, false, p.observe(ctx, true)
	case plan.Write != nil:
		return Result{}, false, p.write(ctx, &plan)
	case plan.Effect != nil:
		name := strings.TrimPrefix(strings.TrimPrefix(fmt.Sprintf("%T", plan.Effect), "*"), "machineclass.")
		return Result{}, false, p.timed(KindClass, p.key, name, func() error { return p.do(ctx, plan.Effect) })
	case p.o.Class == nil && len(p.o.References) == 0:
		p.failed.Delete(p.key)
		return Result{}, true, engine.ErrGone // nothing but its name is left
	}
	return p.look(plan.At, plan.Why), true, nil
}

// observe reads the class, then who refers to it: from the caches, or live.
func (p *classPass) observe(ctx context.Context, live bool) error {
	reader, began := store.Reader[*machine.Class](p.Classes), p.Now()
	if live {
		reader = p.Classes.Live()
	}
	class, err := reader.Get(ctx, p.key)
	if errors.Is(err, store.ErrNotFound) {
		class, err = nil, nil
	}
	if err != nil {
		return err
	}
	// What this pass has learned of a migration stays true: all of it is
	// about the older class, or guarded by a version.
	p.o.Key, p.o.Class = p.key, class
	if p.o.Users, err = p.users(ctx, class, live); err != nil {
		return err
	}
	p.o.Read = p.freshness(began, live)
	if f, ok := p.failed.Load(p.key); ok {
		p.o.Failed, _ = f.(*machineclass.Failure)
	}
	if p.policy.Migrate {
		p.o.References, err = p.references(ctx)
	}
	return err
}

// users counts who refers to the class, no further than needed.
func (p *classPass) users(ctx context.Context, class *machine.Class, live bool) (u machineclass.Users, err error) {
	if class == nil || !p.policy.Keep {
		return u, nil
	}
	query, all := store.Query{Index: IndexClass, Value: p.key.String()}, class.Deleted()
	if u.Deployments, err = count(ctx, p.Deployments, live, query, templateInUse); err != nil || u.Deployments > 0 && !all {
		return u, err
	}
	if u.Sets, err = count(ctx, p.Sets, live, query, setInUse); err != nil || u.Sets > 0 && !all {
		return u, err
	}
	u.Machines, err = count(ctx, p.Machines, live, query, func(*machine.Machine) bool { return true })
	if err != nil || !p.managesPools() {
		return u, err
	}
	pools, err := count(ctx, p.Pools, live, query, func(*machinepool.Pool) bool { return true })
	u.Machines += pools // to delete one takes its class, as it does for a machine
	return u, err
}

// count counts the objects that a query picks and that matter; a collection
// that is not there has none.
func count[T object.Object[T]](ctx context.Context, c store.Collection[T], live bool, q store.Query, matters func(T) bool) (int, error) {
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

func (p *classPass) write(ctx context.Context, plan *machineclass.Plan) error {
	var after *machine.Class
	var err error
	switch w := plan.Write.(type) {
	case *machineclass.Create:
		if after, err = p.Classes.Create(ctx, w.Class); errors.Is(err, store.ErrAlreadyExists) {
			return fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
	case *machineclass.Update:
		if after, err = p.Classes.Update(ctx, w.Class); errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("%w: %w", store.ErrConflict, err) // there may be references all the same
		}
	default:
		err = fmt.Errorf("unknown write %T", w)
	}
	if err != nil {
		return err
	}
	p.o.Class, p.o.Stored = after, p.o.Filled != nil
	p.tell(ctx, nil, KindClass, p.key, Normal, plan.Why)
	return engine.Gone(&after.Meta)
}
