package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/klog/v2"
)

// run runs everything until a signal ends it, or a part fails.
func run(o *options) error {
	start := time.Now()
	ctx, cancel := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer cancel()
	if o.stdin {
		go func() { _, _ = io.Copy(io.Discard, os.Stdin); cancel() }()
	}
	tmp, err := os.MkdirTemp("", "kl") // a short name: the path of a unix socket may have 107 bytes
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	if err := prepare(o, tmp); err != nil {
		return err
	}
	store, err := startEtcd(ctx, o, tmp)
	if err != nil {
		return fmt.Errorf("etcd: %w", err)
	}
	defer store.Close()
	etcdReady := time.Since(start)

	apiErr := make(chan error, 1)
	cfg, err := serve(ctx, o, tmp, apiErr)
	if err != nil {
		return err
	}
	ready := time.Since(start)
	if err := startControllers(ctx, cfg, o); err != nil {
		return err
	}
	fmt.Printf("ready server=%s kubeconfig=%s etcd=%dms readyz=%dms\n",
		cfg.Host, filepath.Join(o.dir, "admin.kubeconfig"), etcdReady.Milliseconds(), ready.Milliseconds())
	return wait(ctx, apiErr, store.Err())
}

// prepare creates the state directory, and opens the log in it.
func prepare(o *options, tmp string) error {
	if o.dir == "" {
		o.dir = tmp
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return err
	}
	log, err := os.Create(filepath.Join(o.dir, "kubelab.log"))
	if err != nil {
		return err
	}
	flags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(flags)
	if err := flags.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL", "-one_output=true"}); err != nil {
		return err
	}
	klog.SetOutput(log)
	return nil
}

// serve starts the API server, waits until it is ready, and returns the administrator's access.
func serve(ctx context.Context, o *options, tmp string, apiErr chan<- error) (*rest.Config, error) {
	ca, err := writeServingCerts(o.dir)
	if err != nil {
		return nil, err
	}
	tokens, err := writeTokens(o)
	if err != nil {
		return nil, err
	}
	ln, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", o.port))
	if err != nil {
		return nil, err
	}
	failed := make(chan error, 1)
	if err := startAPIServer(ctx, ln, serverFlags(o, tmp), failed); err != nil {
		return nil, fmt.Errorf("kube-apiserver: %w", err)
	}
	cfg := &rest.Config{
		Host: "https://" + ln.Addr().String(), BearerToken: tokens["admin"],
		TLSClientConfig: rest.TLSClientConfig{CAData: ca}, QPS: -1,
	}
	if err := waitReady(ctx, cfg, o.timeout, failed); err != nil {
		return nil, err
	}
	go func() { apiErr <- <-failed }()
	return cfg, writeKubeconfigs(o.dir, cfg, tokens)
}

// writeKubeconfigs writes a kubeconfig for each user.
func writeKubeconfigs(dir string, cfg *rest.Config, tokens map[string]string) error {
	var failed error
	for name, token := range tokens {
		kc := clientcmdapi.NewConfig()
		kc.Clusters["kubelab"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
		kc.AuthInfos[name] = &clientcmdapi.AuthInfo{Token: token}
		kc.Contexts["kubelab"] = &clientcmdapi.Context{Cluster: "kubelab", AuthInfo: name}
		kc.CurrentContext = "kubelab"
		failed = errors.Join(failed, clientcmd.WriteToFile(*kc, filepath.Join(dir, name+".kubeconfig")))
	}
	return failed
}

// wait waits until the server has ended. The error is nil if a signal has ended it.
func wait(ctx context.Context, apiErr, etcdErr <-chan error) error {
	select {
	case err := <-apiErr:
		if ctx.Err() == nil {
			return fmt.Errorf("kube-apiserver stopped: %w", err)
		}
		return nil
	case err := <-etcdErr:
		return fmt.Errorf("etcd: %w", err)
	case <-ctx.Done():
	}
	select { // wait for running requests, but not for long
	case <-apiErr:
	case <-time.After(5 * time.Second):
	}
	return nil
}
