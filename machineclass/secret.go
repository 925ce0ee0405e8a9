package machineclass

import (
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
)

// SecretObservation is what a decision about one secret is made from.
type SecretObservation struct {
	Secret  *machine.Secret // nil: there is none
	Classes int             // that refer to it, including those being deleted
	// Read says how Secret was read, and then Classes.
	Read decision.Freshness
}

// SecretPlan is what to do next about a secret. An empty plan: wait for a change.
type SecretPlan struct {
	ReadLive bool            // read the secret live and then who refers to it; Read says when
	Update   *machine.Secret // store its metadata; the data is as it was
	Why      decision.Why
	Warn     decision.Why // a warning for the secret's owner; zero: none
}

// DecideSecret decides what to do next about one secret, as Decide does about a class. The data of
// a secret decides nothing and is in no Why.
func DecideSecret(o *SecretObservation, p *Policy) (SecretPlan, error) {
	if o == nil {
		return SecretPlan{}, errNoObservation
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
	switch hold(&o.Secret.Meta, machine.SecretFinalizer, o.Classes > 0, o.Read.Live()) {
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
