// Package lab runs a real API server for the tests of a package: the program of test/kubelab, which is
// built once and then cached. The server listens on loopback, and has its state in a temporary folder. It
// ends with the tests, even if they are killed.
package lab

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// source is the folder of the server's module, relative to the repository's root.
const source = "test/kubelab"

// patience is how long a server may take to start or to end.
const patience = 2 * time.Minute

// Lab is a running server.
type Lab struct {
	// Config is the administrator's access, without a client-side rate limit.
	Config *rest.Config
	// Dir is the server's folder. It has the log, and a kubeconfig for each user.
	Dir string

	server *exec.Cmd
	stdin  io.Closer
	ended  chan error
}

// Start starts a server with flags of kubelab, such as "--controllers=disruption", and returns once it is
// ready. The first start on a computer builds the program, which takes 5 to 8 minutes.
func Start(flags ...string) (*Lab, error) {
	program, err := build()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "lab")
	if err != nil {
		return nil, err
	}
	l := &Lab{Dir: dir, ended: make(chan error, 1)}
	if err := l.run(program, flags); err != nil {
		return nil, errors.Join(err, l.Stop())
	}
	return l, nil
}

// run starts the program, and waits until it is ready.
func (l *Lab) run(program string, flags []string) error {
	args := append([]string{"--dir=" + l.Dir, "--exit-on-stdin-close"}, flags...)
	l.server = exec.Command(program, args...)
	l.server.SysProcAttr = ownProcessGroup() // so that Ctrl-C does not end the server before Stop does
	var stderr bytes.Buffer
	l.server.Stderr = &stderr
	stdin, err := l.server.StdinPipe()
	if err != nil {
		return err
	}
	l.stdin = stdin
	stdout, err := l.server.StdoutPipe()
	if err != nil {
		return err
	}
	if err := l.server.Start(); err != nil {
		return err
	}
	ready := make(chan bool, 1)
	go func() {
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			if strings.HasPrefix(lines.Text(), "ready ") {
				ready <- true
			}
		}
		l.ended <- l.server.Wait()
	}()
	select {
	case <-ready:
	case err := <-l.ended:
		l.ended <- err
		return fmt.Errorf("the server ended before it was ready (%v): %s", err, stderr.String())
	case <-time.After(patience):
		return errors.New("the server was not ready in time")
	}
	l.Config, err = l.As("admin")
	return err
}

// ownProcessGroup returns attributes that start a process in a new process group.
func ownProcessGroup() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// As returns the access of a user: admin or one from the flags of Start.
func (l *Lab) As(user string) (*rest.Config, error) {
	config, err := clientcmd.BuildConfigFromFlags("", l.Kubeconfig(user))
	if err != nil {
		return nil, err
	}
	config.QPS = -1
	return config, nil
}

// Suspend stops the server's process (SIGSTOP): it does not answer, but its connections stay open.
func (l *Lab) Suspend() error { return l.server.Process.Signal(syscall.SIGSTOP) }

// Resume continues the server's process after Suspend.
func (l *Lab) Resume() error { return l.server.Process.Signal(syscall.SIGCONT) }

// Stop ends the server and removes its folder.
func (l *Lab) Stop() error {
	var err error
	if l.stdin != nil {
		err = l.stdin.Close()
	}
	if l.server != nil && l.server.Process != nil {
		select {
		case <-l.ended:
		case <-time.After(patience):
			err = errors.Join(err, errors.New("the server did not end by itself"), l.server.Process.Kill())
		}
	}
	return errors.Join(err, os.RemoveAll(l.Dir))
}

// build returns the path of the server's program.
func build() (string, error) {
	root, err := findRoot()
	if err != nil {
		return "", err
	}
	c := exec.Command("go", "run", "./ensure")
	c.Dir = filepath.Join(root, source)
	c.Env = append(os.Environ(), "GOWORK=off")
	c.Stderr = os.Stderr
	out, err := c.Output()
	if err != nil {
		return "", fmt.Errorf("build the test API server: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}

// findRoot looks for the repository above the working directory.
func findRoot() (string, error) {
	at, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(at, source, "go.mod")); err == nil {
			return at, nil
		}
		above := filepath.Dir(at)
		if above == at {
			return "", errors.New(source + " is in no folder above the working directory")
		}
		at = above
	}
}
