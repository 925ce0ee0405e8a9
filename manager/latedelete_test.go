package manager_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/driver/drivertest"
	"github.com/millwright-go/millwright/machine"
	"github.com/millwright-go/millwright/manager"
	"github.com/millwright-go/millwright/object"
)

// keepsDeletes keeps the deletes that reach it, and carries them out as well.
type keepsDeletes struct {
	*drivertest.Memory
	deletes []*driver.DeleteMachineRequest
}

func (d *keepsDeletes) DeleteMachine(ctx context.Context, q *driver.DeleteMachineRequest) (*driver.DeleteMachineResponse, error) {
	d.deletes = append(d.deletes, &driver.DeleteMachineRequest{Machine: q.Machine.Clone(), Class: q.Class.Clone(), Secret: q.Secret.Clone()})
	return d.Memory.DeleteMachine(ctx, q)
}

// TestLateDeleteSparesTheMachineMadeAgain: a delete without a provider ID, of a process that died,
// takes effect when somebody has made the machine again under its name. The request carries the UID
// of the machine that it was made for, so a driver that marks VMs with it leaves the new one alone.
func TestLateDeleteSparesTheMachineMadeAgain(t *testing.T) {
	w := newWorld(t, drivertest.MemoryOptions{})
	d := &keepsDeletes{Memory: w.provider}
	o := w.options()
	o.Driver = d
	r := reconciler(t, o, manager.KindMachine)
	create := func() {
		_, err := w.machines.Create(ctx, &machine.Machine{Meta: object.Meta{Key: fleetKey}, Spec: machine.Spec{Class: machine.ClassRef{Name: "small"}}})
		require.NoError(t, err)
		w.look(r)
	}
	w.provider.FailNext(codes.CreateMachine, codes.New(codes.Unavailable, "later"))
	create()
	require.NoError(t, w.machines.Delete(ctx, fleetKey, ""))
	w.at = w.at.Add(time.Minute)
	w.look(r)
	require.Empty(t, keysOf(w.machines))
	require.Len(t, d.deletes, 1)
	require.Empty(t, d.deletes[0].Machine.Spec.ProviderID)

	create()
	w.join()
	w.look(r)
	require.Equal(t, machine.PhaseRunning, w.machine().Status.Phase)
	_, err := w.provider.DeleteMachine(ctx, d.deletes[0])
	require.NoError(t, err)
	require.Equal(t, 1, w.provider.Count(), "the late delete hit the machine made again")
	require.Equal(t, w.machine().UID, w.provider.VMs()[0].UID)
}
