package app

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strings"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/bootstrap"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machinepool/pooldriver"
	"github.com/millwright-go/millwright/manager"
)

// manage runs a manager with the settings that were read.
func (r *reading) manage(ctx context.Context, p *Program, log *slog.Logger) error {
	s := &r.settings
	clusters, err := s.connect(log)
	if err != nil {
		return r.sourced(err)
	}
	if err := s.checkBindable(); err != nil {
		return r.sourced(err)
	}
	setLibraryLog(log)
	mgr, err := ctrl.NewManager(clusters.Control, s.managerOptions(log))
	if err != nil {
		return r.sourced(asLeaseSetting(err))
	}
	d, err := p.Driver(clusters)
	if err != nil {
		return err
	}
	if runner, ok := driver.As[runner](d); ok {
		if err := mgr.Add(background{runner}); err != nil {
			return err
		}
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return err
	}
	o, err := r.options(d, clusters, log)
	if err != nil {
		return r.sourced(err)
	}
	if err := controllers.SetupWithManager(mgr, o); err != nil {
		return err
	}
	log.Info("starting", slog.String("version", version()), slog.String("namespace", s.Namespace), slog.Any("kinds", s.Kinds),
		slog.String("shard", s.Shard), slog.Bool("dryRun", s.DryRun), slog.String("lease", s.lease()), slog.Bool("elect", s.elects()), slog.Bool("pools", o.PoolDriver != nil))
	if err := mgr.Start(ctx); err != nil {
		return err
	}
	log.Info("ended")
	return nil
}

// asLeaseSetting turns the error that the lease's namespace is unknown into one about the setting.
func asLeaseSetting(err error) error {
	if strings.Contains(err.Error(), "leader election namespace") {
		return bad("leader-elect-resource-namespace", "is needed outside of a cluster where namespace is not set")
	}
	return err
}

// checkBindable returns an error about the first address that can't be bound. It is called before
// anything is started, so that the error names the setting.
func (s *settings) checkBindable() error {
	for _, at := range s.addresses() {
		l, err := net.Listen("tcp", at.address)
		if err != nil {
			return bad(at.setting, "%s", oneLine(err))
		}
		if err := l.Close(); err != nil {
			return err
		}
	}
	return nil
}

// elects reports whether the manager takes part in leader election.
func (s *settings) elects() bool { return s.LeaderElect && !s.DryRun }

// leaseNamespace returns the namespace of the lease. Empty means that of the pod.
func (s *settings) leaseNamespace() string {
	return cmp.Or(s.LeaderElectResourceNamespace, s.Namespace)
}

// connect reads the configs of the clusters. It makes no call to them.
func (s *settings) connect(log *slog.Logger) (Clusters, error) {
	c := Clusters{Log: log, DryRun: s.DryRun}
	var err error
	if c.Control, err = access("kubeconfig", s.Kubeconfig); err != nil {
		return c, err
	}
	s.limit(c.Control)
	switch {
	case s.NoTarget:
	case s.TargetKubeconfig != "":
		if c.Target, err = access("target-kubeconfig", s.TargetKubeconfig); err != nil {
			return c, err
		}
		s.limit(c.Target)
	default:
		c.Target = rest.CopyConfig(c.Control)
	}
	return c, nil
}

// access reads a kubeconfig. An empty path means the service account of the pod.
func access(setting, path string) (*rest.Config, error) {
	if path == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, bad(setting, "is needed outside of a cluster: %s", oneLine(err))
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, bad(setting, "%s", oneLine(err))
	}
	return config, nil
}

// limit sets the client-side rate limit. A negative QPS means none.
func (s *settings) limit(c *rest.Config) {
	c.QPS, c.Burst = -1, 0
	if s.KubeAPIQPS > 0 {
		c.QPS, c.Burst = float32(s.KubeAPIQPS), s.KubeAPIBurst
	}
}

