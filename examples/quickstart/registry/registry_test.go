package registry_test

import (
	"context"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/procid"
	"github.com/millwright-go/millwright/examples/quickstart/registry"
)

func newDir(t *testing.T) *registry.Dir {
	t.Helper()
	d, err := registry.Make(filepath.Join(t.TempDir(), "blue"))
	require.NoError(t, err)
	return d
}

// record records an incarnation, as a driver does before it starts it.
func record(t *testing.T, d *registry.Dir, name, instance string) registry.Record {
	t.Helper()
	r := registry.Record{Machine: name, Instance: instance, Spec: []byte(`{}`)}
	seat, err := d.TakeSeat(name)
	require.NoError(t, err)
	require.NoError(t, seat.Write(&r))
	seat.Release()
	return r
}

func self(t *testing.T) procid.ID {
	t.Helper()
	id, err := procid.Self()
	require.NoError(t, err)
	return id
}

func soon(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

func TestOccupantIsTheOneOnRecord(t *testing.T) {
	d := newDir(t)
	r := record(t, d, "a", "one")
	_, living := d.Living(&r)
	require.False(t, living, "on record, and nobody was started")

	seat, err := d.Occupy(t.Context(), r, self(t))
	require.NoError(t, err)
	who, living := d.Living(&r)
	require.True(t, living)
	require.Equal(t, self(t), who.ID)
	_, err = d.TakeSeat("a")
	require.ErrorIs(t, err, registry.ErrHeld)
	_, err = d.Occupy(soon(t), r, self(t))
	require.ErrorIs(t, err, context.DeadlineExceeded, "a second process of the same incarnation")
	seat.Release()
}

func TestSupersededProcessIsTurnedAway(t *testing.T) {
	d := newDir(t)
	first := record(t, d, "a", "one")
	second := record(t, d, "a", "two")
	_, err := d.Occupy(t.Context(), first, self(t))
	require.ErrorIs(t, err, registry.ErrSuperseded)
	seat, err := d.Occupy(t.Context(), second, self(t))
	require.NoError(t, err, "the one turned away has left the seat")
	seat.Release()

	clearing, err := d.TakeSeat("a")
	require.NoError(t, err)
	require.NoError(t, clearing.Clear())
	_, err = d.Occupy(t.Context(), second, self(t))
	require.ErrorIs(t, err, registry.ErrSuperseded, "deleted before it came up")
	entries, err := os.ReadDir(d.Path())
	require.NoError(t, err)
	require.Empty(t, entries, "nothing is left of a machine that was deleted")
}

func TestLeftoverOfAnOccupantIsNoOccupant(t *testing.T) {
	d := newDir(t)
	r := record(t, d, "a", "one")
	gone := self(t)
	gone.Start += "0" // the process that had our PID before
	seat, err := d.Occupy(t.Context(), r, gone)
	require.NoError(t, err)
	seat.Release()
	_, living := d.Living(&r)
	require.False(t, living)

	next := record(t, d, "a", "two")
	_, living = d.Living(&next)
	require.False(t, living, "the account in the seat is the first one's")
}

// TestGuardExcludes: many processes hold a guard and remove it, and no two hold it at the same
// time.
func TestGuardExcludes(t *testing.T) {
	d := newDir(t)
	var inside, entered atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			guard, err := d.Guard(t.Context(), "a")
			if err != nil {
				t.Errorf("guard: %v", err)
				return
			}
			if n := inside.Add(1); n != 1 {
				t.Errorf("%d hold the guard at once", n)
			}
			entered.Add(1)
			record(t, d, "a", strconv.Itoa(i)) // takes a while
			inside.Add(-1)
			if i%2 == 0 {
				_ = guard.Remove()
				return
			}
			guard.Release()
		})
	}
	all.Wait()
	require.EqualValues(t, 200, entered.Load())
}

func TestGuardRespectsItsContext(t *testing.T) {
	d := newDir(t)
	guard, err := d.Guard(t.Context(), "a")
	require.NoError(t, err)
	defer guard.Release()
	_, err = d.Guard(soon(t), "a")
	require.ErrorIs(t, err, context.DeadlineExceeded)
	other, err := d.Guard(soon(t), "b")
	require.NoError(t, err, "another machine's guard")
	other.Release()
}

func TestList(t *testing.T) {
	d := newDir(t)
	record(t, d, "a", "one")
	record(t, d, "b.c", "two")
	all, err := d.List()
	require.NoError(t, err)
	require.Len(t, all, 2)
	none, err := registry.At(filepath.Join(t.TempDir(), "red")).List()
	require.NoError(t, err)
	require.Empty(t, none)
	require.NoError(t, os.WriteFile(filepath.Join(d.Path(), "z.json"), []byte("{"), 0o600))
	_, err = d.List()
	require.ErrorContains(t, err, "machine z")
}

func TestCheckName(t *testing.T) {
	for _, good := range []string{"a", "web-1", "a.b-c", "0", strings.Repeat("a", 200)} {
		require.NoError(t, registry.CheckName(good))
	}
	for _, bad := range []string{"", ".", "..", "../a", "a/b", "-a", "a-", "A", "a b", "a\n", strings.Repeat("a", 201)} {
		require.ErrorIs(t, registry.CheckName(bad), registry.ErrName, "%q", bad)
	}
}
