package main

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
)

// recorder is a proxy of the server that records requests.
type recorder struct {
	kubeconfig string
	mu         sync.Mutex
	paths      map[string][]string // by method
}

func newRecorder(t *testing.T) *recorder {
	t.Helper()
	r := &recorder{paths: map[string][]string{}, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	to, err := url.Parse(server.Config.Host)
	require.NoError(t, err)
	proxy := httputil.NewSingleHostReverseProxy(to)
	proxy.FlushInterval = -1
	proxy.Transport, err = rest.TransportFor(server.Config)
	require.NoError(t, err)
	front := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, in *http.Request) {
		r.mu.Lock()
		r.paths[in.Method] = append(r.paths[in.Method], in.URL.Path)
		r.mu.Unlock()
		proxy.ServeHTTP(out, in)
	}))
	t.Cleanup(func() {
		front.CloseClientConnections()
		front.Close()
	})
	c := clientcmdapi.NewConfig()
	c.Clusters["c"] = &clientcmdapi.Cluster{Server: front.URL}
	c.Contexts["c"] = &clientcmdapi.Context{Cluster: "c"}
	c.CurrentContext = "c"
	require.NoError(t, clientcmd.WriteToFile(*c, r.kubeconfig))
	return r
}

// writes returns the paths of requests that change something.
func (r *recorder) writes() (paths []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for method, of := range r.paths {
		if method != http.MethodGet {
			paths = append(paths, of...)
		}
	}
	return paths
}

// reported reports whether the log says what would be done about a deployment.
func (p *process) reported(w *fixture, deployment string) bool {
	for line := range strings.Lines(p.out.String()) {
		if strings.Contains(line, "not done in a dry run") && strings.Contains(line, `"object":"`+w.namespace+"/"+deployment+`"`) {
			return true
		}
	}
	return false
}

// TestDryRun: with --dry-run the manager logs the changes that a fleet needs. It writes nothing to the
// server, not even a lease or events, and creates and deletes no VM.
func TestDryRun(t *testing.T) {
	t.Parallel()
	w := newFixture(t)
	w.create(trial.Class(w.namespace, "small", "s", "x")...)
	w.create(trial.Class(w.namespace, "large", "l", "x")...)
	w.create(trial.Deployment(w.namespace, "web", "small", 2))
	first := w.manage()
	w.eventually("two machines", w.settled("web", 2))
	require.Equal(t, app.StatusDone, first.stop(t))
	w.patch("web", `{"spec":{"replicas":4,"template":{"spec":{"class":{"name":"large"}}}}}`)
	w.create(trial.Deployment(w.namespace, "new", "small", 3), &v1alpha1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "odd"}, // of a class that does not exist
		Spec:       v1alpha1.MachineSpec{Class: v1alpha1.ClassSpec{Kind: "MachineClass", Name: "none"}},
	})
	before, vms := w.objects(), w.vms()

	proxy := newRecorder(t)
	metrics := address(t)
	p := w.manage("--dry-run", "--kubeconfig="+proxy.kubeconfig, "--metrics-bind-address="+metrics)
	w.eventually("log entries about both deployments and the machine", func() bool {
		return p.reported(w, "web") && p.reported(w, "new") && strings.Contains(p.out.String(), w.namespace+"/odd")
	})
	resp, err := http.Get("http://" + metrics + "/metrics")
	require.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, errors.Join(err, resp.Body.Close()))
	require.Regexp(t, `millwright_dry_run_total\{kind="deployment",reason="[A-Za-z]+"\} [1-9]`, string(body))
	require.Equal(t, app.StatusDone, p.stop(t))
	require.Empty(t, proxy.writes())
	require.Equal(t, before, w.objects())
	require.Equal(t, vms, w.vms())

	// Without --dry-run the recorder sees writes.
	q := w.manage("--kubeconfig=" + proxy.kubeconfig)
	w.eventually("the rollout to end", w.settled("web", 4))
	require.NotEmpty(t, proxy.writes())
	require.Equal(t, app.StatusDone, q.stop(t))
}
