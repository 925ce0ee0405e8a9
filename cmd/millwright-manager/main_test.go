package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

// server is the API server of all tests here.
var server *lab.Lab

// asManager is the environment variable that makes this test program run as the command.
const asManager = "TEST_AS_MANAGER"

func TestMain(m *testing.M) {
	if os.Getenv(asManager) != "" {
		main()
	}
	os.Exit(lab.Main(m, func(l *lab.Lab) error {
		server = l
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		return config.Install(ctx, l.Config)
	}, "--controllers=gc,namespace"))
}

// process is a running command.
type process struct {
	*exec.Cmd
	out, errs *output
	ended     chan struct{}
	status    int // valid after ended is closed; -1: killed
}

// output collects what a process writes.
type output struct {
	mu      sync.Mutex
	written bytes.Buffer // not embedded, because its ReadFrom would bypass the lock
}

// Write implements io.Writer.
func (w *output) Write(b []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.Write(b)
}

// String returns all that was written so far.
func (w *output) String() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.written.String()
}

// start starts the command, with env and little else in its environment. It is killed at the end of the
// test.
func start(t *testing.T, env []string, args ...string) *process {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &process{Cmd: exec.Command(self, args...), out: &output{}, errs: &output{}, ended: make(chan struct{})}
	p.Env = append([]string{asManager + "=1", "PATH=" + os.Getenv("PATH"), "GORACE=halt_on_error=1"}, env...)
	p.Stdout, p.Stderr = p.out, p.errs
	require.NoError(t, p.Start())
	go func() {
		defer close(p.ended)
		var exit *exec.ExitError
		if err := p.Wait(); errors.As(err, &exit) {
			p.status = exit.ExitCode()
		}
	}()
	t.Cleanup(func() {
		_ = p.Process.Kill()
		<-p.ended
		if t.Failed() {
			t.Logf("--- standard output\n%s\n--- standard error\n%s", tail(p.out.String()), tail(p.errs.String()))
		}
	})
	return p
}

func tail(s string) string { return s[max(0, len(s)-6000):] }

// end waits for the end of the process, and returns the exit status.
func (p *process) end(t *testing.T) int {
	t.Helper()
	select {
	case <-p.ended:
		return p.status
	case <-time.After(patience):
		require.Fail(t, "the command does not end")
		return -1
	}
}

// stop sends SIGTERM, as a kubelet does, and returns the exit status.
func (p *process) stop(t *testing.T) int {
	t.Helper()
	require.NoError(t, p.Process.Signal(syscall.SIGTERM))
	return p.end(t)
}

// logged returns the entries of the log with a message.
func (p *process) logged(t *testing.T, message string) (entries []map[string]any) {
	t.Helper()
	for line := range strings.Lines(p.out.String()) {
		entry := map[string]any{}
		if json.Unmarshal([]byte(line), &entry) == nil && entry["msg"] == message {
			entries = append(entries, entry)
		}
	}
	return entries
}

// fixture is the namespace of one test, with its VMs.
type fixture struct {
	*testing.T
	namespace string
	dir       string // of the VMs
	client    client.Client
	core      kubernetes.Interface
}

var fixtures atomic.Int64

func newFixture(t *testing.T) *fixture {
	t.Helper()
	w := &fixture{T: t, namespace: fmt.Sprintf("w%d", fixtures.Add(1)), dir: t.TempDir()}
	var err error
	w.core, err = kubernetes.NewForConfig(server.Config)
	require.NoError(t, err)
	_, err = w.core.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}, metav1.CreateOptions{})
	require.NoError(t, err)
	types := runtime.NewScheme() // not the global scheme, which other tests use at the same time
	require.NoError(t, errors.Join(corev1.AddToScheme(types), v1alpha1.AddToScheme(types), poolsv1alpha1.AddToScheme(types)))
	w.client, err = client.New(server.Config, client.Options{Scheme: types})
	require.NoError(t, err)
	return w
}

