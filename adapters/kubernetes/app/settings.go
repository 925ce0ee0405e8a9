package app

import (
	"time"

	"github.com/alecthomas/kong"
)

// settings are the program's settings, apart from policies. Their names are those of the fields, in
// lower case and with dashes. None may be called port or service-…: Kubernetes sets MILLWRIGHT_PORT
// and MILLWRIGHT_SERVICE_… in the pods beside a service called millwright.
type settings struct {
	Config  string           `placeholder:"FILE" help:"YAML file with settings, by the names of the flags."`
	Version kong.VersionFlag `env:"-" help:"Show the version and exit."`

	servers  `group:"Servers and objects"`
	parts    `group:"Division among managers"`
	election `group:"Leader election"`
	serving  `group:"Metrics, health and logs"`
	sizes    `group:"Sizes and the driver"`
	policies
}

type servers struct {
	Kubeconfig                    string   `placeholder:"FILE" help:"Access to the cluster that holds the machine objects. Default: that of the pod this runs in."`
	TargetKubeconfig              string   `placeholder:"FILE" help:"Access to the cluster that machines join. Default: the one that holds the objects."`
	NoTarget                      bool     `help:"Machines join no cluster: their life ends at phase Available."`
	Namespace                     string   `help:"Where machine objects and their secrets are looked for. Default: everywhere."`
	Observe                       bool     `help:"Decide, log and count everything, and do nothing: no object, node or VM is changed. No leader is elected."`
	BootstrapTokenAuthExtraGroups []string `placeholder:"GROUP" help:"Groups of the nodes that join with a bootstrap token, beside system:bootstrappers; each begins with system:bootstrappers:."`
	KubeAPIQPS                    float64  `name:"kube-api-qps" placeholder:"N" help:"Calls a second to each API server. Default: no limit here, the server's priorities apply."`
	KubeAPIBurst                  int      `name:"kube-api-burst" default:"30" help:"Calls at once after a quiet time, where kube-api-qps is set."`
}

type parts struct {
	Kinds  []string `placeholder:"KIND" help:"Reconcile these alone: machine, set, deployment, class, secret, pool. Default: all. What keeps the fleet from harm goes with the machines."`
	Shard  string   `placeholder:"INDEX/OF" help:"Reconcile one of OF parts of the objects, from 0/OF on. Run one manager for each part; end all of them before OF changes."`
	Pools  bool     `negatable:"" default:"true" help:"Reconcile machine pools, if the driver makes groups. Then their kind must be defined on the server."`
	Rivals []string `placeholder:"[NAMESPACE/]LEASE" help:"Leases of other managers of the same objects: nothing is done while one is held. Default: machine-controller-manager and machine-controller in the namespace. none: there are no others."`
}

type election struct {
	LeaderElect                  bool          `negatable:"" default:"true" help:"Act only while holding a lease, so that one of several managers acts."`
	LeaderElectResourceName      string        `placeholder:"NAME" help:"Name of the lease. Default: millwright-manager, followed by kinds and shard where these are set."`
	LeaderElectResourceNamespace string        `placeholder:"NAMESPACE" help:"Namespace of the lease. Default: namespace, else that of the pod this runs in."`
	LeaderElectLeaseDuration     time.Duration `default:"15s" help:"For how long the lease is another's after it was last seen to be renewed."`
	LeaderElectRenewDeadline     time.Duration `default:"10s" help:"For how long a leader tries to renew its lease before it ends itself. Less than the lease's duration."`
	LeaderElectRetryPeriod       time.Duration `default:"2s" help:"Time between two attempts to get or to renew the lease."`
	ShutdownTimeout              time.Duration `default:"30s" help:"For how long what is under way may take to end after a signal. The lease is given up when it has ended."`
}

type serving struct {
	MetricsBindAddress string `default:"127.0.0.1:8080" placeholder:"HOST:PORT" help:"Where /metrics is served, without authentication; empty: nowhere. Default: ${default}."`
	HealthBindAddress  string `default:"127.0.0.1:8081" placeholder:"HOST:PORT" help:"Where /healthz and /readyz are served; empty: nowhere. In a pod: :8081, so that the kubelet reaches it. Default: ${default}."`
	PprofBindAddress   string `placeholder:"HOST:PORT" help:"Where /debug/pprof is served. Default: nowhere."`
	LogLevel           string `default:"info" enum:"debug,info,warn,error" help:"Least level that is logged: ${enum}."`
	LogFormat          string `default:"json" enum:"json,text" help:"Format of the log: ${enum}."`
}

type sizes struct {
	Workers           int           `default:"64" help:"Machines that are worked on at a time. A slow provider needs more of them."`
	MaxDrains         int           `default:"0" help:"Nodes of a zone that are drained at a time; 0: any number."`
	Resync            time.Duration `default:"10m" help:"After how long an object is looked at again though nothing is known to have changed."`
	Settle            time.Duration `default:"200ms" help:"How long changes of machines gather before their set and deployment are looked at. The shorter, the faster a rollout, and the more writes it takes."`
	DriverTimeout     time.Duration `default:"15m" help:"How long a call of the driver may take. It may wait for its turn for as long again."`
	DriverGrace       time.Duration `default:"10s" help:"How long a call of the driver may take to return once it was told to end. One that takes longer is left: it goes on, its machine is not called until it returns, and /healthz fails if it takes more than an hour. Less than shutdown-timeout."`
	DriverConcurrency int           `default:"0" help:"Calls of the driver that may be under way at once, those for pools among them; 0: any number."`
	DriverQPS         float64       `name:"driver-qps" default:"0" help:"Calls of the driver that may begin in a second; 0: any number."`
	DriverBurst       int           `default:"10" help:"Calls of the driver that may begin at once after a quiet time, where driver-qps is set."`
}
