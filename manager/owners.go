package manager

import (
	"context"
	"errors"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/internal/classes"
	"github.com/millwright-go/millwright/manager/internal/deployments"
	"github.com/millwright-go/millwright/manager/internal/fleet"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/machines"
	"github.com/millwright-go/millwright/manager/internal/pools"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/internal/sets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// reconciler makes a Reconciler of a reconciler of package engine.
type reconciler struct {
	engineReconciler
}

type engineReconciler interface {
	Name() string
	Reconcile(ctx context.Context, key object.Key) (Result, error)
}

// Kind implements Reconciler.
func (r reconciler) Kind() Kind { return Kind(r.Name()) }

// newMachineReconciler gives machines what they need of the others.
func newMachineReconciler(s *deps) Reconciler {
	limit := s.Policies.Deployment.UpdateLimit
	c := machines.Config{
		Machines: s.objects.machines, Classes: s.objects.classes, Secrets: s.Store.Secrets, Sets: s.objects.sets, Deployments: s.objects.deployments,
		SecretNamespaces: s.Classes.SecretNamespaces, MigratesClasses: s.Classes.Foreign != nil,
		Driver: s.Driver, Tokens: s.Tokens, Drainer: s.Drainer, CallTimeout: s.Tuning.CallTimeout, Policy: s.Policies.Machine,
		UpdateLimit: func(replicas int32) int { return int(max(1, limit.Ceil(replicas))) },
		Safety:      s.Policies.Safety, Backoff: s.backoff, Paces: s.paces,
		Delay: s.reach.Delay, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw, WatchedSince: s.watched.since, LedSince: s.led,
		Split: s.specs.of, Missing: s.missing.of, Unhealthy: s.missing.unhealthy, Asked: s.missing.asked, Hint: s.hints.add,
		Span: s.Hooks.Span, Panic: s.abandoned(KindMachine),
	}
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return reconciler{machines.New(s.engine, c)}
}

// newSetReconciler gives sets what they need of the others.
func newSetReconciler(s *deps) Reconciler {
	c := sets.Config{
		Sets: s.objects.sets, Machines: s.objects.machines, Policy: s.Policies.Set, Safety: s.Policies.Safety,
		Delay: s.reach.Delay, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw, Creations: s.creations,
		Forget: func(key object.Key) { s.permits.forget(KindSet, key) },
	}
	if s.permits.wanted() {
		c.Settled = func(set *machineset.Set, fleet []*machine.Machine) {
			if s.Store.Deployments != nil && set.Owner != nil && set.Owner.Kind == deployment.OwnerKind {
				return // permits are counted for the deployment
			}
			s.permits.report(KindSet, &set.Meta, set.Spec.Replicas, fleet)
		}
	}
	return reconciler{sets.New(s.engine, c)}
}

// clockFrom returns when progress may have stopped for another reason than a failing rollout: the end of the last
// outage, or the beginning of the term.
func (s *deps) clockFrom() time.Time {
	if from := s.reach.ClockFrom(); from.After(s.led) {
		return from
	}
	return s.led
}

// newDeploymentReconciler gives deployments what they need of the others.
func newDeploymentReconciler(s *deps) Reconciler {
	c := deployments.Config{
		Deployments: s.objects.deployments, Sets: s.objects.sets, Machines: s.objects.machines, Classes: s.objects.classes,
		Secrets: secrets.Secrets{Collection: s.Store.Secrets, Namespaces: s.Classes.SecretNamespaces}, Joins: s.Cluster != nil,
		Policy: s.Policies.Deployment, Safety: s.Policies.Safety, MigratesClasses: s.Classes.Foreign != nil,
		ClockFrom: s.clockFrom,
		Forget:    func(key object.Key) { s.permits.forget(KindDeployment, key) },
	}
	if len(s.specs.fields) > 0 {
		c.Split = s.specs.of
	}
	if s.permits.wanted() {
		c.Settled = func(d *deployment.Deployment, sets []deployment.Children) {
			var fleet []*machine.Machine
			for i := range sets {
				fleet = append(fleet, sets[i].Machines...)
			}
			s.permits.report(KindDeployment, &d.Meta, d.Spec.Replicas, fleet)
		}
	}
	return reconciler{deployments.New(s.engine, c)}
}

// classes returns what classes need of the others.
func (s *deps) classes() classes.Config {
	c := classes.Config{
		Classes: s.objects.classes, Machines: s.objects.machines, Sets: s.objects.sets, Deployments: s.objects.deployments, Driver: s.Driver,
		Keep: s.Classes.Keep, Foreign: s.Classes.Foreign,
	}
	if s.managesPools() {
		c.OtherUsers = s.poolsUsing
	}
	return c
}

func newClassReconciler(s *deps) Reconciler { return reconciler{classes.New(s.engine, s.classes())} }

func newSecretReconciler(s *deps) Reconciler {
	c := classes.SecretConfig{Config: s.classes(), Secrets: s.Store.Secrets, Namespaces: s.Classes.SecretNamespaces}
	if s.Store.Pools != nil {
		c.OtherUsers = s.poolsUsing
	}
	return reconciler{classes.NewSecrets(s.engine, c)}
}

// poolsUsing counts the pools of a class.
func (s *deps) poolsUsing(ctx context.Context, class object.Key, live bool) (int, error) {
	reader := store.Reader[*machinepool.Pool](s.Store.Pools)
	if live {
		reader = s.Store.Pools.Live()
	}
	pools, err := reader.List(ctx, index.OfClass(class))
	return len(pools), err
}

// secretsOfClasses returns the secrets that classes may take.
func (o *Options) secretsOfClasses() secrets.Secrets {
	return secrets.Secrets{Collection: o.Store.Secrets, Namespaces: o.Classes.SecretNamespaces}
}

// fleet returns what the kinds of the whole fleet need of the others.
func (s *deps) fleet() fleet.Config {
	c := fleet.Config{
		Machines: s.objects.machines, Classes: s.objects.classes, Sets: s.objects.sets, Deployments: s.objects.deployments, Pools: s.objects.pools,
		Secrets: s.secretsOfClasses(), Driver: s.Driver, Policy: s.Policies.Safety, Namespace: s.Store.Namespace,
		MachineKind: string(KindMachine), Reach: s.reach, Paces: s.paces, Hints: s.hints.open, Missing: s.missing.note,
		Frozen: s.Hooks.Frozen,
	}
	if s.managesPools() {
		c.PoolDriver = s.Pools.Driver
	}
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	if s.Only != nil && !s.Only(KindOrphans, Fleet) {
		c.Own = func(key object.Key) bool { return s.Only(KindMachine, key) }
	}
	return c
}

// creations returns the backoff of a class's creations; nil: no create has to wait. It also returns the
// versions that machines are made from, but only if creations are slowed, or are failing.
func (s *deps) creations(ctx context.Context, key object.Key, failing bool) (*machine.ClassBackoff, machine.Inputs, error) {
	slowed := s.Policies.Safety != nil && s.backoff.Knows(key)
	if !slowed && !failing {
		return nil, machine.Inputs{}, nil
	}
	class, err := s.Store.Classes.Get(ctx, key)
	if errors.Is(err, store.ErrNotFound) {
		return nil, machine.Inputs{}, nil
	}
	if err != nil {
		return nil, machine.Inputs{}, err
	}
	secrets := s.secretsOfClasses()
	version, err := secrets.Version(ctx, class)
	if err != nil {
		return nil, machine.Inputs{}, err
	}
	inputs := machine.Inputs{Class: class.Generation, Secret: version}
	if slowed {
		if hold, trying := s.backoff.Of(key).Slowed(class, inputs, s.Runtime.Now()); !trying {
			return hold, inputs, nil
		}
	}
	return nil, inputs, nil
}

// newPoolReconciler gives pools what they need of the others.
func newPoolReconciler(s *deps) Reconciler {
	c := pools.Config{
		Pools: s.objects.pools, Classes: s.objects.classes, Secrets: s.Store.Secrets, SecretNamespaces: s.Classes.SecretNamespaces,
		Machines: s.objects.machines, NodeMachine: s.Policies.Machine.Keys.NodeMachine,
		Driver: s.Pools.Driver, Bootstrap: s.Pools.Bootstrap, Drainer: s.Drainer, Tokens: s.Tokens, Policy: s.Policies.Pool, Paces: s.paces,
		Delay: s.reach.Delay, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw, LedSince: s.led,
		Panic: s.abandoned(KindPool), CallTimeout: s.Tuning.CallTimeout,
	}
	c.Keeper, _ = s.Drainer.(NodeKeeper)
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return reconciler{pools.New(s.engine, c)}
}

// abandoned returns a function that sets aside the drain permit of an object whose pass panicked. Nil:
// objects of the kind hold no permits.
func (s *deps) abandoned(kind Kind) func(context.Context, object.Key) {
	d, limits := s.Drainer.(abandoner)
	if !limits || kind != KindMachine && kind != KindPool {
		return nil
	}
	return func(ctx context.Context, key object.Key) {
		node := ""
		defer func() { d.Abandon(key, node) }() // the store may be what panicked
		if kind == KindMachine {
			if m, err := s.Store.Machines.Get(ctx, key); err == nil {
				node = m.Spec.NodeName
			}
		}
	}
}
