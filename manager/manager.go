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
	moves, err := fsm.NewChecker(machine.PhaseTable(), machine.DeletionTable(), machine.UpdateTable())
	if err != nil {
		return nil, err
	}
	m := &Manager{options: options}
	s := &shell{Options: &m.options, moves: moves}
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
	return m, nil
}

// Reconcilers returns one reconciler a kind.
func (m *Manager) Reconcilers() []Reconciler { return m.reconcilers }

// panicked logs where a driver panicked, not the value, which may hold anything.
func (o *Options) panicked(p driver.Panic) {
	o.Log.Error("the driver panicked", slog.String("call", p.Method.String()),
		slog.String("machine", p.Machine.String()), slog.String("stack", string(p.Stack)))
}
