package deployments

import (
	"context"
	"errors"
	"maps"
	"slices"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// hotUpdate finds out what the VMs of a deployment can be updated to without
// being replaced.
func (p *pass) hotUpdate(ctx context.Context, d *deployment.Deployment, sets []*machineset.Set, live bool) (*deployment.HotUpdate, error) {
	if p.Split == nil {
		return nil, nil //nolint:nilnil // no VM is updated in place
	}
	classes := store.Reader[*machine.Class](p.Classes)
	if live {
		classes = p.Classes.Live()
	}
	wanted := &d.Spec.Template.Spec.Class
	to, err := p.classNamed(ctx, classes, d.Namespace, wanted)
	if err != nil || to == nil {
		return nil, err
	}
	hot := &deployment.HotUpdate{Class: *wanted, Spec: *p.Split(to)}
	for _, set := range sets {
		have := &set.Spec.Template.Spec.Class
		if have.Name == wanted.Name || have.APIGroup != wanted.APIGroup || slices.Contains(hot.From, have.Name) {
			continue
		}
		from, err := p.classNamed(ctx, classes, d.Namespace, have)
		if err != nil {
			return nil, err
		}
		if from != nil && reachable(from, to) && p.Split(from).Fixed == hot.Spec.Fixed {
			hot.From = append(hot.From, have.Name)
		}
	}
	return hot, nil
}

// lookAtClass reads the class that the template names. It notes whether there is none and, for an
// update in place, why no machine could be created from it. A cache may lag behind the creation of a
// class, so it reads the store, too. It does not look for a class of another kind, which is yet to become
// one of ours.
func (p *pass) lookAtClass(ctx context.Context, d *deployment.Deployment) error {
	p.o.ClassMissing, p.o.ClassInvalid = false, ""
	ref, inPlace := &d.Spec.Template.Spec.Class, d.Spec.Strategy.Kind == deployment.InPlaceUpdate
	switch {
	case ref.Name == "" || d.Deleted():
		return nil
	case ref.Foreign():
		if inPlace && p.MigratesClasses {
			p.o.ClassInvalid = "class " + ref.Name + " of kind " + ref.GroupKind() + " is not migrated yet"
		}
		return nil
	}
	var class *machine.Class
	for _, classes := range []store.Reader[*machine.Class]{p.Classes, p.Classes.Live()} {
		found, err := classes.Get(ctx, object.Key{Namespace: d.Namespace, Name: ref.Name})
		if err == nil {
			class = found
			break
		}
		if !errors.Is(err, store.ErrNotFound) {
			return err
		}
	}
	if p.o.ClassMissing = class == nil; class == nil || !inPlace {
		return nil
	}
	var err error
	p.o.ClassInvalid, err = p.Secrets.Problem(ctx, class, p.Joins)
	return err
}

// classNamed returns the class of a reference; nil: there is none, or none of ours.
func (p *pass) classNamed(ctx context.Context, classes store.Reader[*machine.Class], namespace string,
	ref *machine.ClassRef,
) (*machine.Class, error) {
	if ref.Name == "" || p.MigratesClasses && ref.Foreign() {
		return nil, nil //nolint:nilnil // there is none of ours
	}
	class, err := classes.Get(ctx, object.Key{Namespace: namespace, Name: ref.Name})
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil //nolint:nilnil // there is none
	}
	return class, err
}

// reachable reports whether VMs of a class can be updated to another class, if the
// provider spec allows it. The secrets must be the same, because a VM has booted
// with them. So must the shape of the node, except what is also written to nodes
// that exist.
func reachable(from, to *machine.Class) bool {
	return from.Provider == to.Provider && sameSecret(from, from.SecretRef, to, to.SecretRef) &&
		sameSecret(from, from.CredentialsRef, to, to.CredentialsRef) && sameShape(from.NodeTemplate, to.NodeTemplate)
}

func sameSecret(a *machine.Class, of *object.Key, b *machine.Class, with *object.Key) bool {
	if of == nil || with == nil {
		return of == with
	}
	return index.SecretKey(a, of) == index.SecretKey(b, with)
}

func sameShape(a, b *machine.NodeShape) bool {
	if a == nil || b == nil {
		return a == b
	}
	return maps.Equal(a.Capacity, b.Capacity) && a.InstanceType == b.InstanceType && a.Region == b.Region &&
		a.Zone == b.Zone && a.Architecture == b.Architecture
}
