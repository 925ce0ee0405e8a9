// Try runs the manager on this computer. It needs neither a cluster nor a provider: it starts an API server on
// loopback, with its state in a temporary folder, installs the custom resource definitions, and runs the
// manager with the simulated provider, a sample deployment and a sample pool until it is interrupted. Then it
// ends everything and removes the folder. It must be run in the repository.
//
//	make try-kubernetes
//
// It has the flags of the command millwright-manager, such as --log-level=warn. The first run on a
// computer builds the server, which takes 5 to 8 minutes. The exit status is that of the manager; it is
// 1 if anything else fails.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"text/template"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	poolsv1alpha1 "github.com/millwright-go/millwright/adapters/kubernetes/api/pools/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/api/v1alpha1"
	"github.com/millwright-go/millwright/adapters/kubernetes/config"
	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/cmd/millwright-manager/internal/trial"
	"github.com/millwright-go/millwright/test/kubernetes/lab"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := try(ctx, os.Args[1:])
	stop()
	app.Exit(err)
}

// controllers is the flag with the controllers that the server runs.
const controllers = "--controllers=gc,disruption,fakekubelet,scheduler,nodelifecycle,replicaset,deployment,namespace"

// namespace is the namespace of the sample objects.
const namespace = "default"

func try(ctx context.Context, args []string) (err error) {
	l, err := lab.Start(controllers, "--pod-startup=500ms")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, l.Stop()) }()
	if err := config.Install(ctx, l.Config); err != nil {
		return err
	}
	if err := sample(ctx, l.Config); err != nil {
		return err
	}
	vms := filepath.Join(l.Dir, "vms")
	if err := guide.Execute(os.Stdout, map[string]string{
		"Kubeconfig": l.Kubeconfig("admin"), "Kubectl": l.KubectlPath(), "VMs": filepath.Join(vms, namespace),
	}); err != nil {
		return err
	}
	p := trial.Program()
	p.Args = append([]string{"--kubeconfig=" + l.Kubeconfig("admin"), "--namespace=" + namespace, "--simulated-dir=" + vms, "--log-format=text"}, args...)
	return p.Run(ctx)
}

// sample creates two classes, a deployment and a pool.
func sample(ctx context.Context, c *rest.Config) error {
	to, err := client.New(c, client.Options{})
	if err != nil {
		return err
	}
	if err := errors.Join(v1alpha1.AddToScheme(to.Scheme()), poolsv1alpha1.AddToScheme(to.Scheme())); err != nil {
		return err
	}
	objects := append(trial.Class(namespace, "small", "s", "join as <<MACHINE_NAME>>"), trial.Class(namespace, "large", "l", "join as <<MACHINE_NAME>>")...)
	for _, o := range append(objects, trial.Deployment(namespace, "web", "small", 3), trial.Pool(namespace, "batch", "small", 2)) {
		if err := to.Create(ctx, o); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("store the sample: %w", err)
		}
	}
	return nil
}

var guide = template.Must(template.New("guide").Parse(`
An API server and the manager run, with a deployment of 3 machines and a
pool of 2. In another terminal:

  export KUBECONFIG={{.Kubeconfig}}
  alias kubectl={{.Kubectl}}
  kubectl get machinedeployments,machinesets,machines,nodes
  kubectl get mwp
  kubectl scale mwp batch --replicas=4
  kubectl get machines --watch
  kubectl scale machinedeployment web --replicas=5
  kubectl patch machinedeployment web --type=merge -p '{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}'
  kubectl events

The VMs are files; to lose one, remove its file:

  ls {{.VMs}}

The manager's metrics, unless a flag has moved them:

  curl http://127.0.0.1:8080/metrics

Ctrl-C ends all of it. The log of the manager:

`))
