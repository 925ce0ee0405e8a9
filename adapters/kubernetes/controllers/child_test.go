package controllers_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/test/kubernetes/simulated"
)

// childEnv is the environment variable that makes the test program run as a manager (see child). Its
// value is "KUBECONFIG FOLDER NAMESPACE", with the folder of the simulated provider.
const childEnv = "CONTROLLERS_TEST_CHILD"

// runChild runs a manager until the process is told to end. fleet is the value of childEnv.
func runChild(fleet string) error {
	var kubeconfig, folder, namespace string
	if _, err := fmt.Sscan(fleet, &kubeconfig, &folder, &namespace); err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return err
	}
	config.QPS = -1
	core, err := kubernetes.NewForConfig(config)
	if err != nil {
		return err
	}
	o := quick
	o.Dir, o.Nodes = folder, core
	provider, err := simulated.New(o)
	if err != nil {
		return err
	}
	log := slog.New(slog.NewTextHandler(os.Stderr, nil))
	ctrl.SetLogger(logr.FromSlogHandler(log.Handler()))
	mgr, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}, HealthProbeBindAddress: "0"})
	if err != nil {
		return err
	}
	options := controllers.Options{Driver: provider, Namespace: namespace, Log: log, PoolDriver: provider, PoolPolicy: quickPools()}
	if err := controllers.SetupWithManager(mgr, options); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	go func() { // ends with the test, which holds the other end of stdin
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	go func() { _ = provider.Run(ctx) }()
	return mgr.Start(ctx)
}

// child is a manager in its own process.
type child struct {
	*world
	cmd   *exec.Cmd
	stdin io.Closer
	log   *os.File
}

func (w *world) child() *child {
	w.Helper()
	c := &child{world: w, cmd: exec.Command(os.Args[0])}
	c.cmd.Env = append(os.Environ(), childEnv+"="+filepath.Join(server.Dir, "admin.kubeconfig")+" "+w.folder+" "+w.namespace)
	var err error
	c.stdin, err = c.cmd.StdinPipe()
	require.NoError(w, err)
	c.log, err = os.Create(filepath.Join(w.TempDir(), "log"))
	require.NoError(w, err)
	c.cmd.Stderr = c.log
	require.NoError(w, c.cmd.Start())
	w.Cleanup(func() {
		_ = c.stdin.Close()
		_ = c.cmd.Wait() // fails if kill has waited already
		_ = c.log.Close()
	})
	return c
}

// kill ends the process by SIGKILL.
func (c *child) kill() {
	c.Helper()
	require.NoError(c, c.cmd.Process.Kill())
	var status *exec.ExitError
	require.ErrorAs(c, c.cmd.Wait(), &status)
	require.Equal(c, syscall.SIGKILL, status.Sys().(syscall.WaitStatus).Signal(), "the manager had ended before: %s", c.tail())
}

// tail returns the end of the process's log.
func (c *child) tail() string {
	text, _ := os.ReadFile(c.log.Name())
	return string(text[max(0, len(text)-2000):])
}
