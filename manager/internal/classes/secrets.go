package classes

import (
	"context"

	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machineclass"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// SecretConfig is what secrets need of the rest of a fleet.
type SecretConfig struct {
	Config
	Secrets store.Collection[*machine.Secret]
	// Namespaces are those that classes may take secrets from, besides their own. Nil: all namespaces. Empty:
	// none.
	Namespaces []string
}

type secretReconciler struct {
	SecretConfig
	policy machineclass.Policy
}

// NewSecrets returns a reconciler of secrets. It keeps a finalizer on the secrets that classes refer to.
func NewSecrets(e *engine.Engine, c SecretConfig) *engine.Reconciler {
	r := &secretReconciler{c, c.policy()}
	return e.Reconciler(engine.Kind{
		Name:  "secret",
		Begin: func(p *engine.Pass) engine.Steps { return &secretPass{Pass: p, secretReconciler: r} },
	})
}

// secretPass is one pass over one secret.
type secretPass struct {
	*engine.Pass
	*secretReconciler
	o    machineclass.SecretObservation
	plan machineclass.SecretPlan
}

// Decide implements engine.Steps.
func (p *secretPass) Decide(context.Context) (engine.Step, error) {
	var err error
	p.plan, err = machineclass.DecideSecret(&p.o, &p.policy)
	step := engine.Step{Why: p.plan.Why, Warn: p.plan.Warn}
	switch {
	case p.plan.ReadLive:
		step.Verb = engine.Reread
	case p.plan.Update != nil:
		step.Verb = engine.Mutate
	}
	return step, err
}

// Execute implements engine.Steps.
func (p *secretPass) Execute(ctx context.Context) error {
	after, err := p.Secrets.Update(ctx, p.plan.Update)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Secret = after
	p.Emit(ctx, engine.Normal, p.plan.Why)
	return engine.CheckGone(&after.Meta)
}

// Changes implements engine.Steps.
func (p *secretPass) Changes() []engine.Change {
	return []engine.Change{{What: "update secret " + p.Key.String()}}
}

// Read implements engine.Steps. It reads the secret, then the classes that refer to it.
func (p *secretPass) Read(ctx context.Context, live bool) error {
	reader, began := store.Reader[*machine.Secret](p.Secrets), p.Now()
	if live {
		reader = p.Secrets.Live()
	}
	secret, err := reader.Get(ctx, p.Key)
	if err != nil {
		return engine.OwnNotFound(err)
	}
	p.o.Secret = secret
	own := secrets.Secrets{Collection: p.Secrets, Namespaces: p.Namespaces}
	query := store.Query{Index: index.Secret, Value: p.Key.String()}
	var barred []object.Key // classes that may not take the secret; a deletion may still need it
	p.o.Classes, err = count(ctx, p.Classes, live, query, func(c *machine.Class) bool {
		if own.Allows(c, p.Key) {
			return true
		}
		barred = append(barred, c.Key)
		return false
	})
	p.o.Read = p.Freshness(began, live)
	if err != nil || p.o.Classes > 0 || !secret.HasFinalizer(machine.SecretFinalizer) {
		return err
	}
	for _, class := range barred {
		used, err := p.usesOf(ctx, class, live)
		if err != nil {
			return err
		}
		p.o.Classes += used
	}
	p.o.Read = p.Freshness(began, live)
	return nil
}

// usesOf counts the machines and pools of a class, which can't be deleted without the secret.
func (p *secretPass) usesOf(ctx context.Context, class object.Key, live bool) (int, error) {
	query := index.OfClass(class)
	n, err := count(ctx, p.Machines, live, query, func(m *machine.Machine) bool { return index.ClassKey(m) == class })
	if err != nil || p.OtherUsers == nil {
		return n, err
	}
	others, err := p.OtherUsers(ctx, class, live)
	return n + others, err
}
