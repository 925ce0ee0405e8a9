package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

const namespace = "bench"

// bench measures the controllers on one API server.
type bench struct {
	log     *slog.Logger
	verbose bool
	server  *lab.Lab
	config  *rest.Config
	client  client.WithWatch
	core    kubernetes.Interface
	writes  writes
	over    []string // measurements that exceeded their limit of writes
}

// prepare installs the custom resource definitions, and creates the namespace and two classes.
func (b *bench) prepare(ctx context.Context, c *rest.Config) (err error) {
	b.config = c
	if err := config.Install(ctx, c); err != nil {
		return err
	}
	types := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(types); err != nil {
		return err
	}
	if err := corev1.AddToScheme(types); err != nil {
		return err
	}
	if b.client, err = client.NewWithWatch(c, client.Options{Scheme: types}); err != nil {
		return err
	}
	if b.core, err = kubernetes.NewForConfig(c); err != nil {
		return err
	}
	if err := b.client.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		return err
	}
	for _, name := range []string{"small", "large"} {
		if err := b.class(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// class creates a class and its secret.
func (b *bench) class(ctx context.Context, name string) error {
	spec, err := json.Marshal(simulated.Spec{Cluster: namespace, Size: name})
	if err != nil {
		return err
	}
	meta := metav1.ObjectMeta{Namespace: namespace, Name: name}
	if err := b.client.Create(ctx, &corev1.Secret{ObjectMeta: meta, Data: map[string][]byte{"userData": []byte("join")}}); err != nil {
		return err
	}
	return b.client.Create(ctx, &v1alpha1.MachineClass{
		ObjectMeta: meta, Provider: simulated.Name, ProviderSpec: runtime.RawExtension{Raw: spec},
		SecretRef: &corev1.SecretReference{Namespace: namespace, Name: name},
	})
}

// manage runs the provider and the controllers until stop is called.
func (b *bench) manage() (stop func() error, err error) {
	folder, err := os.MkdirTemp("", "bench")
	if err != nil {
		return nil, err
	}
	provider, err := simulated.New(simulated.Options{
		Dir: folder, Nodes: b.core, Create: 50 * time.Millisecond, Boot: 500 * time.Millisecond, Delete: 50 * time.Millisecond,
	})
	if err != nil {
		return nil, err
	}
	mgr, err := ctrl.NewManager(b.writes.counted(b.config), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
	})
	if err != nil {
		return nil, err
	}
	err = controllers.SetupWithManager(mgr, controllers.Options{
		Driver: provider, Namespace: namespace, Log: b.log, Metrics: prometheus.NewRegistry(), Workers: 200,
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 2)
	go func() { ended <- mgr.Start(ctx) }()
	go func() {
		_ = provider.Run(ctx)
		ended <- nil
	}()
	return func() error {
		cancel()
		first, second := <-ended, <-ended
		if first == nil {
			first = second
		}
		if err := os.RemoveAll(folder); first == nil {
			first = err
		}
		return first
	}, nil
}

func (b *bench) deployment(replicas int) *v1alpha1.MachineDeployment {
	surge, none := intstr.FromString("20%"), intstr.FromInt32(0)
	labels := map[string]string{"pool": "web"}
	return &v1alpha1.MachineDeployment{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "web"},
		Spec: v1alpha1.MachineDeploymentSpec{
			Replicas: int32(replicas), Selector: &metav1.LabelSelector{MatchLabels: labels}, //nolint:gosec // a flag's
			Strategy: v1alpha1.MachineDeploymentStrategy{
				Type: "RollingUpdate",
				RollingUpdate: &v1alpha1.RollingUpdateMachineDeployment{
					UpdateConfiguration: v1alpha1.UpdateConfiguration{MaxSurge: &surge, MaxUnavailable: &none},
				},
			},
			Template: v1alpha1.MachineTemplateSpec{
				ObjectMeta: metav1.ObjectMeta{Labels: maps.Clone(labels)},
				Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "small"}},
			},
		},
	}
}

// phase is a change of a fleet of n machines whose time and writes are measured.
type phase struct {
	what       string
	n          int
	limit      float64 // in seconds; it is only printed
	perMachine int     // the limit of writes to machines and nodes, per machine
	rolls      bool
	change     func(context.Context) error
	// wanted reports whether the change is complete. Nil: it is once the deployment and all machines and
	// nodes are gone.
	wanted func(*v1alpha1.MachineDeployment) bool
}

