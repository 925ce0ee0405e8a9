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
	// PoolDriver creates and deletes the instance groups of pools. If it is nil, pools are neither
	// reconciled nor read, and their kind need not be defined.
	PoolDriver pooldriver.Driver
	// PoolBootstrap makes the bootstrap data of pools. If it is nil, the manager makes none, and reads
	// the secrets that pools name. It needs a PoolDriver.
	PoolBootstrap manager.PoolBootstrap

	// Namespace is the namespace of machines, sets, deployments, classes and their secrets. If it
	// is empty, all namespaces are read.
	Namespace string
	// Target is access to the cluster that machines join. Nil means the cluster that holds the
	// objects.
	Target *rest.Config
	// NoTarget says that machines join no cluster: phase Available is the last
	// that they reach. Target must be nil then.
	NoTarget bool

	// TokenGroups are further groups of nodes that join with a bootstrap token. Each begins with
	// "system:bootstrappers:".
	TokenGroups []string

	// Kinds lists the kinds that are reconciled: some of KindMachine, KindSet, KindDeployment,
	// KindClass, KindSecret and KindPool. Nil means all of them. The safety loops run with the
	// machines. Kinds that are not listed are still read.
	Kinds []manager.Kind
	// Shard is the part of the objects that is reconciled here. Zero means all.
	Shard Shard

	// The policies. Nil means DefaultSetPolicy and DefaultDeploymentPolicy for sets and deployments,
	// and the defaults of their packages for the others. A setting that is zero means its default.
	MachinePolicy    *machine.Policy
	SetPolicy        *machineset.Policy
	DeploymentPolicy *deployment.Policy
	SafetyPolicy     *safety.Policy
	DrainPolicy      *drain.Policy
	PoolPolicy       *machinepool.Policy
	// MaxDrains is how many nodes of a zone are drained at a time. Zero means no limit.
	MaxDrains int

	// DryRun is a dry run: everything is decided, logged and counted, but nothing is done or
	// written, not even an event. No leader is elected, and OtherManagers is ignored.
	DryRun bool
	// OtherManagers are the leases of other managers of the same objects. Nothing is done while one of
	// them is held and renewed within its duration. A lease that is read for the first time
	// counts as held unless it expired more than 5 min ago, because clocks may differ. Nil means
	// DefaultOtherManagers(Namespace). An empty list means none.
	OtherManagers []Lease
	// Lease is the manager's leader election lease. It gets LeaseFinalizer while objects of the fleet
	// in its namespace need a manager, so that a deletion of that namespace can be finished. Zero: no
	// lease gets it, and a deletion of the namespace may end the manager before the fleet is gone.
	Lease Lease

	// For these see manager.Tuning. Zero means the defaults there.
	Workers     int
	Resync      time.Duration
	CallTimeout time.Duration
	CallGrace   time.Duration
	// Settle is how long changes of machines gather before their set and deployment are reconciled.
	// Zero means 20 ms. A shorter time makes a rollout faster, and costs more writes.
	Settle time.Duration
	// TrackFields says that the server shall record which program has set which field of a machine
	// (metadata.managedFields). Without it that record is removed from machines that nobody applies, which
	// saves a quarter of a rollout's time where the server's processors are short.
	TrackFields bool

	// Hooks are called in addition to those of the controllers.
	Hooks manager.Hooks
	// Log is the logger. Nil means that of the controller-runtime manager.
	Log *slog.Logger
	// Metrics is where the metrics of the fleet are registered. Nil means the registry of
	// controller-runtime.
	Metrics prometheus.Registerer
}

// ErrOptions matches every error about Options, with errors.Is.
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
