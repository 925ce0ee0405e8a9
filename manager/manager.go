package manager

import (
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager/engine"
	"github.com/millwright-go/millwright/manager/fleet"
	"github.com/millwright-go/millwright/manager/internal/pace"
	"github.com/millwright-go/millwright/manager/machines"
)

// Manager holds the reconcilers of one fleet.
type Manager struct {
	options     Options
	reconcilers []Reconciler
	hints       hints
	engine      *engine.Engine
	watched     watched
	missing     missing
	calls       *calls
	doing       doing
}

// New returns a manager; an error is mostly an ErrOptions. It starts nothing.
func New(options Options) (*Manager, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	e := engine.New(engine.Options{
		Now: options.Runtime.Now, Jitter: options.Runtime.Jitter, Each: options.Runtime.Each,
		Resync: options.Tuning.Resync, DryRun: options.Observe, Log: options.Log, Hooks: engineHooks(&options.Hooks),
	})
	options.Hooks, options.Runtime.Each = contain(e.Guard, options.Hooks), e.Each
	calls := newCalls(&options, e)
	options.decorate(e.Guard, calls.Calls)
	options.defaultBootstrap()
	if driver.ProviderIDsMatch(options.Driver) {
		policy := *options.Policies.Machine
		policy.ProviderIDsMatch = true
		options.Policies.Machine = &policy
	}
	options.reconcilePolicies()
	if options.Observe {
		options.onlyObserve()
	}
	objects, err := newObjects(e, &options)
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options, engine: e, calls: calls}
	s := &shell{
		Options: &m.options, engine: e, objects: objects, hints: &m.hints,
		reach:   fleet.NewReach(options.Policies.Safety, options.Runtime.Now),
		backoff: machines.NewBackoff(options.Runtime.Now, options.Hooks.Slowed),
		permits: newPermits(&m.options), watched: &m.watched, missing: &m.missing,
	}
	if options.Policies.Safety != nil {
		s.paces = new(pace.Paces)
	}
	s.specs = newSpecs(options.Driver)
	m.reconcilers = s.reconcilers()
	return m, nil
}

// reconcilers returns one reconciler a kind that is reconciled.
func (s *shell) reconcilers() []Reconciler {
	all := []Reconciler{newMachineReconciler(s)}
	if s.Store.Sets != nil {
		all = append(all, newSetReconciler(s))
	}
	if s.Store.Deployments != nil {
		all = append(all, newDeploymentReconciler(s))
	}
	if s.managesPools() {
		all = append(all, newPoolReconciler(s))
	}
	if s.managesClasses() {
		all = append(all, newClassReconciler(s))
	}
	if s.keepsSecrets() {
		all = append(all, newSecretReconciler(s))
	}
	if s.Policies.Safety == nil {
		return all
	}
	c := s.fleet()
	all = append(all, reconciler{fleet.NewReachability(s.engine, c)}, reconciler{fleet.NewOrphans(s.engine, c)})
	if s.Cluster != nil {
		all = append(all, reconciler{fleet.NewUnmanaged(s.engine, c)})
	}
	if s.Store.Sets != nil {
		all = append(all, reconciler{fleet.NewOwnerless(s.engine, c)})
	}
	return all
}

// reconcilePolicies makes copies of the policies that agree where one depends on
// another. The caller's policies stay as they are. Without a cluster there are no nodes to mark.
func (o *Options) reconcilePolicies() {
	sets, deployments := *o.Policies.Set, *o.Policies.Deployment
	if o.Cluster == nil {
		deployments.RolloutMarks = machine.RolloutMarks{}
	}
	sets.StrictQuota = sets.StrictQuota || deployments.StrictQuota && o.Store.Deployments != nil
	sets.IgnoreMinReady = sets.IgnoreMinReady || deployments.IgnoreMinReady && o.Store.Deployments != nil
	deployments.Names = min(deployments.Names, sets.Burst) // names beyond that would be used after others
	deployments.Keys.Replace, deployments.Keys.ScaleUpDisabled = sets.Keys.Replace, sets.Keys.ScaleUpDisabled
	machines := *o.Policies.Machine
	machines.Keys.Replace = sets.Keys.Replace
	paused := machines.Keys.Paused
	sets.Keys.Paused, deployments.Keys.Paused = paused, paused
	if o.Policies.Safety != nil && o.Policies.Safety.Keys.Paused != paused {
		safe := *o.Policies.Safety
		safe.Keys.Paused = paused
		o.Policies.Safety = &safe
	}
	o.Policies.Set, o.Policies.Deployment, o.Policies.Machine = &sets, &deployments, &machines
}

// Driver returns Options.Driver as the manager calls it: with deadlines, checks and hooks, and given back
// when it does not end. It is for programs that make calls of their own, such as GetVolumeIDs for a
// drain.
func (m *Manager) Driver() driver.Driver { return m.options.Driver }

// Reconcilers returns one reconciler a kind.
func (m *Manager) Reconcilers() []Reconciler { return m.reconcilers }
