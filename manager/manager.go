package manager

import (
	"log/slog"

	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machine/fsm"
)

// Manager holds the reconcilers of one fleet.
type Manager struct {
	options     Options
	reconcilers []Reconciler
	hints       hints
}

// New returns a manager; an error is mostly an ErrOptions. It starts nothing.
func New(options Options) (*Manager, error) {
	if err := options.complete(); err != nil {
		return nil, err
	}
	checked := driver.Validate(options.Driver, driver.ValidateOptions{NodeNames: options.Cluster != nil})
	limited := driver.Deadline(checked, driver.Timeouts{Default: options.CallTimeout})
	options.Driver = driver.Recover(limited, options.panicked)
	if driver.ProviderIDsMatch(options.Driver) {
		policy := *options.MachinePolicy
		policy.ProviderIDsMatch = true
		options.MachinePolicy = &policy
	}
	options.reconcilePolicies()
	moves, err := fsm.NewChecker(machine.PhaseTable(), machine.DeletionTable(), machine.UpdateTable())
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options}
	s := &shell{Options: &m.options, moves: moves, reach: &reach{}, hints: &m.hints}
	m.reconcilers = append(m.reconcilers, newMachineReconciler(s))
	if options.Sets != nil {
		m.reconcilers = append(m.reconcilers, newSetReconciler(s))
	}
	if options.Deployments != nil {
		m.reconcilers = append(m.reconcilers, newDeploymentReconciler(s))
	}
	if options.managesClasses() {
		m.reconcilers = append(m.reconcilers, newClassReconciler(s))
	}
	if options.keepsSecrets() {
		m.reconcilers = append(m.reconcilers, newSecretReconciler(s))
	}
	if options.SafetyPolicy == nil {
		return m, nil
	}
	m.reconcilers = append(m.reconcilers, newReachability(s), newOrphans(s))
	if options.Cluster != nil {
		m.reconcilers = append(m.reconcilers, newUnmanaged(s))
	}
	return m, nil
}

// reconcilePolicies has the policies of sets and deployments, which are the
// caller's and stay as they are, say the same where one is nothing without the
// other. Without a cluster there are no nodes to mark.
func (o *Options) reconcilePolicies() {
	sets, deployments := *o.SetPolicy, *o.DeploymentPolicy
	if o.Cluster == nil {
		deployments.RolloutMarks = machine.RolloutMarks{}
	}
	sets.StrictQuota = sets.StrictQuota || deployments.StrictQuota && o.Deployments != nil
	deployments.Keys.Replace = sets.Keys.Replace
	o.SetPolicy, o.DeploymentPolicy = &sets, &deployments
}

// Reconcilers returns one reconciler a kind.
func (m *Manager) Reconcilers() []Reconciler { return m.reconcilers }

// panicked logs where a driver panicked, not the value, which may hold anything.
func (o *Options) panicked(p driver.Panic) {
	o.Log.Error("the driver panicked", slog.String("call", p.Method.String()),
		slog.String("machine", p.Machine.String()), slog.String("stack", string(p.Stack)))
}
