package main

import (
	"bufio"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// asTry is the environment variable that makes this test program run as the command.
const asTry = "TEST_AS_TRY"

func TestMain(m *testing.M) {
	if os.Getenv(asTry) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestTry: the commands of the guide work. An interrupt ends everything and removes the folder.
func TestTry(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	c := exec.Command(self, "--metrics-bind-address=", "--health-bind-address=", "--simulated-create=20ms", "--simulated-boot=100ms")
	c.Env = append(os.Environ(), asTry+"=1")
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	defer func() { _ = c.Process.Kill() }()
	guide := map[string]string{} // the rest of a line, by its beginning
	lines := bufio.NewScanner(out)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "Ctrl-C") {
		line := strings.TrimSpace(lines.Text())
		for _, begin := range []string{"export KUBECONFIG=", "alias kubectl=", "ls "} {
			if rest, found := strings.CutPrefix(line, begin); found {
				guide[begin] = rest
			}
		}
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	kubectl := func(args ...string) string {
		k := exec.Command(guide["alias kubectl="], args...)
		k.Env = append(os.Environ(), "KUBECONFIG="+guide["export KUBECONFIG="])
		text, err := k.CombinedOutput()
		require.NoError(t, err, "%s", text)
		return string(text)
	}
	vms := func() int {
		files, _ := os.ReadDir(guide["ls "])
		return len(files)
	}
	running := func(n int) func() bool {
		return func() bool {
			return strings.Count(kubectl("get", "machines", "--no-headers"), "Running") == n && vms() == n
		}
	}
	eventually(t, "three machines", running(3))
	kubectl("scale", "machinedeployment", "web", "--replicas=4")
	eventually(t, "four machines", running(4))
	kubectl("patch", "machinedeployment", "web", "--type=merge", "-p", `{"spec":{"template":{"spec":{"class":{"name":"large"}}}}}`)
	eventually(t, "four large machines", func() bool {
		return strings.Count(kubectl("get", "nodes", "--no-headers", "-L", "node.kubernetes.io/instance-type"), " l") == 4 && running(4)()
	})

	pool := func(state string) func() bool {
		return func() bool {
			return strings.HasPrefix(strings.Join(strings.Fields(kubectl("get", "mwp", "--no-headers")), " "), "batch "+state+" ")
		}
	}
	eventually(t, "the pool", pool("Running 2 2 2"))
	kubectl("scale", "mwp", "batch", "--replicas=4")
	eventually(t, "four machines of the pool", pool("Running 4 4 4"))

	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	require.NoError(t, c.Wait())
	_, err = os.Stat(guide["export KUBECONFIG="])
	require.ErrorIs(t, err, os.ErrNotExist)
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(5 * time.Minute); !holds(); <-tick.C {
		require.True(t, time.Now().Before(end), "not within 5 min: %s", what)
	}
}
