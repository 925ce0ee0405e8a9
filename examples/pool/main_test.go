package main

import (
	"bytes"
	"context"
	"flag"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/pool/supervisor"
	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// programEnvironment is the variable that makes this test program run as the example.
const programEnvironment = "MILLWRIGHT_TEST_POOL"

func TestMain(m *testing.M) {
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // processes under the race detector end at once
	agent.Main()
	supervisor.Main()
	if os.Getenv(programEnvironment) != "" {
		main()
	}
	os.Exit(m.Run())
}

// program is the example as a child process.
type program struct {
	cmd  *exec.Cmd
	temp string // the temporary directory of the program

	mu  sync.Mutex
	out bytes.Buffer
}

// Write collects what the program prints.
func (p *program) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.Write(text)
}

func (p *program) printed() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.out.String()
}

func newTemp(t *testing.T) string {
	t.Helper()
	temp, err := os.MkdirTemp("", "mwp") // a test's own directory may have too long a name
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	return temp
}

func startProgram(t *testing.T, temp string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{cmd: exec.Command(self, args...), temp: temp}
	p.cmd.Env = append(os.Environ(), programEnvironment+"=1", "TMPDIR="+temp)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() {
		_, _ = p.cmd.Process.Kill(), p.cmd.Wait()
		endAll(t, temp)
	})
	return p
}

// endAll ends what a failed test has left running.
func endAll(t *testing.T, temp string) {
	t.Helper()
	for _, name := range []string{groupsDir + "/supervisors", groupsDir + "/agents/" + clusterName, taskRoster} {
		paths, err := filepath.Glob(filepath.Join(temp, "*", name))
		require.NoError(t, err)
		for _, path := range paths {
			_, _ = roster.Open(path).End(context.Background())
		}
	}
}

// slow limits any wait on a slow and busy machine.
const slow = 10 * time.Minute

// eventually waits until a condition holds.
func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	require.Eventually(t, holds, slow, 2*time.Millisecond, what)
}

func (p *program) until(t *testing.T, text string) {
	t.Helper()
	eventually(t, text, func() bool { return strings.Contains(p.printed(), text) })
}

// settled reports whether the program has printed its result. It may still be cleaning up.
func (p *program) settled() bool { return strings.Contains(p.printed(), "\nsettled:") }

func (p *program) lastLine() string {
	lines := strings.Split(strings.TrimSuffix(p.printed(), "\n"), "\n")
	return lines[len(lines)-1]
}

// survivors returns the processes that have the program's directory in their environment, including
// those that have not joined yet.
func (p *program) survivors(t *testing.T) (found []string) {
	t.Helper()
	flags := "axeww"
	if runtime.GOOS == "darwin" {
		flags = "-AEww"
	}
	processes, err := exec.Command("ps", flags).Output()
	require.NoError(t, err)
	for line := range strings.Lines(string(processes)) {
		if strings.Contains(line, p.temp+"/") {
			found = append(found, line)
		}
	}
	return found
}

// leftNothing requires that only these directories are left in the temporary directory, and that no
// process is left.
func (p *program) leftNothing(t *testing.T, dirs ...string) {
	t.Helper()
	var left []string
	require.NoError(t, filepath.WalkDir(p.temp, func(path string, _ os.DirEntry, err error) error {
		if err == nil && path != p.temp {
			left = append(left, filepath.Base(path))
		}
		return err
	}))
	require.Equal(t, dirs, left)
	require.Empty(t, p.survivors(t))
}

const settledLine = "settled: 12 created, 12 deleted, 0 left, 0 duplicates"

// TestPoolSettles runs the whole demo, and looks for the lines of each step.
// Invariants: P34
func TestPoolSettles(t *testing.T) {
	t.Parallel()
	p := startProgram(t, newTemp(t))
	require.NoError(t, p.cmd.Wait(), "%s", p.printed())
	text := p.printed()
	require.Equal(t, settledLine, p.lastLine(), "3, 2 more, 5 exchanged, 1 killed, 1 taken out\n%s", text)
	at := 0
	for _, line := range []string{
		"1. A pool of 3 machines", "new -> Pending", "Pending -> Provisioning", "Provisioning -> Provisioned", "Provisioned -> Running",
		"2. Scaled to 5", "(3 of 5)", "ScalePool is done", "(5 of 5)",
		"3. A new version", "UpdatePool is done", "agents counted",
		"4. The process of one machine is killed", "(4 of 5)", "(5 of 5)",
		"5. The supervisor itself is killed", "is gone: nothing supervises its agents", "Running -> Failed", "Failed -> Running", "has the same 5 agents",
		"6. The provider takes a machine out", "leaves (Provider), once it is drained", "InstancesDrained is done", "none was lost",
		"7. Scaled to 2", "leaves (ScaleDown), once it is drained", "DeleteInstances is done", "(2 of 2)", "none was lost",
		"8. The pool is deleted", "Running -> Deleting", "supervisors: 2 created, 2 ended", settledLine,
	} {
		found := strings.Index(text[at:], line)
		require.GreaterOrEqual(t, found, 0, "%q does not come next\n%s", line, text)
		at += found
	}
	require.Regexp(t, "never fewer than [45] serving, never more than [56] running", text, "the numbers depend on how long an agent takes to end")
	require.NotContains(t, text, "broke")
	require.Equal(t, 3, strings.Count(text, "leaves (ScaleDown)"))
	p.leftNothing(t)
}

