// Package examples_test has the Go code of docs/how-to/kubernetes.md, so that the code is compiled and
// tested.
package examples_test

import (
	"context"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/millwright-go/millwright/adapters/kubernetes/controllers"
	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
	"github.com/millwright-go/millwright/decision"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// shortest is the main function of a provider without settings.
func shortest(myDriver driver.Driver) {
	app.Exit(app.Run(context.Background(), myDriver))
}

// withSettings is the main function of a provider with settings.
func withSettings() {
	settings := &struct {
		AcmeRegion string `group:"Acme" required:"" help:"Region of the VMs."`
	}{}
	app.Exit(app.Program{
		Name:     "machine-manager-acme",
		About:    "Manages machines at Acme.",
		Settings: settings,
		Driver: func(c app.Clusters) (driver.Driver, error) {
			if !strings.HasPrefix(settings.AcmeRegion, "acme-") {
				return nil, fmt.Errorf("%w: acme-region: there is no region %q", app.ErrSettings, settings.AcmeRegion)
			}
			return newDriver(settings.AcmeRegion, c.Log), nil
		},
	}.Run(context.Background()))
}

// embedded runs the controllers in the provider's own controller-runtime manager.
func embedded(ctx context.Context, cluster *rest.Config, serving metricsserver.Options, myDriver driver.Driver) error {
	mgr, err := ctrl.NewManager(cluster, ctrl.Options{
		Metrics:        serving,
		LeaderElection: true, LeaderElectionID: "my-manager", LeaderElectionNamespace: "machines",
		LeaderElectionReleaseOnCancel: true,
	})
	if err != nil {
		return err
	}
	policy := machine.DefaultPolicy()
	policy.HealthTimeout = 5 * time.Minute
	err = controllers.SetupWithManager(mgr, controllers.Options{
		Driver: myDriver, Namespace: "machines", MachinePolicy: policy,
		Hooks: manager.Hooks{Transition: func(machine object.Key, move machine.Move, why decision.Why) {
			mgr.GetLogger().Info("step", "machine", machine, "to", move.To, "why", why.String())
		}},
	})
	if err != nil {
		return err
	}
	return mgr.Start(ctx)
}

func newDriver(string, *slog.Logger) driver.Driver { return nil }
