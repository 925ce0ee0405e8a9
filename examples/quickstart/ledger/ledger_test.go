package ledger_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procid"
)

func newPath(t *testing.T) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "ledger")
}

func self(t *testing.T) procid.ID {
	t.Helper()
	id, err := procid.Self()
	require.NoError(t, err)
	return id
}

// write enters events of one process.
func write(t *testing.T, path, machine, instance string, id procid.ID, events ...ledger.Event) {
	t.Helper()
	for _, e := range events {
		require.NoError(t, ledger.Append(path, ledger.Entry{
			Event: e, Machine: machine, Instance: instance, ID: id, At: time.Unix(1000, 0).UTC(),
		}))
	}
}

func TestEntriesOfManyWritersDoNotMix(t *testing.T) {
	path := newPath(t)
	const writers, each = 16, 50
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range each {
				e := ledger.Entry{Event: ledger.Born, Machine: fmt.Sprint("m", w), Instance: fmt.Sprintf("%d-%d", w, i)}
				if err := ledger.Append(path, e); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	entries, offset, err := ledger.Read(path, 0)
	require.NoError(t, err)
	require.Len(t, entries, writers*each)
	more, _, err := ledger.Read(path, offset)
	require.NoError(t, err)
	require.Empty(t, more)
}

func TestLineThatIsNotWholeIsLeft(t *testing.T) {
	path := newPath(t)
	none, _, err := ledger.Read(path, 0)
	require.NoError(t, err, "no ledger yet")
	require.Empty(t, none)

	write(t, path, "a", "one", self(t), ledger.Born)
	whole, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, append(whole, whole[:10]...), 0o600))
	entries, offset, err := ledger.Read(path, 0)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	require.EqualValues(t, len(whole), offset)

	require.NoError(t, os.WriteFile(path, []byte("{}\n{x}\n"), 0o600))
	_, _, err = ledger.Read(path, 0)
	require.Error(t, err)
}

func TestAccountCountsThoseThatHadTheirSeat(t *testing.T) {
	path := newPath(t)
	write(t, path, "a", "one", self(t), ledger.Born, ledger.Seated, ledger.Serving)
	write(t, path, "b", "two", self(t), ledger.Born, ledger.Seated, ledger.Ended)
	write(t, path, "c", "three", self(t), ledger.Born, ledger.Turned, ledger.Ended)
	write(t, path, "d", "four", self(t), ledger.Born)
	book := ledger.Open(path)
	a, err := book.Account()
	require.NoError(t, err)
	require.Equal(t, ledger.Account{Created: 2, Deleted: 1}, a)

	alive, err := book.Alive()
	require.NoError(t, err)
	require.Len(t, alive, 1, "seated, and neither ended nor dead")
	require.True(t, alive[0].Serving)

	write(t, path, "a", "one", self(t), ledger.Ended)
	a, err = book.Account()
	require.NoError(t, err)
	require.Equal(t, ledger.Account{Created: 2, Deleted: 2}, a, "read on from where it was")
}

func TestDuplicatesAreSeenInTheProcessTable(t *testing.T) {
	path := newPath(t)
	dead := procid.ID{PID: os.Getpid(), Start: "long ago"}
	write(t, path, "a", "one", dead, ledger.Born, ledger.Seated)
	write(t, path, "a", "two", self(t), ledger.Born, ledger.Seated)
	write(t, path, "b", "three", self(t), ledger.Born, ledger.Seated)
	book := ledger.Open(path)
	alive, err := book.Alive()
	require.NoError(t, err)
	require.Len(t, alive, 2)
	a, err := book.Account()
	require.NoError(t, err)
	require.Zero(t, a.Duplicates, "one after the other, and different machines")

	write(t, path, "a", "four", self(t), ledger.Born, ledger.Seated)
	for range 2 {
		_, err = book.Alive()
		require.NoError(t, err)
	}
	a, err = book.Account()
	require.NoError(t, err)
	require.Equal(t, 1, a.Duplicates, "counted once")
}

func TestOverlapThatAProcessSawIsADuplicate(t *testing.T) {
	path := newPath(t)
	write(t, path, "a", "one", self(t), ledger.Born, ledger.Seated)
	for _, pair := range [][2]string{{"two", "one"}, {"one", "two"}} {
		require.NoError(t, ledger.Append(path, ledger.Entry{
			Event: ledger.Overlap, Machine: "a", Instance: pair[0], ID: self(t), Note: pair[1],
		}))
	}
	a, err := ledger.Open(path).Account()
	require.NoError(t, err)
	require.Equal(t, 1, a.Duplicates)
}

// TestKillHitsWhoIsMeant enters this test itself under another start time. It would not survive a
// kill by PID alone.
func TestKillHitsWhoIsMeant(t *testing.T) {
	path := newPath(t)
	recycled := self(t)
	recycled.Start += "0"
	write(t, path, "a", "one", recycled, ledger.Born, ledger.Seated)

	cmd := exec.Command("sleep", "600")
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _ = cmd.Process.Kill(), cmd.Wait() })
	id, err := procid.Of(cmd.Process.Pid)
	require.NoError(t, err)
	write(t, path, "b", "two", id, ledger.Born)

	killed, err := ledger.Open(path).Kill()
	require.NoError(t, err)
	require.Len(t, killed, 1)
	require.Equal(t, "b", killed[0].Machine)
	require.ErrorContains(t, cmd.Wait(), "killed")
	again, err := ledger.Open(path).Kill()
	require.NoError(t, err)
	require.Empty(t, again)
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"event":"born","machine":"a","instance":"one","id":{"pid":1,"start":"2"}}` + "\n"))
	f.Add([]byte("{}\n{"))
	f.Fuzz(func(t *testing.T, text []byte) {
		path := newPath(t)
		require.NoError(t, os.WriteFile(path, text, 0o600))
		_, offset, err := ledger.Read(path, 0)
		if offset < 0 || offset > int64(len(text)) {
			t.Errorf("offset %d of %d bytes", offset, len(text))
		}
		if err == nil && offset > 0 && text[offset-1] != '\n' {
			t.Errorf("read up to the middle of a line")
		}
	})
}
