package controllers

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/drain"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/machineset"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/safety"
)

// Options of the controllers. Driver is needed; the rest has defaults.
type Options struct {
	// Driver makes and deletes VMs.
	Driver driver.Driver
	// PoolDriver makes and deletes the groups of pools; nil: pools are neither
	// reconciled nor read, and their kind need not be defined.
	PoolDriver pooldriver.Driver
	// PoolBootstrap makes the bootstrap data of pools; nil: nobody does, and their
	// secrets are read as they are. It needs a PoolDriver.
	PoolBootstrap manager.PoolBootstrap

	// Namespace is where machines, sets, deployments, classes and their
	// secrets are looked for; empty: everywhere.
	Namespace string
	// Target is access to the cluster that machines join; nil: it is the one
	// that holds the objects.
	Target *rest.Config
	// NoTarget says that machines join no cluster: their life ends at phase
	// Available. Target must be nil then.
	NoTarget bool

	// TokenGroups are further groups that nodes belong to that join with a
	// bootstrap token; each begins with "system:bootstrappers:".
	TokenGroups []string

	// Kinds are those that are reconciled, of KindMachine, KindSet,
	// KindDeployment, KindClass, KindSecret and KindPool; nil: all of them. What
	// keeps a fleet from harm goes with the machines. The others are still read.
	Kinds []manager.Kind
	// Shard is the part of the objects that is reconciled here; zero: all.
	Shard Shard

	// Policies; nil: the defaults of their packages, for sets and deployments
	// DefaultSetPolicy and DefaultDeploymentPolicy.
	MachinePolicy    *machine.Policy
	SetPolicy        *machineset.Policy
	DeploymentPolicy *deployment.Policy
	SafetyPolicy     *safety.Policy
	DrainPolicy      *drain.Policy
	PoolPolicy       *machinepool.Policy
	// MaxDrains is how many nodes of a zone are drained at a time; zero: any
	// number.
	MaxDrains int

	// Observe has everything decided, logged and counted, and nothing done, not
	// even an event. No leader is elected then, and no rival matters.
	Observe bool
	// Rivals are the leases of other managers of the same objects: nothing is
	// done while one of them is held and renewed within its duration. At first
	// sight one is believed alive that was renewed up to 5 min before that, since
	// clocks may differ.
	// Nil: DefaultRivals in Namespace; empty: there are none.
	Rivals []Lease

	// Sizes and waits, see manager.Options; zero: its defaults.
	Workers     int
	Resync      time.Duration
	CallTimeout time.Duration
	// Settle is how long changes of machines gather before their set and
	// deployment are looked at; zero: 200 ms. The shorter, the faster a rollout,
	// and the more writes it takes.
	Settle time.Duration

	// Hooks are called besides what the controllers do with them.
	Hooks manager.Hooks
	// Log; nil: that of the controller-runtime manager.
	Log *slog.Logger
	// Metrics is where the metrics of the fleet are registered; nil: with those
	// of controller-runtime.
	Metrics prometheus.Registerer
}

// ErrOptions is what every error about Options is, for errors.Is.
var ErrOptions = errors.New("controllers: options")

func (o *Options) validate() error {
	switch {
	case o.Driver == nil:
		return fmt.Errorf("%w: no Driver", ErrOptions)
	case o.NoTarget && o.Target != nil:
		return fmt.Errorf("%w: a Target with NoTarget", ErrOptions)
	case o.MaxDrains < 0:
		return fmt.Errorf("%w: negative MaxDrains", ErrOptions)
	case o.PoolDriver == nil && o.PoolBootstrap != nil:
		return fmt.Errorf("%w: no PoolDriver for a PoolBootstrap", ErrOptions)
	case o.PoolDriver == nil && slices.Contains(o.Kinds, manager.KindPool):
		return fmt.Errorf("%w: no PoolDriver for kind %s", ErrOptions, manager.KindPool)
	}
	return o.Shard.validate()
}
