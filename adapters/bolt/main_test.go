package bolt_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// childVariable is the variable that makes this test binary a child process: its value says what the
// child does. childPath is the variable with the path of the file.
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

// child is a child process.
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

// kill kills the child (SIGKILL), and returns its lines that were not read yet.
func (c *child) kill(t *testing.T) (rest []string) {
	t.Helper()
	require.NoError(t, c.Process.Kill())
	for c.lines.Scan() {
		rest = append(rest, c.lines.Text())
	}
	_ = c.Wait()
	return rest
}

// say prints a line, without a buffer.
func say(format string, args ...any) {
	if _, err := os.Stdout.WriteString(fmt.Sprintf(format, args...) + "\n"); err != nil {
		os.Exit(1)
	}
}
