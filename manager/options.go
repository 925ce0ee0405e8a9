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
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/object"
	"github.com/millwright-go/millwright/safety"
	"github.com/millwright-go/millwright/store"
)

// Options of a Manager. Machines, Classes and Driver are needed; the rest has
// defaults or may be absent.
type Options struct {
	Machines store.Collection[*machine.Machine]
	Classes  store.Collection[*machine.Class]
	// Namespace is the one that the collections are limited to: a server that is
	// asked whether it answers may refuse to tell of others. Empty: they aren't.
	Namespace string
	// Secrets holds what classes refer to; nil: there are none.
	Secrets store.Collection[*machine.Secret]
	// Sets and Deployments are reconciled where they are given; without
	// Sets, machines are made by hand.
	Sets        store.Collection[*machineset.Set]
	Deployments store.Collection[*deployment.Deployment]
	// Pools are reconciled where there is a PoolDriver too.
	Pools store.Collection[*machinepool.Pool]

	// KeepClasses puts machine.Finalizer on classes while anything refers to
	// them, and on secrets while classes do, so that none is gone before the
	// last machine that needs it. False, the default, is for embedders whose
	// classes and secrets this manager must not write.
	KeepClasses bool
	// SecretNamespaces are the namespaces that classes may take secrets from,
	// beside their own. A class that refers to another gets no call of the driver
	// and holds no secret there: its machines say so with INVALID_ARGUMENT. Nil,
	// the default: any. Empty, and not nil: each class's own alone.
	SecretNamespaces []string
	// ForeignClasses holds classes of the provider's older kinds, which are
	// migrated when a machine, set or deployment refers to one: Classes is
	// then written, and a machine whose class has not been migrated is as one
	// whose class does not exist. Nil: the kind of a class is not looked at.
	ForeignClasses ForeignClasses

	// Driver makes and deletes VMs. New wraps it in the decorators of package
	// driver for panics, for the answers' validation, and for CallTimeout;
	// others, such as limits, are the caller's.
	Driver driver.Driver
	// PoolDriver makes and deletes the groups of Pools. New wraps it as it does
	// Driver.
	PoolDriver pooldriver.Driver
	// PoolBootstrap says how bootstrap data of pools stand. Nil: their secrets
	// are read from Secrets as they are, and nothing makes them.
	PoolBootstrap PoolBootstrap
	// Cluster is what machines join; nil: nothing.
	Cluster Cluster

	// Tokens makes the bootstrap tokens that user data asks for. Nil: none are
	// made, and no VM is created from user data that asks for one. It needs a
	// Cluster: a token is deleted when its machine has joined.
	Tokens Tokens

	// Drainer empties nodes before they are deleted; nil: deletions do not wait for workload.
	Drainer Drainer

	// Policies. Nil means the DefaultPolicy of the package, and a setting in one that is zero means
	// its default. What can be turned off is turned off with object.Off.
	MachinePolicy    *machine.Policy
	SetPolicy        *machineset.Policy
	DeploymentPolicy *deployment.Policy
	PoolPolicy       *machinepool.Policy
	// SafetyPolicy keeps the fleet from harm, see package safety. It limits replacements, slows a
	// class that the provider refuses, and deletes VMs that no machine owns. It freezes what has too
	// many machines and, while an API server does not answer, everything. It lets nodes without a
	// machine go. Nil means safety.DefaultPolicy; safety.Off turns all of it off.
	SafetyPolicy *safety.Policy

	// Observe is a dry run: every reconciler reads and decides as usual, and
	// ends its pass with the first thing that it would do, which it reports
	// (Hooks.Observed) and logs instead. It then looks again when something
	// changes, or after Resync. Nothing is written to any collection, no node is
	// drained, and of the driver's calls those alone are made that change nothing
	// by its contract: GetMachineStatus, ListMachines, GetVolumeIDs and
	// GenerateMachineClassForMigration. False, the default: all is done.
	Observe bool

	// Hooks tell a program what happens. LogHooks are ready-made ones.
	Hooks Hooks
	// Log gets each event: what a machine, set, deployment or pool has become or was told to do at
	// Info, what went wrong at Warn. Nil means slog.Default; a logger with slog.DiscardHandler turns
	// it off.
	Log *slog.Logger

	// Now is the clock; nil: time.Now.
	Now func() time.Time
	// Jitter spreads waits: it returns a duration not shorter than the one
	// given; nil: up to a tenth longer, at random.
	Jitter func(time.Duration) time.Duration
	// Each carries out n orders of a batch and returns when all have ended;
	// nil: up to 16 at a time. A simulation runs them in order.
	Each func(ctx context.Context, n int, do func(i int))

	// Only restricts Run to some objects, so that several managers can divide a
	// fleet; nil: all. It is asked with the key Fleet for the kinds of the whole
	// fleet (see Kind.Fleet), which belong to one of the managers. It is not asked
	// for KindReachability, which each of them needs.
	// It must always answer the same.
	Only func(kind Kind, key object.Key) bool

	// Workers is how many machines Run works on at a time; zero: 64. A slow
	// provider needs more of them, not faster ones.
	Workers int
	// Resync is after how long an object is looked at again, from the caches,
	// though nothing is known to have changed; zero: 10 min. It bounds what a
	// change can cost that no watch has seen: of an object that came and went
	// before Run had begun to watch.
	Resync time.Duration
	// CallTimeout bounds each call of Driver and Tokens; zero: 15 min.
	CallTimeout time.Duration
	// Settle is how long Run lets changes of machines gather before it looks
	// at their set and deployment; zero: 10 ms. While machines wait for a worker
	// it is longer, by as much again for each 100 of them, up to 500 ms.
	Settle time.Duration
}

