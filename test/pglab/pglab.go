// Package pglab starts a PostgreSQL server for tests, from the programs of the distribution, in a directory and on a unix
// socket. As root it starts the server as the user nobody, because PostgreSQL refuses to run as root.
package pglab

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// ErrNotInstalled says that the programs of PostgreSQL are not there.
var ErrNotInstalled = errors.New("PostgreSQL is not installed: no initdb in PATH or /usr/lib/postgresql; Debian has it in the package postgresql")

// Server is a PostgreSQL server. New makes it.
type Server struct {
	dir      string
	programs string
	settings []string
	process  *exec.Cmd
	ended    chan struct{}
	log      bytes.Buffer
}

// nobody is the user of the server, if this process is root.
const nobody = 65534

// New makes a server with its data in a new directory, and starts it. settings are more of its settings, as in
// "fsync=off". The error is ErrNotInstalled if there is no PostgreSQL.
func New(settings ...string) (*Server, error) {
	programs, err := find()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "pg") // short: the socket is in it
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, programs: programs, settings: settings}
	if os.Getuid() == 0 {
		if err := os.Chown(dir, nobody, nobody); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	initdb := s.command("initdb", "-D", s.Data(), "-U", "fleet", "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync")
	if out, err := initdb.CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("initdb: %w: %s", err, out), os.RemoveAll(dir))
	}
	if err := s.Start(); err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return s, nil
}

// find returns the directory of the programs, the newest if there are several.
func find() (string, error) {
	installed, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb") // the pattern is right
	slices.SortFunc(installed, func(a, b string) int { return len(b) - len(a) })
	if len(installed) > 0 {
		slices.Sort(installed)
		return filepath.Dir(installed[len(installed)-1]), nil
	}
	path, err := exec.LookPath("initdb")
	if err != nil {
		return "", ErrNotInstalled
	}
	if path, err = filepath.EvalSymlinks(path); err != nil {
		return "", err
	}
	return filepath.Dir(path), nil
}

// command returns a command of PostgreSQL that runs as an ordinary user.
func (s *Server) command(program string, args ...string) *exec.Cmd {
	c := exec.Command(filepath.Join(s.programs, program), args...)
	c.Dir = s.dir
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() == 0 {
		c.SysProcAttr.Credential = &syscall.Credential{Uid: nobody, Gid: nobody}
	}
	return c
}

// Data is the directory of the server's data.
func (s *Server) Data() string { return filepath.Join(s.dir, "data") }

// Socket is the path of the server's socket.
func (s *Server) Socket() string { return filepath.Join(s.dir, ".s.PGSQL.5432") }

// URL is the address of the server for its owner, the user fleet.
func (s *Server) URL() string { return "postgres://fleet@/postgres?host=" + s.dir }

// startLimit is how long a server may take to start.
const startLimit = time.Minute

// Start starts the server again, after Kill or Stop, and waits until it takes connections.
func (s *Server) Start() error {
	args := []string{"-D", s.Data(), "-k", s.dir, "-c", "listen_addresses=", "-c", "timezone=UTC"}
	for _, setting := range s.settings {
		args = append(args, "-c", setting)
	}
	s.log.Reset()
	s.process = s.command("postgres", args...)
	s.process.Stderr = &s.log
	if err := s.process.Start(); err != nil {
		return err
	}
	s.ended = make(chan struct{})
	go func() {
		defer close(s.ended)
		_ = s.process.Wait()
	}()
	for deadline := time.Now().Add(startLimit); ; {
		if s.command("pg_isready", "-q", "-h", s.dir, "-U", "fleet", "-d", "postgres").Run() == nil {
			return nil
		}
		select {
		case <-s.ended:
			return fmt.Errorf("postgres has ended: %s", s.log.String())
		case <-time.After(20 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			s.Kill()
			return fmt.Errorf("postgres does not start within %v: %s", startLimit, s.log.String())
		}
	}
}

// Signal sends a signal to the server's first process. Suspended, it takes no new connections; those that it has go
// on.
func (s *Server) Signal(sig syscall.Signal) error { return s.process.Process.Signal(sig) }

// SignalAll sends a signal to all processes of the server.
func (s *Server) SignalAll(sig syscall.Signal) error {
	own := s.process.Process.Pid
	children, err := childrenOf(own)
	for _, pid := range append(children, own) {
		err = errors.Join(err, syscall.Kill(pid, sig))
	}
	return err
}

// childrenOf returns the processes that a process has started.
func childrenOf(parent int) ([]int, error) {
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	var children []int
	for _, path := range stats {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		var pid, of int
		var state string
		after := text[bytes.LastIndexByte(text, ')')+1:]
		if _, err := fmt.Sscan(string(text), &pid); err != nil {
			continue
		}
		if _, err := fmt.Sscan(string(after), &state, &of); err == nil && of == parent {
			children = append(children, pid)
		}
	}
	return children, err
}

// Kill ends all processes of the server with SIGKILL, as a loss of power would.
func (s *Server) Kill() {
	_ = s.SignalAll(syscall.SIGKILL)
	<-s.ended
}

// Stop ends the server in an orderly way.
func (s *Server) Stop() {
	_ = s.Signal(syscall.SIGINT)
	<-s.ended
}

// Close ends the server, and removes its data.
func (s *Server) Close() error {
	s.Kill()
	err := os.RemoveAll(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
