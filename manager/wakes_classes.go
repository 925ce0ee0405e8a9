package manager

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager/classes"
	"github.com/millwright-go/millwright/object"
)

// classWakes are the reasons to look at classes, and at what they refer to.
func (o *Options) classWakes() []Wake {
	if !o.managesClasses() {
		return nil
	}
	wakes := []Wake{
		{From: KindClass, To: KindClass, Keys: self[*machine.Class]},
		{From: KindMachine, To: KindClass, Keys: classesOf(classes.UseOfMachine), Settle: o.Tuning.Settle},
	}
	if o.Store.Sets != nil {
		wakes = append(wakes, Wake{From: KindSet, To: KindClass, Keys: classesOf(classes.UseOfSet), Settle: o.Tuning.Settle})
	}
	if o.Store.Deployments != nil {
		wakes = append(wakes, Wake{From: KindDeployment, To: KindClass, Keys: classesOf(classes.UseOfDeployment), Settle: o.Tuning.Settle})
	}
	if o.managesPools() {
		wakes = append(wakes, Wake{From: KindPool, To: KindClass, Keys: classesOf(useOfPool), Settle: o.Tuning.Settle})
	}
	if o.keepsSecrets() {
		wakes = append(wakes,
			Wake{From: KindSecret, To: KindSecret, Keys: self[*machine.Secret]},
			Wake{From: KindClass, To: KindSecret, Keys: secretsOfClass})
	}
	return wakes
}

// classesOf wakes the classes that an object has begun or ended to use.
func classesOf[T object.Object[T]](of func(T) classes.Use) func(context.Context, any, any) []object.Key {
	var none T
	return func(_ context.Context, old, new any) []object.Key {
		a, b := both[T](old, new)
		var before, after classes.Use
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
		for _, u := range []classes.Use{before, after} {
			if u.Class.Name != "" {
				keys = append(keys, u.Class)
			}
		}
		return compact(keys)
	}
}

// useOfPool: a pool needs its class until it is gone.
func useOfPool(p *machinepool.Pool) classes.Use {
	ref := p.Spec.Template.Class
	return classes.Use{Class: object.Key{Namespace: p.Namespace, Name: ref.Name}, Ref: ref, Counts: true}
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
