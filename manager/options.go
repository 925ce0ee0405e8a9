package manager

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/lead"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/internal/secrets"
	"github.com/millwright-go/millwright/manager/port"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// Options of a Manager. Store.Machines, Store.Classes and Driver are required. For the rest nil and
// zero mean the default, or that the part is absent. What most programs leave alone comes last.
type Options struct {
	// Store holds the objects. InMemory and adapters/bolt return options with one.
	Store Store
	// Driver makes and deletes VMs. New adds decorators of package driver to it: they contain panics,
	// validate answers, apply Tuning.CallTimeout and go on without a call that does not end by then.
	// Others, such as limits, are the caller's.
	Driver driver.Driver

	// Cluster is what machines join. Nil: they join nothing, and end at phase Available.
	Cluster Cluster
	// Drainer empties nodes before they are deleted. Nil: deletions do not wait for workload. It
	// needs a Cluster.
	Drainer Drainer
	// Tokens makes the bootstrap tokens that user data asks for. Nil: there are none, and the manager
	// creates no VM from user data that asks for one. It needs a Cluster, because the manager deletes
	// a token when its machine has joined.
	Tokens Tokens

	// Policies are the rules for each kind and for the safety of the fleet. Zero: the defaults.
	Policies Policies
	// DryRun makes every pass a dry run: the manager decides and reports, and changes nothing. See
	// the package comment. False: it acts.
	DryRun bool
	// Term is the time in which this manager may act: nothing is changed after it, and Run ends with it. It is
	// for several processes of which one leads, see package lead. Make a Manager for each term, so that none
	// acts on what it remembers of an earlier one. Timeouts of machines and of the drains of pools that began before
	// New start again with it, because the clocks of processes differ. Nil: all the time.
	Term lead.Term
	// Hooks tell a program what happens. Zero: none. LogHooks returns ready-made ones.
	Hooks Hooks
	// Log gets each event: what a machine, set, deployment or pool has become or was told to do at
	// Info, what went wrong at Warn. The message is a sentence; the numbers in it are attributes too,
	// as in available=58 floor=50. Nil: slog.Default. A logger with slog.DiscardHandler turns it off.
	Log *slog.Logger

	// Pools says who makes the groups of Store.Pools. Zero: the manager reconciles no pools.
	Pools PoolOptions
	// Classes says what the manager does to classes and secrets. Zero: it reads them.
	Classes ClassOptions
	// Only restricts Run to some objects, so that several managers can divide a fleet. Nil: all. It
	// must always answer the same. For the kinds of the whole fleet (see Kind.Fleet), which belong to
	// one of the managers, Run asks with the key Fleet. Run does not ask for KindReachability, because
	// each manager needs it. Without a Cluster, a manager to which KindOrphans does not belong still
	// lists VMs under that kind, to notice that VMs of its own machines are missing.
	Only func(kind Kind, key object.Key) bool
	// Tuning has the sizes and waits. Zero: the defaults.
	Tuning Tuning
	// Runtime has the clock, the randomness and the concurrency. Zero: those of the process. Tests
	// and simulations replace them.
	Runtime Runtime
}

// Store is where the objects of a Manager are: a collection for each kind. Machines and Classes are
// required. Each collection must support the indexes of its kind, such as MachineIndexes.
type Store struct {
	Machines store.Collection[*machine.Machine]
	Classes  store.Collection[*machine.Class]
	// Secrets holds what classes refer to. Nil: there are none. A Cluster needs it, because machines
	// join with the user data in secrets.
	Secrets store.Collection[*machine.Secret]
	// Sets nil: the manager reconciles no sets, and other programs make the machines.
	Sets store.Collection[*machineset.Set]
	// Deployments nil: the manager reconciles none. They need Sets.
	Deployments store.Collection[*deployment.Deployment]
	// Pools nil: the manager reconciles none. It reconciles them if there is a driver for them too,
	// see PoolOptions.
	Pools store.Collection[*machinepool.Pool]
	// Namespace is the one that the collections are limited to. The manager then asks for no other
	// when it checks that a server answers, because the server may refuse. Empty: they are not
	// limited.
	Namespace string
}

