package manager

import (
	"context"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// Who uses a class, and which change of whom is a reason to look at it.

// templateInUse: a deployment that is being deleted creates nothing any more.
func templateInUse(d *deployment.Deployment) bool { return !d.Deleted() }

// setInUse: a deployment's set that was scaled to zero is history. It must not
// hold a class for as long as history is kept.
func setInUse(s *machineset.Set) bool {
	return !s.Deleted() && (s.Owner == nil || s.Spec.Replicas > 0)
}

// classValues is where IndexClass holds what refers to a class: under the
// class's key, and if that is of another kind than ours under a second value
// made from it.
func classValues(namespace string, ref *machine.ClassRef) []string {
	key := object.Key{Namespace: namespace, Name: ref.Name}.String()
	if ref.Foreign() {
		return []string{key, foreignOf(key)}
	}
	return []string{key}
}

func foreignOf(key string) string { return "of another kind: " + key }

// use is how an object uses a class; the zero use: not at all.
type use struct {
	class  object.Key
	ref    machine.ClassRef
	counts bool
}

func useOfMachine(m *machine.Machine) use { return use{classKey(m), m.Spec.Class, true} }

func useOfSet(s *machineset.Set) use {
	ref := s.Spec.Template.Spec.Class
	return use{object.Key{Namespace: s.Namespace, Name: ref.Name}, ref, setInUse(s)}
}

func useOfDeployment(d *deployment.Deployment) use {
	ref := d.Spec.Template.Spec.Class
	return use{object.Key{Namespace: d.Namespace, Name: ref.Name}, ref, templateInUse(d)}
}

// classesOf wakes the classes that an object has begun or ended to use.
func classesOf[T object.Object[T]](of func(T) use) func(context.Context, any, any) []object.Key {
	var none T
	return func(_ context.Context, old, new any) []object.Key {
		a, b := both[T](old, new)
		var before, after use
		if a != none {
			before = of(a)
		}
		if b != none {
			after = of(b)
		}
		if before == after {
			return nil
		}
		var keys []object.Key
		for _, u := range []use{before, after} {
			if u.class.Name != "" {
				keys = append(keys, u.class)
			}
		}
		return compact(keys)
	}
}

// classWakes are the reasons to look at classes, and at what they refer to.
func (o *Options) classWakes() []Wake {
	if !o.managesClasses() {
		return nil
	}
	wakes := []Wake{
		{From: KindClass, To: KindClass, Keys: self[*machine.Class]},
		{From: KindMachine, To: KindClass, Keys: classesOf(useOfMachine), Settle: o.Settle},
	}
	if o.Sets != nil {
		wakes = append(wakes, Wake{From: KindSet, To: KindClass, Keys: classesOf(useOfSet), Settle: o.Settle})
	}
	if o.Deployments != nil {
		wakes = append(wakes, Wake{From: KindDeployment, To: KindClass, Keys: classesOf(useOfDeployment), Settle: o.Settle})
	}
	if o.managesPools() {
		wakes = append(wakes, Wake{From: KindPool, To: KindClass, Keys: classesOf(useOfPool), Settle: o.Settle})
	}
	if o.keepsSecrets() {
		wakes = append(wakes,
			Wake{From: KindSecret, To: KindSecret, Keys: self[*machine.Secret]},
			Wake{From: KindClass, To: KindSecret, Keys: secretsOfClass})
	}
	return wakes
}

// secretsOfClass wakes the secrets that a class refers to, or did before.
func secretsOfClass(_ context.Context, old, new any) []object.Key {
	a, b := both[*machine.Class](old, new)
	if a != nil && b != nil && sameRef(a.SecretRef, b.SecretRef) && sameRef(a.CredentialsRef, b.CredentialsRef) {
		return nil
	}
	var keys []object.Key
	for _, c := range []*machine.Class{a, b} {
		if c == nil {
			continue
		}
		for _, ref := range []*object.Key{c.SecretRef, c.CredentialsRef} {
			if ref != nil && ref.Name != "" {
				keys = append(keys, secretKey(c, ref))
			}
		}
	}
	return keys
}

func sameRef(a, b *object.Key) bool {
	if a == nil || b == nil {
		return a == b
	}
	return *a == *b
}

// probeClasses asks for the indexes that classes are kept and migrated by.
func (o *Options) probeClasses(ctx context.Context) error {
	if !o.managesClasses() {
		return nil
	}
	if o.Sets != nil {
		if err := probeAll(ctx, o.Sets, "Sets", IndexClass); err != nil {
			return err
		}
	}
	if o.Deployments != nil {
		return probeAll(ctx, o.Deployments, "Deployments", IndexClass)
	}
	return nil
}

// references are the objects that refer to another kind of class by this name.
func (p *classPass) references(ctx context.Context) ([]machineclass.Reference, error) {
	q := store.Query{Index: IndexClass, Value: foreignOf(p.key.String())}
	out, err := referring(ctx, p.Deployments, q, machineclass.HolderDeployment, useOfDeployment)
	if err != nil {
		return nil, err
	}
	sets, err := referring(ctx, p.Sets, q, machineclass.HolderSet, useOfSet)
	if err != nil {
		return nil, err
	}
	machines, err := referring(ctx, p.Machines, q, machineclass.HolderMachine, useOfMachine)
	return append(append(out, sets...), machines...), err
}