func (w *fixture) create(objects ...client.Object) {
	w.Helper()
	for _, o := range objects {
		require.NoError(w, w.client.Create(w.Context(), o))
	}
}

// kubeconfig returns the path of the administrator's kubeconfig.
func kubeconfig() string { return filepath.Join(server.Dir, "admin.kubeconfig") }

// args returns flags for the test's namespace and VMs, followed by more.
func (w *fixture) args(more ...string) []string {
	return append([]string{
		"--kubeconfig=" + kubeconfig(), "--namespace=" + w.namespace, "--simulated-dir=" + w.dir, "--metrics-bind-address=", "--health-bind-address=",
		"--simulated-create=50ms", "--simulated-boot=200ms", "--simulated-delete=50ms",
	}, more...)
}

// manage starts the command with args(more...).
func (w *fixture) manage(more ...string) *process {
	w.Helper()
	return start(w.T, nil, w.args(more...)...)
}

func (w *fixture) eventually(what string, holds func() bool) {
	w.Helper()
	within(w.T, patience, what, holds)
}

// within waits until holds returns true, no longer than limit.
func within(t *testing.T, limit time.Duration, what string, holds func() bool) {
	t.Helper()
	require.True(t, lab.Await(limit, holds), "not within the limit: %s", what)
}

// settled returns a function that reports whether a deployment has this many machines, all updated and
// available.
func (w *fixture) settled(name string, replicas int32) func() bool {
	return func() bool {
		d := &v1alpha1.MachineDeployment{}
		require.NoError(w, w.client.Get(w.Context(), client.ObjectKey{Namespace: w.namespace, Name: name}, d))
		s := d.Status
		return s.ObservedGeneration >= d.Generation && s.AvailableReplicas == replicas && s.UpdatedReplicas == replicas && s.Replicas == replicas
	}
}

func (w *fixture) patch(name, patch string) {
	w.Helper()
	d := trial.Deployment(w.namespace, name, "", 0)
	require.NoError(w, w.client.Patch(w.Context(), d, client.RawPatch("application/merge-patch+json", []byte(patch))))
}

// objects returns all objects of the test as JSON.
func (w *fixture) objects() (texts []string) {
	w.Helper()
	for _, list := range []client.ObjectList{
		&v1alpha1.MachineList{}, &v1alpha1.MachineSetList{}, &v1alpha1.MachineDeploymentList{}, &v1alpha1.MachineClassList{}, &corev1.SecretList{},
	} {
		require.NoError(w, w.client.List(w.Context(), list, client.InNamespace(w.namespace)))
		text, err := json.Marshal(list)
		require.NoError(w, err)
		texts = append(texts, regexp.MustCompile(`"metadata":\{"resourceVersion":"[0-9]+"\}`).ReplaceAllString(string(text), ""))
	}
	return texts
}

// vms returns the names of the VMs of the test.
func (w *fixture) vms() (names []string) {
	w.Helper()
	entries, err := os.ReadDir(filepath.Join(w.dir, w.namespace))
	if !errors.Is(err, fs.ErrNotExist) {
		require.NoError(w, err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// leader returns the holder of the lease, or "".
func (w *fixture) leader() string {
	w.Helper()
	lease, err := w.core.CoordinationV1().Leases(w.namespace).Get(w.Context(), "millwright-manager", metav1.GetOptions{})
	if err != nil || lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

// leaseKept reports whether the lease has a finalizer, so that it stays when its namespace is deleted.
func (w *fixture) leaseKept() bool {
	w.Helper()
	lease, err := w.core.CoordinationV1().Leases(w.namespace).Get(w.Context(), "millwright-manager", metav1.GetOptions{})
	return err == nil && slices.Contains(lease.Finalizers, controllers.LeaseFinalizer)
}

// address returns a free address on loopback.
func address(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, l.Close()) }()
	return l.Addr().String()
}
