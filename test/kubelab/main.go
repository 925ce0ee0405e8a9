// Command kubelab runs a real Kubernetes API server for tests: etcd (embedded, on a unix socket)
// and kube-apiserver in one process, with the few controllers of kube-controller-manager that tests
// need, and kube-scheduler. Under another name ("etcd", "kube-apiserver" or "kubectl", through a
// link) it is that program, with its own flags, as controller-runtime's envtest expects.
//
//	kubelab --dir=DIR [--controllers=disruption,gc,...] [--user=NAME:GROUP,...] [-- kube-apiserver flags]
//
// Once /readyz answers 200 it writes DIR/admin.kubeconfig (and one for each
// --user), and prints one line "ready ..." on standard output. It listens on
// loopback only.
//
// Program ensure, in the folder of that name, builds it if needed. NOTES.md describes pitfalls.
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
