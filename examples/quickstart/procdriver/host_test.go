package procdriver_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/millwright-go/millwright/codes"
	"github.com/millwright-go/millwright/driver"
	"github.com/millwright-go/millwright/examples/quickstart/ledger"
	"github.com/millwright-go/millwright/examples/quickstart/procdriver"
)

// hostEnvironment makes this test program another program that starts machines: one machine,
// "theirs", in the site of that directory. It lives until its input ends.
const hostEnvironment = "MILLWRIGHT_TEST_HOST"

// outlivedEnvironment makes its machine outlive it, for at least so long.
const outlivedEnvironment = "MILLWRIGHT_TEST_OUTLIVED"

func hostMain() int {
	dir := os.Getenv(hostEnvironment)
	alone, _ := time.ParseDuration(os.Getenv(outlivedEnvironment)) // if zero, its machine ends with it
	host, err := procdriver.NewHost(procdriver.HostOptions{
		Env: agentEnv, Ledger: filepath.Join(dir, "ledger"), Outlived: alone > 0, Alone: alone,
	})
	if err != nil {
		return 1
	}
	d, err := procdriver.New(procdriver.Options{Dir: filepath.Join(dir, "records"), Host: host})
	if err != nil {
		return 1
	}
	made, err := d.CreateMachine(context.Background(), &driver.CreateMachineRequest{
		Machine: newMachine("theirs"), Class: class(blue),
	})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(made.ProviderID)
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	return 0
}

// otherProgram starts a program that makes one machine, and returns the
// machine's provider ID.
func otherProgram(t *testing.T, s *site) (*exec.Cmd, string) {
	t.Helper()
	program, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), hostEnvironment+"="+s.dir)
	input, err := cmd.StdinPipe()
	require.NoError(t, err)
	output, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _, _, _ = input.Close(), cmd.Process.Kill(), cmd.Wait() })
	line, err := bufio.NewReader(output).ReadString('\n')
	require.NoError(t, err)
	return cmd, strings.TrimSpace(line)
}

func TestAdoptsAndDeletesAnotherProgramsProcess(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	_, theirs := otherProgram(t, s)

	id, code := status(t, d, "theirs")
	require.Equal(t, codes.OK, code)
	require.Equal(t, theirs, id)
	id, err := create(t, d, "theirs", blue)
	require.NoError(t, err)
	require.Equal(t, theirs, id, "adopted")

	process := s.running(t, "theirs")[0].ID
	require.NoError(t, remove(t, d, "theirs", theirs))
	require.False(t, process.Alive(), "gone when the call says so, though it is not our child")
	_, code = status(t, d, "theirs")
	require.Equal(t, codes.NotFound, code)
	eventually(t, "its parent waits for it", func() bool {
		return s.account(t) == ledger.Account{Created: 1, Deleted: 1}
	})
}

func TestNoProcessSurvivesItsProgram(t *testing.T) {
	s := newSite(t)
	program, _ := otherProgram(t, s)
	process := s.running(t, "theirs")[0].ID
	require.NoError(t, program.Process.Kill())
	eventually(t, "the process ends by itself", func() bool { return !process.Alive() })
	_, code := status(t, s.driver(t), "theirs")
	require.Equal(t, codes.NotFound, code)
}

func TestCloseLeavesNobody(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	for _, name := range []string{"a", "b"} {
		_, err := create(t, d, name, blue)
		require.NoError(t, err)
	}
	require.Len(t, s.host.Close(), 2)
	survivors, err := s.book.Survivors()
	require.NoError(t, err)
	require.Empty(t, survivors)
	require.Equal(t, ledger.Account{Created: 2, Deleted: 2}, s.account(t))
	require.Empty(t, s.host.Close())
}

func TestDeletedMeansWaitedFor(t *testing.T) {
	s := newSite(t)
	d := s.driver(t)
	for n := range 30 {
		_, err := create(t, d, "a", blue)
		require.NoError(t, err)
		require.NoError(t, remove(t, d, "a", ""))
		require.Equal(t, ledger.Account{Created: n + 1, Deleted: n + 1}, s.account(t))
	}
}

// TestUserDataIsNotShown looks where every user of the computer can look.
func TestUserDataIsNotShown(t *testing.T) {
	s := newSite(t)
	const secret = "correct-horse-battery"
	request := &driver.CreateMachineRequest{Machine: newMachine("a"), Class: class(blue), Secret: userData(secret)}
	_, err := s.driver(t).CreateMachine(t.Context(), request)
	require.NoError(t, err)
	pid := s.running(t, "a")[0].ID.PID
	flags := "eww"
	if runtime.GOOS == "darwin" {
		flags = "-Eww"
	}
	shown, err := exec.Command("ps", flags, "-p", fmt.Sprint(pid)).CombinedOutput()
	require.NoError(t, err)
	require.Contains(t, string(shown), "machine a", "arguments")
	if runtime.GOOS == "linux" { // others may hide it
		require.Contains(t, string(shown), "MILLWRIGHT_AGENT", "environment")
	}
	require.NotContains(t, string(shown), secret)
	require.NoError(t, filepath.WalkDir(s.dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		require.NotContains(t, string(text), secret, path)
		return err
	}))
}
