package main

import (
	"context"
	"fmt"
	"sort"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/metadata/metadatainformer"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/restmapper"
	"k8s.io/client-go/scale"
	"k8s.io/controller-manager/pkg/informerfactory"
	"k8s.io/kubernetes/pkg/controller/deployment"
	"k8s.io/kubernetes/pkg/controller/disruption"
	"k8s.io/kubernetes/pkg/controller/garbagecollector"
	"k8s.io/kubernetes/pkg/controller/job"
	"k8s.io/kubernetes/pkg/controller/namespace"
	"k8s.io/kubernetes/pkg/controller/nodelifecycle"
	"k8s.io/kubernetes/pkg/controller/replicaset"
	"k8s.io/kubernetes/pkg/controller/statefulset"
)

// cluster has what controllers are built from.
type cluster struct {
	dir  string
	pods pods
	// nodeGrace is the time after the last renewal of a node's lease until its Ready condition is
	// Unknown.
	nodeGrace time.Duration
	cfg       *rest.Config
	cs        kubernetes.Interface
	f         informers.SharedInformerFactory
	mf        metadatainformer.SharedInformerFactory
	meta      metadata.Interface
	disco     discovery.CachedDiscoveryInterface
	mapper    *restmapper.DeferredDiscoveryRESTMapper
	started   chan struct{}
}

// builders has a function for each controller. It sets up the informers, and returns a function that runs
// the controller.
var builders = map[string]func(context.Context, *cluster) (func(context.Context), error){
	"disruption": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		sc, err := scale.NewForConfig(c.cfg, c.mapper, dynamic.LegacyAPIPathResolverFunc, scale.NewDiscoveryScaleKindResolver(c.disco))
		if err != nil {
			return nil, err
		}
		return disruption.NewDisruptionController(ctx, c.f.Core().V1().Pods(), c.f.Policy().V1().PodDisruptionBudgets(),
			c.f.Core().V1().ReplicationControllers(), c.f.Apps().V1().ReplicaSets(), c.f.Apps().V1().Deployments(),
			c.f.Apps().V1().StatefulSets(), c.cs, c.mapper, sc, c.disco).Run, nil
	},
	"gc": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		// kube-controller-manager looks for new resource types every 30 s. Tests can't wait that long.
		const period = time.Second
		gc, err := garbagecollector.NewGarbageCollector(ctx, c.cs, c.meta, c.mapper,
			map[schema.GroupResource]struct{}{{Group: "", Resource: "events"}: {}, {Group: "events.k8s.io", Resource: "events"}: {}},
			informerfactory.NewInformerFactory(c.f, c.mf), c.started)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) {
			go gc.Sync(ctx, c.cs.Discovery(), period)
			gc.Run(ctx, 5, 30*time.Second)
		}, nil
	},
	"namespace": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		nc := namespace.NewNamespaceController(ctx, c.cs, c.meta, c.cs.Discovery().ServerPreferredNamespacedResources,
			c.f.Core().V1().Namespaces(), 5*time.Minute, v1.FinalizerKubernetes)
		return func(ctx context.Context) { nc.Run(ctx, 2) }, nil
	},
	"replicaset": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		rs := replicaset.NewReplicaSetController(ctx, c.f.Apps().V1().ReplicaSets(), c.f.Core().V1().Pods(), c.cs, replicaset.BurstReplicas)
		return func(ctx context.Context) { rs.Run(ctx, 2) }, nil
	},
	"deployment": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		d, err := deployment.NewDeploymentController(ctx, c.f.Apps().V1().Deployments(), c.f.Apps().V1().ReplicaSets(), c.f.Core().V1().Pods(), c.cs)
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { d.Run(ctx, 2) }, nil
	},
	"statefulset": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		s := statefulset.NewStatefulSetController(ctx, c.f.Core().V1().Pods(), c.f.Apps().V1().StatefulSets(),
			c.f.Core().V1().PersistentVolumeClaims(), c.f.Apps().V1().ControllerRevisions(), c.cs)
		return func(ctx context.Context) { s.Run(ctx, 2) }, nil
	},
	"job": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		j, err := job.NewController(ctx, c.cs, c.f.Core().V1().Pods(), c.f.Batch().V1().Jobs(), nil, nil) // nil: no support for pod groups
		if err != nil {
			return nil, err
		}
		return func(ctx context.Context) { j.Run(ctx, 2) }, nil
	},
	"nodelifecycle": func(ctx context.Context, c *cluster) (func(context.Context), error) {
		n, err := nodelifecycle.NewNodeLifecycleController(ctx, c.f.Coordination().V1().Leases(), c.f.Core().V1().Pods(),
			c.f.Core().V1().Nodes(), c.f.Apps().V1().DaemonSets(), c.cs,
			time.Second, c.nodeGrace, c.nodeGrace, 100, 100, 50, 0.55)
		if err != nil {
			return nil, err
		}
		return n.Run, nil
	},
	"fakekubelet": func(ctx context.Context, c *cluster) (func(context.Context), error) { return fakeKubelet(c), nil },
}

func controllerNames() []string {
	var n []string
	for k := range builders {
		n = append(n, k)
	}
	sort.Strings(n)
	return n
}

// startControllers starts the controllers that the options name.
func startControllers(ctx context.Context, cfg *rest.Config, o *options) error {
	if o.controllers == "" {
		return nil
	}
	cfg = rest.CopyConfig(cfg)
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	mc, err := metadata.NewForConfig(cfg)
	if err != nil {
		return err
	}
	c := &cluster{dir: o.dir, pods: o.pods, nodeGrace: o.nodeGrace, cfg: cfg, cs: cs, meta: mc,
		f: informers.NewSharedInformerFactory(cs, 0), mf: metadatainformer.NewSharedInformerFactory(mc, 0), disco: memory.NewMemCacheClient(cs.Discovery()), started: make(chan struct{})}
	c.mapper = restmapper.NewDeferredDiscoveryRESTMapper(c.disco)
	var runs []func(context.Context)
	for _, name := range strings.Split(o.controllers, ",") {
		b, ok := builders[name]
		if !ok {
			return fmt.Errorf("no controller %q: one of %s", name, strings.Join(controllerNames(), ","))
		}
		r, err := b(ctx, c)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		runs = append(runs, r)
	}
	c.f.Start(ctx.Done())
	c.mf.Start(ctx.Done())
	close(c.started)
	for _, r := range runs {
		go r(ctx)
	}
	return nil
}
