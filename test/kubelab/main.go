// Command kubelab runs a real Kubernetes API server for tests. One process has etcd (on a unix socket),
// kube-apiserver, kube-scheduler, and a few controllers of kube-controller-manager. If the program is
// called through a link named etcd, kube-apiserver or kubectl, it is that program, with its usual flags,
// as controller-runtime's envtest expects.
//
//	kubelab --dir=DIR [--controllers=disruption,gc,...] [--user=NAME:GROUP,...] [-- kube-apiserver flags]
//
// When the server is ready, kubelab writes DIR/admin.kubeconfig and one for each --user, and prints a line
// "ready ..." on standard output. It listens on loopback only.
//
// Command ensure, in folder ensure, builds it if needed. NOTES.md describes pitfalls.
package main

import (
	"fmt"
	"os"
	"path/filepath"

	"go.etcd.io/etcd/server/v3/etcdmain"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
)

func main() {
	switch filepath.Base(os.Args[0]) {
	case "etcd":
		etcdmain.Main(os.Args)
		return
	case "kubectl":
		runKubectl()
		return
	case "kube-apiserver":
		if err := app.NewAPIServerCommand().Execute(); err != nil {
			os.Exit(1)
		}
		return
	}
	if err := run(readFlags()); err != nil {
		fmt.Fprintln(os.Stderr, "kubelab:", err)
		os.Exit(1)
	}
}