// Policies are the rules that a Manager decides by. A nil policy means the DefaultPolicy of its
// package. A setting in a policy that is zero means its default. object.Off turns off what can be
// turned off.
type Policies struct {
	Machine    *machine.Policy
	Set        *machineset.Policy
	Deployment *deployment.Policy
	Pool       *machinepool.Policy
	// Safety keeps the fleet from harm, see package safety. It
	//
	//   - limits replacements;
	//   - slows a class that the provider refuses;
	//   - deletes VMs that no machine owns;
	//   - deletes machines and sets whose owner is gone;
	//   - freezes what has too many machines and, while an API server does not answer, everything;
	//   - marks nodes without a machine, and removes their finalizer.
	//
	// Nil means safety.DefaultPolicy. safety.Off turns all of it off.
	Safety *safety.Policy
}

// PoolOptions say who makes the groups of Store.Pools. The manager reconciles pools if it has both
// the collection and a Driver here.
type PoolOptions struct {
	// Driver makes and deletes the groups. New adds decorators to it as it does to Options.Driver.
	// Nil: the manager reconciles no pools. It needs Store.Pools.
	Driver pooldriver.Driver
	// Bootstrap says how bootstrap data of pools stand. Nil: the manager reads their secrets from
	// Store.Secrets, and nothing makes them. It needs a Driver. With or without it, Options.Tokens makes
	// the token that user data ask for, unless Bootstrap says when the data's token expires.
	Bootstrap PoolBootstrap
}

// ClassOptions say what a Manager does to classes and secrets. The zero value only reads them.
type ClassOptions struct {
	// Keep puts machine.Finalizer on classes while anything refers to them, and on secrets while
	// classes do, so that none is gone before the last machine that needs it. False is for programs
	// whose classes and secrets this manager must not write.
	Keep bool
	// SecretNamespaces are the namespaces that classes may take secrets from, beside their own. For a
	// class that refers to another namespace, the manager calls no driver and keeps no secret. The
	// machines of the class say so with INVALID_ARGUMENT. Nil: any namespace. Empty, and not nil: each
	// class's own alone.
	SecretNamespaces []string
	// Foreign holds classes of the provider's older kinds. The manager migrates one when a machine,
	// set or deployment refers to it, and writes the result to Store.Classes. Until then a machine is
	// treated as if its class did not exist. Nil: the manager does not look at the kind of a class.
	Foreign ForeignClasses
}

// Tuning has the sizes and waits of a Manager. Zero means the default. None may be negative.
type Tuning struct {
	// Workers is how many machines Run works on at a time. Zero: 64. A slow provider needs more of
	// them, not faster ones.
	Workers int
	// Resync is after how long the manager looks at an object again, from the caches, though nothing
	// is known to have changed. Zero: 10 min. It bounds how long a change stays unnoticed that no watch
	// has reported, such as a deletion while a watch was broken.
	Resync time.Duration
	// CallTimeout bounds each call of a driver and of Tokens. Zero: 15 min.
	CallTimeout time.Duration
	// CallGrace is how long a call of a driver may take to return when its context has ended: by
	// CallTimeout, or with that of Run. Then its worker goes on without it, and the call is overdue,
	// see driver.Calls. Run returns within this time and a second after its context's end. Zero: 10 s.
	CallGrace time.Duration
	// OverdueCalls is how many calls of drivers may be overdue, and a fourth of it how many of one class.
	// While there are so many, calls are answered UNAVAILABLE at once. Calls that are under way by then
	// may exceed it. Zero: 512.
	OverdueCalls int
	// Settle is how long Run lets changes of machines gather before it looks at their set and
	// deployment. Zero: 10 ms. While machines wait for a worker it is longer, by as much again for
	// each 100 of them, up to 500 ms.
	Settle time.Duration
}