// phases returns the creation, a rollout and the deletion of a fleet of n machines.
func (b *bench) phases(n int) []phase {
	d := b.deployment(n)
	large := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`))
	return []phase{
		{fmt.Sprintf("%d machines created", n), n, 2.5, 6, false, func(ctx context.Context) error { return b.client.Create(ctx, d.DeepCopy()) }, b.available(n)},
		{fmt.Sprintf("%d rolled, surge 20%%", n), n, 8, 19, true, func(ctx context.Context) error { return b.client.Patch(ctx, d.DeepCopy(), large) }, b.available(n)},
		{fmt.Sprintf("%d deleted", n), n, 3, 11, false, func(ctx context.Context) error { return b.client.Delete(ctx, d.DeepCopy()) }, nil},
	}
}

// life measures the creation, a rollout and the deletion of a fleet of n machines.
func (b *bench) life(ctx context.Context, n int) error {
	stop, err := b.manage()
	if err != nil {
		return err
	}
	for _, p := range b.phases(n) {
		if err = b.measure(ctx, &p); err != nil {
			break
		}
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	return err
}

// creation measures the creation of a fleet of n machines, and deletes it.
func (b *bench) creation(ctx context.Context, n int, limit float64) error {
	stop, err := b.manage()
	if err != nil {
		return err
	}
	p := b.phases(n)[0]
	p.limit = limit
	if err = b.measure(ctx, &p); err == nil {
		err = b.deleteAndWait(ctx, b.deployment(n))
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	return err
}

// rest measures the processor time and calls of a fleet of n machines in which nothing changes.
func (b *bench) rest(ctx context.Context, n int, quiet time.Duration) error {
	stop, err := b.manage()
	if err != nil {
		return err
	}
	p := b.phases(n)[0]
	p.limit = 0
	if err = b.measure(ctx, &p); err == nil {
		pause(ctx, 15*time.Second) // until the last reconciles have ended
		b.writes.take()
		before := processorTime()
		pause(ctx, quiet)
		used := (processorTime() - before).Seconds() / quiet.Seconds()
		fmt.Printf("%-28s %7.2f%% of a core (limit 2%%); calls: %v\n", fmt.Sprintf("%d settled", n), 100*used, b.writes.take())
	}
	if stopped := stop(); err == nil {
		err = stopped
	}
	return err
}

// available returns a function that reports whether a deployment has n machines, all of them updated and
// available.
func (b *bench) available(n int) func(*v1alpha1.MachineDeployment) bool {
	return func(d *v1alpha1.MachineDeployment) bool {
		s := d.Status
		return d.DeletionTimestamp == nil && s.ObservedGeneration >= d.Generation && s.Replicas == int32(n) && //nolint:gosec // a flag's
			s.UpdatedReplicas == s.Replicas && s.AvailableReplicas == s.Replicas
	}
}

// slack is how much writes per machine may exceed their limit, because a write may be repeated after a
// conflict.
const slack = 0.5

// timed makes a change and returns how many seconds it took. Then it waits until no machine is being
// deleted any more, which does not count.
func (b *bench) timed(ctx context.Context, p *phase) (seconds float64, err error) {
	started := time.Now()
	if err := p.change(ctx); err != nil {
		return 0, err
	}
	if err := b.wait(ctx, p.wanted); err != nil {
		return 0, fmt.Errorf("%s: %w", p.what, err)
	}
	seconds = time.Since(started).Seconds()
	if err := b.quiet(ctx); err != nil {
		return 0, fmt.Errorf("%s: %w", p.what, err)
	}
	return seconds, nil
}

// measure prints the time and the writes of a change.
func (b *bench) measure(ctx context.Context, p *phase) error {
	b.writes.take()
	seconds, err := b.timed(ctx, p)
	if err != nil {
		return err
	}
	counts := b.writes.take()
	each := func(kinds ...string) (sum float64) {
		for _, kind := range kinds {
			sum += float64(counts[kind]) / float64(p.n)
		}
		return sum
	}
	own := each("machines", "nodes")
	fmt.Printf("%-28s %8.2f %8.1f   %.2f (%d), %.2f\n", p.what, seconds, p.limit,
		own, p.perMachine, each("machinesets", "machinedeployments"))
	if own > float64(p.perMachine)+slack {
		b.over = append(b.over, p.what)
	}
	if b.verbose {
		for _, kind := range slices.Sorted(maps.Keys(counts)) {
			fmt.Printf("    %-24s %d\n", kind, counts[kind])
		}
	}
	return nil
}

// wait waits until wanted reports true for the deployment; if wanted is nil, until everything is gone.
func (b *bench) wait(ctx context.Context, wanted func(*v1alpha1.MachineDeployment) bool) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		d := &v1alpha1.MachineDeployment{}
		err := b.client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "web"}, d)
		switch {
		case err == nil && wanted != nil && wanted(d):
			return nil
		case client.IgnoreNotFound(err) != nil:
			return err
		case err != nil && wanted == nil:
			return b.empty(ctx)
		}
		pause(ctx, 20*time.Millisecond)
	}
	return ctx.Err()
}

// quiet waits until no machine is being deleted.
func (b *bench) quiet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Minute)
	defer cancel()
	for ctx.Err() == nil {
		list := &v1alpha1.MachineList{}
		if err := b.client.List(ctx, list, client.InNamespace(namespace)); err != nil {
			return err
		}
		if !slices.ContainsFunc(list.Items, func(m v1alpha1.Machine) bool { return m.DeletionTimestamp != nil }) {
			return nil
		}
		pause(ctx, 50*time.Millisecond)
	}
	return ctx.Err()
}

// empty waits until there is no machine and no node.
func (b *bench) empty(ctx context.Context) error {
	for ctx.Err() == nil {
		list := &v1alpha1.MachineList{}
		if err := b.client.List(ctx, list, client.InNamespace(namespace), client.Limit(1)); err != nil {
			return err
		}
		nodes, err := b.core.CoreV1().Nodes().List(ctx, metav1.ListOptions{Limit: 1})
		if err != nil {
			return err
		}
		if len(list.Items)+len(nodes.Items) == 0 {
			return nil
		}
		pause(ctx, 20*time.Millisecond)
	}
	return ctx.Err()
}

// deleteAndWait deletes a deployment, and waits until there is no machine and no node.
func (b *bench) deleteAndWait(ctx context.Context, d *v1alpha1.MachineDeployment) error {
	if err := b.client.Delete(ctx, d); err != nil {
		return err
	}
	return b.wait(ctx, nil)
}

func pause(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// processorTime returns the processor time that this process has used.
func processorTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
