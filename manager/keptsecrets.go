package manager

import (
	"context"
	"time"

	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// keptSecrets reconciles secrets: it holds those that classes refer to.
type keptSecrets struct {
	*shell
	memo   memo
	policy machineclass.Policy
}

func newSecretReconciler(s *shell) *keptSecrets {
	return &keptSecrets{shell: s, policy: s.classPolicy()}
}

// keepsSecrets tells whether secrets are reconciled at all.
func (o *Options) keepsSecrets() bool { return o.KeepClasses && o.Secrets != nil }

// Kind implements Reconciler.
func (r *keptSecrets) Kind() Kind { return KindSecret }

// Reconcile implements Reconciler.
func (r *keptSecrets) Reconcile(ctx context.Context, key object.Key) (Result, error) {
	return r.reconcile(ctx, KindSecret, key, &r.memo, func(*engine.Pass) pass { return &secretPass{keptSecrets: r, key: key} })
}

// secretPass is one pass over one secret.
type secretPass struct {
	*keptSecrets
	key object.Key
	o   machineclass.SecretObservation
}

// observe reads the secret, then the classes that refer to it: from the
// caches, or live.
func (p *secretPass) observe(ctx context.Context, live bool) error {
	reader, began := store.Reader[*machine.Secret](p.Secrets), p.Now()
	if live {
		reader = p.Secrets.Live()
	}
	secret, err := reader.Get(ctx, p.key)
	if err != nil {
		return engine.Itself(err)
	}
	p.o.Secret = secret
	taken := p.secretsOfClasses()
	query := store.Query{Index: IndexSecret, Value: p.key.String()}
	var kept []object.Key // classes that may not take it any more, and may need it again
	p.o.Classes, err = count(ctx, p.Classes, live, query, func(c *machine.Class) bool {
		if taken.allows(c, p.key) {
			return true
		}
		kept = append(kept, c.Key)
		return false
	})
	p.o.Read = p.freshness(began, live)
	if err != nil || p.o.Classes > 0 || !secret.HasFinalizer(machine.SecretFinalizer) {
		return err
	}
	for _, class := range kept {
		used, err := p.usesOf(ctx, class, live)
		if err != nil {
			return err
		}
		p.o.Classes += used
	}
	p.o.Read = p.freshness(began, live)
	return nil
}

// usesOf counts machines and pools of a class: without the secret they can't be deleted.
func (p *secretPass) usesOf(ctx context.Context, class object.Key, live bool) (int, error) {
	query := store.Query{Index: IndexClass, Value: class.String()}
	n, err := count(ctx, p.Machines, live, query, func(m *machine.Machine) bool { return classKey(m) == class })
	if err != nil || p.Pools == nil {
		return n, err
	}
	pools, err := count(ctx, p.Pools, live, query, func(q *machinepool.Pool) bool { return useOfPool(q).class == class })
	return n + pools, err
}

func (p *secretPass) step(ctx context.Context) (Result, bool, error) {
	plan, err := machineclass.DecideSecret(&p.o, &p.policy)
	if err != nil {
		return Result{}, false, err
	}
	if plan.Warn != (decision.Why{}) {
		p.tell(ctx, &p.memo, KindSecret, p.key, Warning, plan.Warn)
	}
	because(ctx, p.shell, plan.Why)
	switch {
	case plan.ReadLive:
		return Result{}, false, p.observe(ctx, true)
	case plan.Update != nil:
		after, err := p.Secrets.Update(ctx, plan.Update)
		if err != nil {
			return Result{}, false, engine.Itself(err)
		}
		p.o.Secret = after
		p.tell(ctx, nil, KindSecret, p.key, Normal, plan.Why)
		return Result{}, false, engine.Gone(&after.Meta)
	}
	return p.look(time.Time{}, plan.Why), true, nil
}
