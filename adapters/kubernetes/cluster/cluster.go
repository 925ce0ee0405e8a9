package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clientcache "k8s.io/client-go/tools/cache"

	"github.com/millwright-go/millwright/adapters/kubernetes/apistore"
	"github.com/millwright-go/millwright/adapters/kubernetes/convert"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/manager/drains"
	"github.com/millwright-go/millwright/store"
)

// Options of a Cluster. Config is needed.
type Options struct {
	// Config is access to the target cluster. Its limits apply to each of the clients that New
	// makes of it.
	Config *rest.Config
	// NodeMachine is the label on a node with its machine's name. If it is empty, the label of
	// machine.DefaultPolicy is used.
	NodeMachine string
	// Keys are the names of the annotations on nodes with the library's records. Zero means
	// convert.DefaultKeys.
	Keys convert.Keys
	// Report receives the errors of the lists and watches that fill the caches. It must return soon.
	// Nil drops them.
	Report func(error)
}

// Cluster is a manager.Cluster. New makes it. Reads are complete once Run has filled the caches.
type Cluster struct {
	nodes   *apistore.Collection[*machine.Node, *corev1.Node]
	client  kubernetes.Interface
	pods    *pods
	budgets *budgets
	volumes *volumes
	// informers fill all caches but that of the nodes.
	informers []clientcache.SharedIndexInformer
}

// New returns a Cluster. It makes no call yet.
func New(o Options) (*Cluster, error) {
	if o.Config == nil {
		return nil, errors.New("no Config")
	}
	if o.NodeMachine == "" {
		o.NodeMachine = machine.DefaultPolicy().Keys.NodeMachine
	}
	if o.Keys == (convert.Keys{}) {
		o.Keys = convert.DefaultKeys()
	}
	if o.Report == nil {
		o.Report = func(error) {}
	}
	nodes, err := newNodes(&o)
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(o.Config)
	if err != nil {
		return nil, err
	}
	c := &Cluster{nodes: nodes, client: client}
	if err := c.build(o.Report); err != nil {
		return nil, err
	}
	return c, nil
}

func newNodes(o *Options) (*apistore.Collection[*machine.Node, *corev1.Node], error) {
	client, err := apistore.NewClient(o.Config, corev1.SchemeGroupVersion, scheme.Scheme)
	if err != nil {
		return nil, err
	}
	label := o.NodeMachine
	return apistore.New(apistore.Options[*machine.Node, *corev1.Node]{
		Client: client, Resource: "nodes", Codec: convert.Nodes(o.Keys), Report: o.Report,
		Blank:     func() *corev1.Node { return &corev1.Node{} },
		BlankList: func() runtime.Object { return &corev1.NodeList{} },
		Indexes:   manager.NodeIndexes(label),
		Narrow: map[store.Index]func(string) (metav1.ListOptions, bool){
			manager.IndexMachine: func(name string) (metav1.ListOptions, bool) {
				pick := labels.Set{label: name}
				return metav1.ListOptions{LabelSelector: pick.String()}, len(validation.IsValidLabelValue(name)) == 0
			},
		},
	})
}

// build makes the caches of pods, budgets, volumes and attachments.
func (c *Cluster) build(report func(error)) error {
	c.pods = newPods(c.client)
	c.budgets = newBudgets(c.client)
	c.volumes = newVolumes(c.client, c.nodes.Raw)
	c.pods.attachments = c.volumes.attachments
	c.informers = []clientcache.SharedIndexInformer{c.pods.informer, c.budgets.informer, c.volumes.volumes, c.volumes.attachments}
	for _, i := range c.informers {
		handler := func(_ context.Context, _ *clientcache.Reflector, err error) {
			report(fmt.Errorf("follow the target cluster: %w", err))
		}
		if err := i.SetWatchErrorHandlerWithContext(handler); err != nil {
			return err
		}
	}
	return nil
}

// Nodes implements manager.Cluster.
func (c *Cluster) Nodes() store.Collection[*machine.Node] { return c.nodes }

// Workload returns access to the pods, the budgets and the volumes of the cluster, for
// drains.Options.
func (c *Cluster) Workload() drains.Workload {
	return drains.Workload{Pods: c.pods, Budgets: c.budgets, Volumes: c.volumes}
}

// VolumeSpec returns the spec of a persistent volume as JSON, or nil if it is not known, or not
// yet.
func (c *Cluster) VolumeSpec(name string) []byte { return c.volumes.spec(name) }

// Synced reports whether all caches were filled once.
func (c *Cluster) Synced() bool {
	for _, i := range c.informers {
		if !i.HasSynced() {
			return false
		}
	}
	return c.nodes.Synced()
}

// Run keeps the caches up to date until ctx ends. Call it once.
func (c *Cluster) Run(ctx context.Context) error {
	var running sync.WaitGroup
	for _, i := range c.informers {
		running.Go(func() { i.RunWithContext(ctx) })
	}
	err := c.nodes.Run(ctx)
	running.Wait()
	return err
}
