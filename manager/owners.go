package manager

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/classes"
	"github.com/millwright-go/millwright/manager/deployments"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/fleet"
	"github.com/millwright-go/millwright/manager/internal/index"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/machines"
	"github.com/millwright-go/millwright/manager/pools"
	"github.com/millwright-go/millwright/manager/sets"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/store"
)

// reconciler is a reconciler of the engine's under the name of its kind.
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
func newMachineReconciler(s *shell) Reconciler {
	limit := s.DeploymentPolicy.UpdateLimit
	c := machines.Config{
		Machines: s.Machines, Classes: s.Classes, Secrets: s.Secrets, Sets: s.Sets, Deployments: s.Deployments,
		SecretNamespaces: s.SecretNamespaces, MigratesClasses: s.ForeignClasses != nil,
		Driver: s.Driver, Tokens: s.Tokens, Drainer: s.Drainer, CallTimeout: s.CallTimeout, Policy: s.MachinePolicy,
		UpdateLimit: func(replicas int32) int { return int(max(1, limit.Ceil(replicas))) },
		Safety:      s.SafetyPolicy, Backoff: s.backoff,
		Hold: s.reach.Hold, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw, WatchedSince: s.watched.since,
		Split: s.specs.of, Missing: s.missing.of, Asked: s.missing.asked, Hint: s.hints.add,
		Check: s.moves.Fire, Transition: s.Hooks.Transition, Lasted: s.Hooks.Lasted, Panicked: s.abandoned(KindMachine),
	}
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return reconciler{machines.New(s.engine, c)}
}

// newSetReconciler gives sets what they need of the others.
func newSetReconciler(s *shell) Reconciler {
	c := sets.Config{
		Sets: s.Sets, Machines: s.Machines, Policy: s.SetPolicy, Safety: s.SafetyPolicy,
		Hold: s.reach.Hold, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw, Creations: s.creations,
		Forget: func(key object.Key) { s.permits.forget(KindSet, key) },
	}
	if s.permits.wanted() {
		c.Settled = func(set *machineset.Set, fleet []*machine.Machine) {
			if s.Deployments != nil && set.Owner != nil && set.Owner.Kind == deployment.OwnerKind {
				return // its permits are the deployment's
			}
			s.permits.tell(KindSet, &set.Meta, set.Spec.Replicas, fleet)
		}
	}
	return reconciler{sets.New(s.engine, c)}
}

// newDeploymentReconciler gives deployments what they need of the others.
func newDeploymentReconciler(s *shell) Reconciler {
	c := deployments.Config{
		Deployments: s.Deployments, Sets: s.Sets, Machines: s.Machines, Classes: s.Classes,
		Policy: s.DeploymentPolicy, Safety: s.SafetyPolicy, MigratesClasses: s.ForeignClasses != nil,
		Forget: func(key object.Key) { s.permits.forget(KindDeployment, key) },
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
			s.permits.tell(KindDeployment, &d.Meta, d.Spec.Replicas, fleet)
		}
	}
	return reconciler{deployments.New(s.engine, c)}
}

// classes is what classes need of the others.
func (s *shell) classes() classes.Config {
	c := classes.Config{
		Classes: s.Classes, Machines: s.Machines, Sets: s.Sets, Deployments: s.Deployments, Driver: s.Driver,
		Keep: s.KeepClasses, Foreign: s.ForeignClasses,
	}
	if s.managesPools() {
		c.OtherUsers = s.poolsUsing
	}
	return c
}

func newClassReconciler(s *shell) Reconciler { return reconciler{classes.New(s.engine, s.classes())} }

func newSecretReconciler(s *shell) Reconciler {
	c := classes.SecretConfig{Config: s.classes(), Secrets: s.Secrets, Namespaces: s.SecretNamespaces}
	if s.Pools != nil {
		c.OtherUsers = s.poolsUsing
	}
	return reconciler{classes.NewSecrets(s.engine, c)}
}

// poolsUsing counts the pools of a class.
func (s *shell) poolsUsing(ctx context.Context, class object.Key, live bool) (int, error) {
	reader := store.Reader[*machinepool.Pool](s.Pools)
	if live {
		reader = s.Pools.Live()
	}
	pools, err := reader.List(ctx, index.OfClass(class))
	return len(pools), err
}

// secretsOfClasses are the secrets that classes may take.
func (o *Options) secretsOfClasses() secrets.Secrets {
	return secrets.Secrets{Collection: o.Secrets, Namespaces: o.SecretNamespaces}
}

// fleet is what the kinds of the whole fleet need of the others.
func (s *shell) fleet() fleet.Config {
	c := fleet.Config{
		Machines: s.Machines, Classes: s.Classes, Sets: s.Sets, Deployments: s.Deployments, Pools: s.Pools,
		Secrets: s.secretsOfClasses(), Driver: s.Driver, Policy: s.SafetyPolicy, Namespace: s.Namespace,
		MachineKind: string(KindMachine), Reach: s.reach, Hints: s.hints.open, Missing: s.missing.note,
		Check: s.moves.Fire, Transition: s.Hooks.Transition, Frozen: s.Hooks.Frozen,
	}
	if s.managesPools() {
		c.PoolDriver = s.PoolDriver
	}
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return c
}

// creations returns what holds the creations of a class back; nil: nothing does. The versions that
// machines are made from are read only if creations are slowed, or fail.
func (s *shell) creations(ctx context.Context, key object.Key, failing bool) (*machine.Hold, machine.Inputs, error) {
	slowed := s.SafetyPolicy != nil && s.backoff.Knows(key)
	if !slowed && !failing {
		return nil, machine.Inputs{}, nil
	}
	class, err := s.Classes.Get(ctx, key)
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
		if hold, trying := s.backoff.Of(key).Slowed(class, inputs, s.Now()); !trying {
			return hold, inputs, nil
		}
	}
	return nil, inputs, nil
}

// newPoolReconciler gives pools what they need of the others.
func newPoolReconciler(s *shell) Reconciler {
	c := pools.Config{
		Pools: s.Pools, Classes: s.Classes, Secrets: s.Secrets, SecretNamespaces: s.SecretNamespaces,
		Driver: s.PoolDriver, Bootstrap: s.PoolBootstrap, Drainer: s.Drainer, Policy: s.PoolPolicy,
		Hold: s.reach.Hold, Frozen: s.reach.Frozen, Thaw: s.reach.Thaw,
		Check: s.moves.Fire, Transition: s.Hooks.Transition, Panicked: s.abandoned(KindPool),
	}
	c.Keeper, _ = s.Drainer.(NodeKeeper)
	if s.Cluster != nil {
		c.Nodes = s.Cluster.Nodes()
	}
	return reconciler{pools.New(s.engine, c)}
}

// abandoned returns what sets aside what a machine's or a pool's drain holds of the limit of drains when
// its pass panicked. Nil: objects of the kind hold nothing.
func (s *shell) abandoned(kind Kind) func(context.Context, object.Key) {
	d, limits := s.Drainer.(abandoner)
	if !limits || kind != KindMachine && kind != KindPool {
		return nil
	}
	return func(ctx context.Context, key object.Key) {
		node := ""
		engine.Catch(func() { // the store may be what panicked
			if kind == KindMachine {
				if m, err := s.Machines.Get(ctx, key); err == nil {
					node = m.Spec.NodeName
				}
			}
		})
		d.Abandon(key, node)
	}
}