// Runtime has the clock, the randomness and the concurrency. A simulation replaces all of them, so that
// each run is the same.
type Runtime struct {
	// Now is the clock. Nil: time.Now.
	Now func() time.Time
	// Jitter spreads waits. It returns a duration not shorter than the one given. Nil: up to a tenth
	// longer, at random.
	Jitter func(time.Duration) time.Duration
	// Each calls the function do for each of the n orders of a batch, and returns when all have ended.
	// Nil: up to 16 at a time. A simulation runs them in order.
	Each func(ctx context.Context, n int, do func(i int))
	// Await calls the function do, which is a call of a driver, and waits until it returns or is overdue,
	// see driver.CallsOptions.Await. Nil: it runs in a goroutine of its own, by the clock of the process.
	Await func(ctx context.Context, limit, grace time.Duration, do func()) bool
}

// The defaults of Tuning, and parentWorkers: how many objects of each other kind Run works on at a time.
const (
	defaultWorkers = 64
	parentWorkers  = 4
	defaultSettle  = 10 * time.Millisecond
	defaultResync  = 10 * time.Minute
	defaultTimeout = 15 * time.Minute
	defaultGrace   = 10 * time.Second
	defaultOverdue = 512
)

// ErrOptions is what every error of New is, for errors.Is.
var ErrOptions = errors.New("manager: options")

// complete checks options and fills in their defaults.
func (o *Options) complete() error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Runtime.Now == nil {
		o.Runtime.Now = time.Now
	}
	if o.Runtime.Jitter == nil {
		o.Runtime.Jitter = engine.Spread
	}
	if o.Runtime.Each == nil {
		o.Runtime.Each = engine.Parallel
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Tuning.Workers = cmp.Or(o.Tuning.Workers, defaultWorkers)
	o.Tuning.Settle = cmp.Or(o.Tuning.Settle, defaultSettle)
	o.Tuning.Resync = cmp.Or(o.Tuning.Resync, defaultResync)
	o.Tuning.CallTimeout = cmp.Or(o.Tuning.CallTimeout, defaultTimeout)
	o.Tuning.CallGrace = cmp.Or(o.Tuning.CallGrace, defaultGrace)
	o.Tuning.OverdueCalls = cmp.Or(o.Tuning.OverdueCalls, defaultOverdue)
	return nil
}

func (o *Options) validate() error {
	switch {
	case o.Store.Machines == nil:
		return errors.New("no Store.Machines")
	case o.Store.Classes == nil:
		return errors.New("no Store.Classes")
	case o.Driver == nil:
		return errors.New("no Driver")
	case o.Store.Deployments != nil && o.Store.Sets == nil:
		return errors.New("no Store.Sets for Store.Deployments")
	case o.Cluster != nil && o.Store.Secrets == nil:
		return errors.New("no Store.Secrets for a Cluster: machines join with the user data in them")
	case o.Tokens != nil && o.Cluster == nil:
		return errors.New("no Cluster for Tokens: nobody would see a machine join")
	case o.Drainer != nil && o.Cluster == nil:
		return errors.New("no Cluster for a Drainer")
	}
	if err := o.validatePools(); err != nil {
		return err
	}
	if err := o.Tuning.validate(); err != nil {
		return err
	}
	return o.Policies.complete()
}

func (o *Options) validatePools() error {
	switch {
	case o.Pools.Driver != nil && o.Store.Pools == nil:
		return errors.New("no Store.Pools for Pools.Driver")
	case o.Pools.Bootstrap != nil && o.Pools.Driver == nil:
		return errors.New("no Pools.Driver for Pools.Bootstrap")
	case o.managesPools() && o.Drainer != nil:
		if _, keeps := o.Drainer.(NodeKeeper); !keeps {
			return errors.New("Drainer is no NodeKeeper: instances of pools would go undrained")
		}
	}
	return nil
}

