package roster_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// TestMain makes this test program a process that serves until it is killed, if Start has started it.
func TestMain(m *testing.M) {
	if roster.Role() != "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0")
		var state roster.State
		self, err := roster.Join(&state)
		if err != nil || self.SetState(state) != nil {
			os.Exit(1)
		}
		select {}
	}
	os.Exit(m.Run())
}

// start starts a process, and waits until it has recorded its state.
func start(t *testing.T, r *roster.Roster, name string) roster.Entry {
	t.Helper()
	e := roster.Entry{Name: name, Instance: roster.NewInstance(), About: []byte(`"serving"`)}
	require.NoError(t, r.Start("", "test", e))
	t.Cleanup(func() { _, _ = r.End(context.Background()) })
	var found roster.Entry
	require.Eventually(t, func() bool {
		for _, now := range entries(t, r) {
			if now.Instance == e.Instance {
				require.True(t, now.Alive, "a process must be alive as soon as it has an entry")
				found = now
			}
		}
		return found.State != ""
	}, time.Minute, time.Millisecond)
	return found
}

func entries(t *testing.T, r *roster.Roster) []roster.Entry {
	t.Helper()
	all, err := r.Entries()
	require.NoError(t, err)
	return all
}

func TestLifeOfAProcess(t *testing.T) {
	path := filepath.Join(t.TempDir(), "roster")
	r := roster.Open(path)
	require.Empty(t, entries(t, r))
	e := start(t, r, "a")
	require.Equal(t, "a", e.Name)
	require.Equal(t, roster.Serving, e.State)
	require.NotZero(t, e.PID)
	start(t, r, "b")
	running, err := roster.Open(path).Running()
	require.NoError(t, err)
	require.Len(t, running, 2, "seen by another Roster of the same directory")

	require.NoError(t, e.Signal(syscall.SIGSTOP))
	now, err := roster.Read(e.Path)
	require.NoError(t, err)
	require.True(t, now.Alive, "a stopped process is still alive")
	require.NoError(t, e.Signal(syscall.SIGKILL))
	require.Eventually(t, func() bool {
		running, err := r.Running()
		return err == nil && len(running) == 1
	}, time.Minute, time.Millisecond)
	require.Len(t, entries(t, r), 2, "ended processes stay on the roster")

	killed, err := r.End(t.Context())
	require.NoError(t, err)
	require.Len(t, killed, 1)
	killed, err = r.End(t.Context())
	require.NoError(t, err)
	require.Empty(t, killed)
}

// TestProcessThatCannotStartLeavesNothing: a failed Start leaves no entry.
func TestProcessThatCannotStartLeavesNothing(t *testing.T) {
	r := roster.Open(t.TempDir())
	require.Error(t, r.Start("/nowhere", "test", roster.Entry{Name: "a", Instance: "one"}))
	require.Empty(t, entries(t, r))
}

// TestProcessThatHasNotJoinedGetsNoSignal: a signal to PID zero would go to this program's process
// group.
func TestProcessThatHasNotJoinedGetsNoSignal(t *testing.T) {
	require.ErrorIs(t, roster.Entry{}.Signal(syscall.SIGKILL), os.ErrProcessDone)
}

func TestHold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	_, err := roster.Held(path)
	require.ErrorIs(t, err, os.ErrNotExist)
	file, err := roster.Hold(t.Context(), path)
	require.NoError(t, err)
	held, err := roster.Held(path)
	require.NoError(t, err)
	require.True(t, held)
	soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, err = roster.Hold(soon, path)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	require.NoError(t, file.Close())
	held, err = roster.Held(path)
	require.NoError(t, err)
	require.False(t, held)
}

// TestDamagedEntryIsNamed: the error names the file.
func TestDamagedEntryIsNamed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "one")
	require.NoError(t, os.WriteFile(path, []byte("{"), 0o600))
	_, err := roster.Open(filepath.Dir(path)).Entries()
	require.ErrorContains(t, err, path)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"name":"a","about":{}}` + "\n" + `{"pid":7}` + "\n" + `{"state":"serving"}` + "\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := filepath.Join(t.TempDir(), "one")
		require.NoError(t, os.WriteFile(path, text, 0o600))
		e, err := roster.Read(path)
		if err == nil && (e.Alive || e.Instance != "one" || e.About != nil && !json.Valid(e.About)) {
			t.Errorf("%q gave %+v", text, e)
		}
	})
}
