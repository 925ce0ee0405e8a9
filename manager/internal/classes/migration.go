package classes

import (
	"context"
	"errors"
	"fmt"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// references returns the references to another kind of class by this name. They come from the cache, except
// in a dry run: each object is read live before its reference is moved.
func (p *pass) references(ctx context.Context, live bool) ([]machineclass.Reference, error) {
	q := index.OfForeignClass(p.Key)
	out, err := referring(ctx, p.Deployments, live, q, machineclass.HolderDeployment, UseOfDeployment)
	if err != nil {
		return nil, err
	}
	sets, err := referring(ctx, p.Sets, live, q, machineclass.HolderSet, UseOfSet)
	if err != nil {
		return nil, err
	}
	machines, err := referring(ctx, p.Machines, live, q, machineclass.HolderMachine, UseOfMachine)
	return append(append(out, sets...), machines...), err
}

// referring lists the objects that match a query, as references.
func referring[T object.Object[T]](ctx context.Context, c *engine.Objects[T], live bool, q store.Query,
	holder machineclass.Holder, of func(T) Use,
) ([]machineclass.Reference, error) {
	if c == nil {
		return nil, nil
	}
	reader := store.Reader[T](c)
	if live {
		reader = c.Live()
	}
	list, err := reader.List(ctx, q)
	out := make([]machineclass.Reference, len(list))
	for i, o := range list {
		out[i] = machineclass.Reference{Holder: holder, Key: o.ObjectMeta().Key, Class: of(o).Ref}
	}
	return out, err
}

// do carries out one effect of a migration and puts its answer into the
// observation.
func (p *pass) do(ctx context.Context, e machineclass.Effect) error {
	switch e := e.(type) {
	case machineclass.ReadOld:
		return p.readOld(ctx, e.Class)
	case machineclass.Fill:
		return p.fill(ctx, e.Class)
	case machineclass.MarkOld:
		err := p.Foreign.MarkMigrated(ctx, e.Class, p.Key, e.Version)
		if errors.Is(err, store.ErrNotFound) {
			err = fmt.Errorf("%w: %w", store.ErrConflict, err)
		}
		p.o.Marked = err == nil
		return err
	case *machineclass.Move:
		return p.move(ctx, e.References)
	}
	return fmt.Errorf("unknown effect %T", e)
}

func (p *pass) readOld(ctx context.Context, ref machine.ClassRef) error {
	old, err := p.Foreign.Get(ctx, ref, p.Key)
	if errors.Is(err, store.ErrNotFound) || err == nil && old == nil {
		p.o.Old = &machineclass.Old{}
		return nil
	}
	if err != nil {
		return fmt.Errorf("class %s of kind %s: %w", p.Key, ref.GroupKind(), err)
	}
	p.old = old.Object
	p.o.Old = &machineclass.Old{Found: true, Migrated: old.Migrated, Version: old.Version}
	return nil
}

// fill asks the driver to fill a copy of the class. A failure is remembered until
// the older class changes.
func (p *pass) fill(ctx context.Context, ref machine.ClassRef) error {
	class := &machine.Class{Meta: object.Meta{Key: p.Key}}
	if p.o.Class != nil {
		class = p.o.Class.Clone()
	}
	_, err := p.Driver.GenerateMachineClassForMigration(ctx, &driver.GenerateMachineClassForMigrationRequest{
		ProviderSpecificClass: p.old, Class: class, ClassRef: ref,
	})
	if err != nil && ctx.Err() != nil {
		return ctx.Err()
	}
	var outcome machine.Outcome
	if err != nil {
		outcome = machine.Outcome{Code: codes.Of(err), Message: codes.Message(err)}
	}
	p.o.Filled = &machineclass.Filled{Outcome: outcome, Class: class}
	if p.o.Filled.Code == codes.OK {
		p.failed.Forget(p.Key)
		return nil
	}
	failure := &machineclass.Failure{
		Outcome: p.o.Filled.Outcome, At: p.Now(), Failures: 1, Version: p.o.Old.Version,
	}
	if before := p.o.Failed; before != nil && before.Version == failure.Version {
		failure.Failures += before.Failures
	}
	p.failed.Change(p.Key, func(f **machineclass.Failure) { *f = failure })
	p.o.Failed, p.o.Filled.Class = failure, nil
	return nil
}

// move moves references, those of one kind of holder before those of the next.
func (p *pass) move(ctx context.Context, references []machineclass.Reference) error {
	for len(references) > 0 {
		n := sameHolder(references)
		errs := make([]error, n)
		p.Each(ctx, n, func(i int) { errs[i] = p.moveOne(ctx, &references[i]) })
		if err := errors.Join(errs...); err != nil {
			return err
		}
		references = references[n:]
	}
	p.o.Moved = true
	return nil
}

// sameHolder counts the references whose holders are of the first one's kind.
func sameHolder(references []machineclass.Reference) int {
	n := 1
	for n < len(references) && references[n].Holder == references[0].Holder {
		n++
	}
	return n
}

func (p *pass) moveOne(ctx context.Context, r *machineclass.Reference) error {
	switch r.Holder {
	case machineclass.HolderDeployment:
		return moved(ctx, p.Deployments, r, func(d *deployment.Deployment) *machine.ClassRef { return &d.Spec.Template.Spec.Class })
	case machineclass.HolderSet:
		return moved(ctx, p.Sets, r, func(s *machineset.Set) *machine.ClassRef { return &s.Spec.Template.Spec.Class })
	case machineclass.HolderMachine:
		return moved(ctx, p.Machines, r, func(m *machine.Machine) *machine.ClassRef { return &m.Spec.Class })
	}
	return fmt.Errorf("unknown holder %q", r.Holder)
}

// moved makes one object refer to our kind, if it still refers to the other kind. It keeps the API
// group, since another group would make a deployment's template another template.
func moved[T object.Object[T]](ctx context.Context, c *engine.Objects[T], r *machineclass.Reference, ref func(T) *machine.ClassRef) error {
	have, err := c.Live().Get(ctx, r.Key)
	if err != nil {
		return index.IgnoreNotFound(err)
	}
	if *ref(have) != r.Class {
		return nil
	}
	changed := have.Clone()
	ref(changed).Kind = machine.ClassKind
	_, err = c.Write(ctx, &engine.Write[T]{Before: have, After: changed})
	return err
}
