package app

import (
	"time"

	"github.com/alecthomas/kong"
)

// settings are all settings of the program. The name of a setting is that of the field, in lower case
// and with dashes, unless the tag name says otherwise. No name may be port, or begin with service-: if
// there is a service called millwright, Kubernetes sets the variables MILLWRIGHT_PORT and
// MILLWRIGHT_SERVICE_… in pods.
type settings struct {
	Config  string           `placeholder:"FILE" help:"YAML file with settings; its keys are the names of the flags."`
	Version kong.VersionFlag `env:"-" help:"Show the version and exit."`

	servers  `group:"Clusters and objects"`
	parts    `group:"Several managers"`
	election `group:"Leader election"`
	serving  `group:"Metrics, health and logs"`
	sizes    `group:"Concurrency and the driver"`
	policies
}

type servers struct {
	Kubeconfig                    string   `placeholder:"FILE" help:"Kubeconfig of the cluster that holds the machine objects. Default: the service account of the pod."`
	TargetKubeconfig              string   `placeholder:"FILE" help:"Kubeconfig of the cluster that machines join. Default: the cluster that holds the machine objects."`
	NoTarget                      bool     `help:"Machines join no cluster: their final phase is Available."`
	Namespace                     string   `help:"Namespace of the machine objects and their secrets. Default: all namespaces."`
	DryRun                        bool     `help:"Dry run: decide, log and count everything, but change no object, node or VM. No leader is elected."`
	BootstrapTokenAuthExtraGroups []string `placeholder:"GROUP" help:"Extra groups of nodes that join with a bootstrap token, besides system:bootstrappers. Each begins with system:bootstrappers:."`
	KubeAPIQPS                    float64  `name:"kube-api-qps" placeholder:"N" help:"Requests per second to each API server. Default: no client-side limit; API priority and fairness of the server applies."`
	KubeAPIBurst                  int      `name:"kube-api-burst" default:"30" help:"Burst of requests, if kube-api-qps is set."`
}

type parts struct {
	Kinds         []string `placeholder:"KIND" help:"Reconcile only these kinds: machine, set, deployment, class, secret, pool. Default: all. The safety checks run with the kind machine."`
	Shard         string   `placeholder:"INDEX/OF" help:"Reconcile one of OF shards of the objects, numbered from 0. Run one manager for each shard. Stop all of them before you change OF."`
	Pools         bool     `negatable:"" default:"true" help:"Reconcile machine pools, if the driver supports groups of instances. Their custom resource definition must be installed."`
	OtherManagers []string `placeholder:"[NAMESPACE/]LEASE" help:"Leases of other managers of the same objects. Nothing is done while one of them is held. Default: machine-controller-manager and machine-controller in the namespace; none: there are no other managers."`
}

type election struct {
	LeaderElect                  bool          `negatable:"" default:"true" help:"Act only while holding a lease, so that only one of several replicas acts."`
	LeaderElectResourceName      string        `placeholder:"NAME" help:"Name of the lease. Default: millwright-manager, followed by kinds and shard if they are set."`
	LeaderElectResourceNamespace string        `placeholder:"NAMESPACE" help:"Namespace of the lease. Default: namespace, or that of the pod."`
	LeaderElectLeaseDuration     time.Duration `default:"15s" help:"How long other replicas wait after the last renewal of the lease before they take it over."`
	LeaderElectRenewDeadline     time.Duration `default:"10s" help:"How long the leader retries to renew its lease before it exits. Must be less than leader-elect-lease-duration."`
	LeaderElectRetryPeriod       time.Duration `default:"2s" help:"Time between two attempts to acquire or renew the lease."`
	ShutdownTimeout              time.Duration `default:"30s" help:"How long running operations may take to finish after a signal. The lease is released when they have finished."`
}

type serving struct {
	MetricsBindAddress string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Address of /metrics, served without authentication; empty: not served. Default: ${default}."`
	HealthBindAddress  string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Address of /healthz and /readyz; empty: not served. In a pod use :8081, so that the kubelet can reach it. Default: ${default}."`
	PprofBindAddress   string `placeholder:"HOST:PORT" help:"Address of /debug/pprof. Default: not served."`
	LogLevel           string `default:"info" enum:"debug,info,warn,error" help:"Lowest level that is logged: ${enum}."`
	LogFormat          string `default:"json" enum:"json,text" help:"Format of the log: ${enum}."`
}

type sizes struct {
	Workers           int           `default:"64" help:"Machines that are reconciled concurrently. A slow provider needs more."`
	MaxDrains         int           `default:"0" help:"Nodes of one zone that are drained at the same time; 0: no limit."`
	Resync            time.Duration `default:"10m" help:"How often every object is reconciled even if nothing has changed."`
	TrackFields       bool          `help:"Let the API server record which program has set which field of a machine (managedFields). Without it that record is removed from machines that nobody applies, which makes rollouts faster where the server's processors are short."`
	Settle            time.Duration `default:"20ms" help:"How long changes of machines are collected before their set and deployment are reconciled. A shorter time makes rollouts faster and takes more writes."`
	DriverTimeout     time.Duration `default:"15m" help:"Timeout of a call to the driver. A call may also wait as long for its turn."`
	DriverGrace       time.Duration `default:"10s" help:"How long a call to the driver may take to return after it was cancelled. A call that takes longer is abandoned: its machine is not called again until it returns, and /healthz fails after an hour. Must be less than shutdown-timeout."`
	DriverConcurrency int           `default:"0" help:"Concurrent calls to the driver, including calls for pools; 0: no limit."`
	DriverQPS         float64       `name:"driver-qps" default:"0" help:"Calls to the driver per second; 0: no limit."`
	DriverBurst       int           `default:"10" help:"Burst of calls to the driver, if driver-qps is set."`
}
