package main

import (
	"context"
	"errors"
	"flag"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// killDrains also kills programs while they drain nodes. Then the test takes up to 40 s longer, because
// the next program does not know the time of the last eviction.
var killDrains = flag.Bool("kill-drains", false, "kill programs also while they drain nodes")

const settledLine = "settled: 19 created, 19 deleted, 0 orphans, 0 duplicates"

// kills is how often the program is killed before it may finish. In addition it is interrupted once.
const kills = 6

// TestKilledProgramIsContinued kills the program at random lines of its output, and starts it again
// with the same directory. The last line is that of a program that was never killed.
// Invariants: P26
func TestKilledProgramIsContinued(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	t.Parallel()
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	temp := newTemp(t)
	dir := filepath.Join(temp, "state")
	t.Cleanup(func() { endAll(t, dir) })
	p := startProgramIn(t, temp, "-state", dir)
	for n := range kills + 1 {
		lines := 1 + random.IntN(26)
		if p.awaitLines(t, lines) {
			break
		}
		if n == 0 {
			requireRefused(t, temp, dir)
		}
		signal, status := syscall.SIGKILL, -1
		if n == kills/2 {
			signal, status = syscall.SIGINT, demo.Interrupted
		}
		failed := syscall.Kill(-p.cmd.Process.Pid, signal) // agents are in other process groups
		err := p.cmd.Wait()
		if p.settled() {
			break // it ended before the signal
		}
		require.NoError(t, failed)
		require.Equal(t, status, p.cmd.ProcessState.ExitCode(), "%v\n%s", err, p.printed())
		require.Equal(t, signal == syscall.SIGINT, strings.Contains(p.printed(), "for the same command to go on with them"), "%s", p.printed())
		t.Logf("%v after %d lines: %s", signal, lines, p.lastLine())
		printed := p.before + p.printed()
		p = startProgramIn(t, temp, "-state", dir)
		p.before = printed
	}
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait() // ProcessState has the result, see below
	}
	t.Logf("%s", p.printed())
	require.True(t, strings.Contains(p.printed(), "the play goes on"), "no killed program has left anything to continue")
	require.Equal(t, settledLine, p.lastLine())
	if p.cmd.ProcessState.ExitCode() < 0 {
		t.Log("killed while it cleaned up; the next program cleans up instead")
		p = startProgramIn(t, temp, "-state", dir)
		_ = p.cmd.Wait()
		require.Equal(t, settledLine, p.lastLine(), "%s", p.printed())
	}
	require.True(t, p.cmd.ProcessState.Success(), "%v", p.cmd.ProcessState)
	require.Empty(t, p.survivors(t))
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left)
}

// TestKilledProgramLosesNoMachine kills the program while its machines boot. The next program starts
// with a later clock, by which all machines are late. None is marked failed.
// scripts/soak-quickstart.sh kills the program at any moment, and really waits.
// Invariants: P26
func TestKilledProgramLosesNoMachine(t *testing.T) {
	if testing.Short() {
		t.Skip("takes half a minute")
	}
	for _, away := range []string{"40s", "59s"} {
		t.Run(away, func(t *testing.T) {
			t.Parallel()
			temp := newTemp(t)
			dir := filepath.Join(temp, "state")
			t.Cleanup(func() { endAll(t, dir) })
			p := startProgramBehind(t, away, temp, "-state", dir)
			p.until(t, "-6: new -> Pending")
			require.Eventually(t, func() bool {
				running, err := roster.Open(filepath.Join(dir, clusterName)).Running()
				return err == nil && len(running) > 0
			}, slow, time.Millisecond, "no process was started")
			require.NoError(t, p.cmd.Process.Kill())
			require.Error(t, p.cmd.Wait())
			p = startProgramIn(t, temp, "-state", dir)
			err := p.cmd.Wait()
			require.NoError(t, err, "%s", p.printed())
			require.Contains(t, p.printed(), "the play goes on")
			require.Equal(t, settledLine, p.lastLine())
		})
	}
}