func (s *settings) managerOptions(log *slog.Logger) ctrl.Options {
	return ctrl.Options{
		Logger:         logr.FromSlogHandler(shutdownHandler{log.Handler()}),
		LeaderElection: s.elects(), LeaderElectionID: s.lease(), LeaderElectionNamespace: s.leaseNamespace(), LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &s.LeaderElectLeaseDuration, RenewDeadline: &s.LeaderElectRenewDeadline, RetryPeriod: &s.LeaderElectRetryPeriod,
		GracefulShutdownTimeout: &s.ShutdownTimeout,
		Metrics:                 metricsserver.Options{BindAddress: orOff(s.MetricsBindAddress)},
		HealthProbeBindAddress:  orOff(s.HealthBindAddress),
		PprofBindAddress:        orOff(s.PprofBindAddress),
	}
}

// orOff returns an address for controller-runtime, where "0" means that nothing is served.
func orOff(address string) string {
	if address == "" {
		return "0"
	}
	return address
}

// options returns the options of the controllers.
func (r *reading) options(d driver.Driver, c Clusters, log *slog.Logger) (controllers.Options, error) {
	s := &r.settings
	machines, pools := s.limited(d)
	o := controllers.Options{
		Driver: machines, PoolDriver: pools, Namespace: s.Namespace, Target: c.Target, NoTarget: s.NoTarget,
		MachinePolicy: r.rules.machine, SetPolicy: r.rules.set, DeploymentPolicy: r.rules.deployment,
		SafetyPolicy: r.rules.safety, DrainPolicy: r.rules.drain, PoolPolicy: r.rules.pool, MaxDrains: s.MaxDrains,
		DryRun: s.DryRun, OtherManagers: s.otherManagers(), Workers: s.Workers, Resync: s.Resync, CallTimeout: 2 * s.DriverTimeout, CallGrace: s.DriverGrace, Settle: s.Settle, TrackFields: s.TrackFields,
		Log: log,
	}
	if s.elects() {
		o.Lease = controllers.Lease{Namespace: s.leaseNamespace(), Name: s.lease()}
	}
	for _, kind := range s.Kinds {
		o.Kinds = append(o.Kinds, manager.Kind(kind))
	}
	if pools == nil && slices.Contains(o.Kinds, manager.KindPool) {
		return o, bad("kinds", "pool is not reconciled: the driver makes no groups, or pools is false")
	}
	o.Shard, _ = s.shard() // check has found no error
	o.TokenGroups = s.BootstrapTokenAuthExtraGroups
	if c.Target != nil {
		if _, err := bootstrap.New(bootstrap.Options{Config: c.Target, Groups: o.TokenGroups}); err != nil {
			return o, bad("bootstrap-token-auth-extra-groups", "%s", oneLine(err))
		}
	}
	return o, nil
}

// limited returns the driver with the configured limits, and the same driver as a pool driver. The pool
// driver is nil if d is none, or the setting pools is false. Both share the limits. The timeout of a
// call begins when the limits let it begin.
func (s *settings) limited(d driver.Driver) (driver.Driver, pooldriver.Driver) {
	limits := driver.Limits{Concurrency: s.DriverConcurrency, Burst: s.DriverBurst, Now: time.Now, After: time.After}
	if s.DriverQPS > 0 {
		limits.Interval = time.Duration(float64(time.Second) / s.DriverQPS)
	}
	limit, deadline := driver.Limit(limits), driver.Deadline(driver.Timeouts{Default: s.DriverTimeout})
	machines := driver.Intercept(d, limit, deadline)
	pools, ok := driver.As[pooldriver.Driver](d)
	if !ok || !s.Pools {
		return machines, nil
	}
	return machines, pooldriver.Intercept(pools, limit, deadline)
}

// runner is a driver with background work.
type runner interface {
	Run(ctx context.Context) error
}

// background runs a driver's background work in a manager, also while another process is the leader.
type background struct{ runner }

var _ ctrlmanager.LeaderElectionRunnable = background{}

// NeedLeaderElection implements ctrlmanager.LeaderElectionRunnable.
func (b background) NeedLeaderElection() bool { return false }

// Start implements ctrlmanager.Runnable.
func (b background) Start(ctx context.Context) error {
	if err := b.Run(ctx); err != nil && ctx.Err() == nil {
		return fmt.Errorf("the driver ended: %w", err)
	}
	return nil
}
