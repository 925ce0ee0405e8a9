package sim_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/deployment"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/sim"
)

// TestGarbageIsMended: a person, or a program, writes any phase and any operation into the status of one
// of three machines that run. A day later three machines run, without anybody's help. That no VM is
// doubled or lost meanwhile is P13 and P14, which each world checks.
func TestGarbageIsMended(t *testing.T) {
	phases := []machine.Phase{
		"Broken", "running", machine.PhaseNew, machine.PhasePending, machine.PhaseAvailable, machine.PhaseRunning, machine.PhaseUnknown, machine.PhaseFailed,
		machine.PhaseCrashLoopBackOff, machine.PhaseTerminating, machine.PhaseInPlaceUpdating, machine.PhaseInPlaceUpdateSuccessful,
		machine.PhaseInPlaceUpdateFailed,
	}
	operations := []machine.Operation{
		{}, {Stage: "Nowhere"}, {Kind: "Nonsense", Stage: "Nowhere"},
		{Kind: machine.OperationCreate, Stage: "Nowhere"}, {Kind: machine.OperationCreate, Stage: machine.StageCreateVM},
		{Kind: machine.OperationDelete, Stage: "Nowhere"}, {Kind: machine.OperationDelete, Stage: machine.StageInitiateVMDeletion},
		{Kind: machine.OperationInPlaceUpdate, Stage: "Nowhere"}, {Kind: machine.OperationInPlaceUpdate, Stage: machine.StageReady},
	}
	states := []machine.OperationState{"", machine.StateProcessing, machine.StateFailed, "Odd"}
	if testing.Short() {
		states = states[:1]
	}
	for _, phase := range phases {
		for _, op := range operations {
			for _, op.State = range states {
				t.Run(fmt.Sprintf("%s %s %s %s", phase, op.Kind, op.Stage, op.State), func(t *testing.T) {
					r := &run{t: t}
					r.open(sim.Options{}, fleet(3, deployment.Strategy{}))
					r.complete()
					m := r.all()[1].Clone()
					m.Status.Phase, m.Status.LastOperation = phase, op
					_, err := r.w.Machines().UpdateStatus(ctx, m)
					require.NoError(t, err)
					r.wait(24 * time.Hour)
					require.Equal(t, 3, r.running())
					require.True(t, r.w.Complete(web.Name))
					require.Equal(t, 3, r.w.Left().VMs)
					r.w.Close()
				})
			}
		}
	}
}
