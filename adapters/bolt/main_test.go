package bolt_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// childVariable makes this test binary a child process instead of a test. It names what to do, and
// childPath names the file to do it with.
const (
	childVariable = "MILLWRIGHT_BOLT_CHILD"
	childPath     = "MILLWRIGHT_BOLT_PATH"
)

func TestMain(m *testing.M) {
	switch os.Getenv(childVariable) {
	case "":
		os.Exit(m.Run())
	case "write":
		writeForEver(os.Getenv(childPath))
	case "hold":
		holdOpen(os.Getenv(childPath))
	}
}

// child is another process.
type child struct {
	*exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, what, path string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0])} //nolint:gosec // this binary
	c.Env = append(os.Environ(), childVariable+"="+what, childPath+"="+path)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	c.lines = bufio.NewScanner(out)
	require.NoError(t, c.Start())
	return c
}

// kill ends the child as a crash does, and returns the lines that it had written and that were not
// read.
func (c *child) kill(t *testing.T) (rest []string) {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	for c.lines.Scan() {
		rest = append(rest, c.lines.Text())
	}
	_ = c.Wait()
	return rest
}

// say writes one line at once.
func say(format string, args ...any) {
	if _, err := os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n"); err != nil {
		os.Exit(1)
	}
}