func (t *Tuning) validate() error {
	switch {
	case t.Workers < 0:
		return errors.New("negative Tuning.Workers")
	case t.Resync < 0:
		return errors.New("negative Tuning.Resync")
	case t.CallTimeout < 0:
		return errors.New("negative Tuning.CallTimeout")
	case t.CallGrace < 0:
		return errors.New("negative Tuning.CallGrace")
	case t.OverdueCalls < 0:
		return errors.New("negative Tuning.OverdueCalls")
	case t.Settle < 0:
		return errors.New("negative Tuning.Settle")
	}
	return nil
}

// complete fills in the defaults and checks the result.
func (p *Policies) complete() error {
	p.Machine = p.Machine.WithDefaults()
	p.Set = p.Set.WithDefaults()
	p.Deployment = p.Deployment.WithDefaults()
	p.Pool = p.Pool.WithDefaults()
	p.Safety = p.Safety.WithDefaults()
	if p.Safety.Off {
		p.Safety = nil // from here on, nil is off
	}
	if err := p.Pool.Validate(); err != nil {
		return fmt.Errorf("Policies.Pool: %w", err)
	}
	if err := p.Machine.Validate(); err != nil {
		return fmt.Errorf("Policies.Machine: %w", err)
	}
	if err := p.Set.Validate(); err != nil {
		return fmt.Errorf("Policies.Set: %w", err)
	}
	if p.Safety != nil {
		if err := p.Safety.Validate(); err != nil {
			return fmt.Errorf("Policies.Safety: %w", err)
		}
	}
	if err := p.Deployment.Validate(); err != nil {
		return fmt.Errorf("Policies.Deployment: %w", err)
	}
	return nil
}

// managesPools reports whether pools are reconciled.
func (o *Options) managesPools() bool { return o.Store.Pools != nil && o.Pools.Driver != nil }

// managesClasses reports whether classes are reconciled at all.
func (o *Options) managesClasses() bool { return o.Classes.Keep || o.Classes.Foreign != nil }

// keepsSecrets reports whether secrets are reconciled at all.
func (o *Options) keepsSecrets() bool { return o.Classes.Keep && o.Store.Secrets != nil }

// Cluster is the target cluster that machines join. It is optional: without
// one, a machine's life ends at phase Available.
type Cluster interface {
	// Nodes is the cluster's list of nodes. Nodes have no namespace. The
	// collection must support NodeIndexes.
	Nodes() store.Collection[*machine.Node]
}

// ErrSecretNamespace says that a class refers to a secret in a namespace that
// Options.Classes.SecretNamespaces does not allow. The error around it has the code
// INVALID_ARGUMENT and names class and secret.
var ErrSecretNamespace = secrets.ErrNamespace

// ForeignClasses holds classes of the provider's own, older kinds. They are
// read, and marked once ours have taken their place, never deleted.
type ForeignClasses = port.ForeignClasses

// ForeignClass is a class of an older kind.
type ForeignClass = port.ForeignClass

// Tokens makes the bootstrap tokens with which nodes join the cluster.
type Tokens = port.Tokens

// TokenOwner is the machine or the pool that a token is for.
type TokenOwner = port.TokenOwner

// Token is what a node shows to join. No way of printing it shows it.
type Token = port.Token

// PoolBootstrap makes the bootstrap data of pools.
type PoolBootstrap = port.PoolBootstrap

// InMemory returns options with a store in memory for all kinds of objects. The
// function now is the clock; nil: time.Now. Driver is still to be set.
func InMemory(now func() time.Time) Options {
	return Options{
		Store: Store{
			Machines:    store.NewMemory(now, MachineIndexes()),
			Classes:     store.NewMemory(now, ClassIndexes()),
			Secrets:     store.NewMemory[*machine.Secret](now, nil),
			Sets:        store.NewMemory(now, SetIndexes()),
			Deployments: store.NewMemory(now, DeploymentIndexes()),
			Pools:       store.NewMemory(now, PoolIndexes()),
		},
		Runtime: Runtime{Now: now},
	}
}
