package procdriver_test

import (
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
)

// adopts makes the site's host take over what the ledger knows.
func (s *site) adopts(t *testing.T) {
	t.Helper()
	lives, err := s.book.Lives()
	require.NoError(t, err)
	s.host.Adopt(lives)
	s.host.Adopt(lives) // once is enough, twice is harmless
}

// outlived is a machine of another program that was killed.
func outlived(t *testing.T, s *site, alone time.Duration) ledger.Life {
	t.Helper()
	t.Setenv(outlivedEnvironment, alone.String())
	program, _ := otherProgram(t, s)
	life := s.running(t, "theirs")[0]
	require.NoError(t, program.Process.Kill())
	require.ErrorContains(t, program.Wait(), "killed")
	t.Cleanup(func() { _ = life.ID.Signal(os.Kill) })
	return life
}

func TestProcessThatOutlivesItsProgramIsAdopted(t *testing.T) {
	s := newSite(t)
	theirs := outlived(t, s, time.Hour)
	d := s.driver(t)
	before, code := status(t, d, "theirs")
	require.Equal(t, codes.OK, code)
	s.adopts(t)
	id, err := create(t, d, "theirs", blue)
	require.NoError(t, err)
	require.Equal(t, before, id)
	require.True(t, theirs.ID.Alive())
	require.Equal(t, ledger.Account{Created: 1}, s.account(t))

	require.NoError(t, remove(t, d, "theirs", id))
	require.False(t, theirs.ID.Alive())
	require.Equal(t, ledger.Account{Created: 1, Deleted: 1}, s.account(t), "deleted means that the end was entered")
	s.adopts(t)
	third := siteAt(t, s.dir)
	third.adopts(t)
	require.Empty(t, third.host.Close(), "who has ended is nobody's any more")
	entries, _, err := ledger.Read(s.book.Path(), 0)
	require.NoError(t, err)
	ends := 0
	for _, e := range entries {
		if e.Event == ledger.Ended {
			ends++
		}
	}
	require.Equal(t, 1, ends)
}

// TestEndBetweenProgramsIsEntered: no program ran to see it.
func TestEndBetweenProgramsIsEntered(t *testing.T) {
	s := newSite(t)
	theirs := outlived(t, s, time.Hour)
	require.NoError(t, theirs.ID.Signal(syscall.SIGKILL))
	eventually(t, "it is gone", func() bool { return !theirs.ID.Alive() })
	require.Equal(t, ledger.Account{Created: 1}, s.account(t))
	s.adopts(t)
	eventually(t, "its end is entered", func() bool { return s.account(t) == ledger.Account{Created: 1, Deleted: 1} })
}

func TestCloseKillsWhoWasAdopted(t *testing.T) {
	s := newSite(t)
	theirs := outlived(t, s, time.Hour)
	s.adopts(t)
	require.Equal(t, []string{theirs.Instance}, s.host.Close())
	require.False(t, theirs.ID.Alive())
	require.Equal(t, ledger.Account{Created: 1, Deleted: 1}, s.account(t))
	another := siteAt(t, s.dir)
	_, err := create(t, another.driver(t), "another", blue)
	require.NoError(t, err)
	s.adopts(t)
	require.Empty(t, s.host.Close(), "nobody is adopted after that")
	require.Len(t, another.running(t, "another"), 1)
}

// TestAbandonedProcessEnds: it outlives its program, but only for a time.
func TestAbandonedProcessEnds(t *testing.T) {
	s := newSite(t)
	theirs := outlived(t, s, 300*time.Millisecond)
	eventually(t, "it ends by itself", func() bool { return !theirs.ID.Alive() })
	lives, err := s.book.Lives()
	require.NoError(t, err)
	require.True(t, lives[0].Abandoned)
	_, code := status(t, s.driver(t), "theirs")
	require.Equal(t, codes.NotFound, code)
}

// TestProcessThatKnowsTooLittleTakesNoSeat: the program that started it died before it could tell
// it all.
func TestProcessThatKnowsTooLittleTakesNoSeat(t *testing.T) {
	s := newSite(t)
	s.record(t, "a", "first")
	cmd := s.agent(t, "a", "first")
	require.NoError(t, cmd.Start())
	require.Error(t, cmd.Wait()) // its input is empty
	lives, err := s.book.Lives()
	require.NoError(t, err)
	require.True(t, lives[0].Turned)
	require.Zero(t, s.account(t).Created)
	_, err = create(t, s.driver(t), "a", blue)
	require.NoError(t, err)
	require.Equal(t, 1, s.account(t).Created)
}
