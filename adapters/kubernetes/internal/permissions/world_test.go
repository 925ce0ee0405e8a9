package permissions

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/machinepool"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// world is a fleet in its own namespace, and an account with the permissions of the manifests, except
// for one.
type world struct {
	*testing.T
	namespace string
	lacks     permission
	admin     client.Client
	core      kubernetes.Interface
	account   *rest.Config
	ended     chan error // the error that ended the manager
}

var worlds atomic.Int64

func newWorld(t *testing.T, lacks permission) *world {
	t.Helper()
	w := &world{T: t, namespace: fmt.Sprintf("fleet-%d", worlds.Add(1)), lacks: lacks, ended: make(chan error, 1)}
	var err error
	w.core, err = kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	w.admin, err = client.New(server.Config, client.Options{})
	require.NoError(t, err)
	require.NoError(t, w.admin.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}))
	given := w.permit()
	w.login()
	w.await(given)
	return w
}

// permit applies the manifests, without the permission that is to be missing and renamed for this
// world. It returns the permissions.
func (w *world) permit() (given []permission) {
	w.Helper()
	for _, o := range manifests(w.T) {
		rules, place := rulesOf(w.T, o)
		if place != "" {
			var remaining []any
			for i := range rules {
				for _, l := range split(&rules[i], place) {
					if l == w.lacks {
						continue
					}
					given = append(given, l)
					r := l.rule()
					remaining = append(remaining, plainRule(r.APIGroups, r.Resources, r.Verbs, r.ResourceNames))
				}
			}
			o.Object["rules"] = remaining
		}
		w.rename(o)
		require.NoError(w, w.admin.Create(w.Context(), o))
		w.Cleanup(func() { _ = w.admin.Delete(context.Background(), o) })
	}
	return given
}

func plainRule(groups, resources, verbs, names []string) map[string]any {
	r := map[string]any{"apiGroups": plain(groups), "resources": plain(resources), "verbs": plain(verbs)}
	if len(names) > 0 {
		r["resourceNames"] = plain(names)
	}
	return r
}

func plain(texts []string) (all []any) {
	for _, text := range texts {
		all = append(all, text)
	}
	return all
}

// rename moves an object to the world's namespace. An object without a namespace, or in kube-system,
// gets a unique name instead.
func (w *world) rename(o *unstructured.Unstructured) {
	suffix := ""
	switch o.GetNamespace() {
	case "", system:
		suffix = "-" + w.namespace
		o.SetName(o.GetName() + suffix)
	default:
		o.SetNamespace(w.namespace)
	}
	if name, found, _ := unstructured.NestedString(o.Object, "roleRef", "name"); found {
		require.NoError(w, unstructured.SetNestedField(o.Object, name+suffix, "roleRef", "name"))
	}
	subjects, found, _ := unstructured.NestedSlice(o.Object, "subjects")
	if found {
		for i := range subjects {
			subjects[i].(map[string]any)["namespace"] = w.namespace
		}
		require.NoError(w, unstructured.SetNestedSlice(o.Object, subjects, "subjects"))
	}
}

// login gets a token of the account, as a pod would have it.
func (w *world) login() {
	w.Helper()
	token, err := w.core.CoreV1().ServiceAccounts(w.namespace).CreateToken(w.Context(), "millwright-manager", &authenticationv1.TokenRequest{}, metav1.CreateOptions{})
	require.NoError(w, err)
	w.account = rest.AnonymousClientConfig(server.Config)
	w.account.BearerToken, w.account.QPS = token.Status.Token, -1
}

// await waits until the server grants all permissions.
func (w *world) await(given []permission) {
	w.Helper()
	for _, l := range given {
		resource, sub, _ := strings.Cut(l.resource, "/")
		about := &authorizationv1.ResourceAttributes{Verb: l.verb, Group: l.group, Resource: resource, Subresource: sub, Name: l.name}
		switch l.place {
		case control:
			about.Namespace = w.namespace
		case system:
			about.Namespace = system
		}
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{User: user(w.namespace), ResourceAttributes: about}}
		eventually(w.T, "permission to "+l.String(), func() bool {
			answer, err := w.core.AuthorizationV1().SubjectAccessReviews().Create(w.Context(), review, metav1.CreateOptions{})
			require.NoError(w, err)
			return answer.Status.Allowed
		})
	}
}

// manage runs a simulated provider, and the controllers with the account, until stop is called.
func (w *world) manage() (stop func()) {
	w.Helper()
	provider, err := simulated.New(simulated.Options{
		Dir: w.TempDir(), Nodes: w.core, Create: 10 * time.Millisecond, Boot: 50 * time.Millisecond, Delete: 10 * time.Millisecond, Period: 200 * time.Millisecond,
		Heartbeat: 5 * time.Second, // the cluster marks a node as not ready after 40 s without a heartbeat
	})
	require.NoError(w, err)
	term, deadline, period := 20*time.Second, 15*time.Second, 300*time.Millisecond
	mgr, err := ctrl.NewManager(rest.CopyConfig(w.account), ctrl.Options{
		Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0",
		LeaderElection: true, LeaderElectionID: "millwright-manager", LeaderElectionNamespace: w.namespace, LeaderElectionReleaseOnCancel: true,
		LeaseDuration: &term, RenewDeadline: &deadline, RetryPeriod: &period,
	})
	require.NoError(w, err)
	pools := machinepool.DefaultPolicy()
	pools.Period, pools.Poll = time.Second, time.Second
	require.NoError(w, controllers.SetupWithManager(mgr, controllers.Options{
		PoolDriver: provider, PoolPolicy: pools,
		Driver: provider, Namespace: w.namespace, Lease: controllers.Lease{Namespace: w.namespace, Name: "millwright-manager"}, Metrics: prometheus.NewRegistry(),
		Log: slog.New(slog.NewTextHandler(logged, nil)),
	}))
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { _ = provider.Run(ctx) })
	running.Go(func() { w.ended <- mgr.Start(ctx) })
	stop = sync.OnceFunc(func() {
		cancel()
		running.Wait()
	})
	w.Cleanup(stop)
	return stop
}

// refused reports whether the log, or the status of a machine, names the missing permission.
func (w *world) refused() bool {
	w.Helper()
	if w.lacks == (permission{}) {
		return false
	}
	text := w.lacks.refusal(w.namespace)
	return len(logged.with(text, w.namespace)) > 0 ||
		slices.ContainsFunc(w.machines(), func(m v1alpha1.Machine) bool { return strings.Contains(m.Status.LastOperation.Description, text) })
}

// refusals returns the log lines about refused requests, except for those of the missing permission.
func (w *world) refusals() []string {
	return slices.DeleteFunc(logged.with(fmt.Sprintf("User %q cannot", user(w.namespace))), func(line string) bool {
		return w.lacks != (permission{}) && strings.Contains(line, w.lacks.refusal(w.namespace))
	})
}
