package etcd

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
)

// program is the etcd server of test/etcdlab, and shared a member that most tests use, each with a prefix of
// its own.
var (
	program string
	shared  *server
)

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "etcd")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer func() { _ = os.RemoveAll(dir) }()
	program = filepath.Join(dir, "etcd")
	build := exec.Command("go", "build", "-o", program, "./serve")
	build.Dir = filepath.Join("..", "..", "test", "etcdlab")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build the etcd server: %v\n%s", err, out)
		return 1
	}
	shared = &server{dir: filepath.Join(dir, "shared")}
	if err := shared.begin("-fast"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer shared.kill()
	return m.Run()
}

// server is a member of etcd in a process of its own.
type server struct {
	dir      string
	flags    []string
	endpoint string
	process  *exec.Cmd
}

// begin starts the process, and returns when it serves.
func (s *server) begin(flags ...string) error {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	s.flags = append([]string{"-dir", s.dir}, flags...)
	s.process = exec.Command(program, s.flags...)
	s.process.Stderr = os.Stderr
	if _, err := s.process.StdinPipe(); err != nil { // the server ends with this process
		return err
	}
	out, err := s.process.StdoutPipe()
	if err != nil {
		return err
	}
	if err := s.process.Start(); err != nil {
		return err
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		return fmt.Errorf("etcd says nothing: %w", err)
	}
	s.endpoint = line[:len(line)-1]
	return nil
}

// kill ends the process with SIGKILL.
func (s *server) kill() {
	_ = s.process.Process.Kill()
	_ = s.process.Wait()
}

// signal sends a signal to the process.
func (s *server) signal(t *testing.T, sig syscall.Signal) {
	t.Helper()
	require.NoError(t, s.process.Process.Signal(sig))
}

// newServer starts a member for one test.
func newServer(t *testing.T, flags ...string) *server {
	t.Helper()
	dir, err := os.MkdirTemp("", "etcd") // t.TempDir may be too long for a socket
	require.NoError(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	s := &server{dir: dir}
	require.NoError(t, s.begin(flags...))
	t.Cleanup(func() { s.kill() })
	return s
}

// restart starts the process again, with the same flags.
func (s *server) restart(t *testing.T) {
	t.Helper()
	require.NoError(t, s.begin(s.flags[2:]...))
}

// dial returns a client of a member.
func (s *server) dial(t testing.TB) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{s.endpoint}, DialTimeout: 5 * time.Second, Logger: zap.NewNop()})
	require.NoError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

var prefixes atomic.Int64

// prefix returns one that no other test has.
func prefix() string { return fmt.Sprintf("/test-%d", prefixes.Add(1)) }

// within returns a context that ends a hang.
func within(t testing.TB) context.Context {
	t.Helper()
	ctx, done := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(done)
	return ctx
}
