package machineclass

import (
	"fmt"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/object"
)

// Decide decides what to do next about the class of one name. It changes none of its arguments, and
// returns the same plan for the same arguments. Only a caller's mistake is an error:
// decision.ErrNoObservation. A nil policy is the zero one.
func Decide(o *Observation, p *Policy, now time.Time) (Plan, error) {
	if o == nil {
		return Plan{}, fmt.Errorf("machineclass.Decide: %w", decision.ErrNoObservation)
	}
	if p == nil {
		p = &Policy{}
	}
	d := decider{o: o, p: p, now: now}
	var migration Plan
	if p.Migrate && len(o.References) > 0 {
		migration = d.migrate()
	}
	if !migration.idle() {
		return migration, nil
	}
	plan := d.keep()
	if migration.Why == (decision.Why{}) { // nothing to migrate, or all is migrated
		return plan, nil
	}
	if plan.idle() { // the migration can't go on now: say why
		plan.At, plan.Why = migration.At, migration.Why
	}
	if plan.Warn == (decision.Why{}) {
		plan.Warn = migration.Warn
	}
	return plan, nil
}

// decider is one call of Decide.
type decider struct {
	o   *Observation
	p   *Policy
	now time.Time
}

// keep decides about the finalizer of a class.
func (d *decider) keep() Plan {
	c := d.o.Class
	if c == nil {
		return Plan{Why: decision.Why{Reason: reasonNoClass, Name: d.o.Key.Name}}
	}
	if !d.p.Keep {
		return Plan{Why: decision.Why{Reason: reasonNotKept, Name: d.o.Key.Name}}
	}
	why := decision.Why{Name: d.o.Key.Name, Cause: &d.o.Users}
	step := finalizerStep(&c.Meta, machine.Finalizer, d.o.Users.any(), d.o.Read.Live())
	plan := Plan{}
	switch step {
	case stepNone:
		why.Reason = reasonKept
		if !d.o.Users.any() {
			why.Reason = reasonUnused
		}
	case stepHeld:
		why.Reason = reasonHeld
		plan.Warn = why
	case stepTooLate:
		why.Reason = reasonTooLate
		plan.Warn = why
	case stepAsk:
		why.Reason, plan.ReadLive = reasonReadUsers, true
	case stepAdd:
		why.Reason = reasonFinalizer
		plan.Write = &Update{withFinalizer(c, machine.Finalizer)}
	case stepRemove:
		why.Reason = reasonReleased
		plan.Write = &Update{withoutFinalizer(c, machine.Finalizer)}
	}
	plan.Why = why
	return plan
}

// step is what to do about a finalizer.
type step int

const (
	stepNone    step = iota
	stepHeld         // the finalizer holds up the deletion of the object
	stepTooLate      // the finalizer is needed, but can't be added to an object that is being deleted
	stepAsk          // the caches show no reference, which a live read has to confirm
	stepAdd
	stepRemove
)

// finalizerStep returns what to do about the finalizer of an object. used says that another object
// refers to it, live that this was read live.
func finalizerStep(m *object.Meta, finalizer string, used, live bool) step {
	has := m.HasFinalizer(finalizer)
	switch {
	case used && has && m.Deleted():
		return stepHeld
	case used && has, !used && !has:
		return stepNone
	case used && m.Deleted():
		return stepTooLate
	case used:
		return stepAdd
	case !live:
		return stepAsk
	}
	return stepRemove
}

func withFinalizer[T object.Object[T]](o T, finalizer string) T {
	c := o.Clone()
	c.ObjectMeta().AddFinalizer(finalizer)
	return c
}

func withoutFinalizer[T object.Object[T]](o T, finalizer string) T {
	c := o.Clone()
	c.ObjectMeta().RemoveFinalizer(finalizer)
	return c
}

// SecretObservation is what a decision about one secret is made from.
type SecretObservation struct {
	Secret  *machine.Secret // nil: there is none
	Classes int             // how many classes refer to it, including those being deleted
	// Read says how Secret and Classes were read, in this order.
	Read decision.Freshness
}

// SecretPlan is what to do next about a secret. An empty plan: wait for a change.
type SecretPlan struct {
	ReadLive bool            // read the secret live, then the classes that refer to it; set Read
	Update   *machine.Secret // store its metadata; the data is as it was
	Why      decision.Why
	Warn     decision.Why // a warning for the secret's owner; zero: none
}

// DecideSecret decides what to do next about one secret, as Decide does about a class. The data of
// a secret decides nothing and is in no Why.
func DecideSecret(o *SecretObservation, p *Policy) (SecretPlan, error) {
	if o == nil {
		return SecretPlan{}, fmt.Errorf("machineclass.DecideSecret: %w", decision.ErrNoObservation)
	}
	if p == nil {
		p = &Policy{}
	}
	if o.Secret == nil {
		return SecretPlan{Why: decision.Why{Reason: reasonNoSecret}}, nil
	}
	why := decision.Why{Name: o.Secret.Name, Count: int64(o.Classes)}
	if !p.Keep {
		why.Reason = reasonSecretNotKept
		return SecretPlan{Why: why}, nil
	}
	plan := SecretPlan{}
	switch finalizerStep(&o.Secret.Meta, machine.SecretFinalizer, o.Classes > 0, o.Read.Live()) {
	case stepNone:
		why.Reason = reasonSecretKept
		if o.Classes <= 0 {
			why.Reason = reasonSecretUnused
		}
	case stepHeld:
		why.Reason = reasonSecretHeld
		plan.Warn = why
	case stepTooLate:
		why.Reason = reasonSecretTooLate
		plan.Warn = why
	case stepAsk:
		why.Reason, plan.ReadLive = reasonReadClasses, true
	case stepAdd:
		why.Reason = reasonSecretFinalizer
		plan.Update = withFinalizer(o.Secret, machine.SecretFinalizer)
	case stepRemove:
		why.Reason = reasonSecretReleased
		plan.Update = withoutFinalizer(o.Secret, machine.SecretFinalizer)
	}
	plan.Why = why
	return plan, nil
}