// requireRefused requires that a second program reports that another one uses the directory.
func requireRefused(t *testing.T, temp, dir string) {
	t.Helper()
	second := startProgramIn(t, temp, "-state", dir)
	require.Error(t, second.cmd.Wait())
	require.Equal(t, demo.Failed, second.cmd.ProcessState.ExitCode())
	require.Contains(t, second.printed(), filepath.Join(dir, storeFile)+": the file is in use")
}

// awaitLines waits until the program has printed n lines and may be killed. It returns true if the
// program has ended before.
func (p *program) awaitLines(t *testing.T, n int) (ended bool) {
	t.Helper()
	enough := assert.Eventually(t, func() bool {
		ended = p.settled()
		return ended || strings.Count(p.printed(), "\n") >= n && (*killDrains || !p.draining())
	}, slow, time.Millisecond)
	require.True(t, enough, "%s", p.printed())
	return ended
}

// settled reports whether the program has printed its result. It may still be cleaning up.
func (p *program) settled() bool { return strings.Contains(p.printed(), "\nsettled:") }

var (
	terminating = regexp.MustCompile(`machine (\S+): [A-Za-z]+ -> Terminating`)
	gone        = regexp.MustCompile(`machine (\S+): gone: `)
)

// draining reports whether a machine is being deleted.
func (p *program) draining() bool {
	names := func(pattern *regexp.Regexp) map[string]bool {
		all := make(map[string]bool)
		for _, match := range pattern.FindAllStringSubmatch(p.before+p.printed(), -1) {
			all[match[1]] = true
		}
		return all
	}
	left := names(terminating)
	for name := range names(gone) {
		delete(left, name)
	}
	return len(left) > 0
}

func (p *program) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(p.printed(), "\n"), "\n")
	return lines[len(lines)-1]
}

// endAll ends what a failed test has left running.
func endAll(t *testing.T, dir string) {
	t.Helper()
	for _, name := range []string{clusterName, taskRoster} {
		_, err := roster.Open(filepath.Join(dir, name)).End(context.Background())
		assert.NoError(t, err)
	}
}

// newStateDir returns a directory in which a program has begun, and ended before the first step.
func newStateDir(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	p, err := newQuickstart(t.Context(), io.Discard, dir)
	require.NoError(t, err)
	require.NoError(t, p.Release())
	return dir
}

// TestFinishedStateIsCleared: a state directory is emptied if its run was completed, even if the
// program was killed while it cleaned up; also if the processes ended because no program came in time.
func TestFinishedStateIsCleared(t *testing.T) {
	abandoned := `{"name":"web-1","pid":1}` + "\n" + `{"state":"abandoned"}` + "\n"
	for name, change := range map[string]func(dir string) error{
		"its progress was removed": func(dir string) error { return os.Remove(filepath.Join(dir, "play.json")) },
		"no program came in time": func(dir string) error {
			return errors.Join(os.MkdirAll(filepath.Join(dir, clusterName), 0o700),
				os.WriteFile(filepath.Join(dir, clusterName, "one"), []byte(abandoned), 0o600))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir := newStateDir(t)
			done := []byte(`{"act":2}`)
			require.NoError(t, os.WriteFile(filepath.Join(dir, "play.json"), done, 0o600))
			p, err := newQuickstart(t.Context(), io.Discard, dir)
			require.NoError(t, err)
			require.Equal(t, 2, p.Done.Step, "the run is continued")
			left := filepath.Join(dir, "left")
			require.NoError(t, os.WriteFile(left, nil, 0o600))
			require.NoError(t, p.Release())

			require.NoError(t, change(dir))
			p, err = newQuickstart(t.Context(), io.Discard, dir)
			require.NoError(t, err)
			require.Zero(t, p.Done)
			require.NoFileExists(t, left)
			require.NoError(t, p.Close(t.Context()))
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			require.Empty(t, entries)
		})
	}
}

// TestForeignDirectoryIsRefused: the program refuses a directory that is not its own, and leaves it as it
// is.
func TestForeignDirectoryIsRefused(t *testing.T) {
	for name, refused := range map[string]bool{"machines": true, "notes.txt": true, storeFile: false, "." + storeFile + ".new-1": false} {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
		_, err := demo.NewDir(dir, storeFile)
		require.Equal(t, refused, err != nil, "%s: %v", name, err)
		require.FileExists(t, filepath.Join(dir, name))
	}
}
