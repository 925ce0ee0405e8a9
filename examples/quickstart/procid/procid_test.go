package procid_test

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

// nap starts a process that does nothing for long.
func nap(t *testing.T) (*exec.Cmd, procid.ID) {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	id, err := procid.Of(cmd.Process.Pid)
	require.NoError(t, err)
	return cmd, id
}

func TestSelfIsAlive(t *testing.T) {
	id, err := procid.Self()
	require.NoError(t, err)
	require.Equal(t, os.Getpid(), id.PID)
	require.NotEmpty(t, id.Start)
	require.True(t, id.Alive())
	again, err := procid.Of(os.Getpid())
	require.NoError(t, err)
	require.Equal(t, id, again)
}

// TestRecycledPIDIsSomebodyElse: a recycled PID looks like a PID in use with another start time.
func TestRecycledPIDIsSomebodyElse(t *testing.T) {
	_, id := nap(t)
	before := procid.ID{PID: id.PID, Start: id.Start + "0"}
	require.False(t, before.Alive())
	require.ErrorIs(t, before.Signal(os.Kill), procid.ErrGone)
	require.True(t, id.Alive(), "the one who has the PID now was not hit")
	require.NoError(t, id.Signal(syscall.Signal(0)))
}

func TestZombieIsNotAlive(t *testing.T) {
	cmd, id := nap(t)
	require.NoError(t, id.Signal(os.Kill))
	require.Eventually(t, func() bool { return !id.Alive() }, time.Minute, time.Millisecond)
	require.ErrorIs(t, id.Signal(os.Kill), procid.ErrGone)
	zombie, err := procid.Of(id.PID) // not waited for yet
	require.NoError(t, err)
	require.Equal(t, id, zombie)
	require.Error(t, cmd.Wait())
	_, err = procid.Of(id.PID)
	require.ErrorIs(t, err, procid.ErrGone)
}

func TestZeroIDIsNobody(t *testing.T) {
	for _, id := range []procid.ID{{}, {PID: -1}, {PID: -1, Start: "1"}} {
		require.False(t, id.Alive())
		require.ErrorIs(t, id.Signal(syscall.Signal(0)), procid.ErrGone)
	}
}
