package main

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/examples/quickstart/agent"
	"github.com/millwright-go/millwright/examples/quickstart/demo"
	"github.com/millwright-go/millwright/examples/quickstart/roster"
)

// programEnvironment is the variable that makes this test program run as the quickstart.
const programEnvironment = "MILLWRIGHT_TEST_QUICKSTART"

// behindEnvironment is the variable that says how far the program's clock is behind.
const behindEnvironment = "MILLWRIGHT_TEST_BEHIND"

func TestMain(m *testing.M) {
	if behind, err := time.ParseDuration(os.Getenv(behindEnvironment)); err == nil {
		clock = func() time.Time { return time.Now().Add(-behind) }
	}
	_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // machines under the race detector end at once
	agent.Main()
	if os.Getenv(programEnvironment) != "" {
		main()
	}
	_ = flag.Set("test.parallel", "8") // these tests wait, most of the time
	os.Exit(m.Run())
}

// slow limits any wait on a slow and busy machine.
const slow = 10 * time.Minute

// program is the quickstart as a child process.
type program struct {
	cmd  *exec.Cmd
	temp string // the temporary directory of the program
	// before is what earlier programs with the same state directory have printed.
	before string

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

func startProgram(t *testing.T) *program {
	t.Helper()
	return startProgramIn(t, newTemp(t))
}

func newTemp(t *testing.T) string {
	t.Helper()
	temp, err := os.MkdirTemp("", "mw") // a test's own directory may have too long a name
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(temp) })
	return temp
}

func startProgramIn(t *testing.T, temp string, args ...string) *program {
	t.Helper()
	return startProgramBehind(t, "", temp, args...)
}

// startProgramBehind starts the program with a clock that is behind.
func startProgramBehind(t *testing.T, behind, temp string, args ...string) *program {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	p := &program{cmd: exec.Command(self, args...), temp: temp}
	p.cmd.Env = append(os.Environ(), programEnvironment+"=1", behindEnvironment+"="+behind, "TMPDIR="+temp)
	p.cmd.Stdout, p.cmd.Stderr = p, p
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // as a shell does
	require.NoError(t, p.cmd.Start())
	t.Cleanup(func() { _, _ = p.cmd.Process.Kill(), p.cmd.Wait() })
	return p
}

// entries returns the entries of the program's rosters: machines and tasks. It is empty once the
// program has removed them.
func (p *program) entries(t *testing.T) (all []roster.Entry) {
	t.Helper()
	for _, name := range []string{clusterName, taskRoster} {
		paths, err := filepath.Glob(filepath.Join(p.temp, "*", name))
		require.NoError(t, err)
		for _, path := range paths {
			entries, err := roster.Open(path).Entries()
			require.NoError(t, err)
			all = append(all, entries...)
		}
	}
	return all
}

// until waits until the program has printed a text, and returns all processes started so far.
func (p *program) until(t *testing.T, text string) []roster.Entry {
	t.Helper()
	printed := func() bool { return strings.Contains(p.printed(), text) }
	if !assert.Eventually(t, printed, slow, 5*time.Millisecond) {
		require.FailNow(t, fmt.Sprintf("%q was never printed", text), "%s", p.printed())
	}
	return p.entries(t)
}

// alive returns how many of these processes run. A process whose roster was removed does not count.
func alive(entries []roster.Entry) (n int) {
	for _, e := range entries {
		if now, err := roster.Read(e.Path); err == nil && now.Alive {
			n++
		}
	}
	return n
}

var lastLine = regexp.MustCompile(`^settled: ([0-9]+) created, ([0-9]+) deleted, 0 orphans, 0 duplicates$`)

var taskLine = regexp.MustCompile(`tasks counted [0-9]+ times: never fewer than ([0-9]+) of 12 serving \(budget: 8\)`)

func TestQuickstartSettles(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	seen := p.until(t, "7. The deployment is deleted")
	require.NoError(t, p.cmd.Wait(), "%s", p.printed())
	lines := strings.Split(strings.TrimSuffix(p.printed(), "\n"), "\n")
	match := lastLine.FindStringSubmatch(lines[len(lines)-1])
	require.NotNil(t, match, "last line %q", lines[len(lines)-1])
	require.Equal(t, "19", match[1], "6, 6 for the first rollout, 1 for the one killed, 6 for the second")
	require.Equal(t, match[1], match[2])
	counts := taskLine.FindAllStringSubmatch(p.printed(), -1)
	require.Len(t, counts, 4, "two rollouts, an outage, and a smaller fleet")
	for _, count := range counts {
		least, err := strconv.Atoi(count[1])
		require.NoError(t, err)
		require.GreaterOrEqual(t, least, tasks-maxUnavailable)
	}
	require.Zero(t, alive(seen))
	p.leftNothing(t)
}

// leftNothing requires that the program has removed its directory, and that no process is left.
func (p *program) leftNothing(t *testing.T) {
	t.Helper()
	left, err := os.ReadDir(p.temp)
	require.NoError(t, err)
	require.Empty(t, left)
	require.Empty(t, p.survivors(t))
}

// survivors returns the processes that have the program's directory in their environment: agents,
// including those that have not joined yet.
func (p *program) survivors(t *testing.T) []string {
	t.Helper()
	flags := "axeww"
	if runtime.GOOS == "darwin" {
		flags = "-AEww"
	}
	processes, err := exec.Command("ps", flags).Output()
	require.NoError(t, err)
	var found []string
	for _, line := range strings.Split(string(processes), "\n") {
		if strings.Contains(line, p.temp+"/") {
			found = append(found, line)
		}
	}
	return found
}

func TestInterruptedProgramLeavesNoProcess(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		signal syscall.Signal
		after  string
	}{
		{syscall.SIGINT, "new -> Pending"},
		{syscall.SIGINT, "2. A new version"},
		{syscall.SIGTERM, "deletion requested"},
	} {
		t.Run(c.signal.String()+" after "+c.after, func(t *testing.T) {
			t.Parallel()
			p := startProgram(t)
			seen := p.until(t, c.after)
			require.NoError(t, syscall.Kill(-p.cmd.Process.Pid, c.signal)) // as a terminal does
			err := p.cmd.Wait()
			require.Equal(t, demo.Interrupted, p.cmd.ProcessState.ExitCode(), "%v\n%s", err, p.printed())
			require.Contains(t, p.printed(), "interrupted")
			require.NotContains(t, p.printed(), "settled:")
			require.Zero(t, alive(seen))
			p.leftNothing(t)
		})
	}
}

// TestKilledProgramLeavesNoProcess: the program can't clean up, so the processes end by themselves.
func TestKilledProgramLeavesNoProcess(t *testing.T) {
	t.Parallel()
	p := startProgram(t)
	seen := p.until(t, "2. A new version")
	require.GreaterOrEqual(t, alive(seen), replicas+tasks)
	require.NoError(t, p.cmd.Process.Kill())
	require.Error(t, p.cmd.Wait())
	require.Eventually(t, func() bool { return alive(seen) == 0 && len(p.survivors(t)) == 0 },
		slow, 20*time.Millisecond)
}
