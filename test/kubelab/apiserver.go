package main

import (
	"context"
	"fmt"
	"net"
	"path/filepath"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	logsapi "k8s.io/component-base/logs/api/v1"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	serveroptions "k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

// serverFlags returns the flags of kube-apiserver.
func serverFlags(o *options, tmp string) []string {
	in := func(file string) string { return filepath.Join(o.dir, file) }
	etcd := socket(tmp)
	return append([]string{
		"--etcd-servers=unix://" + etcd.Path,
		"--bind-address=127.0.0.1",
		"--advertise-address=127.0.0.1",
		"--endpoint-reconciler-type=none", // 127.0.0.1 is no valid endpoint address
		"--service-cluster-ip-range=10.0.0.0/24",
		"--tls-cert-file=" + in("apiserver.crt"),
		"--tls-private-key-file=" + in("apiserver.key"),
		"--service-account-issuer=https://kubelab.test",
		"--service-account-key-file=" + in("sa.key"),
		"--service-account-signing-key-file=" + in("sa.key"),
		"--authorization-mode=" + o.authz,
		"--token-auth-file=" + in("tokens.csv"),
		"--disable-admission-plugins=ServiceAccount", // no controller creates the "default" accounts
		"--allow-privileged=true",
		"--profiling=false",
	}, o.server...)
}

// startAPIServer starts kube-apiserver in this process. Its error is sent to ended.
func startAPIServer(ctx context.Context, ln net.Listener, args []string, ended chan<- error) error {
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	rest.SetDefaultWarningHandler(rest.NoWarnings{})
	s := serveroptions.NewServerRunOptions()
	s.SecureServing.Listener = ln
	s.SecureServing.BindPort = ln.Addr().(*net.TCPAddr).Port
	fs := pflag.NewFlagSet("kube-apiserver", pflag.ContinueOnError)
	for _, f := range s.Flags().FlagSets {
		fs.AddFlagSet(f)
	}
	if err := fs.Parse(args); err != nil {
		return err
	}
	if err := s.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return err
	}
	completed, err := s.Complete(ctx)
	if err != nil {
		return err
	}
	if errs := completed.Validate(); len(errs) != 0 {
		return utilerrors.NewAggregate(errs)
	}
	go func() { ended <- app.Run(ctx, completed) }()
	return nil
}

// waitReady waits until /readyz of the API server answers 200.
func waitReady(ctx context.Context, cfg *rest.Config, timeout time.Duration, apiErr <-chan error) error {
	cs, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		return err
	}
	deadline := time.Now().Add(timeout)
	for {
		body, err := cs.Discovery().RESTClient().Get().AbsPath("/readyz").Param("verbose", "").DoRaw(ctx)
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("not ready after %s: %w\n%s", timeout, err, body)
		}
		select {
		case err := <-apiErr:
			return fmt.Errorf("kube-apiserver stopped: %w", err)
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(20 * time.Millisecond):
		}
	}
}
