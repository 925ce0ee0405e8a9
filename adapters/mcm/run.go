package mcm

import (
	"context"
	"errors"

	"github.com/millwright-go/millwright/cmd/millwright-manager/app"
)

// Run is app.Run for a provider of machine-controller-manager 0.53 or later. It also serves the
// provider's own metrics. Pass its error to app.Exit.
func Run[
	M, C any, CQ, IQ, DQ, SQ machineRequest[M, C], LQ listRequest[C], VQ volumesRequest,
	CR createAnswer, IR, SR statusAnswer, DR deleteAnswer, LR listAnswer, VR volumesAnswer,
](ctx context.Context, d provider[CQ, CR, IQ, IR, DQ, DR, SQ, SR, LQ, LR, VQ, VR]) error {
	if d == nil {
		return errors.New("there is no provider")
	}
	RegisterMetrics()
	return app.Run(ctx, Driver(d.CreateMachine, d.InitializeMachine, d.DeleteMachine, d.GetMachineStatus, d.ListMachines, d.GetVolumeIDs))
}