// kills is how often the program is killed before it may finish. In addition it is interrupted once.
const kills = 5

// killDrains also kills programs while they drain nodes. Then the test takes up to 40 s longer, because
// the next program does not know the time of the last eviction.
var killDrains = flag.Bool("kill-drains", false, "kill programs also while they drain nodes")

// draining reports whether a program that has printed text is draining a machine.
func draining(text string) bool {
	return strings.LastIndex(text, "leaves (") > strings.LastIndex(text, " is done")
}

// TestKilledProgramIsContinued kills the program at random lines of its output, and starts it again
// with the same directory. The last line is that of a program that was never killed.
// Invariants: P36
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
	p := startProgram(t, temp, "-state", dir)
	p.until(t, "1. A pool")
	requireRefused(t, temp, dir) // while the first program runs
	for n := range kills + 1 {
		lines := 2 + random.IntN(24)
		ended := false
		eventually(t, "more lines", func() bool {
			text := p.printed()
			ended = p.settled()
			return ended || strings.Count(text, "\n") >= lines && (*killDrains || !draining(text))
		})
		if ended {
			break
		}
		signal, status := syscall.SIGKILL, -1
		if n == kills/2 {
			signal, status = syscall.SIGINT, demo.Interrupted
		}
		failed := syscall.Kill(-p.cmd.Process.Pid, signal) // the others are in other process groups
		err := p.cmd.Wait()
		if p.settled() {
			break // it ended before the signal
		}
		require.NoError(t, failed)
		require.Equal(t, status, p.cmd.ProcessState.ExitCode(), "%v\n%s", err, p.printed())
		require.Equal(t, signal == syscall.SIGINT, strings.Contains(p.printed(), "for the same command to go on with them"), "%s", p.printed())
		t.Logf("%v after %d lines: %s", signal, lines, p.lastLine())
		p = startProgram(t, temp, "-state", dir)
	}
	if p.cmd.ProcessState == nil {
		_ = p.cmd.Wait() // ProcessState has the result, see below
	}
	t.Logf("%s", p.printed())
	require.True(t, strings.Contains(p.printed(), "the play goes on"), "no killed program has left anything to continue")
	require.Contains(t, p.printed(), "supervisors: 2 created, 2 ended", "supervisors outlive the program")
	require.Equal(t, settledLine, p.lastLine())
	if p.cmd.ProcessState.ExitCode() < 0 {
		t.Log("killed while it cleaned up; the next program cleans up instead")
		p = startProgram(t, temp, "-state", dir)
		_ = p.cmd.Wait()
		require.Equal(t, settledLine, p.lastLine(), "%s", p.printed())
	}
	require.True(t, p.cmd.ProcessState.Success(), "%v", p.cmd.ProcessState)
	p.leftNothing(t, "state")
}

// requireRefused requires that a second program reports that another one uses the directory.
func requireRefused(t *testing.T, temp, dir string) {
	t.Helper()
	second := startProgram(t, temp, "-state", dir)
	require.Error(t, second.cmd.Wait())
	require.Equal(t, demo.Failed, second.cmd.ProcessState.ExitCode())
	require.Contains(t, second.printed(), filepath.Join(dir, storeFile)+": the file is in use")
}

func TestInterruptedProgramLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for signal, after := range map[syscall.Signal]string{
		syscall.SIGINT: "1. A pool", syscall.SIGTERM: "2. Scaled to 5", syscall.SIGHUP: "new -> Pending",
	} {
		t.Run(signal.String()+" after "+after, func(t *testing.T) {
			t.Parallel()
			p := startProgram(t, newTemp(t))
			p.until(t, after)
			require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, signal)) // as a terminal does
			err := p.cmd.Wait()
			require.Equal(t, demo.Interrupted, p.cmd.ProcessState.ExitCode(), "%v\n%s", err, p.printed())
			require.Contains(t, p.printed(), "interrupted")
			require.NotContains(t, p.printed(), "settled:")
			eventually(t, "no process is left", func() bool { return len(p.survivors(t)) == 0 })
			p.leftNothing(t)
		})
	}
}

// TestKilledProgramLeavesNoProcess: the program can't clean up, so the processes end by themselves.
func TestKilledProgramLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := startProgram(t, newTemp(t))
	p.until(t, "2. Scaled to 5")
	require.GreaterOrEqual(t, len(p.survivors(t)), 1+first+taskCount)
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait())
	eventually(t, "no process is left", func() bool { return len(p.survivors(t)) == 0 })
}