// Sizes of what Run does at a time unless Options say otherwise.
const (
	defaultWorkers = 64
	parentWorkers  = 4
	defaultSettle  = 10 * time.Millisecond
	defaultResync  = 10 * time.Minute
	defaultTimeout = 15 * time.Minute
)

// ErrOptions is what every error of New is, for errors.Is.
var ErrOptions = errors.New("manager: options")

// complete checks options and fills in their defaults.
func (o *Options) complete() error {
	if err := o.validate(); err != nil {
		return fmt.Errorf("%w: %w", ErrOptions, err)
	}
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Jitter == nil {
		o.Jitter = engine.Spread
	}
	if o.Each == nil {
		o.Each = engine.Parallel
	}
	if o.Log == nil {
		o.Log = slog.Default()
	}
	o.Workers = cmp.Or(o.Workers, defaultWorkers)
	o.Settle = cmp.Or(o.Settle, defaultSettle)
	o.Resync = cmp.Or(o.Resync, defaultResync)
	o.CallTimeout = cmp.Or(o.CallTimeout, defaultTimeout)
	return nil
}

func (o *Options) validate() error {
	switch {
	case o.Machines == nil:
		return errors.New("no Machines")
	case o.Classes == nil:
		return errors.New("no Classes")
	case o.Driver == nil:
		return errors.New("no Driver")
	case o.Deployments != nil && o.Sets == nil:
		return errors.New("no Sets for Deployments")
	case o.Cluster != nil && o.Secrets == nil:
		return errors.New("no Secrets for a Cluster: machines join with the user data in them")
	case o.Tokens != nil && o.Cluster == nil:
		return errors.New("no Cluster for Tokens: nobody would see a machine join")
	case o.Drainer != nil && o.Cluster == nil:
		return errors.New("no Cluster for a Drainer")
	case min(o.Workers, 0) != 0 || min(o.Settle, o.Resync, o.CallTimeout, 0) != 0:
		return errors.New("negative Workers, Settle, Resync or CallTimeout")
	}
	if err := o.validatePools(); err != nil {
		return err
	}
	return o.completePolicies()
}

func (o *Options) completePolicies() error {
	o.MachinePolicy = o.MachinePolicy.WithDefaults()
	o.SetPolicy = o.SetPolicy.WithDefaults()
	o.DeploymentPolicy = o.DeploymentPolicy.WithDefaults()
	o.PoolPolicy = o.PoolPolicy.WithDefaults()
	o.SafetyPolicy = o.SafetyPolicy.WithDefaults()
	if err := o.PoolPolicy.Validate(); err != nil {
		return err
	}
	if err := o.MachinePolicy.Validate(); err != nil {
		return err
	}
	if err := o.SetPolicy.Validate(); err != nil {
		return err
	}
	if o.SafetyPolicy.Off {
		o.SafetyPolicy = nil // from here on, nil is off
	} else if err := o.SafetyPolicy.Validate(); err != nil {
		return err
	}
	return o.DeploymentPolicy.Validate()
}

func (o *Options) validatePools() error {
	switch {
	case o.PoolDriver != nil && o.Pools == nil:
		return errors.New("no Pools for a PoolDriver")
	case o.PoolBootstrap != nil && o.PoolDriver == nil:
		return errors.New("no PoolDriver for a PoolBootstrap")
	}
	return nil
}

// managesPools reports whether pools are reconciled.
func (o *Options) managesPools() bool { return o.Pools != nil && o.PoolDriver != nil }

// managesClasses reports whether classes are reconciled at all.
func (o *Options) managesClasses() bool { return o.KeepClasses || o.ForeignClasses != nil }

// keepsSecrets reports whether secrets are reconciled at all.
func (o *Options) keepsSecrets() bool { return o.KeepClasses && o.Secrets != nil }
