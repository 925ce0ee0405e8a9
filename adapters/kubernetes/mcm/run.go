package mcm

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	ctrlmetrics "sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/millwright-go/millwright/adapters/kubernetes/app"
)

// Run is app.Run for a provider of machine-controller-manager, of release 0.53
// or later. It serves the provider's own metrics too. An error is for app.Exit.
func Run[
	M, C any, CQ, IQ, DQ, SQ machineRequest[M, C], LQ listRequest[C], VQ volumesRequest,
	CR made, IR, SR found, DR deleted, LR listed, VR identified,
](ctx context.Context, d provider[CQ, CR, IQ, IR, DQ, DR, SQ, SR, LQ, LR, VQ, VR]) error {
	if d == nil {
		return errors.New("there is no provider")
	}
	if err := RegisterMetrics(); err != nil {
		return err
	}
	return app.Run(ctx, Driver(d.CreateMachine, d.InitializeMachine, d.DeleteMachine, d.GetMachineStatus, d.ListMachines, d.GetVolumeIDs))
}

// RegisterMetrics has the manager serve what is, and will be, in the default
// registry of Prometheus, where providers count their calls. Metrics of the Go
// runtime and of the process are taken out of that registry: the manager has its
// own. Called again, it changes nothing.
func RegisterMetrics() error {
	theirs, ok := prometheus.DefaultRegisterer.(*prometheus.Registry)
	if !ok || ctrlmetrics.Registry == prometheus.DefaultRegisterer {
		return nil
	}
	theirs.Unregister(collectors.NewGoCollector())
	theirs.Unregister(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	var again prometheus.AlreadyRegisteredError
	if err := ctrlmetrics.Registry.Register(theirs); err != nil && !errors.As(err, &again) {
		return fmt.Errorf("the provider's metrics can't be served: %w", err)
	}
	return nil
}
